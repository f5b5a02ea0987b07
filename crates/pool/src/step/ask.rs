//! Idle servers that are asked whether they are there, before they are lent (`server_check_delay`).
//!
//! The server used last is lent next. If that one was idle for too long, all were. So clients wait,
//! here and at other cores, and as many servers are asked; each goes to the first in line once it
//! has answered. Jobs wait likewise: the first in line may be a client. Where one does not answer, the others that were idle are closed with it, and new
//! ones are connected.

use std::time::Duration;

use crate::engine::Step;
use crate::ids::{Conn, PoolId};
use crate::protocol::Protocol;
use crate::server::ServerState;

impl<P: Protocol> Step<'_, P> {
    /// Whether an idle server was idle for so long that it has to be asked.
    pub(crate) fn is_stale(&mut self, server: Conn, delay: Duration) -> bool {
        let server = self.engine.connections.server(server);
        P::ASKS && server.is_some_and(|server| server.is_stale(delay, self.now))
    }

    /// Whether all idle servers of a pool were idle for so long.
    pub(crate) fn are_stale(&mut self, id: PoolId) -> bool {
        let pool = self.engine.core_state.pool_in_use(id);
        let delay = pool.settings.options.server_check_delay;
        let last = pool.idle().last().copied();
        delay.zip(last).is_some_and(|(delay, last)| self.is_stale(last, delay))
    }

    /// Asks idle servers whether they are there: as many as clients wait for, here and at other
    /// cores, and jobs. Clients and jobs that wait while a server is idle wait for that.
    pub(crate) fn ask_idle(&mut self, id: PoolId) {
        let leaves = self.engine.core_state.leaves(id, self.now);
        loop {
            let pool = self.engine.core_state.pool_in_use(id);
            let jobs = if leaves { 0 } else { pool.waiting_jobs() };
            let wanted = pool.waiting() + pool.asking.len() + jobs;
            if pool.asked as usize >= wanted {
                return;
            }
            let Some(conn) = pool.take_for_job() else { return };
            pool.asked += 1;
            let Some(server) = self.engine.connections.server(conn) else { return };
            server.state = ServerState::Resetting;
            server.since = self.now;
            server.is_asked = true;
            P::ask_server(self, conn);
        }
    }
}
