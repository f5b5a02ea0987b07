//! Logins to servers: the exchange, and then all that Refrain has to know of the session.

use refrain_config::{Host, SslMode};
use refrain_mysql_wire::packet;
use refrain_mysql_wire::reply::ErrPacket;
use refrain_mysql_wire::{Capabilities, Header, command};
use refrain_pool::disconnect::{ConnectFailure, DisconnectReason, FailureKind};
use refrain_pool::event::Level;
use refrain_pool::ids::PoolId;
use refrain_pool::server::{Server, ServerState};
use refrain_pool::{Conn, Protocol, Step, Supply};

use crate::commands::{Purpose, ReadPacket};
use crate::login::{
    Failure, LOGIN_BYTES_MAX, LoggedIn, ServerLogin, ServerSecret, ServerStep, Tls, Wanted,
};
use crate::parts::{Leftover, LoggingIn, My, PoolPart, Transaction};
use crate::settings::Base;
use crate::train;
use crate::variant::Variant;

/// The id of the collation `utf8mb4_general_ci`, which every server has.
const UTF8MB4_GENERAL_CI: u8 = 45;

/// Begins the login to a server that is connected, and that speaks first.
pub(crate) fn begin(step: &mut Step<'_, My>, conn: Conn) {
    let Some(server) = step.engine.connections.server(conn) else { return };
    let (pool, host) = (server.pool(), server.host().clone());
    let tls = tls(&host, &step.engine.core_state.pool(pool).shared.protocol);
    let login = login(step, pool, &host, tls);
    let server = step.engine.connections.server(conn);
    if let (Some(login), Some(server)) = (login, server) {
        server.begin_login(LoggingIn::Proving(Box::new(login)));
    }
}

/// Makes a login to a host as a pool's servers have it; `None` if the pool is gone.
pub(crate) fn login(
    step: &mut Step<'_, My>,
    pool: PoolId,
    host: &Host,
    tls: Tls,
) -> Option<ServerLogin> {
    let seed = step.engine.core_state.random();
    let pool = step.engine.core_state.find_pool(pool)?;
    let settings = &pool.settings.server;
    let password = settings.password.as_ref().map(|password| password.expose().as_bytes());
    let secret = match password {
        Some(password) => ServerSecret::of_password(password),
        None => pool.shared.protocol.secret().unwrap_or(ServerSecret::None),
    };
    let variant = Variant(pool.shared.variant);
    let user = settings.user.as_deref().unwrap_or(&pool.shared.user);
    let wanted = Wanted {
        user: user.as_bytes().into(),
        secret,
        schema: Box::default(),
        tls,
        is_local: !matches!(host, Host::Tcp { .. }),
        capabilities: variant.capabilities() | Capabilities::MULTI_STATEMENTS,
        // A server reads the name in the character set of the session's collation.
        collation: (!user.is_ascii()).then_some(UTF8MB4_GENERAL_CI),
        program_name: b"refrain"[..].into(),
    };
    Some(ServerLogin::new(wanted, seed))
}

/// Whether the server has not let Refrain in.
pub(crate) fn is_proving(server: &Server<My>) -> bool {
    match server.state() {
        ServerState::Connecting => true,
        ServerState::Login(login) => {
            matches!(**login, LoggingIn::Proving(_) | LoggingIn::Securing(_))
        }
        _ => false,
    }
}

/// Returns whether the next connection to a host is encrypted.
fn tls(host: &Host, pool: &PoolPart) -> Tls {
    match host {
        Host::Tcp { tls, .. } => match tls.mode {
            SslMode::Disable => Tls::Never,
            SslMode::Prefer if pool.takes_clear() => Tls::Never,
            SslMode::Allow | SslMode::Prefer => Tls::IfOffered,
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => Tls::Always,
        },
        _ => Tls::Never,
    }
}

/// Has the loop encrypt a server's connection.
fn secure(step: &mut Step<'_, My>, conn: Conn) {
    let Some(login) = step.engine.connections.server(conn).and_then(Server::login_mut) else {
        return;
    };
    if let LoggingIn::Proving(inner) = std::mem::replace(login, LoggingIn::Preparing) {
        *login = LoggingIn::Securing(inner);
    }
    step.start_tls(conn);
}

/// Leaves a server with which the loop could not agree on TLS, if the next attempt may stay in the
/// clear, as libpq and MySQL's clients have it with `prefer`. Returns false if it may not.
pub(crate) fn leaves_tls(step: &mut Step<'_, My>, conn: Conn, why: &str) -> bool {
    let Some(server) = step.engine.connections.server(conn) else { return false };
    let is_securing = matches!(server.login_mut(), Some(LoggingIn::Securing(_)));
    let id = server.pool();
    let host = &server.host().clone();
    let pool = step.engine.core_state.pool(id);
    let prefers = matches!(&**host, Host::Tcp { tls, .. } if tls.mode == SslMode::Prefer);
    if !is_securing || !prefers {
        return false;
    }
    pool.shared.protocol.stay_clear();
    let told = format!("{host}: {why}; Refrain goes on in the clear, as sslmode is prefer");
    step.log().note_pool(id, Level::Warn, DisconnectReason::ServerDown, told);
    step.close_server(conn);
    true
}

/// Handles a server that could not be connected or logged in to. The clients that wait for one get
/// an error, if the pool has no other.
pub(crate) fn connect_failed(step: &mut Step<'_, My>, conn: Conn, why: &str) {
    if leaves_tls(step, conn, why) {
        return;
    }
    let Some(server) = step.engine.connections.server(conn) else { return };
    let pool = server.pool();
    fail(
        step,
        conn,
        pool,
        &ConnectFailure {
            cause: DisconnectReason::ServerDown,
            why,
            kind: FailureKind::Outage,
            refusal: None,
        },
    );
}

/// Goes on with an exchange within TLS.
pub(crate) fn secured(step: &mut Step<'_, My>, conn: Conn) {
    let Some(server) = step.engine.connections.server(conn) else { return };
    if let Some(login) = server.login_mut()
        && let LoggingIn::Securing(inner) = std::mem::replace(login, LoggingIn::Preparing)
    {
        *login = LoggingIn::Proving(inner);
    }
    let Some(LoggingIn::Proving(login)) = server.login_mut() else { return };
    let result = login.secured(step.ports.out(conn));
    if let ServerStep::Failed(failure) = result {
        failed(step, conn, &failure);
    }
}

/// Handles one packet of an exchange. Returns the number of bytes handled; `None` if it is not all
/// there, or the server is gone.
pub(crate) fn packet(step: &mut Step<'_, My>, conn: Conn, output: &[u8]) -> Option<usize> {
    let header = Header::parse(output)?;
    if header.payload > LOGIN_BYTES_MAX {
        My::connect_failed(step, conn, "the server's packet is too long for a login");
        return None;
    }
    let whole = packet::split(output)?;
    let server = step.engine.connections.server(conn)?;
    let Some(LoggingIn::Proving(login)) = server.login_mut() else { return None };
    let result = login.input(whole.payload, header.sequence, step.ports.out(conn));
    match result {
        ServerStep::More => {}
        ServerStep::StartTls => secure(step, conn),
        ServerStep::Failed(failure) => {
            failed(step, conn, &failure);
            return None;
        }
        ServerStep::LoggedIn(logged_in) => prepare(step, conn, *logged_in),
    }
    Some(header.packet_bytes())
}

/// Ends a server that has broken the protocol: another is tried later, if it has not logged in.
/// Returns `None`, as the server is gone.
pub(crate) fn broken(step: &mut Step<'_, My>, conn: Conn) -> Option<()> {
    match step.engine.connections.server(conn)?.is_new() {
        true => My::connect_failed(step, conn, "the server has broken the protocol"),
        false => step.end_server(conn, DisconnectReason::ServerProtocol),
    }
    None
}

/// Handles a login that has failed. Clients that wait get the server's own error.
fn failed(step: &mut Step<'_, My>, conn: Conn, failure: &Failure) {
    let Some(server) = step.engine.connections.server(conn) else { return };
    let pool = server.pool();
    let Failure { why, is_outage, error } = failure;
    let cause = DisconnectReason::ServerLogin;
    let kind = if *is_outage { FailureKind::Outage } else { FailureKind::Lasting };
    let failure = ConnectFailure { cause, why, kind, refusal: refusal(error.as_deref()) };
    fail(step, conn, pool, &failure);
}

/// Removes a server that could not be logged in to, and tells the clients that wait for one.
fn fail(step: &mut Step<'_, My>, conn: Conn, pool: PoolId, failure: &ConnectFailure<'_>) {
    let mut supply = step.supply();
    if supply.drop_failed(conn, failure) {
        tell_waiting(&mut supply, pool, (failure.cause, failure.why), failure.refusal);
    }
}

/// Tells the clients that wait for a server of a pool why there is none: in the server's own words
/// if it refuses the login.
pub(crate) fn tell_waiting(
    supply: &mut Supply<'_, My>,
    pool: PoolId,
    (cause, why): (DisconnectReason, &str),
    refusal: Option<&[u8]>,
) {
    let shared = supply.core_state.shared.clone();
    let said = refusal.and_then(|error| Some((error, ErrPacket::read(error).ok()?.sqlstate?)));
    supply.fail_waiting(pool, (cause, why), |client, out| match said {
        Some((error, sqlstate)) => {
            packet::message(out, client.place.sequence, |out| out.extend_from_slice(error));
            Some(String::from_utf8_lossy(&sqlstate).into_owned().into())
        }
        None => {
            My::tell(&shared, client, out, cause);
            My::code(cause).map(std::borrow::Cow::Borrowed)
        }
    });
}

/// Returns the error of a server that refuses the user or the password (class 28).
fn refusal(error: Option<&[u8]>) -> Option<&[u8]> {
    let sqlstate = ErrPacket::read(error?).ok()?.sqlstate?;
    error.filter(|_| sqlstate.starts_with(b"28"))
}

/// Asks a server that has let Refrain in for all that Refrain has to know.
fn prepare(step: &mut Step<'_, My>, conn: Conn, logged_in: LoggedIn) {
    let LoggedIn { flavour, connection_id, capabilities, .. } = logged_in;
    step.engine.core_state.shared.protocol.learn(flavour);
    let changed = step.engine.core_state.shared.protocol.views_changed();
    let Some(server) = step.engine.connections.server(conn) else { return };
    let pool = step.engine.core_state.pool(server.pool());
    let (hidden, options) = (&pool.shared.protocol.hidden, &pool.settings.options);
    let asked = hidden.ask_at_login(options, (changed, step.now));
    server.begin_login(LoggingIn::Preparing);
    server.set_cancel_key(connection_id, &[]);
    server.session.agreed = capabilities;
    let (session, out) = (&mut server.session, step.ports.out(conn));
    // Clients begin with what a reset restores, so that each reset restores it.
    train::send(session, out, (command::RESET_CONNECTION, b""), Purpose::Reset);
    train::send_text(session, out, crate::settings::VARIABLES, Purpose::Variables);
    train::send_text(session, out, b"SHOW COLLATION", Purpose::Collations);
    if let Some(asked) = asked {
        train::ask_catalog(session, out, asked);
    }
}

/// Goes on with a login once the reply to one of its commands is over. `None` if the server is
/// gone.
pub(crate) fn answered(
    step: &mut Step<'_, My>,
    conn: Conn,
    packet: &ReadPacket<'_>,
    purpose: Purpose,
) -> Option<()> {
    // A server that cannot reset sessions serves clients, and none twice.
    if packet.is_error() && !matches!(purpose, Purpose::Reset | Purpose::Catalog) {
        let err = ErrPacket::read(packet.payload).map(|err| err.message.to_vec());
        let why = String::from_utf8_lossy(&err.unwrap_or_default()).into_owned();
        My::connect_failed(step, conn, &why);
        return None;
    }
    let server = step.engine.connections.server(conn)?;
    let pool = server.pool();
    let session = &mut server.session;
    let rows = std::mem::take(&mut session.rows);
    match purpose {
        Purpose::Variables => {
            let mut base = Base::default();
            let pairs = rows.iter().filter_map(|row| Some((row.first()?, row.get(1)?)));
            pairs.for_each(|(name, value)| base.add(name, value));
            session.slots.fixes_types = base.fixes_types();
            session.base = base.into();
        }
        Purpose::Collations => {
            let mut base = Base::clone(&session.base);
            rows.iter().for_each(|row| base.add_collation(row));
            let shared = &step.engine.core_state.pool(pool).shared;
            session.base = shared.protocol.learn(base);
            crate::settings::edit(&mut session.settings, |settings| settings.has_several = true);
            train::track(session, step.ports.out(conn));
        }
        Purpose::Tracking => {
            session.transaction = Transaction::None;
            if session.leftover != Leftover::Conditions {
                session.leftover = Leftover::Nothing;
            }
            step.logged_in(conn, false);
        }
        _ => {}
    }
    Some(())
}
