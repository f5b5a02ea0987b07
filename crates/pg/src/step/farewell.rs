//! Clients that have ended their stream: they are answered what they had asked for, and go.
//!
//! A client that has gone for good looks like one that has only ended its half of the connection and goes on reading. So
//! PostgreSQL runs what it was sent before, and so does this side (`docs/decisions/0033-last-words.md`); who has not
//! been answered after some seconds is taken to have gone ([`crate::step::tick`]).

use refrain_wire::write::{self, Report};

use crate::engine::Step;
use crate::ground::disconnect::DisconnectReason;
use crate::ground::ids::Conn;
use crate::state::client::{ClientState, WaitingFor};
use crate::state::event::Level;

/// What PostgreSQL says where a client's stream ends amid a COPY from it.
const NO_DATA: Report<'_> = Report {
    severity: "ERROR",
    sqlstate: "08006",
    message: "unexpected EOF on client connection with an open transaction",
    hint: "",
};

/// Text of the log for a peer that has ended its stream.
pub(crate) const END_OF_STREAM: &str = "end of stream";

impl Step<'_> {
    /// A client has ended its stream.
    pub(crate) fn client_ends(&mut self, conn: Conn) {
        let now = self.now;
        let Some(client) = self.engine.connections.client(conn) else { return };
        if !matches!(client.state, ClientState::Ready(_) | ClientState::Console(..)) {
            return self.client_gone(conn, END_OF_STREAM);
        }
        client.ended = Some(now);
        self.engine.runnable.push_back(conn);
    }

    /// A client that has ended its stream, and has nothing more to be read, leaves when it has been answered.
    pub(crate) fn leave_if_ended(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        if client.ended.is_none() || client.waiting_for != WaitingFor::Nothing {
            return;
        }
        let (link, half_sent) = (client.link, client.is_half_sent());
        if let Some(server) = link.and_then(|server| self.engine.connections.server(server)) {
            let (there, outstanding) = (server.conn, &server.outstanding);
            if half_sent {
                // The rest of its last message never comes, and nothing can be said behind the beginning.
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

    /// Tells a client whose stream ends amid its COPY what PostgreSQL says of that.
    fn tell_no_data(&mut self, conn: Conn, server: Conn) {
        let Some(server) = self.engine.connections.server(server) else { return };
        if server.outstanding.awaits_data() && !self.is_cut(conn) {
            let reports = [Some(NO_DATA), DisconnectReason::Synchronization.report()];
            let out = self.ports.out(conn);
            reports.iter().flatten().for_each(|report| write::error(out, report));
        }
    }
}
