//! The result cache and volatile functions that no text calls by their names.

use std::thread;
use std::time::Duration;

use crate::cache::{WAYS, Way, warm, with_both_versions};
use crate::session::Session;
use crate::world::{Config, Proxy, Version, addr, cluster, database_of, eventually};

with_both_versions! {
    what_writes_behind_a_word_voids_what_it_makes_wrong,
    what_begins_to_write_behind_a_word_is_seen_at_once,
    what_is_volatile_behind_a_word_is_not_kept,
}

fn caching(version: Version, rule: &str) -> Proxy {
    let config = Config::over(cluster(version)).pool("pool_size", "8").general("workers", "2");
    // No look behind a call shows what it has done.
    let config = config.pool("track_functions", "\"off\"");
    config.more(&format!("[[cache.rules]]\nttl = \"10min\"\n{rule}")).start()
}

/// A table of which replies are kept, another, and a function that the label of which is true. The
/// functions of each case call it, and their labels are not.
const SETUP: &str = "
    drop schema if exists public cascade; create schema public;
    create table t (a int); insert into t values (0);
    create table u (a int, b int); insert into u values (1, 2);
    create type mood as enum ('good');
    create table moods (m mood); insert into moods values ('good');
    create function acts() returns int language plpgsql as $$ begin $acts; return 1; end $$;
    create function calm() returns int language plpgsql stable as $$ begin return acts(); end $$;
    create function deep() returns int language sql immutable as 'select Calm() + 0'";

/// The body of the function that writes, and of one that does not.
const WRITES: &str = "update t set a = a + 1";
const ROLLS: &str = "perform random()";

/// Ways to run the function, each with a text. A dollar sign stands for the label of a function.
const HIDDEN: &[(&str, &str)] = &[
    ("", "select calm()"),
    ("", "select deep() from u"),
    ("create view v as select acts() as f", "select f from v"),
    ("create view v as select deep() as f", "table v"),
    ("create view v as select calm() as f; create view w as select f from v", "select f from w"),
    (
        "create function field(u) returns int language sql $ as 'select calm()'",
        "select u.field from u",
    ),
    (
        "create function field(u) returns int language sql as 'select calm()'",
        "select u.field from u",
    ),
    (
        "create function body() returns int language sql $ begin atomic select calm(); end",
        "select body()",
    ),
    (
        "create view v as select calm() as f;
         create function looks() returns int language sql $ as 'select f from v'",
        "select looks()",
    ),
    (
        "create function dynamic() returns int language plpgsql $ as
            $$ declare x int; begin execute 'select ca' || 'lm()' into x; return x; end $$",
        "select dynamic()",
    ),
    (
        "create function op(int, int) returns int language sql $ as 'select calm()';
         create operator @@@ (leftarg = int, rightarg = int, procedure = op)",
        "select 1 @@@ 2",
    ),
    (
        "create function op(int, int) returns int language sql $ as 'select calm()';
         create operator @@@ (leftarg = int, rightarg = int, procedure = op);
         create function applies() returns int language sql $ as 'select 1 @@@ 2'",
        "select applies()",
    ),
    (
        "create function step(int, int) returns int language sql $ as 'select calm()';
         create aggregate agg(int) (sfunc = step, stype = int, initcond = '0')",
        "select agg(a) from u",
    ),
    (
        "create function to_int(mood) returns int language sql $ as 'select calm()';
         create cast (mood as int) with function to_int(mood)",
        "select m::int from moods",
    ),
    (
        "create function to_int(mood) returns int language sql $ as 'select calm()';
         create cast (mood as int) with function to_int(mood) as implicit",
        "select m + 1 from moods",
    ),
    (
        "create function fine(int) returns bool language sql $ as 'select calm() > 0';
         create domain checked as int check (fine(value))",
        "select 5::checked",
    ),
    (
        "create policy p on u using (calm() > 0); alter table u enable row level security",
        "select b from u",
    ),
];

/// Reads a table until a reply comes from the cache and a hidden write would not be unknown.
fn settle(proxy: &Proxy, reader: &mut Session, text: &str) {
    eventually("a read of another table voids nothing", || {
        warm(proxy, Way::Simple, reader, "select a from t");
        Way::Simple.read(reader, text);
        let before = proxy.counter("cache_hits");
        Way::Simple.read(reader, "select a from t");
        proxy.counter("cache_hits") > before
    });
}

fn setup(direct: &mut Session, acts: &str, make: &str, label: &str) {
    direct.run(&SETUP.replace("$acts", acts));
    let make = make.replace(" $ ", &format!(" {label} "));
    direct.run(&format!("select 1; {make}"));
}

fn what_writes_behind_a_word_voids_what_it_makes_wrong(version: Version) {
    let name = database_of(version, "cache_volatile");
    for (number, (make, text)) in HIDDEN.iter().enumerate() {
        let way = WAYS[number % WAYS.len()];
        let mut direct = Session::open(addr(cluster(version)), name);
        setup(&mut direct, WRITES, make, ["stable", "immutable"][number % 2]);
        let proxy = caching(version, "");
        let (mut reader, mut writer) = (proxy.open(name), proxy.open(name));
        settle(&proxy, &mut reader, "select 1 as one");
        way.prepare(&mut writer, text);
        // Superusers do not run the functions of policies, and a generic plan runs a function that
        // is labelled immutable no more than once.
        let runs = number % 2 == 0 && !make.contains("policy") && !make.contains("deep");
        for _ in 0..8 {
            let before = warm(&proxy, Way::Simple, &mut reader, "select a from t");
            let hits = proxy.counter("cache_hits");
            way.read(&mut writer, text);
            let (after, due) =
                (reader.query("select a from t").words(), direct.query("select a from t"));
            assert_eq!(after, due.words(), "{way:?} {text}");
            assert!(before != after || !runs, "{way:?} {text}");
            assert_eq!(proxy.counter("cache_hits"), hits, "{way:?} {text}");
        }
    }
}

fn what_begins_to_write_behind_a_word_is_seen_at_once(version: Version) {
    let name = database_of(version, "cache_volatile_later");
    for way in WAYS {
        let mut direct = Session::open(addr(cluster(version)), name);
        setup(&mut direct, "perform 1", "create view v as select calm() as f, b from u", "");
        direct.run(
            "create or replace function acts() returns int language sql immutable as 'select 1'",
        );
        direct.run("alter function deep() volatile; alter function acts() immutable");
        let proxy = caching(version, "");
        let (mut reader, mut writer) = (proxy.open(name), proxy.open(name));
        way.prepare(&mut writer, "select b from v");
        settle(&proxy, &mut reader, "select b from v");
        writer.run(&format!(
            "create or replace function acts() returns int language sql volatile as '{WRITES} returning 1'"
        ));
        for _ in 0..8 {
            warm(&proxy, Way::Simple, &mut reader, "select a from t");
            way.read(&mut writer, "select f from v");
            way.read(&mut writer, "select b from v");
            let after = reader.query("select a from t").words();
            assert_eq!(after, direct.query("select a from t").words(), "{way:?}");
        }
    }
}

fn what_is_volatile_behind_a_word_is_not_kept(version: Version) {
    let name = database_of(version, "cache_volatile_kept");
    let mut direct = Session::open(addr(cluster(version)), name);
    for (number, (make, text)) in HIDDEN.iter().enumerate() {
        setup(&mut direct, ROLLS, make, ["stable", "immutable"][number % 2]);
        let proxy = caching(version, "trust_stable_functions = true\n");
        let mut reader = proxy.open(name);
        // The text is judged with the read of the table, or a second later.
        for _ in 0..2 {
            (0..6).for_each(|_| drop(Way::Simple.read(&mut reader, text)));
            warm(&proxy, Way::Simple, &mut reader, "select a from t");
            thread::sleep(Duration::from_millis(1200));
        }
        warm(&proxy, Way::Simple, &mut reader, "select a from t");
        let hits = proxy.counter("cache_hits");
        for _ in 0..5 {
            Way::Simple.read(&mut reader, text);
        }
        assert_eq!(proxy.counter("cache_hits"), hits, "{text}");
    }
}
