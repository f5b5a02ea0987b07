//! Input from servers, by their holder: a client, a login, a job, or none.

use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::Conn;
use refrain_sql::normalize::Analysis;

use crate::engine::Step;
use crate::login::server::LoginToServer;
use crate::relay::pipe::Pipeline;
use crate::relay::reader::{Halt, Reader};
use crate::state::parts::{Engine, Holder, ServerState};
use crate::state::requests::Case;
use crate::step::replication::Relayed;

impl Step<'_, '_> {
    /// Handles as much of a server's output as possible, by who holds the server. A message may
    /// change that, so it is looked up for each batch. Returns the number of bytes handled.
    pub(crate) fn server_input(&mut self, conn: Conn, input: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let Some(server) = self.step.engine.connections.server(conn) else {
                // The server goes to another core, and the rest of its output with it.
                if let Some(transfer) = self.step.ports.leaving(conn) {
                    transfer.hold(&input[at..]);
                }
                return input.len();
            };
            let rest = &input[at..];
            let (used, more) = match server.state() {
                ServerState::Held(Holder::Client(client)) => {
                    let client = *client;
                    match server.session.relay {
                        Some(_) => {
                            let mut relayed = Relayed { step: self.step, client, server: conn };
                            relayed.replies(rest)
                        }
                        None => self.client_replies(client, conn, rest),
                    }
                }
                ServerState::Connecting | ServerState::Login(_) => {
                    LoginToServer { step: self.step, conn }.login_replies(rest)
                }
                ServerState::Idle
                | ServerState::Held(Holder::Job(..))
                | ServerState::Resetting
                | ServerState::Cancelling => self.replies_to_nobody(conn, rest),
            };
            at += used;
            if !more {
                return at;
            }
        }
    }

    /// Records the parser thread's analysis of a query string, and reads the clients again that
    /// waited for it.
    pub(crate) fn analysed(&mut self, case: &Case, analysis: Analysis) {
        let Some(pool) = self.step.engine.core_state.find_pool(case.pool) else { return };
        pool.protocol.normalized_queries.analysed(case.key, &case.text, analysis);
        pool.protocol.wake();
        self.read_woken(case.pool);
    }

    /// Handles messages of a server that no client holds. Returns the number of bytes handled, and
    /// whether to go on with the rest.
    fn replies_to_nobody(&mut self, conn: Conn, input: &[u8]) -> (usize, bool) {
        // The server has just gone back to its pool behind its last message.
        if input.is_empty() {
            return (0, false);
        }
        let Engine { core_state, connections, .. } = &mut *self.step.engine;
        let now = self.step.now;
        let Some(server) = connections.server(conn) else { return (input.len(), false) };
        let mut pipe = Pipeline { now, server, core_state, ports: self.step.ports };
        let (used, halt) = pipe.replies(input);
        if used > 0 {
            server.note_progress(now);
        }
        // Behind a request that nobody gets the replies of, the server may answer another client's.
        let quiet = server.session.outstanding.is_empty() || server.requests_behind() > 0;
        let at_work = server.is_at_work();
        match halt {
            Halt::More => return (used, false),
            Halt::Ready if !quiet => {}
            Halt::Ready if at_work => self.job_ends(conn),
            Halt::Ready => self.step.make_fit(conn),
            Halt::Fatal
            | Halt::Lost
            | Halt::Refused
            | Halt::Unused
            | Halt::Failed
            | Halt::Intruded
            | Halt::Elsewhere => {
                self.server_broken(conn, DisconnectReason::ServerGone);
            }
            Halt::Broken => self.server_broken(conn, DisconnectReason::ServerProtocol),
            Halt::TooLong => self.server_broken(conn, DisconnectReason::MessageTooLong),
        }
        (used, true)
    }
}
