//! Flow control. Refrain stops reading a connection while too many bytes wait for the client or
//! server that they go to, or while a waiting client has sent too much.

use crate::client::{Phase, WaitingFor};
use crate::connections::Connections;
use crate::engine::Flow;
use crate::event::Action;
use crate::ids::{ClientSerial, Conn, Core};
use crate::message::CoreMessage;
use crate::ports::Ports;
use crate::protocol::Protocol;

/// Bytes of input that Refrain holds for a client that waits, before it stops reading the client.
const HELD_BYTES_MAX: usize = 64 * 1024;

impl<P: Protocol> Flow<'_, P> {
    /// Applies back-pressure (E30). Stops reading a client that waits and of which more than
    /// `HELD_BYTES_MAX` bytes are held. Reads a paused client again once the bytes queued to it and
    /// to its server have fallen to the pool's low mark.
    pub fn regulate(self, conn: Conn) {
        let Some(client) = self.connections.client(conn) else { return };
        let enters = matches!(P::phase(&client.session), Phase::Entering | Phase::Checking);
        let waits = enters || client.waiting_for != WaitingFor::Nothing;
        if waits && client.inbox.held() > HELD_BYTES_MAX {
            return self.stop_reading(conn);
        }
        let low = self.core_state.low_mark(client.pool);
        let queued = self.ports.queued(conn).max(client.link.map_or(0, |s| self.ports.queued(s)));
        if client.paused && queued <= low {
            client.paused = false;
            self.ports.act(Action::Resume { conn });
        }
    }

    /// Stops reading a client's connection until [`Self::regulate`] resumes it.
    #[inline]
    pub fn stop_reading(self, conn: Conn) {
        if let Some(client) = self.connections.client(conn)
            && !std::mem::replace(&mut client.paused, true)
        {
            self.ports.act(Action::Pause { conn });
        }
    }

    /// Tells a client, on whatever core, that the reply for which it waits was fetched, or will not
    /// come.
    pub fn tell_fetched(self, core: Core, conn: Conn, serial: ClientSerial) {
        if core == self.core_state.core {
            self.fetched(conn, serial);
        } else {
            self.ports.act(Action::Tell { core, message: CoreMessage::Fetched { conn, serial } });
        }
    }

    /// Reads on a client that has waited for a reply that another has fetched.
    pub(crate) fn fetched(self, conn: Conn, serial: ClientSerial) {
        let Some(client) = self.connections.client(conn) else { return };
        if client.serial == serial && client.waiting_for == WaitingFor::Fetch {
            self.connections.unblock(conn);
        }
    }
}

/// Reads the connection that feeds a connection again, since little enough is queued to the latter
/// now. Returns false for a server that no client holds.
pub(crate) fn resume_feeder<P: Protocol>(
    connections: &mut Connections<P>,
    ports: &mut Ports<P>,
    conn: Conn,
) -> bool {
    if let Some(client) = connections.client(conn) {
        let (is_paused, link) = (client.paused, client.link);
        if is_paused {
            connections.read_on(conn);
        }
        if let Some(server) = link.and_then(|server| connections.server(server))
            && std::mem::take(&mut server.paused)
        {
            ports.act(Action::Resume { conn: server.conn });
        }
        return true;
    }
    let Some(server) = connections.server(conn) else { return true };
    let client = server.client();
    if let Some(client) = client.and_then(|client| connections.client(client))
        && client.paused
    {
        let client = client.conn;
        connections.read_on(client);
    }
    client.is_some()
}
