//! Listings that PgBouncer does not have: counters, options with their descriptions, the program.

use std::process;

use refrain_config::ConfigRow;
use refrain_pg::Counters;

use super::pgbouncer::compatible_with;
use super::table::{Listing, Pair, bigint, text};
use crate::sum::{self, Key};

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
            Pair::new("compatible_with", compatible_with(view.options.general.pgbouncer_version)),
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
