//! The beginning of a client's connection, up to its startup packet, and logins that end without
//! one.
//!
//! Errors for malformed packets, and their absence, are as in PostgreSQL's `ProcessStartupPacket`.

use std::net::SocketAddr;

use refrain_config::{Database, SslMode};
use refrain_pg_wire::startup::{self, MINOR_NEWEST, Opening, STARTUP_BYTES_MAX, Startup};
use refrain_pg_wire::write::{self, Report};
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::{Level, TlsPeer};
use refrain_pool::ids::Peer;
use refrain_pool::{Action, ClientNote};

use crate::engine::ClientLogin;
use crate::ground::reports::{PoolerError, in_other_words, report_in_words};
use crate::settings::session::Setting;
use crate::settings::switches;
use crate::state::client::login::{Encryption, LoginRequest, NAME_BYTES_MAX};
use crate::state::peer_keys::other_process;
use crate::state::replication::Replication;
use crate::state::requests::Request;

/// The first byte of a handshake for TLS. No packet begins with it: its length would be 352 MiB.
const TLS_HANDSHAKE: u8 = 0x16;
/// PostgreSQL's words for bytes in the clear between a request for TLS and the handshake.
const UNENCRYPTED_DATA: &str = "received unencrypted data after SSL request";

impl ClientLogin<'_, '_> {
    /// Handles a client's first packet. Returns the bytes that it took, and the login that it asks
    /// for; `None` while the packet is incomplete, or if the client is gone.
    pub(crate) fn opening(&mut self, input: &[u8]) -> Option<(usize, Option<LoginRequest>)> {
        let client = self.step.engine.connections.client(self.conn)?;
        if client.session.login.starts_tls() && client.secured().is_none() {
            return self.early(input).map(|used| (used, None));
        }
        if client.session.login.had_bytes_in_the_clear() {
            // Like PostgreSQL, tell it within TLS, where an attacker cannot have written it.
            let reason = DisconnectReason::ClientProtocol;
            self.refuse_in_words(reason, UNENCRYPTED_DATA, "");
            return None;
        }
        if input.first() == Some(&TLS_HANDSHAKE) && self.may_start_tls() {
            self.start_tls(TlsPeer::DirectClient, input.to_vec());
            return Some((input.len(), None));
        }
        match startup::parse(input) {
            Ok(None) => None,
            Err(_) => {
                self.malformed(input);
                None
            }
            Ok(Some((Opening::Startup(startup), used))) => {
                Some((used, Some(self.startup(&startup)?)))
            }
            Ok(Some((Opening::Cancel { pid, key }, _))) => {
                self.cancel(pid, key);
                self.step.remove_client(self.conn, false);
                None
            }
            Ok(Some((opening @ (Opening::Ssl | Opening::Gss), used))) => {
                let rest = used < input.len();
                let encryption = match opening {
                    Opening::Ssl => Encryption::Tls,
                    _ => Encryption::Gss,
                };
                self.encryption(encryption, rest).then_some((input.len(), None))
            }
        }
    }

    /// Cancels the request of the client that a CancelRequest names, here or in other processes.
    fn cancel(&mut self, pid: u32, key: &[u8]) {
        let shared = self.step.engine.core_state.shared.clone();
        let own = shared.options().general.peer_id;
        if own > 0 {
            if let Some((peer, key)) = other_process(own, pid, key) {
                return self.step.ports.act(Action::Ask(Request::PassOn { peer, pid, key }));
            }
            if let Some((pid, key)) = shared.protocol.cancel_key(pid, key) {
                return self.step.cancel_request(pid, &key);
            }
        }
        if !shared.protocol.is_inner_pid(pid) {
            self.step.cancel_request(pid, key);
        }
        self.step.ports.act(Action::Ask(Request::Cancel { pid, key: key.into() }));
    }

    /// Whether a client's connection may be encrypted. A Unix socket never is.
    fn may_start_tls(&mut self) -> bool {
        let mode = self.step.engine.core_state.shared.options().general.client_tls_sslmode;
        let Some(client) = self.step.engine.connections.client(self.conn) else { return false };
        let is_tcp = matches!(client.peer(), Peer::Tcp(_));
        mode != SslMode::Disable && is_tcp && client.secured().is_none()
    }

    /// Has the loop encrypt a client's connection.
    fn start_tls(&mut self, with: TlsPeer, early: Vec<u8>) {
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        client.session.login.start_tls();
        self.step.ports.start_tls(self.conn, with, early);
    }

    /// Handles bytes that came before the loop has begun to encrypt: more of the handshake, if the
    /// client began it without a request. Else a client does not send anything before it has read
    /// the answer to its request, and the bytes may be an attacker's.
    fn early(&mut self, input: &[u8]) -> Option<usize> {
        if input.is_empty() {
            return None;
        }
        match self.step.ports.starting(self.conn).filter(|early| !early.is_empty()) {
            Some(early) => early.extend_from_slice(input),
            None => {
                let told = UNENCRYPTED_DATA.to_owned();
                self.step.log().note_client(
                    self.conn,
                    Level::Warn,
                    DisconnectReason::ClientProtocol,
                    told,
                );
                self.step.remove_client(self.conn, false);
                return None;
            }
        }
        Some(input.len())
    }

    /// Answers a request for TLS or GSSAPI encryption; denies the latter. A client may ask for each
    /// once, in either order. Bytes behind the request (`rest`) are not read: an attacker may have
    /// sent them, to be taken for encrypted ones (CVE-2021-23214). True if the client may go on.
    fn encryption(&mut self, encryption: Encryption, rest: bool) -> bool {
        let Some(client) = self.step.engine.connections.client(self.conn) else { return false };
        let tls = encryption == Encryption::Tls;
        if !client.session.login.note_encryption_request(encryption) {
            let minor = if tls { 5679 } else { 5680 };
            self.refuse_version(1234, minor);
            return false;
        }
        let starts = tls && self.may_start_tls();
        self.step.ports.out(self.conn).push(if starts { b'S' } else { b'N' });
        if starts {
            self.start_tls(TlsPeer::Client, Vec::new());
            if let Some(client) = self.step.engine.connections.client(self.conn).filter(|_| rest) {
                client.session.login.note_bytes_in_the_clear();
            }
            return true;
        }
        if rest {
            let message = if tls {
                UNENCRYPTED_DATA
            } else {
                "received unencrypted data after GSSAPI encryption request"
            };
            self.refuse_in_words(DisconnectReason::ClientProtocol, message, "");
        }
        !rest
    }

    /// Refuses a client in the clear that has to encrypt, in PostgreSQL's words. True if the client
    /// may go on.
    fn is_encrypted_enough(&mut self, login_request: &LoginRequest) -> bool {
        let mode = self.step.engine.core_state.shared.options().general.client_tls_sslmode;
        let Some(client) = self.step.engine.connections.client(self.conn) else { return false };
        let is_tcp = matches!(client.peer(), Peer::Tcp(_));
        if !is_tcp || !mode.is_required() || client.secured().is_some() {
            return true;
        }
        let message =
            login_request.applicant(client.peer(), client.secured()).no_entry().to_string();
        let report = Report { severity: "FATAL", sqlstate: "28000", message: &message, hint: "" };
        self.refuse_client(DisconnectReason::Login, PoolerError::Unencrypted, &report);
        false
    }

    /// Ends a connection whose packet cannot be read. Like PostgreSQL, sends no error for a wrong
    /// length: the peer is probably no PostgreSQL client.
    fn malformed(&mut self, input: &[u8]) {
        let length = input.first_chunk().map_or(0, |length| u32::from_be_bytes(*length));
        let is_startup = input.get(4..6) == Some(&[0, 3]);
        if is_startup && (8..=STARTUP_BYTES_MAX).contains(&length) {
            let message =
                "invalid startup packet layout: expected terminator as last byte".to_owned();
            return self.refuse_in_words(DisconnectReason::ClientProtocol, &message, "");
        }
        let told = "invalid length of startup packet".to_owned();
        self.step.log().note_client(self.conn, Level::Warn, DisconnectReason::ClientProtocol, told);
        self.step.remove_client(self.conn, false);
    }

    fn refuse_version(&mut self, major: u16, minor: u16) {
        let message = format!(
            "unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{MINOR_NEWEST}"
        );
        match report_in_words(DisconnectReason::ClientVersion, &message) {
            Some(report) if major == 2 => self.refuse_client(
                DisconnectReason::ClientVersion,
                PoolerError::OldProtocol,
                &report,
            ),
            _ => self.refuse_in_words(DisconnectReason::ClientVersion, &message, ""),
        }
    }

    fn startup(&mut self, startup: &Startup<'_>) -> Option<LoginRequest> {
        if startup.major != 3 {
            self.refuse_version(startup.major, startup.minor);
            return None;
        }
        if self.step.engine.core_state.is_shutting_down() {
            let message = "the database system is shutting down";
            let report = Report { severity: "FATAL", sqlstate: "57P03", message, hint: "" };
            self.refuse_client(DisconnectReason::Shutdown, PoolerError::Late, &report);
            return None;
        }
        self.negotiate(startup);
        let login_request = match login_request(startup) {
            Ok(mut login_request) => {
                self.add_host(&mut login_request);
                self.meant(login_request)
            }
            Err((error, report)) => {
                self.refuse_client(DisconnectReason::Login, error, &report);
                return None;
            }
        };
        if !self.is_encrypted_enough(&login_request) {
            return None;
        }
        // Refuses before anything is spent on an authentication. The count is of clients that have
        // authenticated themselves.
        let shared = &self.step.engine.core_state.shared;
        let most = shared.lobby.limits(&shared.options().general).clients;
        if shared.lobby.is_full(most)
            && !Database::CONSOLES.contains(&login_request.database.as_str())
        {
            self.step.end_client(self.conn, DisconnectReason::TooManyClients);
            return None;
        }
        Some(login_request)
    }

    /// Cuts names as PostgreSQL does, and replaces the database of a client that names none by the
    /// default.
    fn meant(&self, mut login_request: LoginRequest) -> LoginRequest {
        let options = self.step.engine.core_state.shared.options();
        let LoginRequest { database, user, .. } = &mut login_request;
        // The configuration may name databases and users of its own, which no server gets.
        if is_long(database) && options.database(database).is_none_or(|d| d.name != *database) {
            cut(database);
        }
        if is_long(user) && options.user(user).is_none() {
            cut(user);
        }
        // Tools that replicate a server name a database that there may not be: PostgreSQL does not
        // look at the name.
        let replicates = login_request.replicates_server();
        let is_unknown = options.database(&login_request.database).is_none();
        let default = options.general.default_database.as_ref();
        if let Some(default) = default.filter(|_| replicates && is_unknown) {
            login_request.database.clone_from(default);
        }
        let meant = options.meant(&login_request.database, &login_request.user);
        if meant != login_request.database {
            login_request.database = meant.to_owned();
        }
        login_request
    }

    /// Adds the client's address to its `application_name`, as PgBouncer does, if it is to. Of a
    /// client on the Unix socket that is `unix:` and the socket's port. The names of replication
    /// connections stay: PostgreSQL compares them with `synchronous_standby_names`.
    fn add_host(&mut self, login_request: &mut LoginRequest) {
        let general = &self.step.engine.core_state.shared.options().general;
        if !general.application_name_add_host || login_request.replication.is_some() {
            return;
        }
        let Some(client) = self.step.engine.connections.client(self.conn) else { return };
        let details = match client.peer() {
            Peer::Tcp(address) => {
                SocketAddr::new(address.ip().to_canonical(), address.port()).to_string()
            }
            Peer::Unix { .. } => {
                let own = general.unix_socket_port.map(|port| port.0);
                let port = own.or(general.listen.first().map(SocketAddr::port));
                format!("unix:{}", port.unwrap_or(6432))
            }
        };
        let is_name = |(name, _): &&mut Setting| name.eq_ignore_ascii_case(b"application_name");
        let name = login_request.settings.iter_mut().filter(is_name).last();
        match name {
            Some((_, value)) => {
                *value = [&value[..], b" - ", details.as_bytes()].concat().into();
            }
            None => {
                let value = format!("app - {details}").into_bytes();
                let name = b"application_name"[..].into();
                login_request.settings.push((name, value.into()));
            }
        }
    }

    /// Tells a client that asked for a newer protocol, or for unknown options, which version
    /// Refrain speaks.
    fn negotiate(&mut self, startup: &Startup<'_>) {
        let unknown: Vec<&[u8]> = startup
            .parameters()
            .map(|(name, _)| name)
            .filter(|n| n.starts_with(b"_pq_."))
            .collect();
        if startup.minor > MINOR_NEWEST || !unknown.is_empty() {
            write::negotiate(self.step.ports.out(self.conn), spoken(startup.minor), &unknown);
        }
    }

    /// Ends a login with the SQLSTATE of its reason and words of its own, which PgBouncer has as
    /// well.
    pub(crate) fn refuse_in_words(&mut self, cause: DisconnectReason, message: &str, hint: &str) {
        if let Some(report) = report_in_words(cause, message) {
            self.end_with(cause, &report, &Report { hint, ..report });
        }
    }

    /// Ends a login with an error that names a database.
    pub(crate) fn refuse_database(
        &mut self,
        cause: DisconnectReason,
        database: &str,
        (message, hint): (&str, &str),
    ) {
        if let Some(report) = report_in_words(cause, message) {
            self.refuse_named(
                cause,
                (PoolerError::End(cause), database),
                &Report { hint, ..report },
            );
        }
    }

    /// Ends a login with an error of its own, which has the words of `pooler_errors`.
    pub(crate) fn refuse_client(
        &mut self,
        cause: DisconnectReason,
        error: PoolerError,
        report: &Report<'_>,
    ) {
        self.refuse_named(cause, (error, ""), report);
    }

    fn refuse_named(
        &mut self,
        cause: DisconnectReason,
        (error, name): (PoolerError, &str),
        report: &Report<'_>,
    ) {
        let errors = self.step.engine.core_state.shared.options().general.pooler_errors;
        match in_other_words(errors, error, name) {
            None => self.end_with(cause, report, report),
            Some((sqlstate, message)) => {
                let severity = report.severity;
                let told = Report { severity, sqlstate, message: &message, hint: "" };
                self.end_with(cause, report, &told);
            }
        }
    }

    /// Ends a login with an error for the log and one for the client.
    fn end_with(&mut self, cause: DisconnectReason, logged: &Report<'_>, told: &Report<'_>) {
        let (code, detail) = (Some(logged.sqlstate), logged.message.to_owned());
        let note = ClientNote::new(Level::Warn, cause);
        self.step.log().tell_of_client(self.conn, ClientNote { code, detail, ..note });
        write::error(self.step.ports.out(self.conn), told);
        self.step.remove_client(self.conn, false);
    }
}

/// True if PostgreSQL's catalog cannot have such a name.
fn is_long(name: &str) -> bool {
    name.len() > NAME_BYTES_MAX
}

/// Cuts a long name where PostgreSQL does, be it within a character.
fn cut(name: &mut String) {
    *name = String::from_utf8_lossy(&name.as_bytes()[..NAME_BYTES_MAX]).into_owned();
}

/// Returns the minor version that a client gets that asks for `wanted`. Version 3.1 is reserved and
/// was never used: a client that asks for it gets 3.0.
fn spoken(wanted: u16) -> u16 {
    if wanted >= MINOR_NEWEST { MINOR_NEWEST } else { 0 }
}

/// Sorts a startup packet's parameters.
fn login_request(startup: &Startup<'_>) -> Result<LoginRequest, (PoolerError, Report<'static>)> {
    let invalid = |message| Report { severity: "FATAL", sqlstate: "28000", message, hint: "" };
    let mut login_request = LoginRequest {
        minor: spoken(startup.minor),
        user: String::new(),
        database: String::new(),
        settings: Vec::new(),
        refused: None,
        pool: None,
        rule: None,
        replication: None,
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let mut options = None;
    for (name, value) in startup.parameters() {
        match name {
            b"user" => login_request.user = text(value),
            b"database" => login_request.database = text(value),
            b"options" => options = Some(value),
            b"replication" => {
                let read = Replication::read(value);
                let report = Report {
                    severity: "FATAL",
                    sqlstate: "22023",
                    message: "invalid value for parameter \"replication\"",
                    hint: "Valid values are: \"false\", 0, \"true\", 1, \"database\".",
                };
                login_request.replication = read.ok_or((PoolerError::PostgreSqls, report))?;
            }
            name if name.starts_with(b"_pq_.") => {}
            name => login_request.settings.push((name.into(), value.into())),
        }
    }
    if login_request.user.is_empty() {
        let report = invalid("no PostgreSQL user name specified in startup packet");
        return Err((PoolerError::NoUserName, report));
    }
    if login_request.database.is_empty() {
        login_request.database.clone_from(&login_request.user);
    }
    if let Some(options) = options {
        let (first, refused) = switches::read(options);
        if refused.is_some() {
            login_request.settings.clear(); // PostgreSQL does not come to them
        }
        // PostgreSQL sets the values of `options` before all others.
        login_request.settings.splice(..0, first);
        login_request.refused = refused;
    }
    Ok(login_request)
}
