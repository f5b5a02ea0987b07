//! The listing of hosts, where a database has several.

use refrain_pool::hosts::HostView;

use crate::admin::table::{Listing, bigint, int, nullable_bigint, text};

/// `SHOW HOSTS`: the hosts of databases that have several, or that want one of a certain state, and
/// what is known of each. Databases with the same hosts share a row for each.
pub(in crate::admin) const HOSTS: Listing<HostView> = Listing {
    columns: &[
        text("host", |row| row.host.to_string()),
        text("target_session_attrs", |row| row.wants.word().to_owned()),
        text("state", |row| row.health.word().to_owned()),
        int("servers", |row| row.servers.into()),
        bigint("looks", |row| row.looks),
        bigint("logins", |row| row.logins),
        bigint("failures", |row| row.failures),
        bigint("unsuited", |row| row.unsuited),
        nullable_bigint("lag_ms", |row| row.lag_us.map(|lag| lag / 1000)),
        text("role", |row| row.role().to_owned()),
    ],
    rows: |view| {
        let lists = view.pg.cores.shared.host_lists();
        lists.iter().flat_map(|hosts| hosts.view()).collect()
    },
};
