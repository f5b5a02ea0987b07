//! Logging in to a server, and the consequences of a failure.
//!
//! A client that waits while its pool has no server at all gets an error: the server's own if it is
//! about the server or about the client's request (57P03, 53300, 3D000), and Refrain's if the
//! server could not be reached. An error about Refrain's own name or password goes to the log
//! alone.
//!
//! A server that is not logged in to yet may not send messages longer than [`MESSAGE_BYTES_MAX`],
//! nor report more settings than are kept.

use refrain_wire::back::{self as read, Authentication, Fields, field};
use refrain_wire::tag::back;
use refrain_wire::{Header, startup, write};

use crate::auth::{Login, NONCE_BYTES, Reply, ServerAsks};
use crate::engine::Step;
use crate::ground::disconnect::DisconnectReason;
use crate::ground::ids::Conn;
use crate::ground::inbox::Rest;
use crate::settings::defaults::Defaults;
use crate::settings::encoding::Encoding;
use crate::settings::session::{SettingsMut, is_settable};
use crate::state::connections::Connection;
use crate::state::core_state::note;
use crate::state::event::Level;
use crate::state::pool::Pool;
use crate::state::server::{LoggingIn, ServerState};

/// Most bytes of a message during the login. The beginning of a longer error is read, and a longer
/// notice is skipped.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Characters of a server's words that go into the log.
const LOGGED_MAX: usize = 1000;

/// What a message at the login leads to.
enum Next {
    On,
    Done,
    /// The login failed; the words for clients, if the server had any.
    Failed(String, Option<Vec<u8>>),
}

impl Step<'_> {
    /// Sends the startup packet to a server that is connected.
    pub(crate) fn server_connected(&mut self, conn: Conn) {
        let random: [u8; NONCE_BYTES] = self.engine.core_state.random();
        let Some(server) = self.engine.connections.server(conn) else { return };
        let pool = self.engine.core_state.pool(server.pool);
        let target = &pool.settings.server;
        let user = target.user.clone().unwrap_or_else(|| pool.shared.user.to_string());
        let database = pool.server_database();
        let login = Login::new(&user, pool.shared.secret(), &random);
        let mut parameters: Vec<(&[u8], &[u8])> =
            vec![(b"user", user.as_bytes()), (b"database", database.as_bytes())];
        if let Some(name) = &target.application_name {
            parameters.push((b"application_name", name.as_bytes()));
        }
        let more = target.parameters.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
        parameters.extend(more);
        startup::write(self.ports.out(conn), 0, parameters.into_iter());
        let logging_in = LoggingIn { login: Some(login), server_parameters: Vec::new() };
        server.state = ServerState::Login(Box::new(logging_in));
    }

    /// Handles a server's reply during the login. Returns the number of bytes handled, and whether
    /// to go on with the rest.
    pub(crate) fn login_replies(&mut self, conn: Conn, input: &[u8]) -> (usize, bool) {
        let Some(server) = self.engine.connections.server(conn) else {
            return (input.len(), false);
        };
        let rest = server.inbox.take_rest(input);
        if rest > 0 {
            return (rest, true);
        }
        let Ok(header) = Header::parse(input) else {
            self.login_failed(conn, DisconnectReason::ServerLogin, "malformed message", None);
            return (0, true);
        };
        let Some(header) = header else { return (0, false) };
        let length = header.message_bytes();
        let there = length.min(input.len());
        let body = &input[refrain_wire::frame::HEADER_BYTES..there];
        if there < length {
            let long = length > MESSAGE_BYTES_MAX;
            match header.tag {
                back::NOTICE_RESPONSE => {
                    server.inbox.expect(length - there, Rest::Nowhere);
                    return (there, true);
                }
                back::ERROR_RESPONSE if there >= MESSAGE_BYTES_MAX => {}
                tag if long && tag != back::ERROR_RESPONSE => {
                    self.login_failed(
                        conn,
                        DisconnectReason::ServerLogin,
                        "a message is too long",
                        None,
                    );
                    return (0, true);
                }
                _ => return (0, false),
            }
        }
        match self.login_message(conn, header.tag, body) {
            Next::On => {}
            Next::Done => self.logged_in(conn),
            Next::Failed(why, words) => {
                self.login_failed(conn, DisconnectReason::ServerLogin, &why, words.as_deref());
            }
        }
        (there, true)
    }

    fn login_message(&mut self, conn: Conn, tag: u8, body: &[u8]) -> Next {
        let bad = |what: &str| Next::Failed(what.to_owned(), None);
        let Some(server) = self.engine.connections.server(conn) else { return Next::On };
        let ServerState::Login(login) = &mut server.state else { return bad("too early") };
        match tag {
            back::AUTHENTICATION => self.prove(conn, body),
            back::PARAMETER_STATUS => match read::parameter_status(body) {
                Ok((name, value)) => {
                    if !login.has_room(name, value) {
                        return bad("it reports too many settings");
                    }
                    login.server_parameters.push((name.into(), value.into()));
                    Next::On
                }
                Err(_) => bad("malformed ParameterStatus"),
            },
            back::BACKEND_KEY_DATA => match read::backend_key(body) {
                Ok((pid, key)) => {
                    server.pid = pid;
                    server.key = key.into();
                    Next::On
                }
                Err(_) => bad("malformed BackendKeyData"),
            },
            back::READY_FOR_QUERY if login.login.is_none() => Next::Done,
            back::NOTICE_RESPONSE | back::NEGOTIATE_PROTOCOL_VERSION => Next::On,
            back::ERROR_RESPONSE => {
                let (fields, rest) = Fields(body).split();
                let text = fields.get(field::MESSAGE).unwrap_or(rest);
                let why = String::from_utf8_lossy(text).chars().take(LOGGED_MAX).collect();
                Next::Failed(why, Some([fields.0, &[0]].concat()))
            }
            _ => bad("unexpected message"),
        }
    }

    /// Answers a server's request for authentication.
    fn prove(&mut self, conn: Conn, body: &[u8]) -> Next {
        let Some(server) = self.engine.connections.server(conn) else { return Next::On };
        let ServerState::Login(login) = &mut server.state else { return Next::On };
        let Ok(asked) = Authentication::read(body) else {
            return Next::Failed("malformed Authentication".to_owned(), None);
        };
        let asks = match asked {
            Authentication::Ok => ServerAsks::Ok,
            Authentication::Cleartext => ServerAsks::CleartextPassword,
            Authentication::Md5(salt) => ServerAsks::Md5 { salt },
            Authentication::Sasl(mechanisms) => ServerAsks::Sasl { mechanisms },
            Authentication::SaslContinue(body) => ServerAsks::SaslContinue(body),
            Authentication::SaslFinal(body) => ServerAsks::SaslFinal(body),
            Authentication::Other(kind) => ServerAsks::Other(kind),
        };
        let Some(exchange) = login.login.take() else {
            return Next::Failed("authentication after its end".to_owned(), None);
        };
        let shared = self.engine.core_state.pool(server.pool).shared.clone();
        let mut salted = shared.salted();
        let result = exchange.answer(asks, &mut salted);
        shared.keep_salted(salted);
        match result {
            Ok(Reply::Send(body, exchange)) => {
                login.login = Some(exchange);
                write::password(self.ports.out(conn), &body);
            }
            Ok(Reply::Wait(exchange)) => login.login = Some(exchange),
            Ok(Reply::LoggedIn) => {}
            Err(error) => return Next::Failed(error.to_string(), None),
        }
        Next::On
    }

    /// Ends the login to a server: records its settings, and frees it.
    fn logged_in(&mut self, conn: Conn) {
        let jitter: [u8; 1] = self.engine.core_state.random();
        let Some(server) = self.engine.connections.server(conn) else { return };
        let state = std::mem::replace(&mut server.state, ServerState::Resetting);
        let ServerState::Login(login) = state else { return };
        let id = server.pool;
        let mut edit = SettingsMut::default();
        let settable = login.server_parameters.iter().filter(|(name, _)| is_settable(name));
        settable.for_each(|(name, value)| edit.set(name, value));
        let settings = self.engine.core_state.settings(edit);
        server.session.settings = settings.clone();
        server.session.defaults = Defaults { settings: settings.clone(), since: self.now };
        let encoding =
            login.server_parameters.iter().find(|(name, _)| **name == *b"server_encoding");
        server.session.encoding = Encoding::named(encoding.map_or(b"", |(_, value)| value));
        let pool = self.engine.core_state.pool(id);
        let options = &pool.settings.options;
        if let Some(lifetime) = options.server_lifetime {
            let shorter = options.server_lifetime_jitter.of(lifetime) * u32::from(jitter[0]) / 256;
            server.expires = self.now.after(lifetime.saturating_sub(shorter));
        }
        server.connected = self.now;
        pool.connecting = pool.connecting.checked_sub(1).expect("it was being connected");
        pool.counters.server_logins += 1;
        let news = pool.shared.learn_server_parameters(login.server_parameters);
        if pool.shared.meet(&settings) {
            // The defaults of new sessions have changed. Servers that were connected before are
            // connected anew as they come free.
            pool.shared.begin_reconnect();
            server.reconnects = pool.shared.reconnects();
        }
        if pool.shared.server_lives() || news {
            for core in self.engine.core_state.others() {
                let message = crate::state::shared::CoreMessage::ServerReached { pool: id };
                self.ports.act(crate::state::event::Action::Tell { core, message });
            }
        }
        self.let_in(id);
        self.free(conn);
    }

    /// Handles a connection to a server that could not be made.
    pub(crate) fn connect_failed(&mut self, conn: Conn, why: &str) {
        self.login_failed(conn, DisconnectReason::ServerDown, why, None);
    }

    /// Removes a server that could not be logged in to. If the pool has no other server, its
    /// waiting clients get an error.
    pub(crate) fn login_failed(
        &mut self,
        conn: Conn,
        cause: DisconnectReason,
        why: &str,
        words: Option<&[u8]>,
    ) {
        let Connection::Server(server) = self.engine.connections.take(conn) else { return };
        self.ports.close(conn);
        let id = server.pool;
        let now = self.now;
        let pool = self.engine.core_state.pool(id);
        pool.counters.server_login_failures += 1;
        pool.retry = now.after(pool.settings.options.server_login_retry);
        let gone = words.is_some_and(|words| is_of_nobody(&Fields(words)));
        if gone {
            pool.shared.forget_server_parameters();
        }
        let words = words.filter(|words| may_be_told(pool, &Fields(words)));
        let host = pool.settings.host.to_string();
        // The reason of a failed connect begins with the address: no need to name it twice.
        let detail = if why.starts_with(&host) { why.to_owned() } else { format!("{host}: {why}") };
        note(self.ports, Level::Error, cause.key(), pool, detail);
        let none_left = pool.servers == pool.connecting;
        self.forget_server(&server);
        if none_left {
            self.fail_waiting(id, cause, why, words);
        }
        if gone {
            self.forget_soon(id);
        }
    }

    /// Closes a pool whose database or user does not exist: now, or with the first tick at which
    /// nobody has it.
    fn forget_soon(&mut self, id: crate::ground::ids::PoolId) {
        let now = self.now;
        let Some(pool) = self.engine.core_state.find_pool(id) else { return };
        if pool.is_unused() {
            return self.engine.core_state.close_pool(id);
        }
        // Another core waits for a message from this one, or a client came meanwhile. With this
        // `retry` the pool goes at the next tick, and is not kept until the next attempt to
        // connect.
        pool.retry = now;
    }

    /// Ends the sessions of all clients that wait for a server of this pool, with the reason.
    fn fail_waiting(
        &mut self,
        id: crate::ground::ids::PoolId,
        cause: DisconnectReason,
        why: &str,
        words: Option<&[u8]>,
    ) {
        let pool = self.engine.core_state.pool(id);
        let mut clients = std::mem::take(&mut pool.entering);
        while let Some(client) = pool.next_waiting() {
            clients.push(client);
        }
        for client in clients {
            self.note_client(client, Level::Warn, cause, why.to_owned());
            let out = self.ports.out(client);
            match words {
                Some(words) => {
                    let tag = back::ERROR_RESPONSE;
                    write::message(out, tag, |out| out.extend_from_slice(words));
                }
                None => write::error(out, &cause.report().expect("clients are told of both")),
            }
            self.remove_client(client, false);
        }
    }
}

/// Whether a server says that there is no such database or user.
fn is_of_nobody(fields: &Fields<'_>) -> bool {
    matches!(fields.sqlstate(), b"3D000" | b"28000")
}

/// Whether clients may read why a server refused the login: not if it is about Refrain's own name
/// or password (class 28).
fn may_be_told(pool: &Pool, fields: &Fields<'_>) -> bool {
    let server = &pool.settings.server;
    let theirs = server.user.as_deref() == Some(&*pool.shared.user) && server.password.is_none();
    theirs || !fields.sqlstate().starts_with(b"28")
}
