//! Jobs that servers do for Refrain: between two clients, or for a client that gets its server
//! back.

use crate::client::WaitingFor;
use crate::engine::Step;
use crate::ids::Conn;
use crate::protocol::Protocol;
use crate::server::{Holder, ServerState};

impl<P: Protocol> Step<'_, P> {
    /// Lets a server do a job, whose first messages the protocol has just sent to the server.
    /// `back` is the client that gets the server back, and waits until then.
    pub fn start_job(&mut self, server: Conn, job: P::Job, back: Option<Conn>) {
        let Some(s) = self.engine.connections.server(server) else { return };
        s.state = ServerState::Held(Holder::Job(Box::new(job), back));
        s.since = self.now;
        if let Some(client) = back.and_then(|client| self.engine.connections.client(client)) {
            client.waiting_for = WaitingFor::Job;
        }
    }

    /// Ends a server's job. Returns the job, and the client that has the server back. The protocol
    /// has to call [`Step::unblock`] for that client, or [`Step::make_fit`] if there is no client.
    pub fn finish_job(&mut self, server: Conn) -> Option<(Box<P::Job>, Option<Conn>)> {
        let s = self.engine.connections.server(server)?;
        if !s.is_at_work() {
            return None;
        }
        let state = std::mem::replace(&mut s.state, ServerState::Resetting);
        let ServerState::Held(Holder::Job(job, back)) = state else { return None };
        (s.since, s.worked) = (self.now, true);
        if let Some(client) = back {
            s.state = ServerState::Held(Holder::Client(client));
        }
        Some((job, back))
    }
}
