//! A reload that changes where or how servers are reached counts at once.

use crate::world::{Config, Version, cluster, database, database_of};

/// A configuration over PostgreSQL of this version.
fn over(version: Version) -> Config {
    Config::over(cluster(version)).pool("pool_mode", "\"transaction\"")
}

/// The number before the dot.
const MAJOR: &str = "select current_setting('server_version_num')::int / 10000";

#[test]
fn clients_go_to_the_new_server_at_their_next_transaction() {
    let name = database("moved");
    database_of(Version::V18, name);
    let proxy = over(Version::V15).pool("pool_size", "3").start();
    let (mut idle, mut busy) = (proxy.open(name), proxy.open(name));
    assert_eq!(idle.value(MAJOR), "15");
    busy.run("begin");
    assert_eq!(busy.value(MAJOR), "15");
    proxy.reload(&over(Version::V18).pool("pool_size", "3"));
    // No query goes to the old server, but those of the transaction that runs there.
    assert_eq!(idle.value(MAJOR), "18");
    assert_eq!(proxy.open(name).value(MAJOR), "18");
    assert_eq!(busy.value(MAJOR), "15");
    busy.run("commit");
    assert_eq!(busy.value(MAJOR), "18");
    for _ in 0..20 {
        assert_eq!(idle.value(MAJOR), "18");
    }
    // And back, so that what was known of the first place counts no more.
    proxy.reload(&over(Version::V15).pool("pool_size", "3"));
    assert_eq!(idle.value(MAJOR), "15");
    assert_eq!(busy.value(MAJOR), "15");
}

#[test]
fn how_servers_are_logged_in_to_counts_at_once() {
    let name = database("moved_login");
    let config = || over(Version::V15).server("user", "\"postgres\"");
    let proxy = config().start();
    let mut session = proxy.open(name);
    let path = "select current_setting('search_path')";
    assert_ne!(session.value(path), "pg_catalog");
    proxy.reload(&config().server("parameters", "{ search_path = \"pg_catalog\" }"));
    assert_eq!(proxy.open(name).value(path), "pg_catalog");
    assert_eq!(session.value(path), "pg_catalog");
    proxy.reload(&config().server("dbname", "\"postgres\""));
    assert_eq!(session.value("select current_database()"), "postgres");
    proxy.reload(&config().server("connect_query", "\"set search_path to moved\""));
    assert_eq!(session.value(path), "moved");
    assert_eq!(session.value("select current_database()"), name);
}
