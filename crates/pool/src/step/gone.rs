//! Servers that have gone, or have broken the protocol. Their clients' sessions end with them, but
//! for reads of which the client has got nothing: they run elsewhere.

use crate::disconnect::DisconnectReason;
use crate::engine::Step;
use crate::event::Level;
use crate::ids::Conn;
use crate::protocol::Protocol;

impl<P: Protocol> Step<'_, P> {
    /// Handles the loss of a server's connection.
    pub(crate) fn server_gone(&mut self, conn: Conn, why: &str) {
        let Some(server) = self.engine.connections.server(conn) else { return };
        let (id, pid, new) = (server.pool, server.pid, server.is_new());
        let host = server.host.clone();
        let detail = format!("{host}, process {pid}: {why}");
        self.note_host(id, &host, Level::Info, DisconnectReason::ServerGone.key(), detail);
        if new {
            return P::connect_failed(self, conn, why);
        }
        self.lose_server(conn, true, DisconnectReason::ServerGone);
    }

    /// Drops a server that ends its session or has broken the protocol, and ends its client's
    /// session.
    pub fn end_server(&mut self, conn: Conn, cause: DisconnectReason) {
        self.lose_server(conn, false, cause);
    }

    /// Forgets a server, and ends its client's session, unless the client's request can run on
    /// another server.
    fn lose_server(&mut self, conn: Conn, gone: bool, cause: DisconnectReason) {
        let server = self.engine.connections.server(conn);
        if let Some(place) = server.as_ref().and_then(|server| server.place.as_ref()) {
            place.lose();
        }
        let client = server.and_then(|server| server.client());
        let stays = client.filter(|client| {
            let linked = self.linked(*client, conn);
            linked.client.may_go_elsewhere(linked.server)
        });
        if let Some(client) = stays {
            self.give_turn_up(client, conn);
        }
        let cut = client.is_some_and(|client| self.is_cut(client));
        self.drop_server(conn, gone);
        if let Some(client) = client.filter(|_| stays.is_none()) {
            self.server_failed_client(client, cause, cut);
        }
    }

    /// Ends the session of a client whose server is gone. If `cut`, the client has got half a
    /// message and gets no error.
    fn server_failed_client(&mut self, client: Conn, cause: DisconnectReason, cut: bool) {
        if let Some(c) = self.engine.connections.client(client) {
            c.link = None;
            self.end_client_saying(client, cause, !cut);
        }
    }
}
