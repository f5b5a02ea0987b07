//! Clients that have ended their stream: they get the replies to what they had sent, and then their
//! sessions end.
//!
//! A client that has gone for good looks like one that has ended its half of the connection and
//! goes on reading. So PostgreSQL runs everything that it was sent before, and so does Refrain
//! (`docs/decisions/0033-half-closed-clients.md`). After some seconds Refrain takes such a client
//! to have gone (`step/tick.rs` of the pool).

use refrain_pg_wire::write::{self, Report};
use refrain_pool::client::WaitingFor;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::Conn;

use crate::engine::Step;
use crate::ground::reports::report;
use crate::state::parts::Client;

/// PostgreSQL's error for a client whose stream ends amid a COPY from it.
const NO_DATA: Report<'_> = Report {
    severity: "ERROR",
    sqlstate: "08006",
    message: "unexpected EOF on client connection with an open transaction",
    hint: "",
};

impl Step<'_, '_> {
    /// Ends the session of a client that has ended its stream, once all its messages are read and
    /// answered.
    #[inline]
    pub(crate) fn leave_if_ended(&mut self, conn: Conn) {
        let client = self.step.engine.connections.client(conn);
        let has_ended =
            |client: &mut Client| client.has_ended() && client.waiting_for() == WaitingFor::Nothing;
        if client.is_some_and(has_ended) {
            self.leave(conn);
        }
    }

    /// Ends the session of a client that has ended its stream, or has the client wait for the last
    /// replies.
    #[cold]
    fn leave(&mut self, conn: Conn) {
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        let (link, half_sent) = (client.link(), client.is_half_sent());
        if let Some(server) = link.and_then(|server| self.step.engine.connections.server(server)) {
            let (there, outstanding) = (server.conn(), &server.session.outstanding);
            if half_sent {
                // The rest of the last message never comes. The server waits for that rest, so not
                // even a Flush can follow.
                if outstanding.will_answer_before_last()
                    && let Some(client) = self.step.engine.connections.client(conn)
                {
                    client.await_replies();
                    return;
                }
            } else if outstanding.will_answer() {
                return self.await_replies(conn, there);
            }
            self.tell_no_data(conn, there);
        }
        self.step.note_gone(conn, refrain_pool::END_OF_STREAM);
        self.step.remove_client(conn, false);
    }

    /// Sends PostgreSQL's errors to a client whose stream has ended amid its COPY.
    fn tell_no_data(&mut self, conn: Conn, server: Conn) {
        let Some(server) = self.step.engine.connections.server(server) else { return };
        if server.session.outstanding.awaits_data() && !self.step.is_cut(conn) {
            let errors = self.step.engine.core_state.shared.options().general.pooler_errors;
            let reports = [Some(NO_DATA), report(errors, DisconnectReason::Synchronization)];
            let out = self.step.ports.out(conn);
            reports.iter().flatten().for_each(|report| write::error(out, report));
        }
    }
}
