//! The beginning of a client's connection, up to its startup packet, and logins that end without
//! one.
//!
//! Errors for malformed packets, and their absence, are as in PostgreSQL's `ProcessStartupPacket`.

use refrain_config::{Database, SslMode};
use refrain_pg_wire::startup::{self, MINOR_NEWEST, Opening, STARTUP_BYTES_MAX, Startup};
use refrain_pg_wire::write::{self, Report};
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::{Level, TlsPeer};
use refrain_pool::ids::Peer;
use refrain_pool::{Action, ClientNote};

use crate::engine::ClientLogin;
use crate::ground::reports::report_in_words;
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
        self.refuse_client(DisconnectReason::Login, &report);
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
        self.refuse_in_words(DisconnectReason::ClientVersion, &message, "");
    }

    fn startup(&mut self, startup: &Startup<'_>) -> Option<LoginRequest> {
        if startup.major != 3 {
            self.refuse_version(startup.major, startup.minor);
            return None;
        }
        if self.step.engine.core_state.is_shutting_down() {
            let message = "the database system is shutting down";
            let report = Report { severity: "FATAL", sqlstate: "57P03", message, hint: "" };
            self.refuse_client(DisconnectReason::Shutdown, &report);
            return None;
        }
        self.negotiate(startup);
        let login_request = match login_request(startup) {
            Ok(login_request) => self.meant(login_request),
            Err(report) => {
                self.refuse_client(DisconnectReason::Login, &report);
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

    /// Ends a login with the SQLSTATE of its reason and words of its own.
    pub(crate) fn refuse_in_words(&mut self, cause: DisconnectReason, message: &str, hint: &str) {
        if let Some(report) = report_in_words(cause, message) {
            self.refuse_client(cause, &Report { hint, ..report });
        }
    }

    /// Ends a login with an error of its own.
    pub(crate) fn refuse_client(&mut self, cause: DisconnectReason, report: &Report<'_>) {
        let (code, detail) = (Some(report.sqlstate), report.message.to_owned());
        let note = ClientNote::new(Level::Warn, cause);
        self.step.log().tell_of_client(self.conn, ClientNote { code, detail, ..note });
        write::error(self.step.ports.out(self.conn), report);
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
fn login_request(startup: &Startup<'_>) -> Result<LoginRequest, Report<'static>> {
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
                login_request.replication = read.ok_or(Report {
                    severity: "FATAL",
                    sqlstate: "22023",
                    message: "invalid value for parameter \"replication\"",
                    hint: "Valid values are: \"false\", 0, \"true\", 1, \"database\".",
                })?;
            }
            name if name.starts_with(b"_pq_.") => {}
            name => login_request.settings.push((name.into(), value.into())),
        }
    }
    if login_request.user.is_empty() {
        return Err(invalid("no PostgreSQL user name specified in startup packet"));
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
