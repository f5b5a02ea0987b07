//! Logging in to a server, and the consequences of a failure.
//!
//! A client that waits while its pool has no server at all gets an error: the server's own if it
//! sent one, and Refrain's if the server could not be reached.
//!
//! A server that is not logged in to yet may not send messages longer than [`MESSAGE_BYTES_MAX`],
//! nor report more settings than are kept.

use std::borrow::Cow;

use refrain_config::{PoolerErrors, TargetSessionAttrs};
use refrain_pg_wire::back::{self as read, Authentication, Fields, field};
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write::Report;
use refrain_pg_wire::{Header, startup, write};
use refrain_pool::disconnect::{ConnectFailure, DisconnectReason, FailureKind};
use refrain_pool::event::Level;
use refrain_pool::ids::Conn;
use refrain_pool::{Step as PoolStep, note_server_error};

use crate::auth::{AuthError, Login, LoginError, NONCE_BYTES, Reply};
use crate::ground::ids::ServerOrigin;
use crate::ground::reports::no_server;
use crate::ground::server_state::{self, ServerState};
use crate::login::lookup::doubt_secret;
use crate::relay::words::logged;
use crate::results::confirmed::Began;
use crate::settings::encoding::Encoding;
use crate::settings::session::SettingsMut;
use crate::state::client::ClientSession;
use crate::state::parts::Pg;
use crate::state::server::{LoggingIn, LoginQuery};

/// Most bytes of a message during the login. The beginning of a longer error is read, and a longer
/// notice is skipped.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The consequence of a server's message during the login.
enum AfterMessage {
    /// The login goes on.
    On,
    /// The server is logged in.
    Done,
    /// The server is in this state, which its pool does not want.
    Unsuited(ServerState),
    /// The login failed, for this reason; with the server's error, if it sent one.
    Failed(String, Option<Vec<u8>>),
}

/// A server to which Refrain logs in, within a step of the pool's engine.
pub(crate) struct LoginToServer<'s, 'a> {
    pub(crate) step: &'s mut PoolStep<'a, Pg>,
    pub(crate) conn: Conn,
}

impl LoginToServer<'_, '_> {
    /// Sends the startup packet to a server that is connected.
    pub(crate) fn server_connected(&mut self) {
        let random: [u8; NONCE_BYTES] = self.step.engine.core_state.random();
        let Some(server) = self.step.engine.connections.server(self.conn) else { return };
        let pool = self.step.engine.core_state.pool(server.pool());
        let target = &pool.settings.server;
        let user = target.user.clone().unwrap_or_else(|| pool.shared.user.to_string());
        let database = pool.server_database();
        let (secret, version) = pool.shared.protocol.secret();
        let login =
            Login::new(&user, secret, &random).over(server.secured(), target.channel_binding);
        let mut parameters: Vec<(&[u8], &[u8])> =
            vec![(b"user", user.as_bytes()), (b"database", database.as_bytes())];
        if let Some(name) = &target.application_name {
            parameters.push((b"application_name", name.as_bytes()));
        }
        let more = target.parameters.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
        parameters.extend(more);
        startup::write(self.step.ports.out(self.conn), 0, parameters.into_iter());
        let began = Began::now(self.step.now, &pool.shared.protocol.database().roles);
        let (login, server_parameters) = (Some(login), Vec::new());
        let logging_in = LoggingIn {
            login,
            secret: version,
            began,
            server_parameters,
            runs: LoginQuery::None,
            state: None,
            origin: None,
        };
        let begins = pool.shared.protocol.place().defaults.begin();
        server.session.replayed.begin(begins);
        server.begin_login(logging_in);
    }

    /// Handles a server's reply during the login. Returns the number of bytes handled, and whether
    /// to go on with the rest.
    pub(crate) fn login_replies(&mut self, input: &[u8]) -> (usize, bool) {
        let Some(server) = self.step.engine.connections.server(self.conn) else {
            return (input.len(), false);
        };
        let rest = server.inbox.take_rest(input);
        if rest > 0 {
            return (rest, true);
        }
        let Ok(header) = Header::parse(input) else {
            self.login_failed(DisconnectReason::ServerLogin, "malformed message", None);
            return (0, true);
        };
        let Some(header) = header else { return (0, false) };
        let length = header.message_bytes();
        let there = length.min(input.len());
        let body = &input[refrain_pg_wire::frame::HEADER_BYTES..there];
        if there < length {
            let long = length > MESSAGE_BYTES_MAX;
            match header.tag {
                back::NOTICE_RESPONSE => {
                    return (server.inbox.drop_message(length, input.len()), true);
                }
                back::ERROR_RESPONSE if there >= MESSAGE_BYTES_MAX => {}
                tag if long && tag != back::ERROR_RESPONSE => {
                    self.login_failed(DisconnectReason::ServerLogin, "a message is too long", None);
                    return (0, true);
                }
                _ => return (0, false),
            }
        }
        match self.login_message(header.tag, body) {
            AfterMessage::On => {}
            AfterMessage::Done => self.logged_in(),
            AfterMessage::Unsuited(state) => self.unsuited(state),
            AfterMessage::Failed(why, words) => {
                self.login_failed(DisconnectReason::ServerLogin, &why, words.as_deref());
            }
        }
        (there, true)
    }

    fn login_message(&mut self, tag: u8, body: &[u8]) -> AfterMessage {
        let bad = |what: &str| AfterMessage::Failed(what.to_owned(), None);
        let Some(server) = self.step.engine.connections.server(self.conn) else {
            return AfterMessage::On;
        };
        let Some(login) = server.login_mut() else { return bad("too early") };
        match tag {
            back::AUTHENTICATION => self.prove(body),
            back::PARAMETER_STATUS => match read::parameter_status(body) {
                Ok((name, value)) => {
                    if !login.has_room(name, value) {
                        return bad("it reports too many settings");
                    }
                    login.report(name, value);
                    AfterMessage::On
                }
                Err(_) => bad("malformed ParameterStatus"),
            },
            back::BACKEND_KEY_DATA => match read::backend_key(body) {
                Ok((pid, key)) => {
                    server.set_cancel_key(pid, key);
                    AfterMessage::On
                }
                Err(_) => bad("malformed BackendKeyData"),
            },
            back::READY_FOR_QUERY if login.login.is_none() => self.ready_at_login(body),
            back::ERROR_RESPONSE if login.runs == LoginQuery::Connect => {
                self.connect_query_failed(&Fields(body));
                AfterMessage::On
            }
            // It does not say: so nothing of it is kept by a rule that has to know.
            back::ERROR_RESPONSE if login.runs == LoginQuery::Origin => AfterMessage::On,
            back::ROW_DESCRIPTION
            | back::DATA_ROW
            | back::COMMAND_COMPLETE
            | back::EMPTY_QUERY_RESPONSE
                if login.runs != LoginQuery::None =>
            {
                match login.runs {
                    LoginQuery::State if tag == back::DATA_ROW => login.note_state(body),
                    LoginQuery::Origin if tag == back::DATA_ROW => {
                        login.origin = ServerOrigin::read(read::columns(body));
                    }
                    _ => {}
                }
                AfterMessage::On
            }
            back::NOTICE_RESPONSE | back::NEGOTIATE_PROTOCOL_VERSION => AfterMessage::On,
            back::ERROR_RESPONSE => {
                let (fields, rest) = Fields(body).split();
                let why = logged(fields.get(field::MESSAGE).unwrap_or(rest));
                if fields.sqlstate() == b"28P01" {
                    self.refused_secret();
                }
                AfterMessage::Failed(why, Some([fields.0, &[0]].concat()))
            }
            _ => bad("unexpected message"),
        }
    }

    /// Handles a ReadyForQuery of the login: the first one lets the server run `connect_query`.
    fn ready_at_login(&mut self, body: &[u8]) -> AfterMessage {
        let Some(server) = self.step.engine.connections.server(self.conn) else {
            return AfterMessage::On;
        };
        let pool = self.step.engine.core_state.pool(server.pool());
        let target = &pool.settings.server;
        let Some(login) = server.login_mut() else { return AfterMessage::On };
        match (login.runs, &target.connect_query) {
            (LoginQuery::None, Some(query)) => {
                login.runs = LoginQuery::Connect;
                write::query(self.step.ports.out(self.conn), query.as_bytes());
                AfterMessage::On
            }
            (LoginQuery::Connect, _) if body != b"I" => {
                AfterMessage::Failed("connect_query left a transaction open".to_owned(), None)
            }
            (LoginQuery::Origin, _) => AfterMessage::Done,
            _ if target.target_session_attrs == TargetSessionAttrs::Any => self.ask_origin(),
            _ => self.judge_state(),
        }
    }

    /// Asks a server which one it is, if a rule of the cache depends on that.
    fn ask_origin(&mut self) -> AfterMessage {
        let Some(server) = self.step.engine.connections.server(self.conn) else {
            return AfterMessage::On;
        };
        let pool = self.step.engine.core_state.pool(server.pool());
        let follows = pool.settings.cache.follows_changes();
        let Some(login) = server.login_mut().filter(|_| follows) else { return AfterMessage::Done };
        login.runs = LoginQuery::Origin;
        let text = format!("SELECT {}", ServerOrigin::COLUMNS);
        write::query(self.step.ports.out(self.conn), text.as_bytes());
        AfterMessage::On
    }

    /// Looks whether a server is in the state that its pool wants. A server that has not reported
    /// its state is asked.
    #[cold]
    fn judge_state(&mut self) -> AfterMessage {
        let Some(server) = self.step.engine.connections.server(self.conn) else {
            return AfterMessage::On;
        };
        let takes_any = server.takes_any_host();
        let pool = self.step.engine.core_state.pool(server.pool());
        let wants = pool.settings.server.target_session_attrs;
        let Some(login) = server.login_mut() else { return AfterMessage::On };
        match login.state() {
            Some(state) if takes_any || state.suits(wants) => self.ask_origin(),
            Some(state) => AfterMessage::Unsuited(state),
            None if login.runs == LoginQuery::State => {
                AfterMessage::Failed("it does not tell its state".to_owned(), None)
            }
            None => {
                login.runs = LoginQuery::State;
                write::query(self.step.ports.out(self.conn), server_state::QUERY);
                AfterMessage::On
            }
        }
    }

    /// Leaves a server that is not in the state that its pool wants.
    #[cold]
    fn unsuited(&mut self, state: ServerState) {
        let (cause, kind) = (DisconnectReason::ServerLogin, FailureKind::Unsuited);
        if let Some(server) = self.step.engine.connections.server(self.conn) {
            server.note_role(state.is_standby);
        }
        // Clients wait for a server of another host.
        self.step.supply().drop_failed(
            self.conn,
            &ConnectFailure { cause, why: state.words(), kind, refusal: None },
        );
    }

    /// Logs that `connect_query` failed. Clients get the server all the same, as with PgBouncer.
    fn connect_query_failed(&mut self, fields: &Fields<'_>) {
        let Some(server) = self.step.engine.connections.server(self.conn) else { return };
        let (pid, host) = (server.pid(), server.host().clone());
        let pool = self.step.engine.core_state.pool(server.pool());
        let sqlstate = logged(fields.sqlstate());
        let why = logged(fields.get(field::MESSAGE).unwrap_or_default());
        let words = format!("connect_query failed: {why}");
        note_server_error(self.step.ports, (pool, &host, pid), Level::Warn, sqlstate, &words);
    }

    /// Answers a server's request for authentication.
    fn prove(&mut self, body: &[u8]) -> AfterMessage {
        let Some(server) = self.step.engine.connections.server(self.conn) else {
            return AfterMessage::On;
        };
        let id = server.pool();
        let Some(login) = server.login_mut() else { return AfterMessage::On };
        let Ok(asked) = Authentication::read(body) else {
            return AfterMessage::Failed("malformed Authentication".to_owned(), None);
        };
        let Some(exchange) = login.login.take() else {
            return AfterMessage::Failed("authentication after its end".to_owned(), None);
        };
        let shared = self.step.engine.core_state.pool(id).shared.clone();
        let mut salted = shared.protocol.salted();
        let result = exchange.answer(asked.into(), &mut salted);
        shared.protocol.keep_salted(salted);
        match result {
            Ok(Reply::Send(body, exchange)) => {
                login.login = Some(exchange);
                write::password(self.step.ports.out(self.conn), &body);
            }
            Ok(Reply::Wait(exchange)) => login.login = Some(exchange),
            Ok(Reply::LoggedIn) => {}
            Err(error @ LoginError::SaltMismatch) => {
                // The server has another verifier than the one by which the client proved itself,
                // so it would refuse the client's password as well.
                self.refused_secret();
                let refusal = AuthError::Password { user: shared.user.to_string() };
                return AfterMessage::Failed(error.to_string(), Some(told(&refusal)));
            }
            Err(error) => return AfterMessage::Failed(error.to_string(), None),
        }
        AfterMessage::On
    }

    /// Notes that a server refuses the secret with which Refrain logs in.
    fn refused_secret(&mut self) {
        let Some(server) = self.step.engine.connections.server(self.conn) else { return };
        let id = server.pool();
        let Some(version) = server.login_mut().map(|login| login.secret) else { return };
        doubt_secret(&mut self.step.engine.core_state, id, version, self.step.now);
    }

    /// Ends the login to a server: records its settings.
    fn logged_in(&mut self) {
        let Some(server) = self.step.engine.connections.server(self.conn) else { return };
        let Some(login) = server.login_mut() else { return };
        let state = login.state();
        let server_parameters = std::mem::take(&mut login.server_parameters);
        let (began, origin) = (login.began, login.origin);
        if let Some(state) = state {
            server.note_role(state.is_standby);
        }
        let edit = SettingsMut::settable(&server_parameters);
        let core_state = &mut self.step.engine.core_state;
        let settings = core_state.protocol.settings(&core_state.shared.protocol, edit);
        let encoding = server_parameters.iter().find(|(name, _)| **name == *b"server_encoding");
        let encoding = Encoding::named(encoding.map_or(b"", |(_, value)| value));
        server.session.origin = origin;
        server.session.settings.logged_in(settings.clone(), encoding, self.step.now);
        let shared = &core_state.pool(server.pool()).shared;
        let news = shared.protocol.learn_server_parameters(server_parameters);
        shared.protocol.confirmed.learn(began);
        if let Some(origin) = origin {
            shared.protocol.place().changes.meet(origin);
        }
        if shared.protocol.meet(&settings) {
            // The defaults of new sessions have changed. Servers that were connected before are
            // connected anew as they come free.
            shared.renew_servers();
            server.note_reconnects(shared.reconnects());
        }
        self.step.logged_in(self.conn, news);
    }

    /// Handles a server that could not be logged in to. If the pool has no other server, its
    /// waiting clients get an error.
    pub(crate) fn login_failed(
        &mut self,
        cause: DisconnectReason,
        why: &str,
        words: Option<&[u8]>,
    ) {
        let Some(server) = self.step.engine.connections.server(self.conn) else { return };
        let id = server.pool();
        let pool = self.step.engine.core_state.pool(id);
        let gone = words.is_some_and(|words| is_database_or_user_missing(&Fields(words)));
        let shared = pool.shared.clone();
        let kind = match words {
            Some(words) => kind_of(&Fields(words)),
            None if cause == DisconnectReason::ServerDown => FailureKind::Outage,
            None => FailureKind::Lasting,
        };
        let refusal = words.filter(|words| is_refusal(&Fields(words)));
        let errors = self.step.engine.core_state.shared.options().general.pooler_errors;
        let failure = ConnectFailure { cause, why, kind, refusal };
        let mut supply = self.step.supply();
        if supply.drop_failed(self.conn, &failure) {
            if gone && !shared.is_live() {
                shared.protocol.forget_server_parameters();
            }
            let tell = |client: &ClientSession, out: &mut Vec<u8>| {
                tell_failure((errors, cause), client, out, words)
            };
            supply.fail_waiting(id, (cause, why), tell);
        }
        if gone {
            supply.forget_soon(id);
        }
    }
}

/// Tells a client that waits for a server that none can be logged in to: with the server's own
/// error, if it sent one. Returns the SQLSTATE.
pub(crate) fn tell_failure(
    (errors, cause): (PoolerErrors, DisconnectReason),
    client: &ClientSession,
    out: &mut Vec<u8>,
    words: Option<&[u8]>,
) -> Option<Cow<'static, str>> {
    match words {
        Some(words) => {
            write::message(out, back::ERROR_RESPONSE, |out| out.extend_from_slice(words));
            Some(logged(Fields(words).sqlstate()).into())
        }
        None => {
            let is_ready = client.login.is_ready();
            write::error(out, &no_server(errors, cause, is_ready));
            Some(no_server(PoolerErrors::PostgreSql, cause, is_ready).sqlstate.into())
        }
    }
}

/// Returns the fields of the error for a client that could not prove who it is.
fn told(refusal: &AuthError) -> Vec<u8> {
    let message = refusal.to_string();
    let sqlstate = refusal.sqlstate();
    let mut error = Vec::new();
    write::error(&mut error, &Report { severity: "FATAL", sqlstate, message: &message, hint: "" });
    error.split_off(refrain_pg_wire::frame::HEADER_BYTES)
}

/// Whether a server's error says that the database or the user does not exist.
fn is_database_or_user_missing(fields: &Fields<'_>) -> bool {
    matches!(fields.sqlstate(), b"3D000" | b"28000")
}

/// Returns whether a server's error may pass by itself: there are too many connections (class 53),
/// or the server is starting, shutting down or has crashed ("PostgreSQL Error Codes").
fn kind_of(fields: &Fields<'_>) -> FailureKind {
    match fields.sqlstate() {
        b"57P01" | b"57P02" | b"57P03" => FailureKind::Outage,
        sqlstate if sqlstate.starts_with(b"53") => FailureKind::Full,
        _ => FailureKind::Lasting,
    }
}

/// Whether a server's error says that it refuses the user or the password (class 28, invalid
/// authorization specification).
fn is_refusal(fields: &Fields<'_>) -> bool {
    fields.sqlstate().starts_with(b"28")
}
