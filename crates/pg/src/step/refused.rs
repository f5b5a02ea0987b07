//! Clients whose server has refused their settings: see [`crate::relay::refused`].

use refrain_pool::ids::Conn;
use refrain_wire::Header;

use crate::engine::Step;

impl Step<'_, '_> {
    /// Takes a server from a client that has not used it, and has the client get another.
    pub(crate) fn leave_unused(&mut self, conn: Conn, server: Conn) {
        self.step.part_unused(conn, server);
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        // A client that is logged in asks for a server with its request.
        if client.session.login.is_checking() && self.step.lend(conn).is_some() {
            self.step.read_on(conn);
        }
    }

    /// Ends the request of a client that has got an error in its place, before any server has got
    /// the request.
    pub(crate) fn fail_unused(&mut self, conn: Conn, server: Conn) {
        self.step.part_unused(conn, server);
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        let input = client.inbox.join(&[]);
        // What was queued before is the error, which has been noted as a reply is.
        let from = self.step.ports.out(conn).len();
        let used = match Header::parse(&input) {
            Ok(Some(header)) => self.end_request(conn, header, &input, from),
            Ok(None) | Err(_) => 0,
        };
        if let Some(client) = self.step.engine.connections.client(conn) {
            client.inbox.put_back(input, used);
        }
    }
}
