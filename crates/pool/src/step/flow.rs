//! Flow control. Refrain stops reading a connection while too many bytes wait for the client or
//! server that they go to, or while a waiting client has sent too much.

use crate::client::{Phase, WaitingFor};
use crate::engine::{Engine, Step};
use crate::event::Action;
use crate::ids::{ClientSerial, Conn, Core};
use crate::message::CoreMessage;
use crate::protocol::Protocol;

/// Bytes of input that Refrain holds for a client that waits, before it stops reading the client.
const HELD_BYTES_MAX: usize = 64 * 1024;

impl<P: Protocol> Step<'_, P> {
    /// Holds input of a client for later.
    pub(crate) fn hold(&mut self, conn: Conn, bytes: &[u8]) {
        if let Some(client) = self.engine.connections.client(conn)
            && (!bytes.is_empty() || client.paused)
        {
            client.inbox.hold(bytes);
            self.regulate(conn);
        }
    }

    /// Applies back-pressure (E30). Stops reading a client that waits and of which more than
    /// `HELD_BYTES_MAX` bytes are held. Reads a paused client again once the bytes queued to it and
    /// to its server have fallen to the pool's low mark.
    pub fn regulate(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let enters = matches!(P::phase(&client.session), Phase::Entering | Phase::Checking);
        let waits = enters || client.waiting_for != WaitingFor::Nothing;
        if waits && client.inbox.held() > HELD_BYTES_MAX {
            return self.stop_reading(conn);
        }
        let low = self.engine.core_state.low_mark(client.pool);
        let queued = self.ports.queued(conn).max(client.link.map_or(0, |s| self.ports.queued(s)));
        if client.paused && queued <= low {
            client.paused = false;
            self.ports.act(Action::Resume { conn });
        }
    }

    /// Stops reading a client's connection until [`Self::regulate`] resumes it.
    #[inline]
    pub fn stop_reading(&mut self, conn: Conn) {
        if let Some(client) = self.engine.connections.client(conn)
            && !std::mem::replace(&mut client.paused, true)
        {
            self.ports.act(Action::Pause { conn });
        }
    }

    /// Stops reading a client while too much is queued to its server, or to the client itself:
    /// replies that Refrain makes itself come from no server that could be paused.
    #[inline]
    pub fn push_back_on_client(&mut self, conn: Conn, server: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let high = self.engine.core_state.pool_in_use(client.pool).settings.options.buffer_high;
        if self.ports.queued(server) > high || self.ports.queued(conn) > high {
            self.stop_reading(conn);
        }
    }

    /// Whether a client without a server leaves too many replies unread. If so, stops reading it.
    #[inline]
    pub fn reads_slowly(&mut self, conn: Conn) -> bool {
        self.ports.queued(conn) > 0 && self.has_too_much_queued(conn)
    }

    fn has_too_much_queued(&mut self, conn: Conn) -> bool {
        let Some(client) = self.engine.connections.client(conn) else { return false };
        let high = self.engine.core_state.pool_in_use(client.pool).settings.options.buffer_high;
        let full = self.ports.queued(conn) > high;
        if full {
            self.stop_reading(conn);
        }
        full
    }

    /// Stops reading a server while too much is queued to its client.
    #[inline]
    pub fn push_back_on_server(&mut self, client: Conn, server: Conn) {
        let Some(s) = self.engine.connections.server(server) else { return };
        let high = self.engine.core_state.pool_in_use(s.pool).settings.options.buffer_high;
        if !s.paused && self.ports.queued(client) > high {
            s.paused = true;
            self.ports.act(Action::Pause { conn: server });
            self.leave_holder(server);
        }
    }

    /// Ends a client's waiting, and schedules its input to be handled.
    pub fn unblock(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        client.waiting_for = WaitingFor::Nothing;
        self.read_on(conn);
    }

    /// Tells a client, on whatever core, that the reply for which it waits was fetched, or will not
    /// come.
    pub fn tell_fetched(&mut self, core: Core, conn: Conn, serial: ClientSerial) {
        if core == self.engine.core_state.core {
            self.fetched(conn, serial);
        } else {
            self.ports.act(Action::Tell { core, message: CoreMessage::Fetched { conn, serial } });
        }
    }

    /// Reads on a client that has waited for a reply that another has fetched.
    pub fn fetched(&mut self, conn: Conn, serial: ClientSerial) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        if client.serial == serial && client.waiting_for == WaitingFor::Fetch {
            self.unblock(conn);
        }
    }

    /// Schedules a client's input to be handled before the step ends.
    pub fn read_on(&mut self, conn: Conn) {
        self.engine.runnable.push_back(conn);
    }

    /// Reads the connection that feeds a connection again, since little enough is queued to the
    /// latter now. Returns false for a server that no client holds.
    pub(crate) fn resume_feeder(&mut self, conn: Conn) -> bool {
        let Engine { connections, runnable, .. } = &mut *self.engine;
        if let Some(client) = connections.client(conn) {
            if client.paused {
                runnable.push_back(conn);
            }
            let server = client.link.and_then(|server| connections.server(server));
            if let Some(server) = server
                && std::mem::take(&mut server.paused)
            {
                self.ports.act(Action::Resume { conn: server.conn });
            }
            return true;
        }
        let Some(server) = connections.server(conn) else { return true };
        let client = server.client();
        if let Some(client) = client.and_then(|client| connections.client(client))
            && client.paused
        {
            runnable.push_back(client.conn);
        }
        client.is_some()
    }
}
