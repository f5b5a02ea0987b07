//! Servers on their way between cores: a core whose client waits gets an idle one of another core.

use crate::engine::Step;
use crate::ground::ids::{Conn, Core, PoolId};
use crate::ground::time::Now;
use crate::state::connections::Connection;
use crate::state::event::Action;
use crate::state::server::{ServerState, Transfer};

impl Step<'_> {
    /// An idle server has sent what was queued on it: another core may have asked for it meanwhile.
    pub(crate) fn offer(&mut self, server: Conn) {
        let Some(s) = self.engine.connections.server(server) else { return };
        if !matches!(s.state, ServerState::Idle) || self.ports.queued(server) > 0 {
            return;
        }
        let id = s.pool;
        let first = self.engine.core_state.pool(id).first_waiting();
        if let Some(core) = self.next_core(id, first) {
            self.hand_over(server, core);
        }
    }

    /// Moves an idle server, on which nothing is queued, to another core.
    pub(crate) fn hand_over(&mut self, conn: Conn, to: Core) {
        let Connection::Server(mut server) = self.engine.connections.take(conn) else { return };
        let pool = self.engine.core_state.pool(server.pool);
        pool.remove_idle(conn);
        pool.asking.retain(|(core, _)| *core != to);
        pool.servers = pool.servers.checked_sub(1).expect("no more servers go than came");
        pool.counters.handovers += 1;
        server.state = ServerState::Resetting;
        server.wishes.clear();
        self.ports.act(Action::HandOver { conn, to, transfer: Box::new(Transfer(*server)) });
    }

    /// A server from another core.
    pub(crate) fn arrived(&mut self, conn: Conn, transfer: Transfer) {
        let mut server = transfer.0;
        server.conn = conn;
        let core_state = &mut self.engine.core_state;
        server.settings = core_state.settings(server.settings.edit());
        server.defaults.settings = core_state.settings(server.defaults.settings.edit());
        let id = server.pool;
        // Nobody may be here for it any more.
        let shared =
            core_state.shared.pool_of(id).expect("a pool that has a server is not forgotten");
        let pool = core_state.open_pool(&shared, self.now);
        pool.servers += 1;
        pool.ask_due = true;
        server.close_needed |= server.reconnects != pool.shared.reconnects();
        self.engine.connections.set(conn, Connection::Server(Box::new(server)));
        // What came from it on the way.
        self.server_bytes(conn, &[]);
        self.free(conn);
        self.grow(id);
    }

    /// Another core has clients that wait.
    pub(crate) fn core_asks(&mut self, id: PoolId, core: Core, since: Now) {
        let Some(pool) = self.engine.core_state.find_pool(id) else { return };
        match pool.take_coldest(|server| self.ports.queued(server) == 0) {
            Some(server) => self.hand_over(server, core),
            None => {
                pool.asking.retain(|(other, _)| *other != core);
                pool.asking.push((core, since));
            }
        }
    }
}
