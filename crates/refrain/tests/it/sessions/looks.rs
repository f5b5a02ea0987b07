//! Refrain takes a function for harmless only after it ran, to its end, in transactions that were
//! committed.

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, execute, parse, query};
use crate::world::{Config, Proxy, Version, cluster, database};

/// A function that leaves a setting in its session.
const LOUD: &str = "create function f() returns int language plpgsql as $f$ \
    begin perform set_config('my.tenant', 'one', false); return 1; end $f$; \
    create table empty (a int)";
const TENANT: &str = "select coalesce(current_setting('my.tenant', true), '')";

/// Messages of one segment in which `f` does not run, or not in a way that counts.
fn in_vain() -> Vec<(&'static str, Vec<Msg>)> {
    let portal = |name: &str| name.as_bytes().to_vec();
    let f = || parse("", "select f()");
    let twice = "select case when n = 2 then f() end from generate_series(1, 2) n";
    vec![
        ("bound", vec![f(), bind("", &[]), Msg::Sync]),
        ("described", vec![f(), bind("", &[]), Msg::DescribePortal(portal("")), Msg::Sync]),
        ("closed", vec![f(), bind("", &[]), Msg::ClosePortal(portal("")), Msg::Sync]),
        (
            "another portal is run",
            vec![f(), bind("", &[]), parse("", "select 1"), bind("", &[]), execute(), Msg::Sync],
        ),
        (
            "not run to its end",
            vec![parse("", twice), bind("", &[]), Msg::Execute(portal(""), 1), Msg::Sync],
        ),
        (
            "an error follows",
            vec![
                f(),
                bind("", &[]),
                execute(),
                parse("", "select 1 / 0"),
                bind("", &[]),
                execute(),
                Msg::Sync,
            ],
        ),
        ("no row", vec![parse("", "select f() from empty"), bind("", &[]), execute(), Msg::Sync]),
        ("no row in a query", vec![query("select f() from empty")]),
        ("no row where it would say so", vec![query("select 1 from empty where f() > a")]),
        ("one of two", vec![query("select 1; select f() from empty")]),
        ("an error in a query", vec![query("select f(); select 1 / 0")]),
        ("explained", vec![query("explain select f()")]),
        ("explained by name", vec![query("explain execute kept")]),
        ("rolled back", vec![query("begin; select f(); rollback")]),
        ("to a savepoint", vec![query("begin; savepoint s; select f(); rollback to s; commit")]),
    ]
}

/// True if another client sees what `f` leaves, after a segment in which it did not run and then
/// the text `runs`, which runs it.
fn leaks(proxy: &Proxy, name: &str, vain: &[Msg], runs: &str) -> bool {
    let mut one = proxy.open(name);
    one.ask(&[parse("kept", "select f()"), Msg::Sync]);
    for _ in 0..5 {
        one.ask(vain);
        one.run("select 1");
    }
    one.run(runs);
    let mut two = proxy.open(name);
    let leaked = !two.value(TENANT).is_empty();
    assert_eq!(one.value(TENANT), "one");
    leaked
}

fn play(name: &'static str, options: &[(&str, &str)]) {
    let name = database(name);
    let config = Config::over(cluster(Version::V15));
    let config = options.iter().fold(config, |config, (name, value)| config.pool(name, value));
    let mut leaked = Vec::new();
    let mut maker = Session::open(crate::world::addr(cluster(Version::V15)), name);
    maker.run(LOUD);
    for (what, vain) in in_vain() {
        // Refrain's knowledge of functions lasts as long as its process.
        let proxy = config.clone().start();
        if leaks(&proxy, name, &vain, "select f()") {
            leaked.push(what);
        }
    }
    let proxy = config.start();
    let runs = "insert into empty values (1); update empty set a = f()";
    if leaks(
        &proxy,
        name,
        &[query("insert into empty select 1 where false; update empty set a = f()")],
        runs,
    ) {
        leaked.push("no row to write");
    }
    assert!(leaked.is_empty(), "{leaked:?}");
}

#[test]
fn what_does_not_run_is_not_known() {
    play("looks_in_vain", &[]);
}

#[test]
fn what_does_not_run_is_not_known_where_texts_are_prepared() {
    play("looks_in_vain_auto", &[("autoprepare", "\"on\""), ("autoprepare_threshold", "1")]);
}

/// Refrain knows a function after three looks, whichever messages run it.
#[test]
fn what_runs_is_known() {
    let name = database("looks_known");
    let auto = [("autoprepare", "\"on\""), ("autoprepare_threshold", "1")];
    for options in [&auto[..], &[("prepared_statements", "false")], &[]] {
        let config = Config::over(cluster(Version::V15));
        let config = options.iter().fold(config, |config, (name, value)| config.pool(name, value));
        let proxy = config.start();
        let mut one = proxy.open(name);
        one.run("create or replace function g(int) returns int language plpgsql as $$ begin return $1; end $$");
        one.run("create or replace function h(int) returns int language plpgsql as $$ begin return $1; end $$");
        one.run("select 1");
        let extended = [parse("", "select g($1)"), bind("", &["1"]), execute(), Msg::Sync];
        let looks = |one: &mut Session, msgs: &[Msg]| {
            let before = proxy.counter("session_checks");
            (0..12).for_each(|_| drop(one.ask(msgs)));
            proxy.counter("session_checks") - before
        };
        assert_eq!(looks(&mut one, &extended), 3, "{options:?}");
        assert_eq!(looks(&mut one, &[query("select h(5)")]), 3, "{options:?}");
        assert_eq!(looks(&mut one, &[query("select g(h(5))")]), 3, "{options:?}");
        one.leave();
    }
}
