//! Listings that the dashboard's first screen is made of: figures over all pools, times, who waits
//! for what, and the last warnings.
//!
//! None of them looks at clients one by one, so what a core does for them does not grow with the
//! number of its clients.

use refrain_config::Database;
use refrain_pool::figures::times_of_bucket;
use refrain_pool::snapshot::ServerViewState;
use refrain_pool::stats::Histogram;

use super::table::{Listing, Pair, bigint, int, text};
use super::view::{Pool, View};

/// `SHOW OVERVIEW`: figures over all pools. Counters are those of `SHOW COUNTERS`, added up, and
/// the sums of times.
pub(super) const OVERVIEW: Listing<Pair> = Listing {
    columns: &[text("key", |row| row.name.clone()), text("value", |row| row.value.clone())],
    rows: |view| {
        let counters = view.counters();
        let rows = program(view).into_iter().chain(now(view)).chain(saved(view));
        let counts = counters.rows().map(|(name, value)| Pair::new(name, value));
        let sums = [
            Pair::new("xact_time_us", counters.xact_time.sum_us),
            Pair::new("query_time_us", counters.query_time.sum_us),
            Pair::new("wait_time_us", counters.wait_time.sum_us),
        ];
        rows.chain(counts).chain(sums).collect()
    },
};

fn program(view: &View<'_>) -> Vec<Pair> {
    let state = view.state;
    let mut rows = vec![
        Pair::new("now_us", view.now.0),
        Pair::new("version", env!("CARGO_PKG_VERSION")),
        Pair::new("started", state.clock.date(state.started)),
        Pair::new("uptime_seconds", view.now.since(state.started) / 1_000_000),
        Pair::new("configuration", &state.source),
        Pair::new("worker_threads", state.core_count()),
        Pair::new("paused", u8::from(state.is_paused())),
        Pair::new("draining", u8::from(state.is_draining())),
    ];
    if let Some(reload) = state.last_reload() {
        rows.push(Pair::new("last_reload", state.clock.date(reload.at)));
        let outcome = match reload.outcome {
            Ok(1) => "1 option changed".to_owned(),
            Ok(changes) => format!("{changes} options changed"),
            Err(why) => format!("failed, and nothing changed: {why}"),
        };
        rows.push(Pair::new("last_reload_outcome", outcome));
    }
    rows
}

fn now(view: &View<'_>) -> Vec<Pair> {
    let pools = view.pools();
    let servers = |state| pools.iter().map(|pool| pool.servers(state)).sum::<u64>();
    let connections: u32 = view.snapshots.iter().map(|core| core.connections).sum();
    vec![
        Pair::new("clients", connections),
        Pair::new("clients_max", view.options.general.max_client_conn),
        Pair::new("clients_waiting", pools.iter().map(|pool| pool.sum.waiting).sum::<u32>()),
        Pair::new("longest_wait_us", pools.iter().map(|it| it.sum.max_wait_us).max().unwrap_or(0)),
        Pair::new("pools", pools.len()),
        Pair::new("pools_at_limit", pools.iter().filter(|pool| pool.is_at_limit()).count()),
        Pair::new("servers_active", servers(ServerViewState::Active)),
        Pair::new("servers_idle", servers(ServerViewState::Idle)),
        Pair::new("servers_login", servers(ServerViewState::Login)),
        Pair::new("servers_shared", pools.iter().map(|it| it.sum.servers_shared).sum::<u32>()),
    ]
}

fn saved(view: &View<'_>) -> Vec<Pair> {
    let protocol = &view.pg.cores.shared.protocol;
    let cache = protocol.cache_stats();
    let auto_saved: i64 = view.snapshots.iter().map(|core| core.protocol.time_saved_us).sum();
    vec![
        Pair::new("auto_saved_us", auto_saved),
        Pair::new("cache_entries", cache.entries),
        Pair::new("cache_bytes", cache.bytes),
        Pair::new("cache_limit_bytes", view.options.cache.options.memory),
        Pair::new("statements", protocol.registry.entries()),
    ]
}

/// How many times of a kind lay between two bounds.
pub(super) struct Bucket {
    kind: &'static str,
    from_us: u64,
    below_us: u64,
    count: u64,
}

/// `SHOW TIMES`: the histograms over all pools, without the buckets that are empty. That of
/// commands is as fine as those of statements; the others are those of the metrics, with bounds of
/// powers of two.
pub(super) const TIMES: Listing<Bucket> = Listing {
    columns: &[
        text("time", |row| row.kind.to_owned()),
        bigint("below_us", |row| row.below_us),
        bigint("count", |row| row.count),
        bigint("from_us", |row| row.from_us),
    ],
    rows: |view| {
        let all = view.counters();
        let kinds: [(&str, &Histogram); 4] = [
            ("transaction", &all.xact_time),
            ("query", &all.query_time),
            ("wait", &all.wait_time),
            ("turn", &all.turn_time),
        ];
        kinds.into_iter().flat_map(buckets).chain(commands(view)).collect()
    },
};

/// Returns the buckets of the times of commands.
fn commands(view: &View<'_>) -> impl Iterator<Item = Bucket> + use<> {
    let mut counts = Vec::new();
    for core in &view.snapshots {
        counts.resize(core.commands.len().max(counts.len()), 0);
        counts.iter_mut().zip(&core.commands).for_each(|(sum, count)| *sum += count);
    }
    let bucket = |(place, count)| {
        let (from_us, below_us) = times_of_bucket(place);
        Bucket { kind: "command", from_us, below_us, count }
    };
    counts.into_iter().enumerate().filter(|(_, count)| *count > 0).map(bucket)
}

fn buckets((kind, times): (&'static str, &Histogram)) -> impl Iterator<Item = Bucket> {
    let counts = times.buckets.iter().copied().enumerate();
    let bucket = move |(place, count)| {
        let below_us = 1_u64 << place;
        Bucket { kind, from_us: below_us / 2, below_us, count }
    };
    counts.filter(|(_, count)| *count > 0).map(bucket)
}

/// A pool whose clients wait.
pub(super) struct PoolQueue {
    pool: Pool,
    reason: String,
    advice: &'static str,
}

/// `SHOW WAITS`: the pools whose clients wait, the longest wait first, and for what they wait.
pub(super) const WAITS: Listing<PoolQueue> = Listing {
    columns: &[
        text("database", |row| row.pool.sum.database.to_string()),
        text("user", |row| row.pool.sum.user.to_string()),
        int("waiting", |row| row.pool.sum.waiting.into()),
        bigint("longest_us", |row| row.pool.sum.max_wait_us),
        text("for", |row| row.reason.clone()),
        text("advice", |row| row.advice.to_owned()),
    ],
    rows: |view| {
        let waits: Vec<_> = view.pools().into_iter().filter(|pool| pool.sum.waiting > 0).collect();
        let lost = if waits.is_empty() { Vec::new() } else { view.state.unreachable() };
        let queue = |pool: Pool| {
            let (reason, advice) = reason(view, &lost, &pool);
            PoolQueue { pool, reason, advice }
        };
        let mut queues: Vec<_> = waits.into_iter().map(queue).collect();
        queues.sort_by_key(|queue| std::cmp::Reverse(queue.pool.sum.max_wait_us));
        queues
    },
};

/// Returns for what the clients of a pool wait, and what would help. The databases of which no host
/// may serve are `lost`.
fn reason(view: &View<'_>, lost: &[Database], pool: &Pool) -> (String, &'static str) {
    let database = &*pool.sum.database;
    let is_lost =
        || pool.servers(ServerViewState::Idle) == 0 && lost.iter().any(|it| *it.name == *database);
    let most = view.options.database(database).and_then(|entry| entry.max_connections);
    let is_full = || most.is_some_and(|most| view.state.database_servers(Some(database)) >= most);
    if pool.sum.paused || view.state.is_paused() {
        ("the database is paused".to_owned(), "RESUME on the console")
    } else if pool.is_at_limit() && pool.all_servers() > 0 {
        let size = pool.sum.size;
        (format!("all {size} servers of the pool work"), "a larger pool_size, or shorter work")
    } else if is_lost() {
        ("no host can be reached".to_owned(), "SHOW SERVERS and the log say more")
    } else if pool.servers(ServerViewState::Login) > 0 {
        ("a server that is being opened".to_owned(), "")
    } else if is_full() {
        ("max_connections of the database is reached".to_owned(), "a larger max_connections")
    } else {
        ("a server".to_owned(), "")
    }
}

/// `SHOW WARNINGS`: the last warnings and errors of the log, the newest first.
pub(super) const WARNINGS: Listing<[String; 3]> = Listing {
    columns: &[
        text("time", |[time, _, _]| time.clone()),
        text("level", |[_, level, _]| level.clone()),
        text("message", |[_, _, message]| message.clone()),
    ],
    rows: |_| crate::log::warnings(),
};
