//! With `prepared_statements = false` the servers keep the statements, and Refrain still notices
//! what they do to a session.

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Proxy, Version, addr, cluster, database};

/// Changes of a session by extended messages: the text, a query that shows its effect, the answer
/// of an unchanged session, and that of a changed one.
const CHANGES: &[(&str, &str, &str, &str)] = &[
    ("set work_mem = '7MB'", "select current_setting('work_mem')", "4MB", "7MB"),
    ("set timezone = 'Asia/Tokyo'", "select current_setting('timezone') = 'Asia/Tokyo'", "f", "t"),
    (
        "set app.tenant = 'one'",
        "select coalesce(current_setting('app.tenant', true), '')",
        "",
        "one",
    ),
    (
        "select set_config('work_mem', '8MB', false)",
        "select current_setting('work_mem')",
        "4MB",
        "8MB",
    ),
    ("set role pg_monitor", "select current_user", "postgres", "pg_monitor"),
    ("create temp table mine (a int)", "select to_regclass('mine')::text", "NULL", "mine"),
    (
        "select pg_advisory_lock(7)",
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
        "0",
        "1",
    ),
    ("listen news", "select count(*) from pg_listening_channels()", "0", "1"),
    (
        "prepare q as select 1",
        "select count(*) from pg_prepared_statements where from_sql",
        "0",
        "1",
    ),
    ("select f()", "select current_setting('work_mem')", "4MB", "9MB"),
    ("insert into t default values", "select current_setting('work_mem')", "4MB", "9MB"),
    (
        "do $$ begin execute 'set role pg_monitor'; end $$",
        "select current_user",
        "postgres",
        "pg_monitor",
    ),
];
const SETUP: &str = "create function f() returns int language plpgsql as $f$ \
    begin set work_mem = '9MB'; return 1; end $f$; \
    create table t (a int default f())";

fn proxy(name: &'static str) -> (Proxy, &'static str) {
    let name = database(name);
    Session::open(addr(cluster(Version::V15)), name).run(SETUP);
    let config = Config::over(cluster(Version::V15)).pool("prepared_statements", "false");
    (config.pool("pool_size", "2").start(), name)
}

/// Makes each change in one of these ways, and checks its effect on this client and another.
///
/// Each change has a statement name of its own, since statements stay on the servers.
fn play(name: &'static str, way: impl Fn(&mut Session, &str, &str)) {
    let (proxy, name) = proxy(name);
    for (number, (text, show, clean, changed)) in CHANGES.iter().enumerate() {
        let mut one = proxy.open(name);
        way(&mut one, &format!("s{number}"), text);
        let mut two = proxy.open(name);
        assert_eq!(two.value(show), *clean, "another client behind {text}");
        assert_eq!(one.value(show), *changed, "the client itself behind {text}");
        assert_eq!(two.value(show), *clean, "another client later behind {text}");
        let left = [one, two];
        left.into_iter().for_each(Session::leave);
    }
}

fn ask(session: &mut Session, msgs: &[Msg]) {
    let reply = session.ask(msgs);
    assert!(reply.error().is_none(), "{}", reply.words());
}

#[test]
fn what_is_run_at_once() {
    play("unmanaged_at_once", |one, _, text| {
        ask(one, &[parse("", text), bind("", &[]), execute(), Msg::Sync]);
    });
}

#[test]
fn what_is_run_under_a_name() {
    play("unmanaged_name", |one, name, text| {
        ask(one, &[parse(name, text), bind(name, &[]), execute(), Msg::Sync]);
    });
}

#[test]
fn what_is_run_later_in_a_block() {
    play("unmanaged_block", |one, name, text| {
        one.run("begin");
        ask(one, &[parse(name, text), Msg::Sync]);
        one.run("select 1");
        ask(one, &[bind(name, &[]), execute(), Msg::Sync]);
        one.run("commit");
    });
}

/// Refrain does not know a server's statement of a name after other clients had the server.
#[test]
fn what_is_run_by_the_name_alone() {
    let name = database("unmanaged_alone");
    Session::open(addr(cluster(Version::V15)), name).run(SETUP);
    let config = Config::over(cluster(Version::V15)).pool("prepared_statements", "false");
    let proxy = config.start();
    let mut maker = proxy.open(name);
    ask(&mut maker, &[parse("s", "set work_mem = '7MB'"), Msg::Sync]);
    let mut one = proxy.open(name);
    ask(&mut one, &[parse("t", "select 1"), Msg::Sync]);
    let mut two = proxy.open(name);
    ask(&mut one, &[bind("s", &[]), execute(), Msg::Sync]);
    assert_eq!(two.value("show work_mem"), "4MB");
    assert_eq!(one.value("show work_mem"), "7MB");
    // If a Parse of the same name fails, the name still means the old statement.
    one.run("reset work_mem");
    let again = [bind("s", &[]), execute(), Msg::Sync];
    let refused = one.ask(&[parse("s", "select 1"), Msg::Sync]);
    assert_eq!(refused.code(), "42P05");
    ask(&mut one, &again);
    assert_eq!(two.value("show work_mem"), "4MB");
}

/// A Parse that the server skipped after an error does not count.
#[test]
fn what_is_skipped_is_not_what_runs() {
    let (proxy, name) = proxy("unmanaged_skipped");
    let mut one = proxy.open(name);
    one.run("begin");
    ask(&mut one, &[parse("", "set work_mem = '7MB'"), Msg::Sync]);
    one.ask(&[parse("", "select 2 from nowhere"), parse("", "select 1"), Msg::Sync]);
    one.run("rollback");
    one.run("begin");
    ask(&mut one, &[parse("s", "set work_mem = '7MB'"), Msg::Sync]);
    let calls = [
        Msg::Query(b"savepoint x".to_vec()),
        bind("none", &[]),
        Msg::CloseStatement(b"s".to_vec()),
        parse("s", "select 1"),
        Msg::Sync,
        Msg::Query(b"rollback to x".to_vec()),
        bind("s", &[]),
        execute(),
        Msg::Sync,
    ];
    one.send(&calls);
    (0..4).for_each(|_| drop(one.ready()));
    one.run("commit");
    assert_eq!(proxy.open(name).value("show work_mem"), "4MB");
    assert_eq!(one.value("show work_mem"), "7MB");
}

/// Statements that cannot change the session cost no look.
#[test]
fn what_does_nothing_costs_nothing() {
    let (proxy, name) = proxy("unmanaged_nothing");
    let mut one = proxy.open(name);
    one.run("select 1");
    for _ in 0..5 {
        ask(&mut one, &[parse("", "select $1::int"), bind("", &["1"]), execute(), Msg::Sync]);
    }
    assert_eq!(proxy.counter("session_checks"), 0);
    assert!(proxy.pins().is_empty());
}
