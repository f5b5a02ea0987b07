//! Time limits: each ends the right thing, with its SQLSTATE, and the pool goes on (E39).

use std::time::Duration;

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, execute, parse, query};
use crate::world::{Config, Proxy, Version, addr, cluster, database, database_of};

fn with(option: &str, value: &str) -> Proxy {
    Config::over(cluster(Version::V15)).pool(option, &format!("{value:?}")).start()
}

#[test]
fn e39_query_wait_timeout() {
    let database = database("time_wait");
    let proxy = with("query_wait_timeout", "200ms");
    let mut holder = proxy.open(database);
    holder.run("begin");
    let mut simple = proxy.open(database);
    simple.send(&[query("select 1")]);
    let mut pipeline = proxy.open(database);
    pipeline.send(&[parse("s", "select 1"), bind("s", &[]), execute(), Msg::Sync]);
    for session in [&mut simple, &mut pipeline] {
        let replies = session.rest().words();
        assert_eq!(replies, "E(08P01)");
    }
    assert_eq!(holder.query("select 2").words(), "T D(2) C(SELECT 1) Z(T)");
    holder.run("commit");
    assert_eq!(proxy.open(database).value("select 3"), "3");
}

#[test]
fn idle_transaction_timeout() {
    let database = database("time_idle_transaction");
    let proxy = with("idle_transaction_timeout", "200ms");
    let mut idle = proxy.open(database);
    idle.run("create table t (a int)");
    idle.run("begin; insert into t values (1)");
    assert_eq!(idle.rest().words(), "E(25P03)");
    assert_eq!(proxy.open(database).value("select count(*) from t"), "0");
}

#[test]
fn transaction_timeout() {
    let database = database("time_transaction");
    let proxy = with("transaction_timeout", "500ms");
    let mut busy = proxy.open(database);
    busy.run("begin");
    let replies = loop {
        let reply = busy.query("select 1");
        if reply.error().is_some() || reply.status().is_none() {
            break reply.words();
        }
    };
    assert!(replies.ends_with("E(25P04)"), "{replies}");
    assert_eq!(proxy.open(database).value("select 1"), "1");
}

#[test]
fn query_timeout() {
    let database = database("time_query");
    let proxy = with("query_timeout", "300ms");
    let mut slow = proxy.open(database);
    let reply = slow.query("select pg_sleep(600)");
    assert!(reply.words().ends_with("E(57014)"), "{}", reply.words());
    assert_eq!(reply.status(), None, "the client is disconnected");
    assert_eq!(proxy.open(database).value("select 1"), "1");
}

/// Work of a server before it was lent does not count, even a sync of its settings.
#[test]
fn query_timeout_begins_with_the_query() {
    let database = database("time_put_right");
    let proxy = with("query_timeout", "1s");
    let client = |name| Session::with(proxy.addr(), database, &[("application_name", name)]);
    let (mut one, mut two) = (client("one"), client("two"));
    one.run("select 1");
    std::thread::sleep(Duration::from_millis(1300));
    assert_eq!(two.query("select pg_sleep(0.4)").words(), "T D() C(SELECT 1) Z(I)");
}

#[test]
fn client_idle_timeout() {
    let database = database("time_client");
    let proxy = with("client_idle_timeout", "300ms");
    let mut idle = proxy.open(database);
    idle.run("select 1");
    assert_eq!(idle.rest().words(), "E(57P05)");
    let mut holder = proxy.open(database);
    holder.run("begin");
    let mut next = proxy.open(database);
    assert_eq!(next.rest().words(), "E(57P05)");
    // A session in a transaction is not an idle session.
    assert_eq!(holder.query("commit").words(), "C(COMMIT) Z(I)");
}

/// Expects the end of an idle session, directly and through Refrain.
fn ends_idle(mut session: Session) {
    let replies = session.rest();
    assert_eq!(replies.words(), "E(57P05)");
    let error = replies.error().expect("an error");
    let fields = String::from_utf8_lossy(&error.body);
    let due = "SFATAL\0VFATAL\0C57P05\0Mterminating connection due to idle-session timeout\0";
    assert!(fields.starts_with(due), "{fields:?}");
}

#[test]
fn a_client_sets_its_own_idle_session_timeout() {
    for (version, name) in [(Version::V15, "time_own15"), (Version::V18, "time_own18")] {
        let database = database_of(version, name);
        let proxy = Config::over(cluster(version)).pool("pool_size", "2").start();
        for addr in [addr(cluster(version)), proxy.addr()] {
            let mut set = Session::with(addr, database, &[]);
            set.run("set idle_session_timeout = '300ms'");
            ends_idle(set);
            let mut called = Session::with(addr, database, &[]);
            called.run("select set_config('idle_session_timeout', '1s', false)");
            ends_idle(called);
            let options = [("options", "-c idle_session_timeout=300")];
            ends_idle(Session::with(addr, database, &options));
            ends_idle(Session::with(addr, database, &[("idle_session_timeout", "1 s")]));
            // A client that holds its server, which ends both.
            let mut pinned = Session::with(addr, database, &[]);
            pinned.run("create temp table kept (a int); set idle_session_timeout = '300ms'");
            ends_idle(pinned);
        }
        assert_eq!(proxy.open(database).value("show idle_session_timeout"), "0");
    }
}

#[test]
fn an_idle_session_timeout_ends_no_idle_server() {
    let database = database("time_own_servers");
    let proxy = Config::over(cluster(Version::V15)).pool("pool_size", "1").start();
    let mut client = proxy.open(database);
    let (pid, shown) = (client.pid(), client.value("show idle_session_timeout"));
    assert_eq!(shown, "0");
    client.run("set idle_session_timeout = '1s'");
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(client.value("show idle_session_timeout"), "1s");
    ends_idle(client);
    std::thread::sleep(Duration::from_millis(1200));
    let mut next = proxy.open(database);
    assert_eq!((next.pid(), next.value("show idle_session_timeout")), (pid, "0".to_owned()));
}

#[test]
fn client_login_timeout() {
    let config = Config::over(cluster(Version::V15));
    let proxy = config.general("client_login_timeout", "\"200ms\"").start();
    // The client may get an error, and is disconnected.
    Session::raw(proxy.addr(), &[0, 0]).rest();
    assert_eq!(proxy.open("postgres").value("select 1"), "1");
}

#[test]
fn e39_max_waiting() {
    let database = database("time_waiting");
    let config = Config::over(cluster(Version::V15)).pool("max_waiting", "1");
    let proxy = config.start();
    let mut holder = proxy.open(database);
    holder.run("begin");
    let (mut waits, mut refused) = (proxy.open(database), proxy.open(database));
    waits.send(&[query("select 1")]);
    crate::world::eventually("it waits", || {
        proxy.show_of("pools", database).iter().any(|pool| pool["cl_waiting"] == "1")
    });
    refused.send(&[query("select 2")]);
    assert_eq!(refused.rest().words(), "E(53300)");
    holder.run("commit");
    assert_eq!(waits.ready().words(), "T D(1) C(SELECT 1) Z(I)");
}
