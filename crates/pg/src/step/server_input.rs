//! Input from servers, by their holder: a client, a login, a job, or none.

use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::Conn;
use refrain_pool::inbox::Rest;
use refrain_sql::normalize::Analysis;
use refrain_wire::Header;
use refrain_wire::back::{self as read, Fields, Status};
use refrain_wire::tag::back;

use crate::autoprepare::repeat::repeat_for_nobody;
use crate::engine::Step;
use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind};
use crate::relay::forward::LOOKED_INTO_MAX;
use crate::settings::session::SETTINGS_BYTES_MAX;
use crate::state::parts::{Holder, Server, ServerState, intern_settings};
use crate::state::requests::Case;

/// The consequence of a message of a server that no client holds.
enum Idle {
    /// Nothing.
    On,
    /// A Sync: the server ignores everything up to one, and none has been sent.
    Open,
    /// An autoprepared statement failed before it ran: the server has to run the query string.
    Again,
    /// Nothing is outstanding any more.
    Quiet,
    /// The server ends its session, or has broken the protocol.
    Broken(DisconnectReason),
}

impl Step<'_, '_> {
    /// Handles as much of a server's output as possible. Returns the number of bytes handled.
    pub(crate) fn server_input(&mut self, conn: Conn, input: &[u8]) -> usize {
        let used = self.server_messages(conn, input);
        self.take_reported(conn);
        used
    }

    /// Records the settings that a server without a client has reported.
    #[inline]
    fn take_reported(&mut self, conn: Conn) {
        let Some(server) = self.step.engine.connections.server(conn) else { return };
        let Some(reported) = server.session.settings.take_reported() else { return };
        if reported.has_lost() {
            server.close_later();
        }
        let core_state = &mut self.step.engine.core_state;
        server.session.settings.were_reported(&reported, |edit| intern_settings(core_state, edit));
    }

    /// Handles a server's messages by who holds the server. A message may change that, so it is
    /// looked up for each batch.
    fn server_messages(&mut self, conn: Conn, input: &[u8]) -> usize {
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
                    self.client_replies(client, conn, rest)
                }
                ServerState::Connecting | ServerState::Login(_) => self.login_replies(conn, rest),
                ServerState::Idle
                | ServerState::Held(Holder::Job(..))
                | ServerState::Resetting
                | ServerState::Cancelling => self.idle_reply(conn, rest),
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
        let woken = pool.protocol.take_woken();
        self.look_again(woken);
    }

    /// Handles a message of a server that no client holds. Replies answer outstanding requests, and
    /// go to no client.
    fn idle_reply(&mut self, conn: Conn, input: &[u8]) -> (usize, bool) {
        let now = self.step.now;
        let Some(server) = self.step.engine.connections.server(conn) else {
            return (input.len(), false);
        };
        let rest = server.inbox.take_rest(input);
        if rest > 0 {
            return (rest, true);
        }
        let header = match Header::parse(input) {
            Ok(Some(header)) => header,
            Ok(None) => return (0, false),
            Err(_) => {
                self.server_broken(conn, DisconnectReason::ServerProtocol);
                return (0, true);
            }
        };
        let length = header.message_bytes();
        if input.len() < length {
            let asked = server.is_at_work() && header.tag != back::NOTICE_RESPONSE;
            let awaited = match header.tag {
                // The beginning of an error is enough: it has severity and SQLSTATE.
                back::ERROR_RESPONSE => input.len() < LOOKED_INTO_MAX,
                back::READY_FOR_QUERY => true,
                back::PARAMETER_STATUS => length <= SETTINGS_BYTES_MAX,
                _ => asked && length <= LOOKED_INTO_MAX,
            };
            if awaited && header.tag == back::READY_FOR_QUERY && length > LOOKED_INTO_MAX {
                self.server_broken(conn, DisconnectReason::ServerProtocol);
                return (0, true);
            }
            if awaited {
                return (0, false);
            }
        }
        let there = length.min(input.len());
        let body = &input[refrain_wire::frame::HEADER_BYTES..there];
        server.note_progress(now);
        let result = self.idle_message(conn, header.tag, body);
        if let Some(server) = self.step.engine.connections.server(conn) {
            server.inbox.expect(length - there, Rest::Nowhere);
        }
        if !matches!(result, Idle::On) {
            self.take_reported(conn);
        }
        match result {
            Idle::On => {}
            Idle::Open => self.sync_idle(conn),
            Idle::Again => self.run_idle(conn),
            Idle::Quiet if self.is_at_work(conn) => self.job_ends(conn),
            Idle::Quiet => self.step.make_fit(conn),
            Idle::Broken(cause) => self.server_broken(conn, cause),
        }
        (there, true)
    }

    /// Whether the server does a job for Refrain.
    fn is_at_work(&mut self, conn: Conn) -> bool {
        self.step.engine.connections.server(conn).is_some_and(|s| s.is_at_work())
    }

    /// Sends a Sync after an error in a message of a client that has left: the server ignores
    /// everything up to one, and the client never sent it.
    fn sync_idle(&mut self, conn: Conn) {
        let Some(server) = self.step.engine.connections.server(conn) else { return };
        refrain_wire::write::sync(self.step.ports.out(conn));
        server
            .session
            .outstanding
            .push(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Skip(Purpose::Rollback)));
    }

    /// Runs a query string as the client sent it. It was autoprepared, and failed before it did
    /// anything. The client has left, but PostgreSQL would run its query all the same.
    fn run_idle(&mut self, conn: Conn) {
        let Some(server) = self.step.engine.connections.server(conn) else { return };
        let run = &mut server.session.front.run;
        if run.end().is_none() {
            return;
        }
        refrain_wire::write::query(self.step.ports.out(conn), run.text());
        server.session.outstanding.push(OutstandingRequest::new(
            RequestKind::Query,
            ReplyAction::Skip(Purpose::Autoprepare),
        ));
    }

    /// Handles the contents of a message of a server that no client holds.
    fn idle_message(&mut self, conn: Conn, tag: u8, body: &[u8]) -> Idle {
        let Some(server) = self.step.engine.connections.server(conn) else { return Idle::On };
        match tag {
            back::NOTICE_RESPONSE | back::NOTIFICATION_RESPONSE => Idle::On,
            back::PARAMETER_STATUS => {
                // A report too long to be kept has not arrived in full: the server's settings are
                // not known any more.
                let Ok((name, value)) = read::parameter_status(body) else {
                    server.close_later();
                    return Idle::On;
                };
                if crate::settings::session::is_settable(name)
                    && server.session.settings.report(name, Some(value), None).is_none()
                {
                    server.close_later();
                }
                Idle::On
            }
            back::ERROR_RESPONSE => {
                let (idle, again) = idle_error(server, &Fields(body));
                self.step.ports.out(conn).extend_from_slice(&again);
                idle
            }
            back::READY_FOR_QUERY => {
                let idle = idle_ready(server, body);
                let over = server.session.outstanding.status() == Status::Idle;
                let session = &mut server.session;
                if over
                    && let Some(_defining) = session.transaction.end_defining(&session.outstanding)
                {
                    self.step.engine.core_state.pool(server.pool()).shared.protocol.schema_change();
                }
                idle
            }
            tag => match server.session.outstanding.settle(tag) {
                Ok(settled) => {
                    let command = (tag == back::COMMAND_COMPLETE).then(|| read::command_tag(body));
                    if command.is_some_and(|c| refrain_sql::tag(c) == refrain_sql::Tag::Ddl) {
                        // The client has left, but its change to the schema stays.
                        let pool = self.step.engine.core_state.pool(server.pool());
                        pool.shared.protocol.begin_schema_version();
                    }
                    if let Some(job) = server.job_mut() {
                        let registry = &self.step.engine.core_state.shared.protocol.registry;
                        job.hears(registry, &settled.entry, tag, body);
                    }
                    if tag == back::BIND_COMPLETE {
                        server.session.front.run.bind();
                    }
                    let told = [back::BIND_COMPLETE, back::ROW_DESCRIPTION, back::NO_DATA];
                    if told.contains(&tag) {
                        server.session.front.unnamed.answer();
                    }
                    server.session.settle_unheard(settled.seq);
                    match tag {
                        // The client that had the COPY data has left.
                        back::COPY_IN_RESPONSE => Idle::Broken(DisconnectReason::ServerGone),
                        _ => Idle::On,
                    }
                }
                Err(_) => Idle::Broken(DisconnectReason::ServerProtocol),
            },
        }
    }
}

/// Handles an error of a server that no client holds. Also returns what the server gets again.
fn idle_error(server: &mut Server, fields: &Fields<'_>) -> (Idle, Vec<u8>) {
    if fields.is_fatal() {
        return (Idle::Broken(DisconnectReason::ServerGone), Vec::new());
    }
    let Ok(failed) = server.session.outstanding.fail() else {
        return (Idle::Broken(DisconnectReason::ServerProtocol), Vec::new());
    };
    server.session.statements.undo(&failed);
    let ours = ReplyAction::Skip(Purpose::Reset);
    if failed.entry.action == ours {
        server.close_later();
    }
    if let Some(job) = server.job_mut() {
        job.fails(&failed.entry, fields);
        // A query of the job that sets or resets settings has failed half-way: the server's
        // settings are unknown.
        if failed.entry.kind == RequestKind::Query {
            server.session.soil();
        }
    }
    let again = failed.entry.action == ReplyAction::Skip(Purpose::Autoprepare)
        && server.session.front.run.under_way().is_some_and(|run| run.may_be_repeated(fields));
    let idle = match failed.open {
        true => Idle::Open,
        false if again => Idle::Again,
        false => Idle::On,
    };
    let repeated = repeat_for_nobody(&mut server.session, &failed.entry, fields);
    (idle, repeated.unwrap_or_default())
}

/// Handles ReadyForQuery of a server that no client holds.
fn idle_ready(server: &mut Server, body: &[u8]) -> Idle {
    let (Ok(status), Ok(settled)) =
        (Status::read(body), server.session.outstanding.settle(back::READY_FOR_QUERY))
    else {
        return Idle::Broken(DisconnectReason::ServerProtocol);
    };
    server.session.outstanding.ready(status);
    server.session.settle_unheard(settled.seq);
    if settled.entry.action == ReplyAction::Skip(Purpose::Reset) {
        server.session.reset();
    }
    if server.session.outstanding.is_empty() { Idle::Quiet } else { Idle::On }
}
