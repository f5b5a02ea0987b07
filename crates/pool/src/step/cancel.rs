//! Cancel requests: from a connection that shows a client's key, to the server that works for that
//! client now.
//!
//! The request is passed on by a side connection, which holds the server: until it is over, the
//! server is lent to no other client, whom the cancel could hit (E81).
//!
//! A client that has no server yet waits no longer: the protocol answers its request, and nothing
//! of it reaches a server.

use crate::client::{Phase, WaitingFor};
use crate::engine::{Engine, Step};
use crate::event::Action;
use crate::ids::Conn;
use crate::message::CoreMessage;
use crate::process_ids::core_of;
use crate::protocol::Protocol;
use crate::side::HeldServer;

/// Number of cancel requests under way to one server. A peer that knows a client's key can send any
/// number.
const CANCELS_MAX: u32 = 8;

impl<P: Protocol> Step<'_, P> {
    /// Handles a CancelRequest for the client with this process ID, or passes it to the client's
    /// core. A client on the way has no request to cancel.
    pub fn cancel_request(&mut self, pid: u32, key: &[u8]) {
        let core_state = &self.engine.core_state;
        let (shared, own) = (&core_state.shared, core_state.core);
        let core = match shared.moved.find(pid) {
            Some(place) => place.map(|(core, _)| core),
            None => Some(core_of(pid, shared.cores)).filter(|core| core.0 < shared.cores),
        };
        match core {
            Some(core) if core == own => self.cancel_here(pid, key),
            Some(core) => {
                let message = CoreMessage::Cancel { pid, key: key.into() };
                self.ports.act(Action::Tell { core, message });
            }
            None => {}
        }
    }

    /// Handles a CancelRequest for a client of this core. A client that has left or moved
    /// meanwhile has no request to cancel.
    pub(crate) fn cancel_here(&mut self, pid: u32, key: &[u8]) {
        let Engine { core_state, process_ids, .. } = &*self.engine;
        let moved =
            || core_state.shared.moved.find(pid)?.filter(|(core, _)| *core == core_state.core);
        let conn = process_ids.find(pid).or_else(|| moved().map(|(_, conn)| conn));
        if let Some(conn) = conn {
            self.cancel_client(conn, key);
        }
    }

    /// Cancels the running request of a client, if the key is the client's.
    fn cancel_client(&mut self, conn: Conn, key: &[u8]) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        // The comparison reads all bytes, so that its time does not tell how many are right.
        let same = client.key.len() == key.len()
            && client.key.iter().zip(key).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0;
        if !same || P::phase(&client.session) != Phase::Ready {
            return;
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
    }

    /// Cancels the next request of a client that waits for a server, or for a reply that another
    /// fetches. The client leaves the line.
    fn cancel_waiting(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        if !matches!(client.waiting_for, WaitingFor::Server | WaitingFor::Fetch) {
            return;
        }
        let input = client.inbox.join(&[]);
        let used = P::cancel_waiting(self, conn, &input);
        let Some(client) = self.engine.connections.client(conn) else { return };
        client.inbox.put_back(input, used.unwrap_or(0));
        if used.is_some() {
            client.resent = false;
            let id = client.pool;
            self.engine.core_state.pool_in_use(id).waiters.remove_client(conn);
            self.unblock(conn);
        }
    }

    /// Opens a side connection that cancels what a server does. It holds the server.
    pub fn cancel_server(&mut self, server: Conn) {
        let Some(s) = self.engine.connections.server(server) else { return };
        // The server is idle; or enough requests are under way, and one more would not change
        // anything.
        if !P::activity(&s.session).owes || s.cancels >= CANCELS_MAX {
            return;
        }
        let Some(session) = P::cancel_side(s) else { return };
        s.cancels += 1;
        let held = HeldServer { conn: server, serial: s.serial };
        let core_state = &mut self.engine.core_state;
        let timeout = core_state.shared.options().general.cancel_timeout;
        core_state.pool(s.pool).counters.pool.cancels += 1;
        // The pool's host may be another by now.
        let host = s.host.clone();
        self.connect_side(host, timeout, session, Some(held));
    }
}
