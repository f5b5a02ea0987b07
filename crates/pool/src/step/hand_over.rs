//! Handing servers over: a core whose client waits gets an idle server of another core.

use crate::connections::Connection;
use crate::engine::{Engine, Step};
use crate::event::Action;
use crate::ids::{Conn, Core, PoolId};
use crate::protocol::Protocol;
use crate::server::ServerState;
use crate::time::Now;
use crate::transfer::{Moving, Transfer};

/// Microseconds by which another core must have asked before the first client here began to wait,
/// to get a free server before that client. Handing a server over costs more than a transaction.
const PATIENCE_US: u64 = 5_000;

impl<P: Protocol> Step<'_, P> {
    /// Hands over an idle server whose output has been sent, if another core has asked for one
    /// meanwhile.
    pub(crate) fn offer(&mut self, server: Conn) {
        let Some(s) = self.engine.connections.server(server) else { return };
        if !matches!(s.state, ServerState::Idle) || self.ports.queued(server) > 0 {
            return;
        }
        let id = s.pool;
        if let Some(core) = self.next_core(id) {
            self.hand_over(server, core);
        }
    }

    /// Moves an idle server to another core. No output may be queued to it.
    pub(crate) fn hand_over(&mut self, conn: Conn, to: Core) {
        let Connection::Server(mut server) = self.engine.connections.take(conn) else { return };
        let pool = self.engine.core_state.pool(server.pool);
        pool.remove_idle(conn);
        pool.asking.retain(|(core, _)| *core != to);
        pool.servers = pool.servers.checked_sub(1).expect("no more servers go than came");
        pool.counters.pool.handovers += 1;
        server.state = ServerState::Resetting;
        P::depart(&mut server.session);
        let transfer = Transfer(Moving::Server(*server));
        self.ports.act(Action::HandOver { conn, to, transfer: Box::new(transfer) });
    }

    /// Gives an idle server to another core whose client waits, or remembers that the core waits.
    pub(crate) fn core_asks(&mut self, id: PoolId, core: Core, since: Now) {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let Some(pool) = core_state.find_pool(id) else { return };
        let delay = pool.settings.options.server_check_delay.filter(|_| P::ASKS);
        // The coldest may have been idle for too long even if the last was not.
        let is_fresh = |server: Conn| match (delay, connections.get(server)) {
            (Some(delay), Connection::Server(server)) => !server.is_stale(delay, self.now),
            _ => true,
        };
        let may_go = |server| self.ports.queued(server) == 0 && is_fresh(server);
        if let Some(server) = pool.take_coldest(may_go) {
            return self.hand_over(server, core);
        }
        pool.asking.retain(|(other, _)| *other != core);
        pool.asking.push((core, since));
        if self.are_stale(id) {
            self.ask_idle(id);
        }
    }

    /// Returns the core that gets a free server before the first client here, if any. A job here
    /// does not hold a server back from a client of another core.
    #[inline]
    pub(crate) fn next_core(&mut self, pool: PoolId) -> Option<Core> {
        let pool = self.engine.core_state.pool_in_use(pool);
        let (core, since) = *pool.asking.iter().min_by_key(|(_, since)| *since)?;
        let first = pool.waiters.first_client();
        let ours = first.and_then(|client| Some(self.engine.connections.client(client)?.waiting));
        let theirs_first = ours.is_none_or(|ours| since.0 + PATIENCE_US < ours.0);
        theirs_first.then_some(core)
    }
}
