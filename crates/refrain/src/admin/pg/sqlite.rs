//! Listings of SQLite's statement caches, by connection and by text.

use std::collections::BTreeMap;

use refrain_sqlite::StatementStats;
use refrain_sqlite_pg::ConnectionView;

use crate::admin::table::{Listing, bigint, int, ratio, text};
use crate::pg::sqlite::CorePool;

/// A connection to SQLite.
pub(in crate::admin) struct Cache {
    path: String,
    core: u16,
    connection: ConnectionView,
}

/// `SHOW STMT_CACHE`: counters of each connection's statement cache.
pub(in crate::admin) const STMT_CACHE: Listing<Cache> = Listing {
    columns: &[
        text("path", |row| row.path.clone()),
        int("core", |row| row.core.into()),
        bigint("connection", |row| row.connection.number),
        text("role", |row| if row.connection.in_use { "in use" } else { "idle" }.to_owned()),
        bigint("entries", |row| row.connection.stats.entries),
        bigint("size", |row| row.connection.size as u64),
        bigint("bytes", |row| row.connection.stats.bytes),
        bigint("hits", |row| row.connection.stats.hits),
        bigint("misses", |row| row.connection.stats.misses),
        bigint("first_uses", |row| row.connection.stats.first_uses),
        bigint("busy_misses", |row| row.connection.stats.busy_misses),
        bigint("evictions", |row| row.connection.stats.evictions),
        bigint("reprepares", |row| row.connection.stats.reprepares),
        text("hit_rate", |row| ratio(row.connection.stats.hits, row.connection.stats.misses)),
        bigint("prepare_us", |row| row.connection.stats.prepare_ns / 1000),
        bigint("saved_us", |row| row.connection.stats.saved_ns / 1000),
    ],
    rows: |view| view.pg.files.pools().into_iter().flat_map(caches).collect(),
};

fn caches(pool: CorePool) -> impl Iterator<Item = Cache> {
    let CorePool { path, core, view } = pool;
    let connections = view.connections.into_iter();
    connections.map(move |connection| Cache { path: path.clone(), core: core.0, connection })
}

/// A text that connections to a file keep compiled.
pub(in crate::admin) struct Text {
    path: String,
    text: String,
    connections: u64,
    calls: u64,
    hits: u64,
    rows: u64,
    run_us: u64,
    reprepares: u64,
    bytes: u64,
}

/// `SHOW STMT_CACHE_TEXTS`: texts that connections keep compiled, the most used first.
pub(in crate::admin) const STMT_CACHE_TEXTS: Listing<Text> = Listing {
    columns: &[
        text("path", |row| row.path.clone()),
        text("text", |row| row.text.clone()),
        bigint("connections", |row| row.connections),
        bigint("calls", |row| row.calls),
        bigint("hits", |row| row.hits),
        bigint("rows", |row| row.rows),
        bigint("run_us", |row| row.run_us),
        bigint("avg_run_us", |row| row.run_us / row.calls.max(1)),
        bigint("reprepares", |row| row.reprepares),
        bigint("bytes", |row| row.bytes),
    ],
    rows: |view| {
        let mut texts: BTreeMap<(String, String), Text> = BTreeMap::new();
        for CorePool { path, view, .. } in view.pg.files.pools() {
            for statement in view.statements {
                let key = (path.clone(), statement.sql.clone());
                let text =
                    texts.entry(key).or_insert_with_key(|(path, text)| Text::new(path, text));
                text.add(&statement);
            }
        }
        let mut texts: Vec<_> = texts.into_values().collect();
        texts.sort_by_key(|text| std::cmp::Reverse(text.calls));
        texts
    },
};

impl Text {
    fn new(path: &str, text: &str) -> Self {
        let (path, text) = (path.to_owned(), text.to_owned());
        let (connections, calls, hits, rows) = (0, 0, 0, 0);
        let (run_us, reprepares, bytes) = (0, 0, 0);
        Self { path, text, connections, calls, hits, rows, run_us, reprepares, bytes }
    }

    fn add(&mut self, statement: &StatementStats) {
        self.connections += 1;
        self.calls += statement.calls;
        self.hits += statement.hits;
        self.rows += statement.rows;
        // SQLite connections time a sample of the runs, so the sum is an estimate.
        let run_us = statement.run.as_nanos() * u128::from(statement.calls) / 1000;
        self.run_us += u64::try_from(run_us).unwrap_or(u64::MAX);
        self.reprepares += statement.reprepares;
        self.bytes += statement.bytes;
    }
}
