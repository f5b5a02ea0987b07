//! Clients' logins: first packet, authentication, pool, startup parameters.
//!
//! A login ends once a server of the pool has been reached, because the client has to get the
//! server's ParameterStatus messages. Startup parameters that no server has accepted yet are
//! checked on one first: a value that PostgreSQL refuses ends the login, as it would there.

use std::sync::Arc;

use refrain_config::{Backend, Database};
use refrain_pg_wire::Header;
use refrain_pg_wire::back::Status;
use refrain_pg_wire::tag::front;
use refrain_pg_wire::write::{self, Report};
use refrain_pool::Now;
use refrain_pool::client::WaitingFor;
use refrain_pool::client_counts::LimitReached;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::ids::PoolId;
use refrain_pool::lobby::Counted;

use crate::auth::{AuthError, AuthRequest, AuthStep, Authenticated, Method, NONCE_BYTES, Proving};
use crate::console::session::Session;
use crate::engine::ClientLogin;
use crate::ground::reports::{PoolerError, report_in_words, too_many_connections};
use crate::login::lookup::{UserFound, doubt_user};
use crate::settings::defaults::Defaults;
use crate::settings::session::{ServerParameters, Setting};
use crate::state::client::login::{ClientState, LoginRequest};
use crate::state::last_login::{LastLogin, tell_parameters};
use crate::state::parts::{CoreState, PoolShared, intern_settings};
use crate::state::peer_keys;
use crate::state::replication::{Relay, Start};

/// The largest message at the login, without its length: PostgreSQL's `PG_MAX_AUTH_TOKEN_LENGTH`
/// counts these four bytes as well. So a password has at most 65,530 bytes.
const AUTH_BYTES_MAX: u32 = 65_535 - 4;
/// The error of an exchange of passwords that has failed.
const NOT_SASL: PoolerError = PoolerError::End(DisconnectReason::Login);

impl ClientLogin<'_, '_> {
    /// Handles the input of a client that has not logged in. Returns the number of bytes handled.
    pub(crate) fn login_bytes(&mut self, input: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let Some(client) = self.step.engine.connections.client(self.conn) else { return at };
            let used = match client.session.login.state() {
                ClientState::Opening => self.open(&input[at..]),
                ClientState::Proving(..) => self.proving(&input[at..]),
                // The client waits until its user is known; then its input is read on.
                ClientState::LookingUp(..) if client.waiting_for() == WaitingFor::Nothing => {
                    self.user_looked_up()
                }
                _ => None,
            };
            match used {
                Some(used) => at += used,
                None => return at,
            }
        }
    }

    /// Handles the first packet. Returns the number of bytes it took; `None` while it has not
    /// arrived in full.
    fn open(&mut self, input: &[u8]) -> Option<usize> {
        let (used, login_request) = self.opening(input)?;
        if let Some(login_request) = login_request
            && !self.owner_enters(&login_request)
        {
            self.challenge(Box::new(login_request), None);
        }
        Some(used)
    }

    /// Goes on with a login that has waited for its user. Returns the bytes that it took.
    fn user_looked_up(&mut self) -> Option<usize> {
        let client = self.step.engine.connections.client(self.conn)?;
        let (login_request, since) = client.session.login.take_looking_up()?;
        self.challenge(login_request, Some(since));
        Some(0)
    }

    /// Starts a client's authentication, once its user is known. `since` is when the client began
    /// to wait for that, if it did.
    fn challenge(&mut self, mut login_request: Box<LoginRequest>, since: Option<Now>) {
        let shared = self.step.engine.core_state.shared.clone();
        let pool = shared.find_pool(&login_request.database, &login_request.user);
        login_request.pool = pool.map(|pool| pool.id);
        let method = match self.method(&mut login_request) {
            None => return,
            Some(Ok(method)) => method,
            Some(Err(denied)) => return self.deny(&login_request, &denied),
        };
        let trusted = || AuthStep::trust(&login_request.user);
        let is_trusted = method == Method::Trust;
        if is_trusted && !shared.options().must_be_known(&login_request.user) {
            let trusted = trusted();
            return self.proof(login_request, trusted, NOT_SASL);
        }
        let credential = match self.find_user(&login_request, since) {
            UserFound::Credential(credential) => credential,
            UserFound::Later => {
                let since = since.unwrap_or(self.step.now);
                let Some(client) = self.step.engine.connections.client(self.conn) else { return };
                client.session.login.await_user(login_request, since);
                return client.await_fetch();
            }
            UserFound::Nothing => {
                return self.step.end_client(self.conn, DisconnectReason::UserLookup);
            }
        };
        if is_trusted {
            if credential.is_known() {
                let trusted = trusted();
                return self.proof(login_request, trusted, NOT_SASL);
            }
            let message = format!("role \"{}\" does not exist", login_request.user);
            let report = report_in_words(DisconnectReason::Login, &message);
            let report = report.expect("a failed login has an error");
            return self.refuse_client(DisconnectReason::Login, PoolerError::Untrusted, &report);
        }
        let random: [u8; NONCE_BYTES] = self.step.engine.core_state.random();
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let proof = Proving::start_over(client.secured(), method, &credential, &random);
        self.proof(login_request, proof, NOT_SASL);
    }

    /// Handles a message of a client that authenticates itself.
    fn proving(&mut self, input: &[u8]) -> Option<usize> {
        let header = match Header::parse(input) {
            Ok(Some(header)) if header.tag == front::TERMINATE => {
                self.step.end_client(self.conn, DisconnectReason::Terminated);
                return None;
            }
            Ok(Some(h)) if h.tag == front::PASSWORD && h.body <= AUTH_BYTES_MAX => h,
            Ok(None) => return None,
            Ok(Some(header)) if header.tag != front::PASSWORD => {
                self.refuse_message(header.tag);
                return None;
            }
            Ok(Some(_)) | Err(_) => {
                self.step.end_client(self.conn, DisconnectReason::ClientProtocol);
                return None;
            }
        };
        let length = header.message_bytes();
        let body = input.get(refrain_pg_wire::frame::HEADER_BYTES..length)?;
        let client = self.step.engine.connections.client(self.conn)?;
        let (login_request, proving) = client.session.login.take_proving()?;
        let error = if proving.is_sasl() { PoolerError::Sasl } else { NOT_SASL };
        self.proof(login_request, proving.receive(body), error);
        Some(length)
    }

    /// Ends a login because of a message that is no part of it, with PostgreSQL's error.
    fn refuse_message(&mut self, tag: u8) {
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let ClientState::Proving(_, proving) = client.session.login.state() else { return };
        let wanted = if proving.is_sasl() { "SASL" } else { "password" };
        let message = format!("expected {wanted} response, got message type {tag}");
        self.refuse_in_words(DisconnectReason::ClientProtocol, &message, "");
    }

    /// Handles the result of a step of the authentication. `error` is the one of a failure.
    fn proof(&mut self, login_request: Box<LoginRequest>, proof: AuthStep, error: PoolerError) {
        match proof {
            AuthStep::Send(request, proving) => {
                request.write(self.step.ports.out(self.conn));
                if let Some(client) = self.step.engine.connections.client(self.conn) {
                    client.session.login.await_proof(login_request, proving);
                }
            }
            AuthStep::Failed(refusal) => {
                if matches!(refusal, AuthError::Password { .. }) {
                    let shared = &self.step.engine.core_state.shared;
                    doubt_user(shared, &login_request.database, &login_request.user, self.step.now);
                }
                let (message, sqlstate) = (refusal.to_string(), refusal.sqlstate());
                let report = Report { severity: "FATAL", sqlstate, message: &message, hint: "" };
                self.refused(&login_request, error, &report, "");
            }
            AuthStep::Done(authenticated, requests) => {
                let checked = self.check_certificate(&login_request);
                // PostgreSQL ends the exchange before it looks at the certificate's name.
                let may_say = |it: &&AuthRequest| checked.is_ok() || **it != AuthRequest::Ok;
                let out = self.step.ports.out(self.conn);
                requests.iter().filter(may_say).for_each(|request| request.write(out));
                match checked {
                    Ok(()) => self.enter(login_request, authenticated),
                    Err(denied) => self.deny(&login_request, &denied),
                }
            }
        }
    }

    /// Finds the pool of a client that has authenticated itself.
    fn enter(&mut self, mut login_request: Box<LoginRequest>, authenticated: Authenticated) {
        // The authentication may have begun before a reload that removed the user.
        let options = self.step.engine.core_state.shared.options();
        if !options.admits(&login_request.database, authenticated.user()) {
            return self.step.end_client(self.conn, DisconnectReason::Login);
        }
        if let Some(name) = Database::console(&login_request.database) {
            return self.enter_console(authenticated, name, Session::default());
        }
        let database = &login_request.database;
        if self.step.engine.core_state.shared.is_disabled(database) {
            let message = format!("database \"{database}\" is not currently accepting connections");
            let cause = DisconnectReason::DisabledDatabase;
            return self.refuse_database(cause, &login_request.database, (&message, ""));
        }
        let entry = options.database(database);
        let (known, takes) = (entry.is_some(), entry.is_some_and(replicates));
        if login_request.replication.is_some() && known && !takes {
            return self.refuse_replication();
        }
        let Some(shared) = self.pool_of(&mut login_request) else {
            if known {
                let cause = DisconnectReason::TooManyClients;
                let report = report_in_words(cause, "sorry, too many clients already");
                let report = report.expect("one client too many has an error");
                return self.refuse_client(cause, PoolerError::NoPool, &report);
            }
            return self.refuse_unknown(&login_request.database);
        };
        if !self.step.count_as(self.conn, Counted::Client) {
            return self.step.end_client(self.conn, DisconnectReason::TooManyClients);
        }
        let user: Arc<str> = login_request.user.as_str().into();
        if let Err(limit_reached) = self.step.engine.core_state.shared.admit_client(&shared, &user)
        {
            return self.refuse_over_limit(limit_reached, (&shared, &user));
        }
        let server = &shared.settings().server;
        let own = server.user.as_deref() == Some(&*user);
        if own && shared.protocol.learns(authenticated.secret(), &user) {
            let is_other = shared.protocol.learn_secret(authenticated.secret());
            if is_other {
                shared.login_changes();
            }
        }
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        client.session.login.enter(login_request, authenticated);
        self.step.enter(self.conn, &shared, &user);
    }

    /// Gives a client its process ID and a secret key of so many bytes. Returns both as the client
    /// is told them: if other processes serve the same clients, they name this one.
    fn cancel_key(&mut self, peer: u32, bytes: usize) -> (u32, [u8; 32]) {
        let mut key: [u8; 32] = self.step.engine.core_state.random();
        if peer == 0 {
            return (self.step.engine.set_cancel_key(self.conn, &key[..bytes]), key);
        }
        let random: [u8; 4] = self.step.engine.core_state.random();
        let keys = self.step.engine.core_state.shared.protocol.peer_keys.clone();
        peer_keys::mark(&mut key);
        let pid = self.step.engine.set_cancel_key(self.conn, &key[..bytes]);
        let given = keys.give(peer, pid, random, &key[..bytes]);
        let told = given.pid();
        if let Some(client) = self.step.engine.connections.client(self.conn) {
            client.session.login.keep_key(given);
        }
        (told, key)
    }

    /// Returns the pool of a client: one for replication if the client asks for that. The servers
    /// of such a pool begin with the client's settings.
    fn pool_of(&mut self, login_request: &mut LoginRequest) -> Option<Arc<PoolShared>> {
        let shared = self.step.engine.core_state.shared.clone();
        let LoginRequest { database, user, settings, replication, .. } = login_request;
        let Some(kind) = *replication else { return shared.pool(database, user) };
        let start = Start::new(kind, std::mem::take(settings));
        // The beginning is kept until the pool has it.
        let (variant, _start) = shared.protocol.replications.variant(start)?;
        shared.pool_of_variant(database, user, variant)
    }

    /// Ends a login for replication of a database that has none.
    fn refuse_replication(&mut self) {
        let message = "this database has no replication connections";
        let report = Report { severity: "FATAL", sqlstate: "0A000", message, hint: "" };
        self.refuse_client(DisconnectReason::Login, PoolerError::PostgreSqls, &report);
    }

    /// Ends a login to a database that does not exist.
    fn refuse_unknown(&mut self, database: &str) {
        let message = format!("database \"{database}\" does not exist");
        let options = self.step.engine.core_state.shared.options();
        let default = options.general.default_database.as_deref();
        let hint = default.map_or_else(String::new, |default| {
            format!(
                "The database here is \"{default}\". A configuration file may name others; see docs/config.md."
            )
        });
        self.refuse_database(DisconnectReason::UnknownDatabase, database, (&message, &hint));
    }

    /// Ends a login of one client too many.
    fn refuse_over_limit(
        &mut self,
        limit_reached: LimitReached,
        (pool, user): (&PoolShared, &str),
    ) {
        let (error, message) = too_many_connections(limit_reached, &pool.database, user);
        let report = report_in_words(DisconnectReason::TooManyClients, &message);
        let report = report.expect("one client too many has an error");
        self.refuse_client(DisconnectReason::TooManyClients, error, &report);
    }

    /// Determines the settings that a client begins with. Settings that no server has accepted yet
    /// are checked on one.
    pub(crate) fn admit(&mut self) {
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let Some((login_request, authenticated)) = client.session.login.take_entering() else {
            return;
        };
        let pool = self.step.engine.core_state.pool(client.pool());
        let Some(server_parameters) = pool.shared.protocol.server_parameters() else { return };
        client.session.statements.manage(pool.settings.options.prepared_statements);
        client.session.login.refuse_queries(pool.settings.options.disable_pqexec);
        let plain = is_plain(&login_request.settings);
        let id = client.pool();
        let last_login = last_login(
            &mut self.step.engine.core_state,
            id,
            server_parameters,
            &login_request.settings,
        );
        let LastLogin { wants, defaults, startup, .. } = last_login;
        let (wants, defaults, startup) = (wants.clone(), defaults.clone(), startup.clone());
        let proven = self.step.engine.core_state.pool(id).protocol.proven(&wants);
        let now = self.step.now;
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let defaults = Defaults { settings: defaults, since: now };
        let expected = proven.clone().unwrap_or(wants);
        client.session.settings.begin(expected, defaults, startup);
        let replicates = login_request.replication.is_some();
        if !replicates && (plain || proven.is_some()) {
            return self.finish_login(&login_request, authenticated);
        }
        client.session.login.check(login_request, authenticated);
        if self.step.lend(self.conn).is_some() {
            self.step.engine.connections.read_on(self.conn);
        }
    }

    /// Ends the check of a client's startup parameters, once the server has answered.
    pub(crate) fn checked(&mut self) {
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let Some(link) = client.link() else { return };
        let (client, server) = self.step.engine.connections.pair(self.conn, link);
        if server.session.outstanding.quiescent().is_none() {
            return;
        }
        let made = server.session.settings.current().clone();
        let Some((login_request, authenticated)) = client.session.login.take_checking() else {
            return;
        };
        if let Some(kind) = login_request.replication {
            // From here on the client has the server for itself, and nobody has it afterwards.
            server.session.relay = Some(Relay::new(kind));
            client.session.login.begin_replication(kind);
            return self.finish_login(&login_request, authenticated);
        }
        let shared = &self.step.engine.core_state.pool(client.pool()).shared;
        let server_parameters = shared.protocol.server_parameters().unwrap_or_default();
        client.session.settings.expect(made.clone());
        let id = client.pool();
        let wants = &last_login(
            &mut self.step.engine.core_state,
            id,
            server_parameters,
            &login_request.settings,
        )
        .wants;
        let wants = wants.clone();
        self.step.engine.core_state.pool(id).protocol.prove(wants, made);
        self.step.unlink(self.conn, link);
        self.finish_login(&login_request, authenticated);
    }

    /// Ends a login: sends ParameterStatus, BackendKeyData and ReadyForQuery.
    fn finish_login(&mut self, login_request: &LoginRequest, authenticated: Authenticated) {
        if let Some(refused) = &login_request.refused {
            let error = PoolerError::PostgreSqls;
            return self.refuse_client(DisconnectReason::Login, error, &refused.report());
        }
        let options = self.step.engine.core_state.shared.options();
        let bytes = if login_request.minor >= 2 { 32 } else { 4 };
        let (pid, key) = self.cancel_key(options.general.peer_id, bytes);
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let pool = self.step.engine.core_state.pool(client.pool());
        let Some(server_parameters) = pool.shared.protocol.server_parameters() else { return };
        let out = self.step.ports.out(self.conn);
        let expected = client.session.settings.expected();
        match &mut pool.protocol.last_login {
            Some(last) if last.is_like(&server_parameters, &login_request.settings) => {
                last.tell(out, expected);
            }
            _ => tell_parameters(out, &server_parameters, expected),
        }
        client.session.settings.startup_is_accepted();
        write::backend_key(out, pid, &key[..bytes]);
        if let Some(message) = &options.general.login_notify_message {
            let report = Report { severity: "NOTICE", sqlstate: "00000", message, hint: "" };
            write::notice(out, &report);
        }
        write::ready(out, Status::Idle);
        client.session.login.let_in(authenticated, self.step.now);
        let (now, shared) = (self.step.now, &pool.shared.protocol);
        let keeps = pool.settings.cache.keeps();
        if keeps && shared.confirmed.confirms(now, &shared.database().roles) {
            client.session.login.confirm();
        }
        client.note_reply(self.step.now);
        pool.counters.pool.client_logins += 1;
        self.step.engine.connections.unblock(self.conn);
        self.step.client_logged_in(self.conn);
    }
}

/// Returns what a login to a pool with these settings leads to, from the last one if it was alike.
fn last_login<'a>(
    core_state: &'a mut CoreState,
    pool: PoolId,
    server_parameters: Arc<ServerParameters>,
    asked: &[Setting],
) -> &'a LastLogin {
    let last_login = core_state.pool(pool).protocol.last_login.take();
    let alike = last_login.filter(|last| last.is_like(&server_parameters, asked));
    let last_login = alike.unwrap_or_else(|| {
        let intern = |edit| intern_settings(core_state, edit);
        Box::new(LastLogin::new(server_parameters, asked, intern))
    });
    core_state.pool(pool).protocol.last_login.insert(last_login)
}

/// Whether a database is on servers that have replication connections.
fn replicates(database: &Database) -> bool {
    database.server.backend == Backend::Postgres
}

/// Whether no server needs to check these settings: PostgreSQL takes an application_name in plain
/// ASCII as it is.
fn is_plain(settings: &[Setting]) -> bool {
    settings.iter().all(|(name, value)| {
        name.eq_ignore_ascii_case(b"application_name")
            && value.len() < 64
            && value.iter().all(|b| (b' '..=b'~').contains(b))
    })
}
