//! `SHOW CLIENTS`, `SERVERS`, `SOCKETS` and `ACTIVE_SOCKETS`: connections, one a row.
//!
//! All four have the columns of PgBouncer's `socket_header`. The latter two have seven more about
//! its buffers, which have no counterpart here and are zero.

use std::fmt::Display;
use std::net::IpAddr;

use refrain_config::Host;
use refrain_drive::Address;
use refrain_pg::{ClientView, ServerView};
use refrain_pool::ids::{Core, Peer};
use refrain_pool::snapshot::{ClientViewState, ServerViewState};

use super::table::{Column, Listing, int, text};
use super::view::View;

/// A connection, to a client or to a server.
pub(super) struct Socket {
    kind: &'static str,
    user: String,
    database: String,
    state: &'static str,
    /// The state as `SHOW SOCKETS` names it.
    long_state: &'static str,
    address: Place,
    local: Place,
    connected: String,
    requested: String,
    wait_us: u64,
    close_needed: bool,
    serial: u64,
    /// The serial of the client or server that it is linked to.
    link: Option<u64>,
    pid: u32,
    /// The version of TLS and the cipher; empty in the clear.
    tls: String,
    application: String,
    statements: u32,
    /// The kind of replication, or `none`.
    replication: &'static str,
}

#[derive(Clone, Default)]
struct Place {
    address: String,
    port: u16,
}

pub(super) const CLIENTS: Listing<Socket> = Listing { columns: STANDARD, rows: clients };
pub(super) const SERVERS: Listing<Socket> = Listing { columns: STANDARD, rows: servers };
pub(super) const SOCKETS: Listing<Socket> = Listing { columns: &COLUMNS, rows: sockets };
pub(super) const ACTIVE_SOCKETS: Listing<Socket> =
    Listing { columns: &COLUMNS, rows: active_sockets };

const STANDARD: &[Column<Socket>] = COLUMNS.split_at(21).0;

const COLUMNS: [Column<Socket>; 28] = [
    text("type", |socket| socket.kind.to_owned()),
    text("user", |socket| socket.user.clone()),
    text("database", |socket| socket.database.clone()),
    text("replication", |socket| socket.replication.to_owned()),
    text("state", |socket| socket.state.to_owned()),
    text("addr", |socket| socket.address.address.clone()),
    int("port", |socket| socket.address.port.into()),
    text("local_addr", |socket| socket.local.address.clone()),
    int("local_port", |socket| socket.local.port.into()),
    text("connect_time", |socket| socket.connected.clone()),
    text("request_time", |socket| socket.requested.clone()),
    int("wait", |socket| socket.wait_us / 1_000_000),
    int("wait_us", |socket| socket.wait_us % 1_000_000),
    int("close_needed", |socket| socket.close_needed.into()),
    text("ptr", |socket| pointer(socket.serial)),
    text("link", |socket| socket.link.map(pointer).unwrap_or_default()),
    int("remote_pid", |socket| socket.pid.into()),
    text("tls", |socket| socket.tls.clone()),
    text("application_name", |socket| socket.application.clone()),
    int("prepared_statements", |socket| socket.statements.into()),
    int("id", |socket| socket.serial),
    int("recv_pos", |_| 0),
    int("pkt_pos", |_| 0),
    int("pkt_remain", |_| 0),
    int("send_pos", |_| 0),
    int("send_remain", |_| 0),
    int("pkt_avail", |_| 0),
    int("send_avail", |_| 0),
];

/// Formats a serial as PgBouncer formats addresses in memory.
fn pointer(serial: impl Display + std::fmt::LowerHex) -> String {
    format!("{serial:#x}")
}

fn clients(view: &View<'_>) -> Vec<Socket> {
    view.clients().map(|(_, client)| of_client(view, client)).collect()
}

fn servers(view: &View<'_>) -> Vec<Socket> {
    view.servers().map(|(_, server)| of_server(view, server)).collect()
}

fn sockets(view: &View<'_>) -> Vec<Socket> {
    let with_long_state = |socket: Socket| Socket { state: socket.long_state, ..socket };
    clients(view).into_iter().chain(servers(view)).map(with_long_state).collect()
}

/// Returns the connections that are linked, and the clients that wait for a server.
fn active_sockets(view: &View<'_>) -> Vec<Socket> {
    let busy = |socket: &Socket| socket.link.is_some() || socket.wait_us > 0;
    sockets(view).into_iter().filter(busy).collect()
}

fn of_client(view: &View<'_>, client: &ClientView) -> Socket {
    let (state, long_state) = match client.state {
        ClientViewState::Waiting => ("waiting", "cl_waiting"),
        ClientViewState::Active if client.server.is_none() => ("idle", "cl_active"),
        ClientViewState::Active | ClientViewState::Admin => ("active", "cl_active"),
    };
    Socket {
        kind: "C",
        user: client.user.to_string(),
        database: client.database.to_string(),
        state,
        long_state,
        address: place_of_peer(&client.peer),
        local: listening(view, &client.peer),
        connected: view.state.clock.date(client.connected),
        requested: view.state.clock.date(client.requested),
        wait_us: view.ago(client.waiting),
        close_needed: false,
        serial: client.serial.0,
        link: client.server,
        pid: 0,
        tls: client.secured.as_ref().map(ToString::to_string).unwrap_or_default(),
        application: client.session.application.clone(),
        statements: client.session.statements,
        replication: client.session.replication,
    }
}

fn of_server(view: &View<'_>, server: &ServerView) -> Socket {
    let (state, long_state) = match server.state {
        ServerViewState::Login => ("new", "sv_login"),
        ServerViewState::Idle => ("idle", "sv_idle"),
        ServerViewState::Active => ("active", "sv_active"),
        ServerViewState::Resetting => ("tested", "sv_tested"),
        ServerViewState::Cancelling => ("being_canceled", "sv_being_canceled"),
    };
    Socket {
        kind: "S",
        user: server.user.to_string(),
        database: server.database.to_string(),
        state,
        long_state,
        address: place_of_host(&server.host, server.address),
        local: Place::default(),
        connected: view.state.clock.date(server.connected),
        requested: view.state.clock.date(server.lent),
        wait_us: 0,
        close_needed: server.close_needed,
        serial: server.serial,
        link: server.client.map(|client| client.0),
        pid: server.pid,
        tls: server.secured.as_ref().map(ToString::to_string).unwrap_or_default(),
        application: server.session.application.clone(),
        statements: server.session.statements,
        replication: server.session.replication,
    }
}

fn place_of_peer(peer: &Peer) -> Place {
    match peer {
        Peer::Tcp(address) => Place { address: address.ip().to_string(), port: address.port() },
        Peer::Unix { .. } => Place { address: "unix".to_owned(), port: 0 },
    }
}

/// Returns the address that a client connected to: the first listening address of its kind.
fn listening(view: &View<'_>, peer: &Peer) -> Place {
    let of_kind = |address: &Address| match (peer, address) {
        (Peer::Tcp(peer), Address::Tcp(ours)) if peer.is_ipv4() == ours.is_ipv4() => {
            Some(Place { address: ours.ip().to_string(), port: ours.port() })
        }
        (Peer::Unix { .. }, Address::Unix(_)) => Some(place_of_peer(peer)),
        _ => None,
    };
    view.state.addresses.iter().find_map(of_kind).unwrap_or_default()
}

/// Returns the place of a server. A host that is a name has that name until the connection leads to
/// one of its addresses.
fn place_of_host(host: &Host, address: Option<IpAddr>) -> Place {
    match host {
        Host::Tcp { host, port, .. } => {
            let address = address.map_or_else(|| host.clone(), |address| address.to_string());
            Place { address, port: *port }
        }
        Host::Unix { port, .. } => Place { address: "unix".to_owned(), port: *port },
        Host::Socket(_) => Place { address: "unix".to_owned(), port: 0 },
        Host::Sqlite(_) => Place { address: "sqlite".to_owned(), port: 0 },
    }
}

/// A server, with facts that PgBouncer does not show.
pub(super) struct Extended {
    core: Core,
    server: ServerView,
    connected: String,
}

/// `SHOW SERVERS_EXTENDED`.
pub(super) const SERVERS_EXTENDED: Listing<Extended> = Listing {
    columns: &[
        int("id", |row| row.server.serial),
        int("core", |row| row.core.0.into()),
        text("database", |row| row.server.database.to_string()),
        text("user", |row| row.server.user.to_string()),
        text("host", |row| row.server.host.to_string()),
        text("state", |row| format!("{:?}", row.server.state).to_lowercase()),
        int("client", |row| row.server.client.map_or(0, |client| client.0)),
        int("remote_pid", |row| row.server.pid.into()),
        text("connect_time", |row| row.connected.clone()),
        int("statements", |row| row.server.session.statements.into()),
        super::table::bigint("statement_bytes", |row| row.server.session.statement_bytes),
        super::table::bigint("prepare_cache_hit", |row| row.server.session.prepare_hits),
        super::table::bigint("prepare_cache_miss", |row| row.server.session.prepare_misses),
    ],
    rows: |view| {
        let extended = |(core, server): (Core, &ServerView)| Extended {
            core,
            server: server.clone(),
            connected: view.state.clock.date(server.connected),
        };
        view.servers().map(extended).collect()
    },
};

/// A client that keeps its server, and the reason.
pub(super) struct Pin {
    client: ClientView,
    since: String,
}

/// `SHOW PINS`.
pub(super) const PINS: Listing<Pin> = Listing {
    columns: &[
        int("id", |row| row.client.serial.0),
        text("database", |row| row.client.database.to_string()),
        text("user", |row| row.client.user.to_string()),
        text("addr", |row| place_of_peer(&row.client.peer).address),
        int("port", |row| place_of_peer(&row.client.peer).port.into()),
        text("application_name", |row| row.client.session.application.clone()),
        text("reason", |row| row.client.session.pinned.clone()),
        int("server", |row| row.client.server.unwrap_or(0)),
        text("connect_time", |row| row.since.clone()),
    ],
    rows: |view| {
        let pinned = view.clients().filter(|(_, client)| !client.session.pinned.is_empty());
        let pin = |(_, client): (Core, &ClientView)| Pin {
            client: client.clone(),
            since: view.state.clock.date(client.connected),
        };
        pinned.map(pin).collect()
    },
};
