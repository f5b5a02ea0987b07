//! Shared servers in the console's listings.

use super::table::{Listing, bigint, int, text};
use super::view::Pool;

/// `SHOW SHARING`: which pools share servers, how many, and which requests do not share and why.
pub(super) const SHARING: Listing<Pool> = Listing {
    columns: &[
        text("database", |pool| pool.sum.database.to_string()),
        text("user", |pool| pool.sum.user.to_string()),
        text("share_servers", |pool| pool.sum.share_servers.word().to_owned()),
        int("width", |pool| pool.sum.share_width.into()),
        int("servers_shared", |pool| pool.sum.servers_shared.into()),
        int("requests_now", |pool| pool.sum.requests_on_shared.into()),
        int("longest_line", |pool| pool.sum.longest_line.into()),
        bigint("shared", |pool| pool.sum.counters.pool.requests_shared),
        bigint("alone_kind", |pool| pool.sum.counters.protocol.requests_alone_kind),
        bigint("alone_unknown", |pool| pool.sum.counters.protocol.requests_alone_unknown),
        bigint("alone_slow", |pool| pool.sum.counters.protocol.requests_alone_slow),
        bigint("alone_large", |pool| pool.sum.counters.pool.requests_alone_large),
        bigint("alone_result", |pool| pool.sum.counters.protocol.requests_alone_result),
        bigint("alone_wait", |pool| pool.sum.counters.pool.requests_alone_wait),
        bigint("alone_full", |pool| pool.sum.counters.pool.requests_alone_full),
        bigint("alone_unfit", |pool| pool.sum.counters.pool.requests_alone_unfit),
        bigint("resent", |pool| pool.sum.counters.pool.requests_resent),
        bigint("moved", |pool| pool.sum.counters.pool.requests_moved),
        bigint("turn_time_us", |pool| pool.sum.counters.turn_time.sum_us),
        bigint("turn_mean_us", |pool| pool.sum.counters.turn_time.mean_us()),
        bigint("turn_max_us", |pool| pool.sum.counters.turn_time.most_us()),
    ],
    rows: |view| view.pools(),
};
