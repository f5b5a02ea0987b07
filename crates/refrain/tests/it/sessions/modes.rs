//! Session mode and statement mode (E83).

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, execute, parse};
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually};

fn in_mode(mode: &str, size: &str) -> Proxy {
    let config = Config::over(cluster(Version::V15)).pool("pool_size", size);
    config.pool("pool_mode", &format!("{mode:?}")).start()
}

fn statement(sql: &str) -> [Msg; 4] {
    [parse("s", sql), bind("s", &[]), execute(), Msg::Sync]
}

#[test]
fn e83_session_mode_gives_a_client_a_server_of_its_own() {
    let database = database("mode_session");
    let proxy = in_mode("session", "2");
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    let (pid, other) = (one.pid(), two.pid());
    assert_ne!(pid, other);
    one.run("create temp table t (a int); set work_mem = '3MB'; prepare q as select 5");
    assert_eq!(one.ask(&statement("select 1")).words(), "1 2 D(1) C(SELECT 1) Z(I)");
    assert_eq!(two.ask(&statement("select 2")).words(), "1 2 D(2) C(SELECT 1) Z(I)");
    assert_eq!(one.pid(), pid);
    assert_eq!(one.value("execute q"), "5");
    one.leave();
    // The server was reset, and serves the next client.
    let mut three = proxy.open(database);
    assert_eq!(three.pid(), pid);
    assert_eq!(three.value("select to_regclass('t')"), "NULL");
    assert_eq!(three.value("select count(*) from pg_prepared_statements"), "0");
    assert_ne!(three.value("show work_mem"), "3MB");
    assert_eq!(three.query("execute q").words(), "E(26000) Z(I)");
    assert_eq!(three.ask(&[bind("s", &[]), Msg::Sync]).words(), "E(26000) Z(I)");
}

#[test]
fn e83_session_mode_shows_names_as_they_are() {
    let database = database("mode_session_names");
    let proxy = in_mode("session", "1");
    let config = Config::over(cluster(Version::V15)).pool("pool_mode", "\"session\"");
    let unmanaged = config.pool("prepared_statements", "false").start();
    for proxy in [&proxy, &unmanaged] {
        let mut session = proxy.open(database);
        session.ask(&statement("select 1"));
        assert_eq!(session.query("deallocate s").words(), "C(DEALLOCATE) Z(I)");
        assert_eq!(session.ask(&[bind("s", &[]), Msg::Sync]).words(), "E(26000) Z(I)");
        assert_eq!(session.ask(&statement("select 2")).words(), "1 2 D(2) C(SELECT 1) Z(I)");
        assert_eq!(session.query("execute s").words(), "T D(2) C(SELECT 1) Z(I)");
        session.leave();
    }
}

#[test]
fn a_session_waits_for_a_server() {
    let database = database("mode_session_wait");
    let proxy = in_mode("session", "1");
    let mut one = proxy.open(database);
    let pid = one.pid();
    let mut two = proxy.open(database);
    two.send(&[crate::session::query("select pg_backend_pid()")]);
    eventually("it waits", || {
        proxy.show_of("pools", database).iter().any(|pool| pool["cl_waiting"] == "1")
    });
    one.leave();
    assert_eq!(two.ready().value(), pid);
}

#[test]
fn statement_mode_refuses_transactions() {
    let database = database("mode_statement");
    Session::open(addr(cluster(Version::V15)), database).run("create table t (a int)");
    let proxy = in_mode("statement", "1");
    let mut one = proxy.open(database);
    assert_eq!(one.ask(&statement("select 1")).words(), "1 2 D(1) C(SELECT 1) Z(I)");
    one.run("insert into t values (1)");
    // The client may get the reply to BEGIN, but is then disconnected.
    let begin = [parse("b", "begin"), bind("b", &[]), execute(), Msg::Sync];
    for msgs in [&[crate::session::query("begin; insert into t values (2)")][..], &begin] {
        let mut two = proxy.open(database);
        two.send(msgs);
        let replies = two.rest().words();
        assert!(replies.ends_with("E(08P01)"), "{replies}");
    }
    assert_eq!(one.ask(&[bind("s", &[]), execute(), Msg::Sync]).words(), "2 D(1) C(SELECT 1) Z(I)");
    assert_eq!(one.value("select count(*) from t"), "1");
}
