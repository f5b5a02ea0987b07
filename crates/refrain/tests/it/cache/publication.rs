//! `refrain publication`: the SQL that publishes the tables on which rules depend, with which no
//! update of the application fails.

use std::process::Command;

use xtask::postgres::Cluster;

use crate::cache::{Way, warm, with_both_versions};
use crate::session::Session;
use crate::world::{Config, Proxy, Version, addr, eventually};

with_both_versions! {
    the_printed_publication_covers_tables_and_no_update_fails,
    the_printed_trigger_tells_of_the_schema,
}

const SETUP: &str = "
create table keyed (a int primary key, b int);
create table keyless (a int, b int);
create table hasty (a int primary key, b int);
alter table hasty replica identity nothing;
create table by_index (a int not null unique, b int);
create table deferred (a int, b int, primary key (a) deferrable);
create table partial (a int not null, b int);
create unique index on partial (a) where a > 0;
create table made (a int not null, b int, c int generated always as (a) stored, primary key (c));
create table whole (a int, b int, c int generated always as (a) stored);
alter table whole replica identity full;
create table \"Odd \"\"na\nme\" (a int primary key, b int);
create table parent (a int primary key, b int);
create table child (c int) inherits (parent);
create table root (a int, b int, primary key (a)) partition by range (a);
create table root_1 partition of root for values from (0) to (10);
create table loose (a int, b int) partition by range (a);
create table loose_1 partition of loose for values from (0) to (10);
alter table loose_1 add primary key (a);
create table loose_2 partition of loose for values from (10) to (20);
create table half (a int, b int, primary key (a)) partition by range (a);
create table half_1 partition of half for values from (0) to (10);
alter table half_1 replica identity nothing;
create unlogged table unlogged (a int primary key, b int);";

/// Tables that the application reads, and changes.
const TABLES: &[&str] = &[
    "keyed",
    "keyless",
    "hasty",
    "by_index",
    "deferred",
    "partial",
    "made",
    "whole",
    "\"Odd \"\"na\nme\"",
    "parent",
    "child",
    "root",
    "loose",
    "half",
    "unlogged",
];

/// Runs `refrain publication` against a proxy. Returns what it writes.
fn publication(proxy: &Proxy, database: &str) -> (bool, String) {
    printed(&["publication", database, &proxy.addr().to_string()])
}

fn printed(arguments: &[&str]) -> (bool, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_refrain"))
        .args(arguments)
        .output()
        .expect("the program runs");
    let text = [run.stdout, run.stderr].concat();
    (run.status.success(), String::from_utf8(text).expect("text"))
}

/// Changes each table as the application does.
fn change(direct: &mut Session, tables: &[&str]) {
    for table in tables {
        direct.run(&format!("insert into {table} (a, b) values (1, 1), (2, 2)"));
        direct.run(&format!("update {table} set b = b + 1 where a = 1"));
        direct.run(&format!("delete from {table}"));
    }
}

/// Starts a server with these tables, and the program over it.
fn start(version: Version, setup: &str) -> (Cluster, Proxy) {
    let cluster = Cluster::start(version, &[("wal_level", "logical")]).unwrap();
    cluster.psql("postgres", "create database shop").unwrap();
    Session::open(addr(&cluster), "shop").run(setup);
    let rule = "[[cache.rules]]\nttl = \"10min\"\nconsistency = \"commits\"\n";
    let config = Config::over(&cluster).only("shop").general("workers", "1");
    let config = config.server("changes", "\"replication\"");
    let proxy = config.server("changes_user", "\"postgres\"").more(rule).start();
    (cluster, proxy)
}

fn the_printed_publication_covers_tables_and_no_update_fails(version: Version) {
    let (cluster, proxy) = start(version, SETUP);
    let mut direct = Session::open(addr(&cluster), "shop");
    let (fine, words) = publication(&proxy, "nowhere");
    assert!(!fine && words.contains("no changes of database nowhere, but of shop"), "{words}");
    let (fine, words) = publication(&proxy, "shop");
    assert!(fine && words.contains("No reply has been asked for yet"), "{words}");

    let known = || proxy.show("cache coverage").len();
    let mut reader = proxy.open("shop");
    for (number, table) in TABLES.iter().enumerate() {
        eventually("a table is known", || {
            reader.run(&format!("select count(*) from {table}"));
            known() > number
        });
    }
    let (fine, words) = publication(&proxy, "shop");
    assert!(fine && words.contains("CREATE PUBLICATION refrain FOR TABLE\n"), "{words}");
    let listed = |words: &str, name: &str| {
        let mut lines = words.lines().filter_map(|line| line.strip_prefix("    "));
        lines.any(|line| line.trim_end_matches([',', ';']) == name)
    };
    for name in ["keyed", "root", "loose_1"] {
        assert!(listed(&words, &format!("public.{name}")), "{name}: {words}");
    }
    assert!(listed(&words, "ONLY public.parent"), "{words}");
    for part in [
        "ALTER TABLE ONLY public.keyless REPLICA IDENTITY FULL;",
        "ALTER TABLE ONLY public.child REPLICA IDENTITY FULL;",
        "ALTER TABLE ONLY public.hasty REPLICA IDENTITY DEFAULT;",
        "ALTER TABLE ONLY public.by_index REPLICA IDENTITY USING INDEX by_index_a_key;",
        "ALTER TABLE ONLY public.loose_2 REPLICA IDENTITY FULL;",
        "ALTER TABLE ONLY public.half_1 REPLICA IDENTITY DEFAULT;",
        "public.made has no replica identity. Give it a primary key\n-- of columns",
        "public.unlogged cannot be published in whole: it is not logged.",
        "Do not write FOR ALL TABLES",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    direct.run(&words);
    change(&mut direct, TABLES);
    // What is made later has an identity as well.
    direct.run("create table root_2 partition of root for values from (10) to (20)");
    direct.run("insert into root values (11, 1); update root set b = 2; delete from root");
    direct.run("create table loose_3 partition of loose for values from (20) to (30)");
    direct.run("insert into loose values (21, 1); update loose set b = 2; delete from loose");
    warm(&proxy, Way::Simple, &mut reader, "select count(*) from keyed");
    warm(&proxy, Way::Simple, &mut reader, "select count(*) from root");

    // The remedies that are printed are enough, and leave nothing to add but what has none.
    let remedies = words.lines().filter_map(|line| line.strip_prefix("--     ALTER"));
    for remedy in remedies {
        direct.run(&format!("ALTER{remedy}"));
    }
    let (_, words) = publication(&proxy, "shop");
    assert!(words.contains("ALTER PUBLICATION refrain ADD TABLE\n"), "{words}");
    assert!(listed(&words, "public.keyless") && listed(&words, "public.half"), "{words}");
    direct.run(&words);
    change(&mut direct, TABLES);
    let (_, words) = publication(&proxy, "shop");
    assert!(words.contains("No table is to be added"), "{words}");
    warm(&proxy, Way::Simple, &mut reader, "select count(*) from keyless");
    warm(&proxy, Way::Simple, &mut reader, "select count(*) from half");
}

fn the_printed_trigger_tells_of_the_schema(version: Version) {
    let setup = "create table t (a int primary key, b int); insert into t values (1, 1);
                 create view v as select a from t;
                 create publication refrain for table t;
                 create role reader login; grant select on t, v to reader";
    let (cluster, proxy) = start(version, setup);
    let mut direct = Session::open(addr(&cluster), "shop");
    let (fine, words) = printed(&["publication", "shop", "--ddl"]);
    assert!(fine, "{words}");
    direct.run(&words);
    let login = [("user", "reader"), ("database", "shop")];
    let mut reader = Session::login(proxy.addr(), &login).unwrap_or_else(|_| panic!("a login"));
    let changes = [
        ("create or replace view v as select a + 1 as a from t", "select * from v"),
        ("alter table t add column c int default 7", "select * from t"),
        ("alter table t rename to u; alter table u rename to t", "select b from t"),
        (
            "drop view v; create view v as select 5 as a; grant select on v to reader",
            "select * from v",
        ),
        ("revoke select on t from reader", "select a from t"),
    ];
    for (change, text) in changes {
        let before = warm(&proxy, Way::Simple, &mut reader, text);
        direct.run(change);
        // The time of the rule: a second.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        let hits = proxy.counter("cache_hits");
        let after = Way::Simple.read(&mut reader, text);
        assert_eq!(proxy.counter("cache_hits"), hits, "{change}");
        assert!(before != after || change.contains("rename"), "{change}: {after}");
    }
    // Temporary tables are nobody else's, and a rolled back change is none.
    direct.run("grant select on t to reader");
    warm(&proxy, Way::Simple, &mut reader, "select a from t");
    let commits = || proxy.show("cache changes")[0]["commits"].clone();
    // The console has the counts of a second ago.
    std::thread::sleep(std::time::Duration::from_millis(2200));
    let before = commits();
    direct.run("create temporary table x (a int primary key); drop table x");
    direct.run("begin; alter table t add column d int; rollback");
    direct.run("select pg_logical_emit_message(true, 'other', 'x')");
    direct.run("select pg_logical_emit_message(false, 'refrain', 'x')");
    std::thread::sleep(std::time::Duration::from_millis(2200));
    assert_eq!(commits(), before);
}
