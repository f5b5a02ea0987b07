//! The listing of hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use refrain_config::{Server, TargetSessionAttrs};
use refrain_pool::hosts::{Health, HostView};

use super::table::{Listing, bigint, int, nullable_bigint, text};
use super::view::View;

/// `SHOW HOSTS`: the hosts of databases that have several, or that want one of a certain state, and
/// behind them those of the other databases that pools are open for, with what is known of each.
/// Databases with the same hosts share a row for each.
pub(super) const HOSTS: Listing<HostView> = Listing {
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
    rows: |view| view.state.hosts().into_iter().chain(single_hosts(view)).collect(),
};

/// Returns what is known of hosts that are the one host of a database, of any state. No part of the
/// pools says it: it is what their counters and servers say.
fn single_hosts(view: &View<'_>) -> Vec<HostView> {
    let mut hosts: BTreeMap<String, HostView> = BTreeMap::new();
    let mut single = BTreeSet::new();
    for pool in view.snapshots.iter().flat_map(|core| &core.pools) {
        let database = view.options.database(&pool.database);
        if !database.is_some_and(|database| has_one(&database.server)) {
            continue;
        }
        single.insert(&pool.database);
        let unknown = || HostView {
            host: Arc::clone(&pool.host),
            wants: TargetSessionAttrs::Any,
            health: Health::Unknown,
            servers: 0,
            looks: 0,
            logins: 0,
            failures: 0,
            unsuited: 0,
            lag_us: None,
            is_standby: None,
        };
        let host = hosts.entry(pool.host.to_string()).or_insert_with(unknown);
        host.logins += pool.counters.pool.server_logins;
        host.failures += pool.counters.pool.server_login_failures;
    }
    for (_, server) in view.servers().filter(|(_, server)| single.contains(&server.database)) {
        if let Some(host) = hosts.get_mut(&server.host.to_string()) {
            host.servers += 1;
        }
    }
    let lost = view.state.unreachable();
    let lost: BTreeSet<_> = lost.iter().map(|database| database.server.host.to_string()).collect();
    for (name, host) in &mut hosts {
        host.health = match (lost.contains(name), host.logins) {
            (true, _) => Health::Down,
            (false, 0) => Health::Unknown,
            (false, _) => Health::Good,
        };
    }
    hosts.into_values().collect()
}

/// Whether a database has one host that servers are connected to, of any state.
fn has_one(server: &Server) -> bool {
    let wants_any = server.target_session_attrs == TargetSessionAttrs::Any;
    server.host.is_remote() && wants_any && server.more_hosts.is_empty()
}
