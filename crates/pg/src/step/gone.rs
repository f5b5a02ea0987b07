//! The end of server connections: closed by Refrain, gone by themselves, or broken. Their clients'
//! sessions end with them.

use crate::engine::Step;
use crate::ground::disconnect::DisconnectReason;
use crate::ground::ids::Conn;
use crate::state::connections::Connection;
use crate::state::core_state::note;
use crate::state::event::{Action, Level};
use crate::state::server::{Server, ServerState};
use crate::state::shared::CoreMessage;
use refrain_wire::write;

impl Step<'_> {
    /// Closes a server that no client holds, with Terminate if it was logged in.
    pub(crate) fn close_server(&mut self, conn: Conn) {
        if let Connection::Server(server) = self.engine.connections.take(conn) {
            let logged_in =
                !matches!(server.state, ServerState::Connecting | ServerState::Login(_));
            if logged_in {
                write::terminate(self.ports.out(conn));
            }
            self.ports.close(conn);
            self.forget_server(&server);
        }
    }

    /// Removes a server from its pool and from all counts. Clients that wait, here or at other
    /// cores, may connect another one.
    pub(crate) fn forget_server(&mut self, server: &Server) {
        let pool = self.engine.core_state.pool(server.pool);
        pool.servers = pool.servers.checked_sub(1).expect("no more servers go than came");
        if matches!(server.state, ServerState::Connecting | ServerState::Login(_)) {
            pool.connecting = pool.connecting.checked_sub(1).expect("it was being connected");
        } else {
            pool.shared.server_dies();
        }
        pool.remove_idle(server.conn);
        if let ServerState::Job(job) = &server.state {
            crate::step::jobs::lost(pool, job);
        }
        let (shared, own) = (pool.shared.clone(), self.engine.core_state.core);
        for (pool, core) in self.engine.core_state.shared.server_gone(&shared) {
            if core == own {
                self.grow(pool);
            } else {
                self.ports.act(Action::Tell { core, message: CoreMessage::Room { pool } });
            }
        }
        self.grow(server.pool);
    }

    /// Handles the loss of a server's connection.
    pub(crate) fn server_gone(&mut self, conn: Conn, why: &str) {
        let Some(server) = self.engine.connections.server(conn) else { return };
        let pool = self.engine.core_state.pool(server.pool);
        let detail = format!("{}, process {}: {why}", pool.settings.host, server.pid);
        note(self.ports, Level::Info, DisconnectReason::ServerGone.key(), pool, detail);
        if matches!(server.state, ServerState::Connecting | ServerState::Login(_)) {
            return self.connect_failed(conn, why);
        }
        let client = server.client();
        let cut = client.is_some_and(|client| self.is_cut(client));
        self.drop_server(conn, true);
        if let Some(client) = client {
            self.server_failed_client(client, DisconnectReason::ServerGone, cut);
        }
    }

    /// Drops a server that has broken the protocol or ends its session, and ends its client's
    /// session.
    pub(crate) fn server_broken(&mut self, conn: Conn, cause: DisconnectReason) {
        let client = self.engine.connections.server(conn).and_then(|server| server.client());
        if let Some(server) = self.engine.connections.server(conn)
            && cause == DisconnectReason::ServerProtocol
        {
            let left = if client.is_some() { "" } else { "; its client had left" };
            let words =
                format!("process {}: {}{left}", server.pid, server.session.outstanding.story());
            let pool = self.engine.core_state.pool(server.pool);
            pool.counters.unexpected_messages += 1;
            note(self.ports, Level::Error, cause.key(), pool, words);
        }
        let cut = client.is_some_and(|client| self.is_cut(client));
        self.drop_server(conn, false);
        if let Some(client) = client {
            self.server_failed_client(client, cause, cut);
        }
    }

    /// Forgets a server, and closes its connection without Terminate.
    pub(crate) fn drop_server(&mut self, conn: Conn, gone: bool) {
        if let Connection::Server(server) = self.engine.connections.take(conn) {
            if gone {
                self.ports.abandon(conn)
            } else {
                self.ports.close(conn)
            }
            self.forget_server(&server);
        }
    }

    /// Ends the session of a client whose server is gone. If `cut`, the client has got half a
    /// message and gets no error.
    pub(crate) fn server_failed_client(
        &mut self,
        client: Conn,
        cause: DisconnectReason,
        cut: bool,
    ) {
        if let Some(c) = self.engine.connections.client(client) {
            c.link = None;
            self.end_client_saying(client, cause, !cut);
        }
    }
}
