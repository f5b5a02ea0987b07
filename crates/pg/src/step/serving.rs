//! Clients that are logged in: reading their input, with a server or without, and the end of their
//! sessions.

use refrain_wire::back::Status;
use refrain_wire::front::{Parse, Target};
use refrain_wire::tag::{back, front};
use refrain_wire::{Header, write};

use crate::engine::Step;
use crate::ground::disconnect::DisconnectReason;
use crate::ground::ids::Conn;
use crate::ground::inbox::Rest;
use crate::pipeline::outstanding::Copying;
use crate::relay::link::Stop;
use crate::state::client::{ClientState, WaitingFor};
use crate::state::connections::Connection;
use crate::state::event::{Action, Level};
use crate::statements::of_client::{ClientRef, ClientStatement, Name};
use crate::statements::statement::Identity;

/// Bytes of input held for a client that waits; beyond that its connection is not read.
const HELD_BYTES_MAX: usize = 64 * 1024;

/// What the next message of a client without a server needs.
enum Wants {
    /// Nothing more: so many bytes have been handled.
    Used(usize),
    /// A server.
    Server,
    /// The rest of a message.
    More,
    /// The end of the session: Terminate, or a malformed message.
    End(DisconnectReason),
}

impl Step<'_> {
    /// Handles bytes from a client.
    #[inline]
    pub(crate) fn client_bytes(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        match client.session.state {
            ClientState::Ready(_) => {
                let pool = client.pool;
                self.engine.core_state.pool(pool).counters.bytes_received += bytes.len() as u64;
                self.serve(conn, bytes);
            }
            ClientState::Opening | ClientState::Proving(..) => self.login_bytes(conn, bytes),
            ClientState::Entering(..) | ClientState::Checking(..) => self.hold(conn, bytes),
            ClientState::Console(..) => self.console_bytes(conn, bytes),
        }
    }

    /// Handles a client's input: the bytes that were held, and `bytes` behind them.
    pub(crate) fn serve(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        match client.session.state {
            ClientState::Ready(_) => {}
            ClientState::Checking(..) => return self.checked(conn),
            ClientState::Console(..) => return self.console_bytes(conn, bytes),
            ClientState::Opening | ClientState::Proving(..) | ClientState::Entering(..) => return,
        }
        if client.waiting_for != WaitingFor::Nothing {
            return self.hold(conn, bytes);
        }
        if client.inbox.held() == 0 && bytes.is_empty() && client.ended.is_none() {
            return self.regulate(conn);
        }
        if client.inbox.held() == 0 {
            let used = self.serve_input(conn, bytes);
            self.hold(conn, &bytes[used..]);
        } else {
            let all = client.inbox.join(bytes);
            let used = self.serve_input(conn, &all);
            if let Some(client) = self.engine.connections.client(conn) {
                client.inbox.put_back(all, used);
                self.regulate(conn);
            }
        }
    }

    /// Keeps input of a client for later.
    fn hold(&mut self, conn: Conn, bytes: &[u8]) {
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
    pub(crate) fn regulate(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let enters =
            matches!(client.session.state, ClientState::Entering(..) | ClientState::Checking(..));
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
    pub(crate) fn stop_reading(&mut self, conn: Conn) {
        if let Some(client) = self.engine.connections.client(conn)
            && !std::mem::replace(&mut client.paused, true)
        {
            self.ports.act(Action::Pause { conn });
        }
    }

    /// Ends a client's waiting, and schedules its input to be handled.
    pub(crate) fn unblock(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        client.waiting_for = WaitingFor::Nothing;
        self.engine.runnable.push_back(conn);
    }

    /// Handles as much of a client's input as possible. Returns the number of bytes handled.
    #[inline]
    fn serve_input(&mut self, conn: Conn, input: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let Some(client) = self.engine.connections.client(conn) else { return input.len() };
            let Some(server) = client.link else {
                if self.reads_slowly(conn) {
                    return at;
                }
                match self.serve_alone(conn, &input[at..]) {
                    Wants::Used(used) => at += used,
                    Wants::More => {
                        self.leave_if_ended(conn);
                        return at;
                    }
                    Wants::End(cause) => self.end_client(conn, cause),
                    Wants::Server if self.lend(conn) => {}
                    Wants::Server => return at,
                }
                continue;
            };
            let mut link = self.linked(conn, server);
            let (used, stop) = link.requests(&input[at..]);
            let answers = link.server.session.outstanding.will_answer();
            at += used;
            if link.core_state.database_drain.has_news() {
                self.drain_everywhere();
                continue;
            }
            match stop {
                Stop::More => {
                    // Refrain may have answered all messages itself: then no ReadyForQuery comes
                    // that would free the server.
                    if link.server.session.outstanding.quiescent().is_some() {
                        self.after_ready(conn, server);
                    }
                    self.push_back_on_client(conn, server);
                    self.leave_if_ended(conn);
                    return at;
                }
                Stop::Replies => {
                    self.await_replies(conn, server);
                    return at;
                }
                Stop::Job => {
                    self.lend_to_job(conn, server);
                    return at;
                }
                // The replies to the client's earlier messages come first; then the message is read
                // again.
                Stop::End(_) if answers => {
                    self.await_replies(conn, server);
                    return at;
                }
                Stop::End(cause) => self.end_client(conn, cause),
            }
        }
    }

    /// Stops reading a client while too much is queued to its server, or to the client itself:
    /// replies that Refrain makes itself come from no server that could be paused.
    #[inline]
    fn push_back_on_client(&mut self, conn: Conn, server: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let high = self.engine.core_state.pool(client.pool).settings.options.buffer_high;
        if self.ports.queued(server) > high || self.ports.queued(conn) > high {
            self.stop_reading(conn);
        }
    }

    /// Whether a client without a server leaves too many replies unread. If so, stops reading it.
    fn reads_slowly(&mut self, conn: Conn) -> bool {
        let Some(client) = self.engine.connections.client(conn) else { return false };
        let high = self.engine.core_state.pool(client.pool).settings.options.buffer_high;
        let full = self.ports.queued(conn) > high;
        if full {
            self.stop_reading(conn);
        }
        full
    }

    /// Makes a client wait for replies, and sends a Flush if the server may be holding them back
    /// (E28).
    pub(crate) fn await_replies(&mut self, conn: Conn, server: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        client.waiting_for = WaitingFor::Replies;
        let Some(s) = self.engine.connections.server(server) else { return };
        let asked = s.session.outstanding.next_seq();
        // Behind a Sync or Query the server sends all replies by itself, unless a COPY skips that
        // Sync (E42).
        let kept =
            s.session.outstanding.is_open() || s.session.outstanding.copying() == Copying::In;
        if kept && std::mem::replace(&mut s.session.flushed, asked) != asked {
            write::bare(self.ports.out(server), front::FLUSH);
        }
    }

    /// Handles a message that needs no server (E86). A driver that just closes statements must not
    /// wait for a server, or take one from another client.
    fn serve_alone(&mut self, conn: Conn, input: &[u8]) -> Wants {
        let Some(client) = self.engine.connections.client(conn) else { return Wants::More };
        if client.inbox.rest > 0 && !input.is_empty() {
            return Wants::Used(client.inbox.take_rest(input));
        }
        let header = match Header::parse(input) {
            Ok(Some(header)) => header,
            Ok(None) => return Wants::More,
            Err(_) => return Wants::End(DisconnectReason::ClientProtocol),
        };
        let length = header.message_bytes();
        match header.tag {
            front::TERMINATE => Wants::End(DisconnectReason::Terminated),
            // A server has to refuse a Sync with a body.
            front::SYNC if input.len() >= length && header.body == 0 => {
                write::ready(self.ports.out(conn), Status::Idle);
                Wants::Used(length)
            }
            front::FLUSH if input.len() >= length => Wants::Used(length),
            // Outside COPY, PostgreSQL ignores these.
            front::COPY_DATA | front::COPY_DONE | front::COPY_FAIL => {
                let there = length.min(input.len());
                client.inbox.expect(length - there, Rest::Nowhere);
                Wants::Used(there)
            }
            front::CLOSE if input.len() >= length && client.session.managed => {
                match Target::read(&input[refrain_wire::frame::HEADER_BYTES..length]) {
                    Ok(Target::Statement(b"")) => client.session.unnamed = None,
                    Ok(Target::Statement(name)) => drop(client.session.names.remove(name)),
                    Ok(Target::Portal(_)) => {}
                    Ok(Target::Unknown) => return Wants::Server,
                    Err(_) => return Wants::End(DisconnectReason::ClientProtocol),
                }
                let pool = client.pool;
                self.engine.core_state.pool(pool).counters.closes_answered += 1;
                write::bare(self.ports.out(conn), back::CLOSE_COMPLETE);
                Wants::Used(length)
            }
            front::PARSE if input.len() >= length && client.session.managed => {
                let body = &input[refrain_wire::frame::HEADER_BYTES..length];
                match self.parse_alone(conn, body) {
                    true => Wants::Used(length),
                    false => Wants::Server,
                }
            }
            _ => Wants::Server,
        }
    }

    /// Answers a Parse without a server, if a server has accepted the statement under the schema of
    /// now (E85). True if it did. So a driver that prepares all its statements on all its
    /// connections at start does not wait for servers that its other connections hold.
    fn parse_alone(&mut self, conn: Conn, body: &[u8]) -> bool {
        let Some(client) = self.engine.connections.client(conn) else { return false };
        let core_state = &mut self.engine.core_state;
        let Ok(parse) = Parse::read(body) else { return false };
        if parse.name.is_empty() || client.session.names.contains(parse.name) {
            return false;
        }
        let identity = Identity { pool: client.pool, env: client.session.env(), tail: parse.tail };
        let Some(cached) = core_state.statements.find(&core_state.shared.registry, identity) else {
            return false;
        };
        let pool = core_state.pool(client.pool);
        let options = &pool.settings.options;
        let room = client.session.names.len() < options.max_client_statements as usize
            && client.session.names.bytes() + parse.tail.len()
                <= options.max_client_statement_bytes;
        if !room || !cached.is_accepted(pool.shared.schema_version()) {
            return false;
        }
        let Some(columns) = cached.columns() else { return false };
        pool.counters.client_parses += 1;
        pool.counters.parses_answered += 1;
        let generation = cached.statement.generation();
        let held = ClientRef::new(cached);
        let statement = ClientStatement::new(held, generation, columns);
        client.session.names.insert(Name::from_slice(parse.name), statement);
        write::bare(self.ports.out(conn), back::PARSE_COMPLETE);
        true
    }

    /// Whether a client has got the beginning of a message whose rest is still to come. The client
    /// would take an error for that rest.
    pub(crate) fn is_cut(&mut self, conn: Conn) -> bool {
        let link = self.engine.connections.client(conn).and_then(|client| client.link);
        let server = link.and_then(|server| self.engine.connections.server(server));
        server.is_some_and(|s| s.inbox.rest > 0 && s.inbox.rest_goes == Rest::On)
    }

    /// Ends a client's session with the error for `cause`, and frees what the client had.
    pub(crate) fn end_client(&mut self, conn: Conn, cause: DisconnectReason) {
        let says = !self.is_cut(conn);
        self.end_client_saying(conn, cause, says);
    }

    /// Ends a client's session, with the error for `cause` if `says`.
    pub(crate) fn end_client_saying(&mut self, conn: Conn, cause: DisconnectReason, says: bool) {
        let level = match cause {
            DisconnectReason::Terminated
            | DisconnectReason::ClientGone
            | DisconnectReason::Shutdown => Level::Debug,
            _ => Level::Warn,
        };
        self.note_client(conn, level, cause, String::new());
        if let Some(report) = cause.report().filter(|_| says) {
            write::error(self.ports.out(conn), &report);
        }
        self.remove_client(conn, false);
    }

    /// Ends the session of a client whose connection broke.
    pub(crate) fn client_gone(&mut self, conn: Conn, why: &str) {
        self.note_client(conn, Level::Debug, DisconnectReason::ClientGone, why.to_owned());
        self.remove_client(conn, true);
    }

    /// Forgets a client, and closes its connection: at once if the peer has gone, else once its
    /// output is sent.
    pub(crate) fn remove_client(&mut self, conn: Conn, gone: bool) {
        let Connection::Client(client) = self.engine.connections.take(conn) else { return };
        let clients = self.engine.clients.checked_sub(1);
        self.engine.clients = clients.expect("no more clients leave than came");
        self.engine.core_state.shared.lobby.go(client.counted, &client.peer, client.serial);
        if let Some(pool) = self.engine.core_state.find_pool(client.pool) {
            let shared = pool.shared.clone();
            pool.remove_waiting(conn);
            pool.entering.retain(|&entering| entering != conn);
            pool.clients = pool.clients.checked_sub(1).expect("no more clients leave than came");
            self.engine.core_state.shared.client_gone(&shared);
        }
        if gone {
            self.ports.abandon(conn)
        } else {
            self.ports.close(conn)
        }
        if let Some(server) = client.link {
            self.take_back(server, &client);
        }
    }
}
