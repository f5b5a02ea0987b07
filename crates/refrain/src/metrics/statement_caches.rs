//! Metrics of the statement caches of SQLite's connections.

use std::collections::BTreeMap;

use refrain_sqlite::CacheStats;

use super::text::Text;
use crate::pg::sqlite::CorePool;

/// A metric of the statement caches of SQLite connections: its name, type and help text, and the
/// function that reads it.
type CacheFigure = (&'static str, &'static str, &'static str, fn(&CacheStats) -> f64);

const CACHE_FIGURES: [CacheFigure; 9] = [
    ("entries", "gauge", "Compiled statements in the cache that are not in use.", |stats| {
        stats.entries as f64
    }),
    ("bytes", "gauge", "Memory used by these compiled statements, in bytes.", |stats| {
        stats.bytes as f64
    }),
    ("hits_total", "counter", "Lookups that found a compiled statement.", |stats| {
        stats.hits as f64
    }),
    (
        "misses_total",
        "counter",
        "Lookups that found none: SQLite compiled the statement.",
        |stats| stats.misses as f64,
    ),
    ("first_uses_total", "counter", "Misses of statements that were not seen recently.", |stats| {
        stats.first_uses as f64
    }),
    ("busy_misses_total", "counter", "Misses because all cached copies were in use.", |stats| {
        stats.busy_misses as f64
    }),
    ("evictions_total", "counter", "Cached statements removed to make room for others.", |stats| {
        stats.evictions as f64
    }),
    (
        "reprepares_total",
        "counter",
        "Statements that SQLite compiled again, for example after a schema change.",
        |stats| stats.reprepares as f64,
    ),
    ("saved_seconds_total", "counter", "Compile time saved by the hits, in seconds.", |stats| {
        stats.saved_ns as f64 / 1e9
    }),
];

/// Writes the metrics of all caches, summed up by file.
pub(super) fn write(text: &mut Text, pools: &[CorePool]) {
    let mut files: BTreeMap<&str, CacheStats> = BTreeMap::new();
    let mut connections: BTreeMap<&str, usize> = BTreeMap::new();
    for CorePool { path, view, .. } in pools {
        let sum = files.entry(path).or_default();
        *sum += view.closed;
        view.connections.iter().for_each(|connection| *sum += connection.stats);
        *connections.entry(path).or_default() += view.connections.len();
    }
    if files.is_empty() {
        return;
    }
    text.family("refrain_sqlite_connections", "gauge", "SQLite connections to the file.");
    for (path, count) in connections {
        text.sample("refrain_sqlite_connections", &[("path", path)], count);
    }
    for (name, kind, help, value) in CACHE_FIGURES {
        let name = format!("refrain_stmt_cache_{name}");
        text.family(&name, kind, help);
        for (path, stats) in &files {
            text.sample(&name, &[("path", path)], value(stats));
        }
    }
}
