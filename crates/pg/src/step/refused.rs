//! Clients whose server has refused their settings: see [`crate::relay::refused`].

use refrain_pg_wire::Header;
use refrain_pool::ids::Conn;

use crate::engine::{Asking, Step};

impl Step<'_, '_> {
    /// Takes a server from a client that has not used it, and has the client get another.
    pub(crate) fn leave_unused(&mut self, conn: Conn, server: Conn) {
        self.step.part_unused(conn, server);
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        // A client that is logged in asks for a server with its request.
        if client.session.login.is_checking() && self.step.lend(conn).is_some() {
            self.step.engine.connections.read_on(conn);
        }
    }

    /// Ends the request of a client that has got an error in its place, before any server has got
    /// the request.
    pub(crate) fn fail_unused(&mut self, conn: Conn, server: Conn) {
        self.step.part_unused(conn, server);
        let Some(mut asking) = Asking::of(self.step, conn) else { return };
        let input = asking.client.inbox.join(&[]);
        // What was queued before is the error, which has been noted as a reply is.
        let from = asking.ports.out(conn).len();
        let (used, waiters) = match Header::parse(&input) {
            Ok(Some(header)) => asking.end_request(header, &input, from),
            Ok(None) | Err(_) => (0, Vec::new()),
        };
        asking.client.inbox.put_back(input, used);
        self.wake_for_reply(waiters);
    }
}
