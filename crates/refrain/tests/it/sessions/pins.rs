//! State that cannot be moved ties a client to its server, is shown, and ends with the client.

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, execute, query};
use crate::world::{Config, Proxy, Version, cluster, database, eventually};

fn with_two_servers() -> Proxy {
    Config::over(cluster(Version::V15)).pool("pool_size", "2").start()
}

/// Runs `sql`, after which its client keeps its server for `reason`.
fn pinned(database: &'static str, sql: &str, reason: &str) -> (Proxy, Session) {
    let proxy = with_two_servers();
    let mut one = proxy.open(database);
    one.run(sql);
    assert_eq!(proxy.pins(), [reason], "{sql}");
    let pid = one.pid();
    let mut two = proxy.open(database);
    for _ in 0..3 {
        assert_ne!(two.pid(), pid, "{sql}");
        assert_eq!(one.pid(), pid, "{sql}");
    }
    (proxy, one)
}

/// Runs a query on each of the pool's servers.
fn on_every_server(proxy: &Proxy, database: &'static str, sql: &str) -> Vec<String> {
    let mut clients = [proxy.open(database), proxy.open(database)];
    clients.iter_mut().for_each(|client| client.run("begin"));
    clients.iter_mut().map(|client| client.value(sql)).collect()
}

#[test]
fn temporary_tables() {
    let database = database("pin_temp");
    let (proxy, mut one) = pinned(database, "create temp table t (a int)", "temporary tables");
    one.run("insert into t values (1)");
    assert_eq!(one.value("select count(*) from t"), "1");
    one.leave();
    eventually("the pin is gone", || proxy.pins().is_empty());
    assert_eq!(on_every_server(&proxy, database, "select to_regclass('t')"), ["NULL", "NULL"]);
}

/// Texts that make objects in the schema of temporary objects, though no word says so.
const BY_PATH: [&str; 9] = [
    "begin; set local search_path = pg_temp; select 1 as x into t; commit",
    "begin; select set_config('search_path', 'pg_' || 'temp', true); create table t (); commit",
    "set search_path = PG_TEMP, public; create table t as select 1 as x; reset search_path",
    "set search_path = pg_temp; create view t as select 1 as x",
    "set search_path = pg_temp; create sequence t",
    "set search_path = pg_temp; create type t as (a int)",
    "set search_path = pg_temp; create domain t as int",
    "set search_path = pg_temp; create materialized view t as select 1",
    "set search_path = pg_temp; create function t() returns int language sql as 'select 1'",
];

#[test]
fn temporary_objects_by_path() {
    let database = database("pin_temp_path");
    for text in BY_PATH {
        let refused = text.contains("materialized");
        let proxy = with_two_servers();
        let mut one = proxy.open(database);
        let parts = text.split("; ");
        parts.for_each(|part| drop(one.ask(&[query(part)])));
        let pid = one.pid();
        let pins = if refused { vec![] } else { vec!["temporary tables"] };
        assert_eq!(proxy.pins(), pins, "{text}");
        let mut two = proxy.open(database);
        assert!(refused || two.pid() != pid && one.pid() == pid, "{text}");
        one.leave();
        let left = "select concat(to_regclass('t'), to_regtype('t'), to_regproc('pg_temp.t'))";
        assert_eq!(on_every_server(&proxy, database, left), ["", ""], "{text}");
        // The same in one string.
        let mut three = proxy.open(database);
        three.ask(&[query(text)]);
        three.run("select 1");
        assert_eq!(proxy.pins(), pins, "{text}");
        three.leave();
        eventually("the pin is gone", || proxy.pins().is_empty());
    }
}

#[test]
fn objects_in_a_path_without_temporary_objects_pin_nothing() {
    let database = database("pin_no_temp_path");
    let proxy = with_two_servers();
    let mut one = proxy.open(database);
    one.run("create schema s");
    for text in ["set search_path = s, pg_temp", "create table t ()", "select 1 as x into u"] {
        one.run(text);
        assert!(proxy.pins().is_empty(), "{text}");
    }
    one.run("begin; set local search_path = s; create table v (); commit");
    assert!(proxy.pins().is_empty());
}

#[test]
fn temporary_tables_of_a_client_that_vanishes() {
    let database = database("pin_temp_vanish");
    let (proxy, mut one) = pinned(database, "select 1 as a into temp t", "temporary tables");
    one.run("begin; insert into t values (2)");
    one.vanish();
    assert_eq!(on_every_server(&proxy, database, "select to_regclass('t')"), ["NULL", "NULL"]);
    assert!(proxy.pins().is_empty());
}

#[test]
fn a_temporary_table_that_is_rolled_back() {
    let database = database("pin_temp_rollback");
    let proxy = with_two_servers();
    let mut one = proxy.open(database);
    one.run("begin; create temp table t (a int) on commit drop");
    one.run("rollback");
    one.run("begin; create temp table t (a int)");
    one.run("rollback");
    assert_eq!(one.value("select to_regclass('t')"), "NULL");
    one.leave();
    assert_eq!(on_every_server(&proxy, database, "select to_regclass('t')"), ["NULL", "NULL"]);
}

#[test]
fn listen_is_heard() {
    let database = database("pin_listen");
    let (proxy, mut one) = pinned(database, "listen news", "listen");
    let mut two = proxy.open(database);
    two.run("notify news, 'first'");
    // The notification comes without a request.
    let heard = one.answer().unwrap();
    assert_eq!((heard.tag, &heard.body[4..]), (b'A', &b"news\0first\0"[..]));
    let notify = [crate::session::parse("n", "notify news, 'second'"), bind("n", &[]), execute()];
    two.send(&notify);
    assert_eq!(two.ask(&[Msg::Sync]).words(), "1 2 C(NOTIFY) Z(I)");
    assert_eq!(one.answer().unwrap().body[4..], *b"news\0second\0");
    one.run("unlisten news");
    one.run("unlisten *");
    eventually("the pin is gone", || proxy.pins().is_empty());
    two.run("notify news, 'third'");
    assert_eq!(one.query("select 1").words(), "T D(1) C(SELECT 1) Z(I)");
}

#[test]
fn listening_ends_with_the_client() {
    let database = database("pin_listen_end");
    let (proxy, one) = pinned(database, "listen news", "listen");
    one.leave();
    let channels = "select count(*) from pg_listening_channels()";
    assert_eq!(on_every_server(&proxy, database, channels), ["0", "0"]);
}

#[test]
fn advisory_locks() {
    let database = database("pin_advisory");
    let (proxy, mut one) = pinned(database, "select pg_advisory_lock(7)", "advisory locks");
    let mut two = proxy.open(database);
    assert_eq!(two.value("select pg_try_advisory_lock(7)"), "f");
    two.leave();
    assert_eq!(one.value("select pg_advisory_unlock(7)"), "t");
    one.run("select pg_advisory_lock(8)");
    one.leave();
    let free = "select pg_try_advisory_xact_lock(8)";
    let mut other = proxy.open(database);
    eventually("the lock is free", || other.value(free) == "t");
}

#[test]
fn cursors_with_hold() {
    let database = database("pin_hold");
    let declare = "begin; declare c cursor with hold for select generate_series(1, 3); commit";
    let (proxy, mut one) = pinned(database, declare, "cursors with hold");
    assert_eq!(one.query("fetch 2 from c").words(), "T D(1) D(2) C(FETCH 2) Z(I)");
    assert_eq!(one.query("fetch 2 from c").words(), "T D(3) C(FETCH 1) Z(I)");
    one.leave();
    let cursors = "select count(*) from pg_cursors";
    assert_eq!(on_every_server(&proxy, database, cursors), ["0", "0"]);
}

#[test]
fn statements_prepared_in_sql() {
    let database = database("pin_prepare");
    let (proxy, mut one) = pinned(database, "prepare q as select 5", "prepared");
    assert_eq!(one.value("execute q"), "5");
    let execute_q = [bind("q", &[]), execute(), Msg::Sync];
    assert_eq!(one.ask(&execute_q).words(), "2 D(5) C(SELECT 1) Z(I)");
    one.leave();
    let left = "select count(*) from pg_prepared_statements where name = 'q'";
    assert_eq!(on_every_server(&proxy, database, left), ["0", "0"]);
}

#[test]
fn e50_statements_prepared_in_sql_can_be_forbidden() {
    let database = database("pin_forbidden");
    let config = Config::over(cluster(Version::V15)).pool("sql_prepare", "\"error\"");
    let proxy = config.start();
    let mut one = proxy.open(database);
    let reply = one.query("prepare q as select 5");
    assert!(!reply.code().is_empty(), "{}", reply.words());
    assert!(proxy.pins().is_empty());
    assert_eq!(one.query("select 1").words(), "T D(1) C(SELECT 1) Z(I)");
    assert_eq!(one.query("execute q").words(), "E(26000) Z(I)");
}

#[test]
fn roles() {
    let database = database("pin_role");
    let (proxy, mut one) = pinned(database, "set role pg_monitor", "role");
    assert_eq!(one.value("select current_user"), "pg_monitor");
    one.leave();
    assert_eq!(on_every_server(&proxy, database, "select current_user"), ["postgres"; 2]);
}

#[test]
fn what_ties_nobody() {
    let database = database("pin_none");
    let proxy = with_two_servers();
    let mut one = proxy.open(database);
    let harmless = [
        "create table t (a int)",
        "begin; create temp table x (a int) on commit drop; commit",
        "begin; declare c cursor for select 1; fetch c; commit",
        "select pg_advisory_xact_lock(1)",
        "notify news",
        "begin; set local role pg_monitor; commit",
        "select 'prepare q as select 1', 'create temp table', 'listen news'",
        "set statement_timeout = '30s'",
    ];
    for sql in harmless {
        one.run(sql);
        let pins = proxy.pins();
        assert!(pins.is_empty(), "{sql}: {pins:?}");
    }
}

#[test]
fn e53_a_server_that_was_reset_has_no_statements() {
    let database = database("pin_reset");
    let proxy = Config::over(cluster(Version::V15)).start();
    let statement = [crate::session::parse("s", "select 1"), bind("s", &[]), execute(), Msg::Sync];
    let again = [bind("s", &[]), execute(), Msg::Sync];
    let mut one = proxy.open(database);
    one.ask(&statement);
    one.ask(&again);
    // The server has to be cleared of this client's table before another client gets it.
    let mut two = proxy.open(database);
    two.run("create temp table t (a int)");
    two.ask(&statement);
    two.leave();
    assert_eq!(one.ask(&again).words(), "2 D(1) C(SELECT 1) Z(I)");
    assert_eq!(proxy.open(database).ask(&statement).words(), "1 2 D(1) C(SELECT 1) Z(I)");
    assert_eq!(proxy.counter("lost_statements"), 0);
}
