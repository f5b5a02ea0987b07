//! A shutdown that lets transactions end: from its beginning no client begins another one.
//!
//! A client with nothing under way leaves at once. One in a transaction, one that waits for a
//! server, and one of whose request a part has come, leave when that request, or its transaction,
//! is over ([`Step::transaction_over`]); a tick finds those whose request needed no server. Clients
//! of the console stay until the program stops.

use crate::client::{Phase, WaitingFor};
use crate::disconnect::DisconnectReason;
use crate::engine::{Engine, Step};
use crate::ids::Conn;
use crate::protocol::Protocol;
use crate::server::Server;

impl<P: Protocol> Engine<P> {
    /// Whether a shutdown has begun and no client is left but those of the console.
    pub fn is_drained(&self) -> bool {
        let is_console = |session| P::phase(session) == Phase::Console;
        self.core_state.draining
            && self.connections.clients().all(|client| is_console(&client.session))
    }
}

impl<P: Protocol> Step<'_, P> {
    /// Begins a shutdown, and ends the sessions of clients that do nothing.
    pub(crate) fn drain(&mut self) {
        self.engine.core_state.draining = true;
        for conn in self.engine.connections.conns() {
            self.drain_client(conn);
        }
    }

    /// Ends a client's session during a shutdown if nothing is under way: all requests are answered
    /// in full, and no request has arrived in part.
    #[cold]
    pub(crate) fn drain_client(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let phase = P::phase(&client.session);
        let ready = phase == Phase::Ready;
        let speaks = ready && (client.inbox.held() > 0 || client.inbox.rest > 0);
        let is_in = phase != Phase::Login;
        let (link, waits) = (client.link, is_in && client.waiting_for != WaitingFor::Nothing);
        let is_quiet = |server: &Server<P>| ready && P::idle(&server.session).is_some();
        let busy = match link {
            Some(server) => !self.engine.connections.server(server).is_some_and(|s| is_quiet(s)),
            None => waits,
        };
        if !busy && !speaks && phase != Phase::Console {
            self.end_client(conn, DisconnectReason::Shutdown);
        }
    }
}
