//! Lines for the log.

use crate::client::Client;
use crate::disconnect::DisconnectReason;
use crate::engine::Step;
use crate::event::{Action, Level, Note};
use crate::ids::{Conn, Peer, PoolId};
use crate::parts::Parts;
use crate::pool::Pool;
use crate::ports::Ports;
use crate::protocol::Protocol;

/// Logs a line about a client of a pool.
pub fn note_client<P: Parts>(
    ports: &mut Ports<P>,
    level: Level,
    cause: DisconnectReason,
    (client, pool): (&Client<P>, Option<&Pool<P>>),
    detail: String,
) {
    if !ports.notes(level) {
        return;
    }
    let peer = match &client.peer {
        Peer::Tcp(address) => address.to_string(),
        Peer::Unix { .. } => "unix".to_owned(),
    };
    ports.act(Action::Note(Box::new(Note {
        level,
        cause: cause.key(),
        client: Some(client.serial),
        peer: Some(peer),
        database: pool.map(|pool| pool.shared.database.clone()),
        user: pool.map(|pool| pool.shared.user.clone()),
        detail,
    })));
}

impl<P: Protocol> Step<'_, P> {
    /// Logs a line about a client.
    pub fn note_client(
        &mut self,
        conn: Conn,
        level: Level,
        cause: DisconnectReason,
        detail: String,
    ) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let pool = self.engine.core_state.peek_pool(client.pool);
        note_client(self.ports, level, cause, (client, pool), detail);
    }

    /// Logs a line about a pool.
    pub fn note_pool(
        &mut self,
        pool: PoolId,
        level: Level,
        cause: DisconnectReason,
        detail: String,
    ) {
        let Some(pool) = self.engine.core_state.peek_pool(pool) else { return };
        self.ports.act(Action::Note(Box::new(Note {
            level,
            cause: cause.key(),
            client: None,
            peer: None,
            database: Some(pool.shared.database.clone()),
            user: Some(pool.shared.user.clone()),
            detail,
        })));
    }
}
