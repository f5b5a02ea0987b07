//! Clients that are logged in: reading their input, with a server or without, and their end.

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

/// Bytes held for a client that waits, before its connection is not read any more.
const HELD_BYTES_MAX: usize = 64 * 1024;

/// What a client without a server wants.
enum Wants {
    /// Nothing more: so many bytes have been dealt with.
    Used(usize),
    /// A server.
    Server,
    /// The rest of a message.
    More,
    /// To leave, or it cannot be understood.
    End(DisconnectReason),
}

impl Step<'_> {
    /// A client said something.
    #[inline]
    pub(crate) fn client_bytes(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        match client.state {
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

    /// Reads a client's input on: what is held of it, and `bytes` behind that.
    pub(crate) fn serve(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        match client.state {
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

    fn hold(&mut self, conn: Conn, bytes: &[u8]) {
        if let Some(client) = self.engine.connections.client(conn)
            && (!bytes.is_empty() || client.paused)
        {
            client.inbox.hold(bytes);
            self.regulate(conn);
        }
    }

    /// Has a client's connection read or not: not while it waits, for whatever, and has said much; and not before little
    /// is queued to it and to its server, if there was much.
    pub(crate) fn regulate(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let enters = matches!(client.state, ClientState::Entering(..) | ClientState::Checking(..));
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

    /// Has a client's connection not read until something happens that it waits for.
    #[inline]
    pub(crate) fn stop_reading(&mut self, conn: Conn) {
        if let Some(client) = self.engine.connections.client(conn)
            && !std::mem::replace(&mut client.paused, true)
        {
            self.ports.act(Action::Pause { conn });
        }
    }

    /// Has a client's input read on.
    pub(crate) fn unblock(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        client.waiting_for = WaitingFor::Nothing;
        self.engine.runnable.push_back(conn);
    }

    /// Deals with as much of a client's input as it can; says how many bytes that was.
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
            let answers = link.server.outstanding.will_answer();
            at += used;
            if link.core_state.database_drain.has_news() {
                self.drain_everywhere();
                continue;
            }
            match stop {
                Stop::More => {
                    // What was answered here leaves a server that has nothing to do.
                    if link.server.outstanding.quiescent().is_some() {
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
                // What it asked for before that is answered first.
                Stop::End(_) if answers => {
                    self.await_replies(conn, server);
                    return at;
                }
                Stop::End(cause) => self.end_client(conn, cause),
            }
        }
    }

    /// A server that does not read fast enough stops its client from being read. So does the client itself, since what
    /// is answered here goes by no server.
    #[inline]
    fn push_back_on_client(&mut self, conn: Conn, server: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let high = self.engine.core_state.pool(client.pool).settings.options.buffer_high;
        if self.ports.queued(server) > high || self.ports.queued(conn) > high {
            self.stop_reading(conn);
        }
    }

    /// Whether a client leaves unread what it was answered; then it is not read on until it has read that.
    fn reads_slowly(&mut self, conn: Conn) -> bool {
        let Some(client) = self.engine.connections.client(conn) else { return false };
        let high = self.engine.core_state.pool(client.pool).settings.options.buffer_high;
        let full = self.ports.queued(conn) > high;
        if full {
            self.stop_reading(conn);
        }
        full
    }

    /// What the client says next depends on replies: it is read on when one has come. The server is asked
    /// for what it may be keeping back.
    pub(crate) fn await_replies(&mut self, conn: Conn, server: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        client.waiting_for = WaitingFor::Replies;
        let Some(s) = self.engine.connections.server(server) else { return };
        let asked = s.outstanding.next_seq();
        // What a Sync or Query ends comes by itself, but not where a COPY skips the Sync.
        let kept = s.outstanding.is_open() || s.outstanding.copying() == Copying::In;
        if kept && std::mem::replace(&mut s.flushed, asked) != asked {
            write::bare(self.ports.out(server), front::FLUSH);
        }
    }

    /// What needs no server is dealt with at once (E86).
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
            // One with a body is for a server to refuse.
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
            front::CLOSE if input.len() >= length && client.managed => {
                match Target::read(&input[refrain_wire::frame::HEADER_BYTES..length]) {
                    Ok(Target::Statement(b"")) => client.unnamed = None,
                    Ok(Target::Statement(name)) => drop(client.names.remove(name)),
                    Ok(Target::Portal(_)) => {}
                    Ok(Target::Unknown) => return Wants::Server,
                    Err(_) => return Wants::End(DisconnectReason::ClientProtocol),
                }
                let pool = client.pool;
                self.engine.core_state.pool(pool).counters.closes_answered += 1;
                write::bare(self.ports.out(conn), back::CLOSE_COMPLETE);
                Wants::Used(length)
            }
            front::PARSE if input.len() >= length && client.managed => {
                let body = &input[refrain_wire::frame::HEADER_BYTES..length];
                match self.parse_alone(conn, body) {
                    true => Wants::Used(length),
                    false => Wants::Server,
                }
            }
            _ => Wants::Server,
        }
    }

    /// Parse of a statement that a server has accepted and that the schema still fits needs none (E85). It
    /// keeps a driver that prepares everything at its start from waiting for servers that it holds itself.
    fn parse_alone(&mut self, conn: Conn, body: &[u8]) -> bool {
        let Some(client) = self.engine.connections.client(conn) else { return false };
        let core_state = &mut self.engine.core_state;
        let Ok(parse) = Parse::read(body) else { return false };
        if parse.name.is_empty() || client.names.contains(parse.name) {
            return false;
        }
        let identity = Identity { pool: client.pool, env: client.env(), tail: parse.tail };
        let Some(cached) = core_state.statements.find(&core_state.shared.registry, identity) else {
            return false;
        };
        let pool = core_state.pool(client.pool);
        let options = &pool.settings.options;
        let room = client.names.len() < options.max_client_statements as usize
            && client.names.bytes() + parse.tail.len() <= options.max_client_statement_bytes;
        if !room || !cached.is_accepted(pool.shared.schema_version()) {
            return false;
        }
        let Some(columns) = cached.columns() else { return false };
        pool.counters.client_parses += 1;
        pool.counters.parses_answered += 1;
        let generation = cached.statement.generation();
        let held = ClientRef::new(cached);
        let statement = ClientStatement::new(held, generation, columns);
        client.names.insert(Name::from_slice(parse.name), statement);
        write::bare(self.ports.out(conn), back::PARSE_COMPLETE);
        true
    }

    /// Whether a client has the beginning of a message whose rest is still to come: whatever it is sent next, it
    /// takes for that rest.
    pub(crate) fn is_cut(&mut self, conn: Conn) -> bool {
        let link = self.engine.connections.client(conn).and_then(|client| client.link);
        let server = link.and_then(|server| self.engine.connections.server(server));
        server.is_some_and(|s| s.inbox.rest > 0 && s.inbox.rest_goes == Rest::On)
    }

    /// A client's session is over. It is told why, and what it had goes back or away.
    pub(crate) fn end_client(&mut self, conn: Conn, cause: DisconnectReason) {
        let says = !self.is_cut(conn);
        self.end_client_saying(conn, cause, says);
    }

    /// The same; in the middle of a message nothing can be said.
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

    /// A client's connection broke.
    pub(crate) fn client_gone(&mut self, conn: Conn, why: &str) {
        self.note_client(conn, Level::Debug, DisconnectReason::ClientGone, why.to_owned());
        self.remove_client(conn, true);
    }

    /// Forgets a client, and closes its connection: at once where the peer has gone.
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
