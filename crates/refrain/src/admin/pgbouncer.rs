//! PgBouncer's listings: its names, columns, order and types (1.24 to 1.26, `src/admin.c` and
//! `src/stats.c`).
//!
//! Exporters read them by position and refuse a number of columns that does not fit the version, so
//! nothing may be added here; see [`super::own`]. Columns without a counterpart in Refrain are
//! empty or zero.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use refrain_config::{
    ConfigRow, Database, Host, Peer, PgBouncerVersion, PoolMode, PoolOptions, Server, User,
};
use refrain_pool::snapshot::ServerViewState;

use super::averages::{self, FIGURES, Figures};
use super::table::{
    Column, Listing, Pair, bigint, has_news, int, new_numeric, nullable, numeric, text,
};
use super::view::View;
use crate::resolve::KnownHost;

/// Returns the version that collectors see, and by which they choose the columns.
pub(super) fn compatible_with(version: PgBouncerVersion) -> &'static str {
    match version {
        PgBouncerVersion::V24 => "PgBouncer 1.24.1",
        PgBouncerVersion::V25 => "PgBouncer 1.25.1",
        PgBouncerVersion::V26 => "PgBouncer 1.26.0",
    }
}

/// The name of the console's own database and user in PgBouncer's listings.
const CONSOLE: &str = "pgbouncer";

#[derive(Default)]
pub(super) struct PoolRow {
    database: String,
    user: String,
    cl_active: u64,
    cl_waiting: u64,
    sv_active: u64,
    sv_being_canceled: u64,
    sv_idle: u64,
    sv_tested: u64,
    sv_login: u64,
    max_wait_us: u64,
    mode: &'static str,
}

pub(super) const POOLS: Listing<PoolRow> = Listing {
    columns: &[
        text("database", |pool| pool.database.clone()),
        text("user", |pool| pool.user.clone()),
        int("cl_active", |pool| pool.cl_active),
        int("cl_waiting", |pool| pool.cl_waiting),
        int("cl_active_cancel_req", |_| 0),
        int("cl_waiting_cancel_req", |_| 0),
        int("sv_active", |pool| pool.sv_active),
        int("sv_active_cancel", |_| 0),
        int("sv_being_canceled", |pool| pool.sv_being_canceled),
        int("sv_idle", |pool| pool.sv_idle),
        int("sv_used", |_| 0),
        int("sv_tested", |pool| pool.sv_tested),
        int("sv_login", |pool| pool.sv_login),
        int("maxwait", |pool| pool.max_wait_us / 1_000_000),
        int("maxwait_us", |pool| pool.max_wait_us % 1_000_000),
        text("pool_mode", |pool| pool.mode.to_owned()),
        nullable("load_balance_hosts", |_| None),
    ],
    rows: |view| {
        let console = PoolRow {
            database: CONSOLE.to_owned(),
            user: CONSOLE.to_owned(),
            cl_active: view.admins(),
            mode: PoolMode::Statement.word(),
            ..PoolRow::default()
        };
        let row = |pool: super::view::Pool| PoolRow {
            database: pool.sum.database.to_string(),
            user: pool.sum.user.to_string(),
            cl_active: pool.sum.active.into(),
            cl_waiting: pool.sum.waiting.into(),
            sv_active: pool.servers(ServerViewState::Active),
            sv_being_canceled: pool.servers(ServerViewState::Cancelling),
            sv_idle: pool.servers(ServerViewState::Idle),
            sv_tested: pool.servers(ServerViewState::Resetting),
            sv_login: pool.servers(ServerViewState::Login),
            max_wait_us: pool.sum.max_wait_us,
            mode: pool.sum.mode.word(),
        };
        view.pools().into_iter().map(row).chain([console]).collect()
    },
};

pub(super) struct DatabaseRow {
    name: String,
    /// `None` for the console.
    server: Option<Server>,
    pool: PoolOptions,
    max_servers: u64,
    servers: u64,
    max_clients: u64,
    clients: u64,
    paused: bool,
    disabled: bool,
}

impl DatabaseRow {
    fn host(&self) -> Option<String> {
        let name = |host: &Host| match host {
            Host::Tcp { host, .. } => host.clone(),
            Host::Unix { dir, .. } => dir.display().to_string(),
            Host::Socket(path) => path.display().to_string(),
            Host::Sqlite(file) => file.path.display().to_string(),
        };
        Some(self.server.as_ref()?.hosts().map(name).collect::<Vec<_>>().join(","))
    }

    /// Returns the order in which hosts are tried, if there are several.
    fn order(&self) -> Option<String> {
        let server = self.server.as_ref().filter(|server| !server.more_hosts.is_empty())?;
        Some(server.load_balance_hosts.word().to_owned())
    }

    fn port(&self) -> u64 {
        match self.server.as_ref().map(|server| &server.host) {
            Some(Host::Tcp { port, .. } | Host::Unix { port, .. }) => (*port).into(),
            Some(Host::Socket(_) | Host::Sqlite(_)) | None => 0,
        }
    }

    fn database(&self) -> String {
        let named = self.server.as_ref().and_then(|server| server.dbname.clone());
        named.unwrap_or_else(|| self.name.clone())
    }
}

pub(super) const DATABASES: Listing<DatabaseRow> = Listing {
    columns: &[
        text("name", |row| row.name.clone()),
        nullable("host", DatabaseRow::host),
        int("port", DatabaseRow::port),
        text("database", DatabaseRow::database),
        nullable("force_user", |row| row.server.as_ref()?.user.clone()),
        int("pool_size", |row| row.pool.pool_size.into()),
        int("min_pool_size", |row| row.pool.min_pool_size.into()),
        int("reserve_pool_size", |row| row.pool.reserve_pool_size.into()),
        text("server_lifetime", |row| {
            row.pool.server_lifetime.as_ref().map_or(0, Duration::as_secs).to_string()
        }),
        nullable("pool_mode", |row| Some(row.pool.pool_mode.word().to_owned())),
        nullable("load_balance_hosts", DatabaseRow::order),
        int("max_connections", |row| row.max_servers),
        int("current_connections", |row| row.servers),
        int("max_client_connections", |row| row.max_clients),
        int("current_client_connections", |row| row.clients),
        int("paused", |row| row.paused.into()),
        int("disabled", |row| row.disabled.into()),
    ],
    rows: |view| {
        let configured = view.options.databases.iter().map(|database| database.name.clone());
        let pooled = view.snapshots.iter().flat_map(|core| &core.pools);
        let names: BTreeSet<String> =
            configured.chain(pooled.map(|pool| pool.database.to_string())).collect();
        let known = |name: String| Some(database_row(view, view.options.database(&name)?, name));
        names.into_iter().filter_map(known).chain([console_row(view)]).collect()
    },
};

fn database_row(view: &View<'_>, entry: &Database, name: String) -> DatabaseRow {
    DatabaseRow {
        server: Some(entry.server.clone()),
        pool: entry.pool.clone(),
        max_servers: entry.max_connections.unwrap_or(0).into(),
        servers: view.servers().filter(|(_, server)| *server.database == name).count() as u64,
        max_clients: entry.max_client_connections.unwrap_or(0).into(),
        clients: view.clients().filter(|(_, client)| *client.database == name).count() as u64,
        paused: view.pg.cores.shared.is_paused(&name),
        disabled: view.pg.cores.shared.is_disabled(&name),
        name,
    }
}

fn console_row(view: &View<'_>) -> DatabaseRow {
    let mode = PoolOptions { pool_mode: PoolMode::Statement, ..PoolOptions::default() };
    DatabaseRow {
        name: CONSOLE.to_owned(),
        server: None,
        pool: mode,
        max_servers: 0,
        servers: 0,
        max_clients: 0,
        clients: view.admins(),
        paused: false,
        disabled: false,
    }
}

pub(super) struct UserRow {
    user: User,
    mode: Option<PoolMode>,
    servers: u64,
    clients: u64,
}

pub(super) const USERS: Listing<UserRow> = Listing {
    columns: &[
        text("name", |row| row.user.name.clone()),
        text("pool_size", |_| String::new()),
        text("reserve_pool_size", |_| String::new()),
        nullable("pool_mode", |row| row.mode.map(|mode| mode.word().to_owned())),
        int("max_user_connections", |row| row.user.max_connections.unwrap_or(0).into()),
        int("current_connections", |row| row.servers),
        int("max_user_client_connections", |row| {
            row.user.max_client_connections.unwrap_or(0).into()
        }),
        int("current_client_connections", |row| row.clients),
    ],
    rows: |view| {
        let row = |user: &User| UserRow {
            user: user.clone(),
            mode: (!user.pool.is_empty()).then(|| user.pool.over(&view.options.defaults).pool_mode),
            servers: view.servers().filter(|(_, server)| *server.user == user.name).count() as u64,
            clients: view.clients().filter(|(_, client)| *client.user == user.name).count() as u64,
        };
        view.options.users.iter().map(row).collect()
    },
};

pub(super) struct StatsRow {
    database: Arc<str>,
    total: Figures,
    average: Figures,
}

fn total<const AT: usize>(row: &StatsRow) -> u64 {
    row.total[AT]
}

fn average<const AT: usize>(row: &StatsRow) -> u64 {
    row.average[AT]
}

fn stats(view: &View<'_>) -> Vec<StatsRow> {
    let row = |(database, total): (Arc<str>, Figures)| StatsRow {
        average: view.averages.of(&database, view.now, &total),
        database,
        total,
    };
    let console = (Arc::from(CONSOLE), Figures::default());
    view.totals().into_iter().chain([console]).map(row).collect()
}

pub(super) const STATS: Listing<StatsRow> = Listing {
    columns: &[
        text("database", |row| row.database.to_string()),
        numeric("total_server_assignment_count", total::<0>),
        numeric("total_xact_count", total::<1>),
        numeric("total_query_count", total::<2>),
        numeric("total_received", total::<3>),
        numeric("total_sent", total::<4>),
        numeric("total_xact_time", total::<5>),
        numeric("total_query_time", total::<6>),
        numeric("total_wait_time", total::<7>),
        numeric("total_client_parse_count", total::<8>),
        numeric("total_server_parse_count", total::<9>),
        numeric("total_bind_count", total::<10>),
        new_numeric("total_client_connect_count", total::<11>),
        numeric("avg_server_assignment_count", average::<0>),
        numeric("avg_xact_count", average::<1>),
        numeric("avg_query_count", average::<2>),
        numeric("avg_recv", average::<3>),
        numeric("avg_sent", average::<4>),
        numeric("avg_xact_time", average::<5>),
        numeric("avg_query_time", average::<6>),
        numeric("avg_wait_time", average::<7>),
        numeric("avg_client_parse_count", average::<8>),
        numeric("avg_server_parse_count", average::<9>),
        numeric("avg_bind_count", average::<10>),
        new_numeric("avg_client_connect_count", average::<11>),
    ],
    rows: stats,
};

/// Makes the columns of all figures. PgBouncer names averages of statements in another way.
macro_rules! figure_columns {
    ($of:ident, $parses:literal, $server_parses:literal, $binds:literal) => {
        &[
            text("database", |row| row.database.to_string()),
            numeric(FIGURES[0], $of::<0>),
            numeric(FIGURES[1], $of::<1>),
            numeric(FIGURES[2], $of::<2>),
            numeric(FIGURES[3], $of::<3>),
            numeric(FIGURES[4], $of::<4>),
            numeric(FIGURES[5], $of::<5>),
            numeric(FIGURES[6], $of::<6>),
            numeric(FIGURES[7], $of::<7>),
            numeric($parses, $of::<8>),
            numeric($server_parses, $of::<9>),
            numeric($binds, $of::<10>),
            new_numeric(FIGURES[11], $of::<11>),
        ]
    };
}

pub(super) const STATS_TOTALS: Listing<StatsRow> = Listing {
    columns: figure_columns!(total, "client_parse_count", "server_parse_count", "bind_count"),
    rows: stats,
};
pub(super) const STATS_AVERAGES: Listing<StatsRow> = Listing {
    columns: figure_columns!(
        average,
        "avg_client_parse_count",
        "avg_server_parse_count",
        "avg_bind_count"
    ),
    rows: stats,
};

pub(super) struct TotalRow {
    name: String,
    value: u64,
}

pub(super) const TOTALS: Listing<TotalRow> = Listing {
    columns: &[text("name", |row| row.name.clone()), numeric("value", |row| row.value)],
    rows: |view| {
        let (mut total, mut average) = (Figures::default(), Figures::default());
        for row in stats(view) {
            averages::add(&mut total, &row.total);
            averages::add(&mut average, &row.average);
        }
        // PgBouncer names bytes by their sender and statements by `ps_` here, and nowhere else.
        let name = |figure: &str| match figure {
            "bytes_received" => "client_bytes".to_owned(),
            "bytes_sent" => "server_bytes".to_owned(),
            "client_parse_count" | "server_parse_count" | "bind_count" => format!("ps_{figure}"),
            _ => figure.to_owned(),
        };
        let known = match has_news(view.options.general.pgbouncer_version) {
            true => &FIGURES[..],
            false => &FIGURES[..11],
        };
        let rows = |prefix: &'static str, figures: Figures| {
            let named = known.iter().zip(figures);
            named.map(move |(figure, value)| TotalRow {
                name: prefix.to_owned() + &name(figure),
                value,
            })
        };
        rows("total_", total).chain(rows("avg_", average)).collect()
    },
};

pub(super) struct ListRow {
    list: &'static str,
    items: usize,
}

pub(super) const LISTS: Listing<ListRow> = Listing {
    columns: &[text("list", |row| row.list.to_owned()), int("items", |row| row.items as u64)],
    rows: |view| {
        let logging_in: u32 = view.snapshots.iter().map(|core| core.logging_in).sum();
        [
            ("databases", view.options.databases.len() + 1),
            ("users", view.options.users.len()),
            ("peers", view.options.peers.len()),
            ("pools", view.pools().len() + 1),
            ("peer_pools", view.options.peers.len()),
            ("free_clients", 0),
            ("used_clients", view.clients().count()),
            ("login_clients", logging_in as usize),
            ("free_servers", 0),
            ("used_servers", view.servers().count()),
            ("dns_names", view.state.resolver.known().len()),
            ("dns_zones", 0),
            ("dns_queries", 0),
            ("dns_pending", 0),
        ]
        .map(|(list, items)| ListRow { list, items })
        .into()
    },
};

pub(super) const CONFIG: Listing<ConfigRow> = Listing {
    columns: &[
        text("key", |row| row.key.to_owned()),
        text("value", |row| row.value.clone()),
        text("default", |row| row.default.to_string()),
        text("changeable", |row| if row.changeable { "yes" } else { "no" }.to_owned()),
    ],
    rows: |view| view.options.rows(),
};

pub(super) const STATE: Listing<Pair> = Listing {
    columns: &[text("key", |row| row.name.clone()), text("value", |row| row.value.clone())],
    rows: |view| {
        let word = |yes: bool| if yes { "yes" } else { "no" };
        let paused = view.state.is_paused();
        vec![
            Pair::new("active", word(!paused)),
            Pair::new("paused", word(paused)),
            Pair::new("suspended", word(false)),
        ]
    },
};

pub(super) const VERSION: Listing<&str> = Listing {
    columns: &[text("version", |version| (*version).to_owned())],
    rows: |view| vec![compatible_with(view.options.general.pgbouncer_version)],
};

pub(super) struct MemoryRow {
    name: &'static str,
    size: u64,
    used: u64,
    bytes: u64,
}

/// PgBouncer shows its slabs. Refrain shows statements, the one thing of which it counts pieces.
pub(super) const MEM: Listing<MemoryRow> = Listing {
    columns: &[
        text("name", |row| row.name.to_owned()),
        int("size", |row| row.size),
        int("used", |row| row.used),
        int("free", |_| 0),
        int("memtotal", |row| row.bytes),
    ],
    rows: |view| {
        let statements = refrain_pg::statements(&view.pg.cores.shared);
        let used = statements.len() as u64;
        let bytes = statements.iter().map(|statement| statement.bytes).sum();
        vec![MemoryRow { name: "statement", size: bytes / used.max(1), used, bytes }]
    },
};

pub(super) const DNS_HOSTS: Listing<KnownHost> = Listing {
    columns: &[
        text("hostname", |host| host.name.clone()),
        bigint("ttl", |host| host.fresh_for.as_secs()),
        text("addrs", |host| {
            host.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        }),
    ],
    rows: |view| view.state.resolver.known(),
};

pub(super) const PEERS: Listing<Peer> = Listing {
    columns: &[
        int("peer_id", |peer| peer.id.into()),
        text("host", Peer::host),
        int("port", |peer| peer.port().into()),
        int("pool_size", |_| 0),
    ],
    rows: |view| view.options.peers.clone(),
};

/// A cancel request has a connection of its own, so that there is nothing to count here.
pub(super) const PEER_POOLS: Listing<Peer> = Listing {
    columns: &[
        int("peer_id", |peer| peer.id.into()),
        int("cl_active_cancel_req", |_| 0),
        int("cl_waiting_cancel_req", |_| 0),
        int("sv_active_cancel", |_| 0),
        int("sv_login", |_| 0),
    ],
    rows: |view| view.options.peers.clone(),
};

/// Makes listings without rows, for what Refrain does not have: DNS zones, and descriptors to pass
/// to another process.
macro_rules! nothing {
    ($($name:ident: [$($column:expr),* $(,)?];)*) => {$(
        pub(super) const $name: Listing<()> = {
            const COLUMNS: &[Column<()>] = &[$($column),*];
            Listing { columns: COLUMNS, rows: |_| Vec::new() }
        };
    )*};
}

nothing! {
    DNS_ZONES: [text("zonename", |()| String::new()), bigint("serial", |()| 0), int("count", |()| 0)];
    FDS: [
        int("fd", |()| 0),
        text("task", |()| String::new()),
        text("user", |()| String::new()),
        text("database", |()| String::new()),
        text("addr", |()| String::new()),
        int("port", |()| 0),
        bigint("cancel", |()| 0),
        int("link", |()| 0),
        text("client_encoding", |()| String::new()),
        text("std_strings", |()| String::new()),
        text("datestyle", |()| String::new()),
        text("timezone", |()| String::new()),
        text("password", |()| String::new()),
    ];
}
