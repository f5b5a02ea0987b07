//! Logins of clients: the greeting, the exchange, the pool, and the schema.

use std::net::IpAddr;
use std::sync::Arc;

use refrain_config::{AuthMethod, Database, HbaMethod, Options, SslMode, UserSecret};
use refrain_mysql_wire::packet;
use refrain_mysql_wire::request::ChangeUser;
use refrain_mysql_wire::{Capabilities, Status, command};
use refrain_pool::client::Client;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::{Level, TlsPeer};
use refrain_pool::ids::Peer;
use refrain_pool::lobby::Counted;
use refrain_pool::{ClientNote, Conn, Linked, Step};

use crate::client_state::ClientState;
use crate::commands::Purpose;
use crate::login::{
    Agreed, Change, ClientLogin, ClientStep, Flavour, LOGIN_BYTES_MAX, Like, Secret, Welcome,
};
use crate::parts::{ClientSession, My, Place};
use crate::settings::{Base, Settings};
use crate::variant::Variant;
use crate::wishes::Wishes;
use crate::{console_login, errors, train};

/// Greets a client as a server would that says this.
pub(crate) fn greet(step: &mut Step<'_, My>, conn: Conn, flavour: &Flavour) {
    let random = step.engine.core_state.random();
    let options = step.engine.core_state.shared.options();
    // KILL finds the client by it, and shows no key.
    let connection_id = step.engine.set_cancel_key(conn, &[]);
    let Some(client) = step.engine.connections.client(conn) else { return };
    let peer = client.peer().clone();
    let welcome = Welcome {
        flavour,
        random,
        connection_id,
        has_tls: options.general.client_tls_sslmode != SslMode::Disable
            && matches!(peer, Peer::Tcp(_)),
        host: &host(&peer),
    };
    let login = ClientLogin::greet(&welcome, step.ports.out(conn));
    let Some(client) = step.engine.connections.client(conn) else { return };
    client.session.brand = Some(flavour.brand());
    client.session.place = Place { sequence: login.sequence(), ..Place::default() };
    client.session.state = ClientState::LoggingIn(Box::new(login));
}

/// Returns a client's host as it stands in errors.
fn host(peer: &Peer) -> String {
    match peer {
        Peer::Tcp(address) if address.ip().is_loopback() => "localhost".to_owned(),
        Peer::Tcp(address) => address.ip().to_string(),
        Peer::Unix { .. } => "localhost".to_owned(),
    }
}

/// Reads a client's input before its login is over. Returns the number of bytes handled.
pub(crate) fn input(step: &mut Step<'_, My>, conn: Conn, input: &[u8]) -> usize {
    let mut at = 0;
    while let Some(client) = step.engine.connections.client(conn) {
        let is_secured = client.secured().is_some();
        match &mut client.session.state {
            ClientState::Securing(_) if !is_secured => return at + early(step, conn, &input[at..]),
            state @ ClientState::Securing(_) => secured(state),
            ClientState::LoggingIn(_) => match packet(step, conn, &input[at..]) {
                Some(used) => at += used,
                None => return at,
            },
            _ => return at,
        }
    }
    at
}

/// Goes on with a login within TLS.
fn secured(state: &mut ClientState) {
    if let ClientState::Securing(mut login) = std::mem::take(state) {
        login.secured();
        *state = ClientState::LoggingIn(login);
    }
}

/// Handles bytes that came before the loop has begun to encrypt: they belong to the handshake.
fn early(step: &mut Step<'_, My>, conn: Conn, bytes: &[u8]) -> usize {
    if bytes.is_empty() {
        return 0;
    }
    match step.ports.starting(conn) {
        Some(early) => early.extend_from_slice(bytes),
        None => step.end_client(conn, DisconnectReason::ClientProtocol),
    }
    bytes.len()
}

/// Handles one packet of a login. Returns the number of bytes handled; `None` if it is not all
/// there, or the client is gone.
fn packet(step: &mut Step<'_, My>, conn: Conn, input: &[u8]) -> Option<usize> {
    let header = refrain_mysql_wire::Header::parse(input)?;
    if header.payload > LOGIN_BYTES_MAX {
        step.end_client(conn, DisconnectReason::ClientProtocol);
        return None;
    }
    let whole = packet::split(input)?;
    let used = header.packet_bytes();
    let client = step.engine.connections.client(conn)?;
    let ClientState::LoggingIn(login) = &mut client.session.state else { return None };
    let mut result = login.input(whole.payload, header.sequence, step.ports.out(conn));
    if matches!(result, ClientStep::WhoIs) {
        result = prove(step, conn)?;
    }
    let is_handshake = matches!(result, ClientStep::StartTls);
    follow(step, conn, result, whole.rest)?;
    Some(if is_handshake { input.len() } else { used })
}

/// Begins the login of a client that changes its user: what it leaves behind is as if it had gone.
pub(crate) fn change_user(step: &mut Step<'_, My>, conn: Conn, request: &ChangeUser<'_>) {
    let random = step.engine.core_state.random();
    let Some(flavour) = step.engine.core_state.shared.protocol.flavour() else { return };
    let Some(client) = step.engine.connections.client(conn) else { return };
    let Some(agreed) = client.session.agreed() else { return };
    let change = Change {
        flavour: &flavour,
        agreed,
        random,
        is_tls: client.secured().is_some(),
        host: &host(client.peer()),
        sequence: 1,
    };
    let login = ClientLogin::change_user(&change, request);
    step.leave_pool(conn);
    let Some(client) = step.engine.connections.client(conn) else { return };
    // Numbers of statements go on, so that none names another one.
    let mut statements = std::mem::take(&mut client.session.statements);
    statements.clear();
    client.session = ClientSession {
        state: ClientState::LoggingIn(Box::new(login)),
        statements,
        has_had_several: Some(client.session.settings.has_several),
        brand: client.session.brand,
        ended_before: client.session.ended_before + 1,
        ..ClientSession::default()
    };
    if let Some(result) = prove(step, conn) {
        follow(step, conn, result, b"");
    }
}

/// Follows a step of a login. `rest` has the bytes behind the client's packet. `None` if the client
/// is gone.
fn follow(step: &mut Step<'_, My>, conn: Conn, result: ClientStep, rest: &[u8]) -> Option<()> {
    let client = step.engine.connections.client(conn)?;
    if let ClientState::LoggingIn(login) = &client.session.state {
        client.session.place.sequence = login.sequence();
    }
    match result {
        ClientStep::More | ClientStep::WhoIs => {}
        ClientStep::StartTls => {
            let state = std::mem::take(&mut client.session.state);
            if let ClientState::LoggingIn(login) = state {
                client.session.state = ClientState::Securing(login);
            }
            step.ports.start_tls(conn, TlsPeer::Client, rest.to_vec());
        }
        ClientStep::Refused(reason) => {
            refused(step, conn, reason);
            return None;
        }
        ClientStep::Authenticated(agreed) => enter(step, conn, agreed),
    }
    Some(())
}

/// Notes a login that has failed, whose error is written, and closes the connection.
fn refused(step: &mut Step<'_, My>, conn: Conn, reason: DisconnectReason) {
    step.log().note_client(conn, Level::Warn, reason, String::new());
    step.remove_client(conn, false);
}

/// The way in which a client proves who it is.
enum Method {
    Trust,
    Secret,
    Reject,
}

/// Goes on with the login of a client that has named itself.
fn prove(step: &mut Step<'_, My>, conn: Conn) -> Option<ClientStep> {
    let random = step.engine.core_state.random();
    let options = step.engine.core_state.shared.options();
    let client = step.engine.connections.client(conn)?;
    let (address, encrypted) = (address(client), client.secured().is_some());
    let ClientState::LoggingIn(login) = &mut client.session.state else { return None };
    // Nothing is encrypted on the Unix socket.
    let must_encrypt = options.general.client_tls_sslmode.is_required() && address.is_some();
    if must_encrypt && !encrypted {
        client.session.place.sequence = login.sequence();
        step.end_client(conn, DisconnectReason::Tls);
        return None;
    }
    let user = String::from_utf8_lossy(login.user()).into_owned();
    let schema = String::from_utf8_lossy(login.schema()).into_owned();
    let is_owner = console_login::is_owner(client, &user, &schema);
    let named = Database::console(&schema).or_else(|| database(&options, &schema));
    let database = named.unwrap_or(&schema);
    let ClientState::LoggingIn(login) = &mut client.session.state else { return None };
    let method = match options.general.auth {
        _ if is_owner => Method::Trust,
        AuthMethod::Trust => Method::Trust,
        AuthMethod::Password | AuthMethod::Md5 | AuthMethod::Scram => Method::Secret,
        AuthMethod::Hba => {
            let database = Some(database);
            let newcomer = refrain_config::Newcomer { address, encrypted, database, user: &user };
            match options.hba.find(&newcomer).map(|(_, rule)| rule.method) {
                Some(HbaMethod::Trust) => Method::Trust,
                Some(HbaMethod::Password | HbaMethod::Md5 | HbaMethod::Scram) => Method::Secret,
                Some(HbaMethod::Reject | HbaMethod::Cert | HbaMethod::Peer) | None => {
                    Method::Reject
                }
            }
        }
    };
    let out = step.ports.out(conn);
    Some(match method {
        Method::Trust => login.trust(out),
        Method::Reject => login.refuse(DisconnectReason::Login, out),
        Method::Secret => {
            let known = options.secret(&user).and_then(secret_of);
            let secret = known.unwrap_or_else(|| Secret::unknown(stranger(&options), random));
            login.prove(&secret, out)
        }
    })
}

/// Returns a user's secret as MySQL's logins need it.
fn secret_of(secret: &UserSecret) -> Option<Secret> {
    match secret {
        UserSecret::Plain(secret) => Secret::of_password(secret.expose().as_bytes()),
        UserSecret::Native(hash) => Some(Secret::of_hash(hash.0)),
        UserSecret::None | UserSecret::Md5(_) | UserSecret::Scram(_) => None,
    }
}

/// Returns the kind of secret that an unknown user seems to have: that of most users.
fn stranger(options: &Options) -> Like {
    let count = |is_such: fn(&UserSecret) -> bool| {
        options.users.iter().filter(|user| is_such(&user.secret)).count()
    };
    let hashes = count(|secret| matches!(secret, UserSecret::Native(_)));
    let passwords = count(|secret| matches!(secret, UserSecret::Plain(_)));
    if hashes > passwords { Like::Native } else { Like::Password }
}

fn address(client: &Client<My>) -> Option<IpAddr> {
    match client.peer() {
        Peer::Tcp(address) => Some(address.ip()),
        Peer::Unix { .. } => None,
    }
}

/// Returns the name of the entry that serves clients with a schema: its own, or `*`. For a client
/// without a schema it is the default, `*`, or the only one.
fn database<'a>(options: &'a Options, schema: &str) -> Option<&'a str> {
    let named = |wanted: &str| {
        let found = options.databases.iter().find(|database| database.name == wanted);
        found.map(|database| database.name.as_str())
    };
    if !schema.is_empty() {
        return named(schema).or_else(|| named(Database::ANY));
    }
    let default = options.general.default_database.as_deref();
    let only = || match &options.databases[..] {
        [only] => Some(only.name.as_str()),
        _ => None,
    };
    default.and_then(named).or_else(|| named(Database::ANY)).or_else(only)
}

/// Gives a client that has authenticated to its pool.
fn enter(step: &mut Step<'_, My>, conn: Conn, agreed: Agreed) {
    let shared = step.engine.core_state.shared.clone();
    let options = shared.options();
    let user = String::from_utf8_lossy(&agreed.user).into_owned();
    let schema = String::from_utf8_lossy(&agreed.schema).into_owned();
    let Some(client) = step.engine.connections.client(conn) else { return };
    if let Some(name) = Database::console(&schema) {
        let host = host(client.peer());
        return console_login::enter(step, conn, (agreed, name), &host);
    }
    client.session.place = Place { sequence: agreed.sequence, ..Place::default() };
    let capabilities = agreed.capabilities;
    client.session.state = ClientState::Entering(Box::new(agreed));
    let Some(database) = database(&options, &schema) else {
        return unknown_database(step, conn, &schema);
    };
    if !options.admits(database, &user) {
        return step.end_client(conn, DisconnectReason::Login);
    }
    if shared.is_disabled(database) {
        return step.end_client(conn, DisconnectReason::DisabledDatabase);
    }
    let variant = Variant::of(capabilities, !schema.is_empty());
    let Some(pool) = shared.pool_of_variant(database, &user, variant.0) else {
        return step.end_client(conn, DisconnectReason::TooManyClients);
    };
    let admitted =
        step.count_as(conn, Counted::Client) && shared.admit_client(&pool, &user).is_ok();
    if !admitted {
        return step.end_client(conn, DisconnectReason::TooManyClients);
    }
    let Some(client) = step.engine.connections.client(conn) else { return };
    if let ClientState::Entering(agreed) = &mut client.session.state {
        // The pool has it from here on, once for all of its clients.
        if pool.protocol.learn_secret(std::mem::take(&mut agreed.secret)) {
            pool.login_changes();
        }
    }
    step.enter(conn, &pool, &user);
}

/// Ends the login of a client whose schema has no entry.
fn unknown_database(step: &mut Step<'_, My>, conn: Conn, schema: &str) {
    let Some(client) = step.engine.connections.client(conn) else { return };
    let words = errors::unknown_database(schema);
    let (sequence, code) = (client.session.place.sequence, refrain_mysql_wire::error_code::BAD_DB);
    errors::write(step.ports.out(conn), sequence, code, words.as_bytes());
    let cause = DisconnectReason::UnknownDatabase;
    let note = ClientNote { detail: words, ..ClientNote::new(Level::Warn, cause) };
    step.log().tell_of_client(conn, note);
    step.remove_client(conn, false);
}

/// Lets a client in, or has a server look for its schema first.
pub(crate) fn admit(step: &mut Step<'_, My>, conn: Conn) {
    let Some(client) = step.engine.connections.client(conn) else { return };
    let pool = step.engine.core_state.pool(client.pool());
    let Some(base) = pool.shared.protocol.base() else {
        return step.end_client(conn, DisconnectReason::ServerDown);
    };
    let state = std::mem::take(&mut client.session.state);
    let ClientState::Entering(agreed) = state else { return };
    // An entry may give its schema another name on the server.
    let name = pool.settings.server.dbname.as_deref().filter(|name| *name != Database::ANY);
    let schema = match name {
        Some(name) if !agreed.schema.is_empty() => name.as_bytes(),
        _ => &agreed.schema,
    };
    let mut settings = first_settings(&agreed, &base, schema);
    let has_had_several = client.session.has_had_several;
    settings.has_several = has_had_several.unwrap_or(settings.has_several);
    // In MariaDB COM_CHANGE_USER does not set it again.
    let is_set = has_had_several.is_none() || !base.is_mariadb();
    if is_set && agreed.capabilities.has(Capabilities::IGNORE_SPACE) {
        settings.ignore_space(&base);
    }
    client.session.settings = Arc::new(settings);
    step.engine.core_state.protocol.settings.intern(&mut client.session.settings);
    client.session.wishes = Wishes::of_base(&base);
    client.session.status = Status::AUTOCOMMIT;
    client.session.state = ClientState::Checking(agreed);
    if client.session.settings.schema.is_none() {
        return welcome(step, conn);
    }
    // The server that has been reached is free at the end of the step.
    step.engine.connections.read_on(conn);
}

/// Returns the settings with which a client begins.
fn first_settings(agreed: &Agreed, base: &Base, schema: &[u8]) -> Settings {
    let has_several = agreed.capabilities.has(Capabilities::MULTI_STATEMENTS);
    let mut settings = Settings::new((!schema.is_empty()).then_some(schema), has_several);
    settings.set_collation(base, agreed.collation);
    settings
}

/// Has a server look for a client's schema. Called again once the client has a server.
pub(crate) fn check(step: &mut Step<'_, My>, conn: Conn) {
    let Some(server) = step.server_of(conn).or_else(|| step.lend(conn)) else { return };
    step.request_begins(server);
    let Linked { client: c, server: s, ports, .. } = step.linked(conn, server);
    if !s.session.commands.is_empty() {
        return;
    }
    // Nobody can ask any more what was before it.
    s.session.last_client = None;
    let schema = c.session.settings.schema.clone().unwrap_or_default();
    let named = (command::INIT_DB, &schema[..]);
    train::send(&mut s.session, ports.out(server), named, Purpose::Schema);
}

/// Tells a client that it is logged in.
pub(crate) fn welcome(step: &mut Step<'_, My>, conn: Conn) {
    let sessions = &step.engine.core_state.shared.protocol.sessions;
    let Some(client) = step.engine.connections.client(conn) else { return };
    let (number, serial) = (client.pid(), client.serial());
    let session = &mut client.session;
    let ClientState::Checking(agreed) = std::mem::take(&mut session.state) else { return };
    let (wishes, capabilities) = (&session.wishes, agreed.capabilities);
    let told = (session.status, session.settings.schema.as_deref());
    packet::message(step.ports.out(conn), agreed.sequence, |out| {
        wishes.write_own(out, told, capabilities);
    });
    session.place = Place::default();
    session.listed = Some(sessions.list(number, serial, agreed.user.clone()));
    session.state = ClientState::Ready(agreed);
    let pool = client.pool();
    step.engine.core_state.pool(pool).counters.pool.client_logins += 1;
    step.engine.connections.unblock(conn);
    step.client_logged_in(conn);
}
