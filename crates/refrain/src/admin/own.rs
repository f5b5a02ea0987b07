//! Listings that PgBouncer does not have: statements, their counters, options with their
//! descriptions.

use std::process;

use refrain_config::ConfigRow;
use refrain_pg::Counters;
use refrain_pg::snapshot::{HbaRow, StatementView};

use super::SNAPSHOT_TIMEOUT;
use super::pgbouncer::COMPATIBLE_WITH;
use super::table::{Listing, Pair, bigint, int, nullable, text};
use super::view::Pool;
use crate::sum::{self, Key};

/// A user who may be known, and where the user's secret comes from.
pub(super) struct AuthUser {
    user: String,
    source: &'static str,
    /// The database that was asked.
    database: String,
    secret: &'static str,
    /// Milliseconds since the database answered.
    age_ms: Option<u64>,
    /// Whether the next login asks the database.
    doubted: bool,
}

/// `SHOW AUTH`: users of the configuration, and users that databases were asked about.
pub(super) const AUTH: Listing<AuthUser> = Listing {
    columns: &[
        text("user", |row| row.user.clone()),
        text("source", |row| row.source.to_owned()),
        text("database", |row| row.database.clone()),
        text("secret", |row| row.secret.to_owned()),
        text("age_ms", |row| row.age_ms.map(|age| age.to_string()).unwrap_or_default()),
        text("doubted", |row| if row.doubted { "yes" } else { "no" }.to_owned()),
    ],
    rows: |view| {
        let configured = view.options.users.iter().map(|user| AuthUser {
            user: user.name.clone(),
            source: "configuration",
            database: String::new(),
            secret: user.secret.kind(),
            age_ms: None,
            doubted: false,
        });
        let known = view.pg.cores.shared.protocol.looked_up().into_iter().map(|known| AuthUser {
            user: known.user,
            source: "auth_query",
            database: known.database,
            secret: known.secret,
            age_ms: Some(view.now.since(known.at) / 1000),
            doubted: known.doubted,
        });
        configured.chain(known).collect()
    },
};

/// `SHOW STATEMENTS`: shared statements, the most used first.
pub(super) const STATEMENTS: Listing<StatementView> = Listing {
    columns: &[
        bigint("id", |row| row.id),
        text("database", |row| row.database.to_string()),
        text("user", |row| row.user.to_string()),
        text("parameter_types", |row| {
            row.parameter_types.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        }),
        int("clients", |row| row.clients.into()),
        int("servers", |row| row.servers.into()),
        bigint("uses", |row| row.uses),
        int("generation", |row| row.generation.into()),
        bigint("bytes", |row| row.bytes),
        text("read", |row| row.read.clone()),
        bigint("shared", |row| row.shared),
        bigint("repeated_us", |row| row.repeated_us),
        text("text", |row| row.text.clone()),
    ],
    rows: |view| {
        let mut statements = refrain_pg::statements(&view.pg.cores.shared);
        let clients = view.pg.statement_clients(SNAPSHOT_TIMEOUT);
        for statement in &mut statements {
            statement.clients = clients.get(&statement.id).copied().unwrap_or(0);
        }
        statements.sort_by(|a, b| b.uses.cmp(&a.uses).then(a.id.cmp(&b.id)));
        statements
    },
};

/// `SHOW PREPARED`: counters of prepared statements, by pool.
pub(super) const PREPARED: Listing<Pool> = Listing {
    columns: &[
        text("database", |pool| pool.sum.database.to_string()),
        text("user", |pool| pool.sum.user.to_string()),
        bigint("prepare_cache_hit", |pool| pool.sum.counters.protocol.prepare_hits),
        bigint("prepare_cache_miss", |pool| pool.sum.counters.protocol.prepare_misses),
        text("hit_ratio", |pool| {
            ratio(
                pool.sum.counters.protocol.prepare_hits,
                pool.sum.counters.protocol.prepare_misses,
            )
        }),
        bigint("client_parses", |pool| pool.sum.counters.protocol.client_parses),
        bigint("server_parses", |pool| pool.sum.counters.protocol.server_parses),
        bigint("parses_answered", |pool| pool.sum.counters.protocol.parses_answered),
        bigint("closes_answered", |pool| pool.sum.counters.protocol.closes_answered),
        bigint("binds", |pool| pool.sum.counters.protocol.binds),
        bigint("evictions", |pool| pool.sum.counters.protocol.evictions),
        bigint("statements_renewed", |pool| pool.sum.counters.protocol.statements_renewed),
        bigint("statements_not_kept", |pool| pool.sum.counters.protocol.statements_not_kept),
        bigint("changes_undone", |pool| pool.sum.counters.protocol.changes_undone),
        bigint("lost_statements", |pool| pool.sum.counters.protocol.lost_statements),
    ],
    rows: |view| view.pools(),
};

/// Returns the share of hits with four digits, or nothing if there were neither hits nor misses.
pub(super) fn ratio(hits: u64, misses: u64) -> String {
    match hits.saturating_add(misses) {
        0 => String::new(),
        all => format!("{:.4}", hits as f64 / all as f64),
    }
}

/// `SHOW HBA`: the rules of authentication in order, and how often each has counted. The last row
/// is for clients that no rule was for.
pub(super) const HBA: Listing<HbaRow> = Listing {
    columns: &[
        bigint("rule_number", |row| row.number),
        text("file_name", |row| row.file.clone()),
        bigint("line_number", |row| row.line),
        text("line", |row| row.text.clone()),
        bigint("matched", |row| row.matched),
        bigint("refused", |row| row.refused),
        nullable("last_user", |row| row.user.clone()),
        nullable("last_database", |row| row.database.clone()),
        nullable("last_address", |row| row.host.clone()),
    ],
    rows: |view| refrain_pg::hba_rules(&view.pg.cores.shared),
};

/// A counter of a pool.
pub(super) struct Counter {
    database: String,
    user: String,
    name: &'static str,
    value: u64,
}

/// `SHOW COUNTERS`: each counter of each pool.
pub(super) const COUNTERS: Listing<Counter> = Listing {
    columns: &[
        text("database", |row| row.database.clone()),
        text("user", |row| row.user.clone()),
        text("counter", |row| row.name.to_owned()),
        bigint("value", |row| row.value),
    ],
    rows: |view| sum::counters(&view.snapshots).iter().flat_map(counters_of).collect(),
};

fn counters_of(((database, user), sum): &(Key, Counters)) -> impl Iterator<Item = Counter> {
    sum.rows().map(|(name, value)| Counter {
        database: database.to_string(),
        user: user.to_string(),
        name,
        value,
    })
}

/// `SHOW OPTIONS`: as `SHOW CONFIG`, with units and descriptions.
pub(super) const OPTIONS: Listing<ConfigRow> = Listing {
    columns: &[
        text("key", |row| row.key.to_owned()),
        text("value", |row| row.value.clone()),
        text("default", |row| row.default.to_string()),
        text("unit", |row| row.unit.to_owned()),
        text("changeable", |row| if row.changeable { "yes" } else { "no" }.to_owned()),
        text("description", |row| row.doc.clone()),
    ],
    rows: |view| view.options.rows(),
};

/// `SHOW REFRAIN`: the program, its configuration and its state.
pub(super) const REFRAIN: Listing<Pair> = Listing {
    columns: &[text("key", |row| row.name.clone()), text("value", |row| row.value.clone())],
    rows: |view| {
        let state = view.state;
        let addresses: Vec<_> = state.addresses.iter().map(ToString::to_string).collect();
        let clients: usize = view.clients().count();
        vec![
            Pair::new("version", env!("CARGO_PKG_VERSION")),
            Pair::new("compatible_with", COMPATIBLE_WITH),
            Pair::new("pid", process::id()),
            Pair::new("started", state.clock.date(state.started)),
            Pair::new("uptime_seconds", view.now.since(state.started) / 1_000_000),
            Pair::new("configuration", &state.source),
            Pair::new("listen", addresses.join(", ")),
            Pair::new("driver", state.driver),
            Pair::new("cores", state.core_count()),
            Pair::new("clients", clients),
            Pair::new("draining", state.is_draining()),
        ]
    },
};
