//! Servers with traces: which idle server a client gets, where clients leave something behind on
//! servers that nothing removes.
//!
//! A pool lends the server used last. Once a server of the pool is marked
//! ([`Protocol::is_marked`]), the pool lends each client the idle server that suits it best
//! ([`Protocol::suits`]), and any if none does: nobody waits for a better one. Where one that suits
//! was missed, a tick connects a new server, in place of an idle marked one if the pool is full.

use std::time::Duration;

use crate::connections::{Connection, Connections};
use crate::engine::{Engine, Step};
use crate::ids::{Conn, PoolId};
use crate::protocol::Protocol;

/// Time between two servers of a pool that are connected since one was missed.
const RENEWAL_PAUSE: Duration = Duration::from_secs(1);

impl<P: Protocol> Step<'_, P> {
    /// Takes the idle server of a marked pool out that suits a client best; of several, the one
    /// used last.
    #[cold]
    pub(crate) fn pick(&mut self, id: PoolId, client: Conn) -> Option<Conn> {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let pool = core_state.pool_in_use(id);
        let Connection::Client(client) = connections.get(client) else { return None };
        if !pool.waiters.is_empty() || pool.choice.paused {
            return None;
        }
        let suits = |server: &Conn| match connections.get(*server) {
            Connection::Server(server) => P::suits(&client.session, &server.session),
            _ => None,
        };
        let rated = pool.idle().iter().rev().map(|server| (suits(server), *server));
        let (suits, server) = rated.min_by_key(|(suits, _)| suits.unwrap_or(usize::MAX))?;
        pool.choice.missed |= suits.is_none();
        pool.remove_idle(server);
        Some(server)
    }

    /// Connects a server for clients that no server suited lately. A pool of one server stays as it
    /// is: the clients would mark the next one as well.
    pub(crate) fn renew_marked(&mut self, id: PoolId) {
        let now = self.now;
        let leaves = self.engine.core_state.leaves(id, now);
        let Some(pool) = self.engine.core_state.find_pool(id) else { return };
        let waits =
            pool.connecting > 0 || now < pool.retry.max(pool.choice.renewed.after(RENEWAL_PAUSE));
        if !pool.choice.missed || waits {
            return;
        }
        pool.choice.missed = false;
        pool.choice.renewed = now;
        if leaves || pool.choice.paused || pool.removed || pool.settings.options.pool_size < 2 {
            return;
        }
        if !self.try_connect(id, 0)
            && let Some(marked) = self.coldest_marked(id)
        {
            self.close_server(marked);
            self.try_connect(id, 0);
        }
    }

    /// Returns the marked server of a pool that has been idle for longest.
    fn coldest_marked(&mut self, id: PoolId) -> Option<Conn> {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        core_state.pool(id).idle().iter().copied().find(|conn| is_marked(connections, *conn))
    }
}

/// Whether a connection is a server with traces of a client.
pub(crate) fn is_marked<P: Protocol>(connections: &Connections<P>, conn: Conn) -> bool {
    match connections.get(conn) {
        Connection::Server(server) => P::is_marked(&server.session),
        Connection::Client(_) | Connection::Side(_) | Connection::Free => false,
    }
}
