//! Handing servers over: a core whose client waits gets an idle server of another core.

use crate::engine::Step;
use crate::ground::ids::{Conn, Core, PoolId};
use crate::ground::time::Now;
use crate::state::connections::Connection;
use crate::state::event::Action;
use crate::state::server::{ServerState, Transfer};

impl Step<'_> {
    /// Hands an idle server over once its output has been sent, if another core has asked for one
    /// meanwhile.
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

    /// Moves an idle server to another core. No output may be queued to it.
    pub(crate) fn hand_over(&mut self, conn: Conn, to: Core) {
        let Connection::Server(mut server) = self.engine.connections.take(conn) else { return };
        let pool = self.engine.core_state.pool(server.pool);
        pool.remove_idle(conn);
        pool.asking.retain(|(core, _)| *core != to);
        pool.servers = pool.servers.checked_sub(1).expect("no more servers go than came");
        pool.counters.handovers += 1;
        server.state = ServerState::Resetting;
        server.session.wishes.clear();
        self.ports.act(Action::HandOver { conn, to, transfer: Box::new(Transfer(*server)) });
    }

    /// Takes a server in from another core.
    pub(crate) fn arrived(&mut self, conn: Conn, transfer: Transfer) {
        let mut server = transfer.0;
        server.conn = conn;
        let core_state = &mut self.engine.core_state;
        server.session.settings = core_state.settings(server.session.settings.edit());
        server.session.defaults.settings =
            core_state.settings(server.session.defaults.settings.edit());
        let id = server.pool;
        // The pool may have been closed on this core since it asked.
        let shared =
            core_state.shared.pool_of(id).expect("a pool that has a server is not forgotten");
        let pool = core_state.open_pool(&shared, self.now);
        pool.servers += 1;
        pool.ask_due = true;
        server.close_needed |= server.reconnects != pool.shared.reconnects();
        self.engine.connections.set(conn, Connection::Server(Box::new(server)));
        // Bytes that came from the server on the way.
        self.server_bytes(conn, &[]);
        self.free(conn);
        self.grow(id);
    }

    /// Gives an idle server to another core whose client waits, or remembers that the core waits.
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
