//! Cancel requests: from a connection that shows a client's key, to the server that works for that
//! client now.
//!
//! A server with a cancel request under way is not lent to another client until PostgreSQL has
//! closed the connection of the request. PostgreSQL sends the signal before it closes the
//! connection, and ignores a signal that arrives while the server waits for a query. So the cancel
//! cannot hit the next client (E81).
//!
//! A client that has no server yet waits no longer: the protocol answers its request, and nothing
//! of it reaches a server.

use crate::client::{Phase, WaitingFor};
use crate::connections::{CancelRun, Connection};
use crate::engine::Step;
use crate::event::Action;
use crate::ids::{Conn, whose};
use crate::message::CoreMessage;
use crate::protocol::Protocol;
use crate::server::ServerState;

/// Number of cancel requests under way to one server. A peer that knows a client's key can send any
/// number.
const CANCELS_MAX: u32 = 8;

impl<P: Protocol> Step<'_, P> {
    /// Handles a CancelRequest for the client with this process ID, or passes it to the client's
    /// core. Several clients may have the ID, if some have moved between cores: the key is one's.
    pub fn cancel_request(&mut self, pid: u32, key: &[u8]) {
        let shared = self.engine.core_state.shared.clone();
        let named = whose(pid).filter(|(core, _)| core.0 < shared.cores);
        // A client that has come back may be where its ID says. A second request could hit what
        // the client asks next.
        let moved = shared.moved.places(pid).into_iter().filter(|place| Some(*place) != named);
        let own = self.engine.core_state.core;
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            named.into_iter().chain(moved).partition(|(core, _)| *core == own);
        // A client that is here may go back to another of the places before that core hears of it.
        if here.into_iter().any(|(_, conn)| self.cancel_client(conn, key)) {
            return;
        }
        for (core, conn) in elsewhere {
            let message = CoreMessage::Cancel { conn, key: key.into() };
            self.ports.act(Action::Tell { core, message });
        }
    }

    /// Cancels the running request of a client, if the key is the client's; true if
    /// there was one.
    pub(crate) fn cancel_client(&mut self, conn: Conn, key: &[u8]) -> bool {
        let Some(client) = self.engine.connections.client(conn) else { return false };
        // The comparison reads all bytes, so that its time does not tell how many are right.
        let same = client.key.len() == key.len()
            && client.key.iter().zip(key).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0;
        if !same || P::phase(&client.session) != Phase::Ready {
            return false;
        }
        let Some(server) = client.link else { return self.cancel_waiting(conn) };
        // A cancel request hits what the server does when it comes. So it waits for the client's
        // turn, and those behind the client go elsewhere.
        let (client, s) = self.engine.connections.pair(conn, server);
        if s.line.has(conn) {
            client.cancel_wanted = true;
        } else {
            self.leave_holder(server);
            P::cancel(self, conn, server);
        }
        true
    }

    /// Cancels the next request of a client that waits for a server, or for a reply that another
    /// fetches. The client leaves the line. False if it does not wait.
    fn cancel_waiting(&mut self, conn: Conn) -> bool {
        let Some(client) = self.engine.connections.client(conn) else { return false };
        if !matches!(client.waiting_for, WaitingFor::Server | WaitingFor::Fetch) {
            return false;
        }
        let input = client.inbox.join(&[]);
        let used = P::cancel_waiting(self, conn, &input);
        let Some(client) = self.engine.connections.client(conn) else { return true };
        client.inbox.put_back(input, used.unwrap_or(0));
        if used.is_some() {
            client.resent = false;
            let id = client.pool;
            self.engine.core_state.pool_in_use(id).waiters.remove_client(conn);
            self.unblock(conn);
        }
        true
    }

    /// Connects to a server's host, to send a CancelRequest for the server.
    pub fn cancel_server(&mut self, server: Conn) {
        let Some(s) = self.engine.connections.server(server) else { return };
        // The server is idle; or enough requests are under way, and one more would not change
        // anything.
        if !P::activity(&s.session).owes || s.cancels >= CANCELS_MAX {
            return;
        }
        s.cancels += 1;
        let (serial, pid, key) = (s.serial, s.pid, s.key.clone());
        let pool = self.engine.core_state.pool(s.pool);
        pool.counters.pool.cancels += 1;
        let host = pool.settings.host.clone();
        let conn = self.ports.open();
        let run = CancelRun { server, serial, pid, key, since: self.now };
        self.engine.connections.set(conn, Connection::Cancel(Box::new(run)));
        self.ports.act(Action::Connect { conn, host });
    }

    /// Sends the CancelRequest on its connection.
    pub(crate) fn cancel_connected(&mut self, conn: Conn) {
        if let Connection::Cancel(run) = self.engine.connections.get(conn) {
            P::write_cancel(self.ports.out(conn), run.pid, &run.key);
        }
    }

    /// Gives up a cancel request that has been under way for `cancel_timeout`. The signal may still
    /// come at any time, so the server is to be closed.
    pub(crate) fn cancel_late(&mut self, conn: Conn) {
        let Connection::Cancel(run) = self.engine.connections.get(conn) else { return };
        let (server, serial) = (run.server, run.serial);
        if let Some(s) = self.engine.connections.server(server).filter(|s| s.serial == serial) {
            s.close_needed = true;
        }
        self.cancel_over(conn);
    }

    /// Ends a cancel request: PostgreSQL has closed its connection, or could not be reached.
    pub(crate) fn cancel_over(&mut self, conn: Conn) {
        if !matches!(self.engine.connections.get(conn), Connection::Cancel(_)) {
            return;
        }
        let Connection::Cancel(run) = self.engine.connections.take(conn) else { return };
        self.ports.abandon(conn);
        let server = self.engine.connections.server(run.server);
        let Some(server) = server.filter(|server| server.serial == run.serial) else { return };
        server.cancels = server.cancels.checked_sub(1).expect("a cancel that ends was begun");
        if server.cancels == 0 && matches!(server.state, ServerState::Cancelling) {
            server.state = ServerState::Resetting;
            self.free(run.server);
        }
    }
}
