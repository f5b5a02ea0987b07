//! Closing servers.

use crate::connections::Connection;
use crate::engine::Step;
use crate::event::Action;
use crate::ids::Conn;
use crate::message::CoreMessage;
use crate::protocol::Protocol;
use crate::server::{Holder, Server, ServerState};

impl<P: Protocol> Step<'_, P> {
    /// Closes a server that no client holds, with a goodbye if it was logged in.
    pub fn close_server(&mut self, conn: Conn) {
        self.disperse(conn);
        if let Connection::Server(server) = self.engine.connections.take(conn) {
            if !server.is_new() {
                P::goodbye(self.ports.out(conn));
            }
            self.ports.close(conn);
            // Before another server is connected for those who wait.
            self.host_shown(&server);
            self.forget_server(&server);
        }
    }

    /// Removes a server from its pool and from all counts. Clients that wait, here or at other
    /// cores, may connect another one.
    pub(crate) fn forget_server(&mut self, server: &Server<P>) {
        let pool = self.engine.core_state.pool(server.pool);
        pool.servers = pool.servers.checked_sub(1).expect("no more servers go than came");
        if pool.servers == 0 {
            pool.choice.unmark();
        }
        if let Some(place) = &server.place {
            place.leave(server.is_new());
        }
        if server.is_new() {
            pool.connecting = pool.connecting.checked_sub(1).expect("it was being connected");
            pool.slow -= u32::from(server.is_slow);
        } else {
            pool.shared.server_dies();
        }
        pool.remove_idle(server.conn);
        if let ServerState::Held(Holder::Job(job, _)) = &server.state {
            P::lose_job(pool, job);
        }
        let (shared, own) = (pool.shared.clone(), self.engine.core_state.core);
        for (pool, core) in self.engine.core_state.shared.counts.server_gone(&shared) {
            if core == own {
                self.grow(pool);
            } else {
                self.ports.act(Action::Tell { core, message: CoreMessage::Room { pool } });
            }
        }
        self.grow(server.pool);
    }

    /// Forgets a server, and closes its connection without a goodbye.
    pub(crate) fn drop_server(&mut self, conn: Conn, gone: bool) {
        self.disperse(conn);
        if let Connection::Server(server) = self.engine.connections.take(conn) {
            if gone {
                self.ports.abandon(conn)
            } else {
                self.ports.close(conn)
            }
            self.forget_server(&server);
        }
    }
}
