//! Clients that have ended their stream: they get the replies to what they had sent, and then their
//! sessions end.
//!
//! A client that has gone for good looks like one that has ended its half of the connection and
//! goes on reading. So PostgreSQL runs everything that it was sent before, and so does Refrain
//! (`docs/decisions/0033-last-words.md`). After some seconds Refrain takes such a client to have
//! gone ([`crate::step::tick`]).

use refrain_wire::write::{self, Report};

use crate::engine::Step;
use crate::ground::disconnect::DisconnectReason;
use crate::ground::ids::Conn;
use crate::state::client::{ClientState, WaitingFor};
use crate::state::event::Level;

/// PostgreSQL's error for a client whose stream ends amid a COPY from it.
const NO_DATA: Report<'_> = Report {
    severity: "ERROR",
    sqlstate: "08006",
    message: "unexpected EOF on client connection with an open transaction",
    hint: "",
};

/// Log text for a peer that has ended its stream.
pub(crate) const END_OF_STREAM: &str = "end of stream";

impl Step<'_> {
    /// Handles the end of a client's stream.
    pub(crate) fn client_ends(&mut self, conn: Conn) {
        let now = self.now;
        let Some(client) = self.engine.connections.client(conn) else { return };
        if !matches!(client.session.state, ClientState::Ready(_) | ClientState::Console(..)) {
            return self.client_gone(conn, END_OF_STREAM);
        }
        client.ended = Some(now);
        self.engine.runnable.push_back(conn);
    }

    /// Ends the session of a client that has ended its stream, once all its messages are read and
    /// answered.
    pub(crate) fn leave_if_ended(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        if client.ended.is_none() || client.waiting_for != WaitingFor::Nothing {
            return;
        }
        let (link, half_sent) = (client.link, client.is_half_sent());
        if let Some(server) = link.and_then(|server| self.engine.connections.server(server)) {
            let (there, outstanding) = (server.conn, &server.session.outstanding);
            if half_sent {
                // The rest of the last message never comes. The server waits for that rest, so not
                // even a Flush can follow.
                if outstanding.will_answer_before_last()
                    && let Some(client) = self.engine.connections.client(conn)
                {
                    client.waiting_for = WaitingFor::Replies;
                    return;
                }
            } else if outstanding.will_answer() {
                return self.await_replies(conn, there);
            }
            self.tell_no_data(conn, there);
        }
        self.note_client(
            conn,
            Level::Debug,
            DisconnectReason::ClientGone,
            END_OF_STREAM.to_owned(),
        );
        self.remove_client(conn, false);
    }

    /// Sends PostgreSQL's errors to a client whose stream has ended amid its COPY.
    fn tell_no_data(&mut self, conn: Conn, server: Conn) {
        let Some(server) = self.engine.connections.server(server) else { return };
        if server.session.outstanding.awaits_data() && !self.is_cut(conn) {
            let reports = [Some(NO_DATA), DisconnectReason::Synchronization.report()];
            let out = self.ports.out(conn);
            reports.iter().flatten().for_each(|report| write::error(out, report));
        }
    }
}
