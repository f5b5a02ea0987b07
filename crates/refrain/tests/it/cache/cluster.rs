//! The result cache and what the databases of a cluster share: a change that is sent in one of
//! them, or to the server by another name, voids what is kept of all.

use crate::cache::{WAYS, Way, warm, with_both_versions};
use crate::session::Session;
use crate::world::{Config, Proxy, Version, addr, cluster, database_of};

with_both_versions! {
    what_a_cluster_shares_voids_the_replies_of_all_its_databases,
    another_database_of_the_name_has_replies_of_its_own,
    one_database_by_two_names_is_one,
}

const RULE: &str = "[[cache.rules]]\nttl = \"10min\"\nconsistency = \"CONSISTENCY\"\n";

/// Runs the program over every database of a cluster. `elsewhere` is its database `postgres`, and
/// `again` the database of this name, both by another name of the host.
fn caching(version: Version, consistency: &str, name: &str) -> Proxy {
    let cluster = cluster(version);
    let entry = |entry: &str, name: &str| {
        let port = cluster.port();
        format!("[databases.{entry}]\nhost = \"localhost\"\nport = {port}\ndbname = \"{name}\"\n")
    };
    let config = Config::over(cluster).pool("pool_size", "8").general("workers", "2");
    let config = config.more(&entry("elsewhere", "postgres")).more(&entry("again", name));
    config.more(&RULE.replace("CONSISTENCY", consistency)).start()
}

/// Opens a session of a user.
fn open(proxy: &Proxy, name: &str, user: &str) -> Session {
    Session::login(proxy.addr(), &[("user", user), ("database", name)]).unwrap()
}

/// Changes of roles that take the right to read `t` from `reader`.
const CHANGES: &[&str] = &[
    "revoke holder from reader",
    "revoke ALL PRIVILEGES on schema public from nobody_else; revoke holder from reader",
    "begin; revoke holder from reader; commit",
    "do $$ begin revoke holder from reader; end $$",
    "select take_back()",
    "call take_back_too()",
    "alter role reader nosuperuser",
    "drop role if exists unheard_of; alter user reader with nosuperuser",
    "alter role reader noinherit; revoke holder from reader",
];

fn what_a_cluster_shares_voids_the_replies_of_all_its_databases(version: Version) {
    let name = database_of(version, "cache_cluster");
    let mut direct = Session::open(addr(cluster(version)), name);
    // A role is the cluster's, and the tests of it run side by side.
    let own =
        |sql: &str| sql.replace("reader", "cluster_reader").replace("holder", "cluster_holder");
    for role in ["reader", "holder", "nobody_else"] {
        direct.run(&own(&format!("drop role if exists {role}")));
        direct.run(&own(&format!("create role {role} login")));
    }
    direct.run("create table t as select 'secret' as a");
    let mut other = Session::open(addr(cluster(version)), "postgres");
    other.run(&own("create or replace function take_back() returns void language plpgsql as
             $$ begin execute 'revoke holder from reader'; end $$;
         create or replace procedure take_back_too() language plpgsql as
             $$ begin perform take_back(); end $$"));
    for consistency in ["writes", "ttl"] {
        let proxy = caching(version, consistency, name);
        let mut senders = ["postgres", "elsewhere"].map(|name| open(&proxy, name, "postgres"));
        for (number, change) in CHANGES.iter().enumerate() {
            let granted = if change.contains("nosuperuser") {
                "alter role reader superuser"
            } else {
                "alter role reader nosuperuser inherit; grant holder to reader"
            };
            direct.run(&own(granted));
            direct.run(&own("grant select on t to holder"));
            let way = WAYS[number % WAYS.len()];
            let mut reader = open(&proxy, name, &own("reader"));
            way.prepare(&mut reader, "select a from t");
            let kept = warm(&proxy, way, &mut reader, "select a from t");
            assert!(kept.contains("D(secret)"), "{change}: {kept}");
            senders[number % 2].run(&own(change));
            let words = way.read(&mut reader, "select a from t");
            assert!(words.contains("E(42501)"), "{consistency} {way:?} {change}: {words}");
        }
    }
    let mut other = Session::open(addr(cluster(version)), "postgres");
    other.run("drop procedure take_back_too; drop function take_back");
}

fn another_database_of_the_name_has_replies_of_its_own(version: Version) {
    let proxy = caching(version, "ttl", "cache_cluster_again");
    let text = "select a from t";
    for (number, change) in [
        &[
            "drop database cache_cluster_again",
            "create database cache_cluster_again template cache_cluster_new",
        ][..],
        &[
            "alter database cache_cluster_again rename to cache_cluster_gone",
            "alter database cache_cluster_new rename to cache_cluster_again",
        ],
    ]
    .iter()
    .enumerate()
    {
        let mut sender = open(&proxy, ["postgres", "elsewhere"][number], "postgres");
        for (name, row) in [("cache_cluster_again", "old"), ("cache_cluster_new", "new")] {
            sender.run("drop database if exists cache_cluster_gone");
            let made = database_of(version, name);
            let mut direct = Session::open(addr(cluster(version)), made);
            direct.run(&format!("create table t as select '{row}' as a"));
        }
        let mut reader = proxy.open("cache_cluster_again");
        assert!(warm(&proxy, Way::Simple, &mut reader, text).contains("D(old)"));
        reader.leave();
        change.iter().for_each(|change| sender.run(change));
        let mut reader = proxy.open("cache_cluster_again");
        for _ in 0..3 {
            let words = Way::Simple.read(&mut reader, text);
            assert!(words.contains("D(new)"), "{change:?}: {words}");
        }
        assert!(warm(&proxy, Way::Simple, &mut reader, text).contains("D(new)"));
        let mut writer = proxy.open("again");
        writer.run("update t set a = 'newer'");
        reader.leave();
        writer.leave();
    }
}

/// Writes by one name of a database, known ones and others, void what was read by another.
fn one_database_by_two_names_is_one(version: Version) {
    let name = database_of(version, "cache_cluster_one");
    let proxy = caching(version, "writes", name);
    let (mut reader, mut writer) = (proxy.open(name), proxy.open("again"));
    reader.run("create table t as select 0 as a; create table u as select 0 as a");
    warm(&proxy, Way::Simple, &mut writer, "select a from u");
    for value in 1..40 {
        let kept = warm(&proxy, Way::Simple, &mut reader, "select a from t");
        assert!(kept.contains(&format!("D({})", value - 1)), "{kept}");
        writer.run(&format!("update t set a = {value}"));
        let words = Way::Simple.read(&mut reader, "select a from t");
        assert!(words.contains(&format!("D({value})")), "{words}");
    }
    writer.run("alter table t rename column a to b; alter table t add column a text default 'x'");
    let words = Way::Simple.read(&mut reader, "select a from t");
    assert!(words.contains("D(x)"), "{words}");
}
