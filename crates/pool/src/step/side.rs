//! Side connections: they are opened, carry what the protocol says, and end.

use std::sync::Arc;
use std::time::Duration;

use refrain_config::Host;

use crate::connections::Connection;
use crate::engine::Step;
use crate::event::Action;
use crate::ids::Conn;
use crate::inbox::Inbox;
use crate::protocol::Protocol;
use crate::server::{Server, ServerState};
use crate::side::{HeldServer, Side, SideEnd};
use crate::time::Now;

/// Number of side connections of one core that hold no server.
const SIDES_MAX: u32 = 16;
/// Bytes from the peer of a side connection that the protocol has not handled.
const SIDE_BYTES_MAX: usize = 64 * 1024;

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
}
