//! Reads: which statements Refrain takes for reads, by the catalog of real servers.

mod sharing;
mod catalog;

use std::collections::BTreeMap;

use refrain_differ::msg::Msg;
use refrain_pg::without_literals;

use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Proxy, Version, addr, cluster, eventually};

const SETUP: &str = "
    create schema other;
    create table t (a int primary key, b text, g int generated always as (a + 1) stored);
    create table child (a int references t);
    insert into t (a, b) values (1, 'x');
    create table parted (a int) partition by range (a);
    create table parted1 partition of parted for values from (0) to (10);
    create view plain as select a, b from t where b = 'x';
    create view deep as select count(*) from plain p join t using (a);
    create view chancy as select random() as r, a from t;
    create view deep_chancy as select a from chancy;
    create view locking as select a from t for update;
    create view names as select relname from pg_class;
    create view whose as select current_user, a from t;
    create materialized view mat as select random() as r;
    create sequence s;
    create table secret (a int);
    create policy p on secret using (true);
    alter table secret enable row level security;
    create view told as select a from secret;
    create function pure(int) returns int language sql immutable as 'select $1';
    create function looks() returns bigint language sql stable as 'select count(*) from t';
    create function acts() returns int language plpgsql as 'begin return 1; end';
    create function other.pure(text) returns int language sql as 'select 1';
    create function named(t) returns int language sql as 'select 1';
    create function less(int, int) returns bool language sql as 'select $1 < $2';
    create operator <<<< (leftarg = int, rightarg = int, procedure = less);
    create function given(a int default acts()) returns int language sql stable as 'select 1';
    create function added(int, int) returns int language sql as 'select $1 + $2';
    create aggregate chancy_sum(int) (sfunc = added, stype = int, initcond = '0');
    create view summed as select chancy_sum(a) from t;
    create type mood as enum ('good');
    create table moods (m mood)";

/// Texts, and what is known of them in the end.
const TEXTS: &[(&str, &str)] = &[
    ("select a, b, g from t where a = 1", "yes"),
    ("select 1", "yes"),
    ("select count(*), max(b) from t group by a having count(*) > 0 order by 1", "yes"),
    ("select * from child join t using (a)", "yes"),
    ("with x as (select a from t) select * from x where a in (select a from parted)", "yes"),
    ("select * from plain", "yes"),
    ("select * from deep", "yes"),
    ("select * from mat", "yes"),
    ("select * from whose", "yes"),
    ("select looks(), abs(-1), now(), current_user, current_setting('work_mem')", "yes"),
    ("select m, 'good'::mood from moods", "yes"),
    ("select generate_series(1, 2), array_agg(a order by b) from t", "yes"),
    ("insert into t (a) select 1 where false", "no: kind"),
    ("select a from t for update", "no: locks"),
    ("select * from (select a from t for share) x", "no: locks"),
    ("with x as (delete from t where false returning a) select * from x", "no: writes"),
    ("select * from t tablesample system (50)", "no: form"),
    ("select * from chancy", "no: volatile"),
    ("select * from deep_chancy", "no: volatile"),
    ("select * from summed", "no: volatile"),
    ("select * from locking", "no: view-locks"),
    ("select * from names", "no: catalog"),
    ("select count(*) from pg_stat_activity", "no: catalog"),
    ("select count(*) from information_schema.tables", "no: catalog"),
    ("select last_value from s", "no: relation"),
    ("select * from secret", "no: row-security"),
    ("select * from told", "no: row-security"),
    ("select random()", "no: volatile"),
    ("select clock_timestamp()", "no: volatile"),
    ("select nextval('s')", "no: volatile"),
    ("select acts()", "no: volatile"),
    ("select pure(1)", "no: volatile"),
    ("select t.named from t", "no: volatile"),
    ("select 1 <<<< 2", "no: volatile"),
    ("select given()", "no: volatile"),
    ("select chancy_sum(a) from t", "no: volatile"),
    ("select pg_backend_pid()", "no: session"),
    ("select txid_current()", "no: session"),
];

/// Changes that rule out statements which do not name the function, a text, and what is known of it
/// then.
const FOR_ALL: &[(&str, &str, &str)] = &[
    (
        "create function to_int(mood) returns int language sql as 'select 1';
        create cast (mood as int) with function to_int(mood)",
        "select 2",
        "no: cast",
    ),
    (
        "drop cast (mood as int);
        create function fine(text) returns bool language sql as 'select true';
        create domain checked as text check (fine(value));
        create table has (c checked)",
        "select c from has",
        "no: domain",
    ),
    ("", "select 'x'::checked", "no: domain"),
    ("", "select a from t", "yes"),
    ("alter function fine(text) immutable", "select c, 1 from has", "yes"),
];

fn uses(name: &str) -> [Msg; 3] {
    [bind(name, &[]), execute(), Msg::Sync]
}

/// Returns what is known of each text.
fn known(proxy: &Proxy) -> BTreeMap<String, String> {
    let rows = proxy.show("statements").into_iter();
    rows.map(|row| (row["text"].clone(), row["read"].clone())).collect()
}

/// Runs statements until it is known of each whether it is a read.
fn settle(proxy: &Proxy, client: &mut Session, texts: &[(&str, &str)]) {
    let names: Vec<_> = (0..texts.len()).map(|number| format!("s{number}")).collect();
    for (name, (text, _)) in names.iter().zip(texts) {
        client.ask(&[parse(name, text), Msg::Sync]);
    }
    let mut found = BTreeMap::new();
    eventually("all is known", || {
        names.iter().for_each(|name| drop(client.ask(&uses(name))));
        found = known(proxy);
        texts.iter().all(|(text, _)| {
            found
                .get(&without_literals(text.as_bytes()))
                .is_some_and(|read| read == "yes" || read.starts_with("no: "))
        })
    });
    for (name, (text, due)) in names.iter().zip(texts) {
        assert_eq!(found[&without_literals(text.as_bytes())], *due, "{text}");
        client.ask(&[Msg::CloseStatement(name.clone().into_bytes()), Msg::Sync]);
    }
}

fn reads(version: Version, database: &'static str) {
    let cluster = cluster(version);
    let mut owner = Session::open(addr(cluster), "postgres");
    owner.run(&format!("drop database if exists {database} with (force)"));
    owner.run(&format!("create database {database}"));
    let mut direct = Session::open(addr(cluster), database);
    direct.run(SETUP);
    let config = Config::over(cluster).pool("share_servers", "\"reads\"");
    let proxy = config.pool("pool_size", "1").start();
    let mut client = proxy.open(database);
    settle(&proxy, &mut client, TEXTS);
    for (change, text, read) in FOR_ALL {
        if !change.is_empty() {
            client.run(change);
        }
        settle(&proxy, &mut client, &[(text, read)]);
    }
    assert!(proxy.counter("reads_verified") > 0 && proxy.counter("reads_refused") > 0);
}

#[test]
fn reads_by_the_catalog_of_postgresql_15() {
    reads(Version::V15, "reads_15");
}

#[test]
fn reads_by_the_catalog_of_postgresql_18() {
    reads(Version::V18, "reads_18");
}
