//! Side connections: they are opened, carry what the protocol says, and end.
//!
//! A cancel request comes from a connection that shows a client's key, and is passed on to the
//! server that works for that client now, by a side connection, which holds the server: until it is
//! over, the server is lent to no other client, whom the cancel could hit (E81). A client that has
//! no server yet waits no longer: the protocol answers its request, and nothing of it reaches a
//! server.

use std::sync::Arc;
use std::time::Duration;

use refrain_config::Host;

use crate::client::{Phase, WaitingFor};
use crate::connections::Connection;
use crate::core_state::CoreState;
use crate::engine::Step;
use crate::event::Action;
use crate::ids::Conn;
use crate::inbox::Inbox;
use crate::message::CoreMessage;
use crate::process_ids::core_of;
use crate::protocol::Protocol;
use crate::server::{Server, ServerState};
use crate::side::{HeldServer, Side, SideEnd};
use crate::time::Now;

/// Number of side connections of one core that hold no server.
const SIDES_MAX: u32 = 16;
/// Bytes from the peer of a side connection that the protocol has not handled.
const SIDE_BYTES_MAX: usize = 64 * 1024;
/// Number of cancel requests under way to one server. A peer that knows a client's key can send any
/// number.
const CANCELS_MAX: u32 = 8;

impl<P: Protocol> Step<'_, P> {
    /// Opens a side connection that holds no server, and gives it this much time; `None` for any.
    /// Returns `None` if as many as may be are open.
    pub fn open_side(
        &mut self,
        host: Arc<Host>,
        timeout: Option<Duration>,
        session: P::Side,
    ) -> Option<Conn> {
        if self.engine.sides >= SIDES_MAX {
            return None;
        }
        self.engine.sides += 1;
        Some(self.connect_side(host, timeout, session, None))
    }

    /// Opens a side connection, which may hold a server. The caller has counted it.
    pub(crate) fn connect_side(
        &mut self,
        host: Arc<Host>,
        timeout: Option<Duration>,
        session: P::Side,
        holds: Option<HeldServer>,
    ) -> Conn {
        let conn = self.ports.open();
        let deadline = timeout.map_or(Now(u64::MAX), |timeout| self.now.after(timeout));
        let side = Side { holds, deadline, inbox: Inbox::default(), session };
        self.engine.connections.set(conn, Connection::Side(Box::new(side)));
        self.ports.act(Action::Connect { conn, host });
        conn
    }

    /// Begins with a side connection that is connected.
    #[cold]
    pub(crate) fn side_connected(&mut self, conn: Conn) {
        P::side_connected(self, conn);
    }

    /// Handles bytes from the peer of a side connection.
    #[cold]
    pub(crate) fn side_bytes(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(side) = self.engine.connections.side(conn) else { return };
        let all = side.inbox.join(bytes);
        let used = P::side_output(self, conn, &all);
        let Some(side) = self.engine.connections.side(conn) else { return };
        side.inbox.put_back(all, used);
        if side.inbox.held() > SIDE_BYTES_MAX {
            self.side_over(conn, SideEnd::Failed("too many bytes came"));
        }
    }

    /// Ends a side connection that has done its work: closes it once its output is sent, and frees
    /// the server that it holds. Returns the protocol's part.
    pub fn end_side(&mut self, conn: Conn) -> Option<P::Side> {
        let side = self.take_side(conn)?;
        self.ports.close(conn);
        self.let_go(side.holds);
        Some(side.session)
    }

    /// Gives up a side connection at its deadline.
    pub(crate) fn tick_side(&mut self, conn: Conn) {
        let Some(side) = self.engine.connections.side(conn) else { return };
        if side.deadline > self.now {
            return;
        }
        let holds = side.holds;
        if let Some(server) = self.held_server(holds) {
            server.close_needed = true;
        }
        self.side_over(conn, SideEnd::Late);
    }

    /// Forgets a side connection that could not be connected, or whose peer has gone: with the
    /// system's error, unless the peer ended the stream in order.
    #[cold]
    pub(crate) fn side_gone(&mut self, conn: Conn, why: Option<&str>) {
        self.side_over(conn, why.map_or(SideEnd::Closed, SideEnd::Failed));
    }

    /// Forgets a side connection that the protocol has not ended.
    pub(crate) fn side_over(&mut self, conn: Conn, end: SideEnd<'_>) {
        let Some(side) = self.take_side(conn) else { return };
        self.ports.abandon(conn);
        let server = self.held_server(side.holds).map(|server| server.conn);
        P::side_over(self, side.session, server, end);
        self.let_go(side.holds);
    }

    /// Takes a side connection out of the table, and out of the count.
    fn take_side(&mut self, conn: Conn) -> Option<Side<P>> {
        self.engine.connections.side(conn)?;
        let Connection::Side(side) = self.engine.connections.take(conn) else { return None };
        if side.holds.is_none() {
            let sides = self.engine.sides.checked_sub(1);
            self.engine.sides = sides.expect("no more side connections end than were opened");
        }
        Some(*side)
    }

    /// Returns the server that a side connection holds, if the server is still there.
    fn held_server(&mut self, holds: Option<HeldServer>) -> Option<&mut Server<P>> {
        let HeldServer { conn, serial } = holds?;
        self.engine.connections.server(conn).filter(|server| server.serial == serial)
    }

    /// Frees the server that a side connection has held, unless another holds it still.
    fn let_go(&mut self, holds: Option<HeldServer>) {
        let Some(server) = self.held_server(holds) else { return };
        server.cancels = server.cancels.checked_sub(1).expect("a cancel that ends was begun");
        if server.cancels > 0 {
            return;
        }
        let conn = server.conn;
        if matches!(server.state, ServerState::Cancelling) {
            server.state = ServerState::Resetting;
            self.free(conn);
        } else {
            P::let_go(self, conn);
        }
    }

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
        let CoreState { shared, process_ids, core, .. } = &self.engine.core_state;
        let moved = || shared.moved.find(pid)?.filter(|(there, _)| there == core);
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
            self.sharing().leave_holder(server);
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
            self.engine.connections.unblock(conn);
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
