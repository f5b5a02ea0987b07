//! Listings of prepared statements.

use refrain_pg::snapshot::StatementView;

use crate::admin::SNAPSHOT_TIMEOUT;
use crate::admin::table::{Listing, bigint, int, ratio, text};
use crate::admin::view::Pool;

/// `SHOW STATEMENTS`: statements, those that took most time first.
pub(in crate::admin) const STATEMENTS: Listing<StatementView> = Listing {
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
        bigint("calls", |row| row.figures.counts.calls),
        bigint("rows", |row| row.figures.counts.rows),
        bigint("errors", |row| row.figures.counts.errors),
        bigint("total_us", |row| row.figures.counts.time_us),
        bigint("mean_us", |row| row.figures.mean_us()),
        bigint("p50_us", |row| row.figures.quantile_us(0.5)),
        bigint("p99_us", |row| row.figures.quantile_us(0.99)),
        text("text", |row| row.text.clone()),
    ],
    rows: |view| {
        let mut statements = view.pg.statements(SNAPSHOT_TIMEOUT);
        let time = |row: &StatementView| row.figures.counts.time_us;
        statements.sort_by(|a, b| (time(b), b.uses, a.id).cmp(&(time(a), a.uses, b.id)));
        statements
    },
};

/// `SHOW PREPARED`: counters of prepared statements, by pool.
pub(in crate::admin) const PREPARED: Listing<Pool> = Listing {
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
