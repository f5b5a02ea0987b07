//! Cancel requests (E81).

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, cancel_request, execute, parse, query, startup};
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually};

/// Counts the sessions of a database that run a statement that sleeps.
fn sleeping(database: &str) -> String {
    let sql = format!(
        "select count(*) from pg_stat_activity where datname = '{database}' \
         and wait_event = 'PgSleep' and state = 'active'"
    );
    Session::open(addr(cluster(Version::V15)), "postgres").value(&sql)
}

fn await_sleeping(database: &str, count: &str) {
    eventually("they sleep", || sleeping(database) == count);
}

/// Sends a cancel request, and waits until Refrain has handled it.
fn cancel(proxy: &Proxy, key: &[u8]) {
    let rest = Session::raw(proxy.addr(), &cancel_request(key)).rest();
    assert!(rest.frames.is_empty(), "a cancel request is not answered");
}

#[test]
fn e81_a_cancel_request_reaches_its_issuer_alone() {
    let database = database("cancel_one");
    let proxy = Config::over(cluster(Version::V15)).pool("pool_size", "3").start();
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    for session in [&mut one, &mut two] {
        session.send(&[query("select pg_sleep(600)")]);
    }
    await_sleeping(database, "2");
    cancel(&proxy, &one.key);
    assert_eq!(one.ready().words(), "T E(57014) Z(I)");
    assert_eq!(sleeping(database), "1");
    assert_eq!(one.query("select 1").words(), "T D(1) C(SELECT 1) Z(I)");
    cancel(&proxy, &two.key);
    assert_eq!(two.ready().words(), "T E(57014) Z(I)");
    assert_eq!(two.query("select 2").words(), "T D(2) C(SELECT 1) Z(I)");
}

#[test]
fn e81_a_wrong_secret_cancels_nothing() {
    let database = database("cancel_wrong");
    let proxy = Config::over(cluster(Version::V15)).start();
    let mut one = proxy.open(database);
    one.send(&[query("select pg_sleep(600)")]);
    await_sleeping(database, "1");
    for at in 0..one.key.len() {
        let mut wrong = one.key.clone();
        wrong[at] ^= 1;
        cancel(&proxy, &wrong);
    }
    // A packet without a secret is no cancel request.
    Session::raw(proxy.addr(), &cancel_request(&one.key[..4])).rest();
    cancel(&proxy, &[&one.key[..], &[0; 28]].concat());
    assert_eq!(sleeping(database), "1");
    cancel(&proxy, &one.key);
    assert_eq!(one.ready().words(), "T E(57014) Z(I)");
}

#[test]
fn who_comes_next_is_not_cancelled_by_the_number_of_who_has_left() {
    let database = database("cancel_next");
    let proxy = Config::over(cluster(Version::V15)).start();
    let own_pid = |session: &Session| session.key[..4].to_vec();
    let mut pids: Vec<_> = (0..3).map(|_| own_pid(&proxy.open(database))).collect();
    let mut last = proxy.open(database);
    last.send(&[query("select pg_sleep(600)")]);
    await_sleeping(database, "1");
    for pid in &pids {
        cancel(&proxy, &[&pid[..], &last.key[4..]].concat());
    }
    assert_eq!(sleeping(database), "1");
    cancel(&proxy, &last.key);
    assert_eq!(last.ready().words(), "T E(57014) Z(I)");
    pids.push(own_pid(&last));
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 4, "each has a number of its own");
}

#[test]
fn e81_a_request_of_an_idle_client_does_not_hit_the_next() {
    let database = database("cancel_late");
    let proxy = Config::over(cluster(Version::V15)).start();
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    one.run("select 1");
    two.send(&[query("select pg_sleep(600)")]);
    await_sleeping(database, "1");
    cancel(&proxy, &one.key);
    assert_eq!(sleeping(database), "1");
    // The key of a client that waits must not cancel the statement on the server it waits for.
    one.send(&[query("select 5")]);
    cancel(&proxy, &two.key);
    assert_eq!(two.ready().words(), "T E(57014) Z(I)");
    assert_eq!(one.ready().words(), "T D(5) C(SELECT 1) Z(I)");
}

#[test]
fn a_client_that_waits_for_a_server_is_cancelled_where_it_waits() {
    let database = database("cancel_waiting");
    let proxy = Config::over(cluster(Version::V15)).pool("pool_size", "1").start();
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    one.run("begin");
    let waits = || proxy.show_of("pools", database)[0]["cl_waiting"] == "1";
    let extended = [bind("s", &[]), execute(), Msg::Sync, query("select 2")];
    for (messages, words) in
        [(&[query("select 1")][..], "E(57014) Z(I)"), (&extended, "E(57014) Z(I)")]
    {
        two.send(messages);
        eventually("it waits", waits);
        cancel(&proxy, &two.key);
        assert_eq!(two.ready().words(), words);
    }
    eventually("the next query waits", waits);
    one.run("commit");
    assert_eq!(two.ready().words(), "T D(2) C(SELECT 1) Z(I)");
}

fn cancel_with_a_long_key(version: Version) {
    let proxy = Config::over(cluster(version)).start();
    let params = [("user", "postgres"), ("database", "postgres")];
    let mut session = Session::raw(proxy.addr(), &startup(0x0003_0002, &params));
    assert_eq!(session.ready().status(), Some('I'));
    assert!(session.key.len() > 8, "protocol 3.2 has longer keys: {}", session.key.len());
    assert!(session.key.len() <= 260);
    session.send(&[query("select pg_sleep(600) /* long key */")]);
    let own = cluster(version);
    let sleeps = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' \
                  and query like '%long key *_'";
    eventually("it sleeps", || Session::open(addr(own), "postgres").value(sleeps) == "1");
    cancel(&proxy, &session.key[..8]);
    cancel(&proxy, &session.key);
    assert_eq!(session.ready().words(), "T E(57014) Z(I)");
}

#[test]
fn e81_keys_of_protocol_3_2() {
    cancel_with_a_long_key(Version::V15);
    cancel_with_a_long_key(Version::V18);
}

#[test]
fn e72_a_cancel_may_hit_a_parse_put_in_front() {
    let database = database("cancel_parse");
    let own = addr(cluster(Version::V15));
    let mut direct = Session::open(own, database);
    direct.run("create table t (a int)");
    let proxy = Config::over(cluster(Version::V15)).pool("pool_size", "2").start();
    let (mut one, mut two) = (proxy.open(database), proxy.open(database));
    let statement = [parse("s", "select a from t"), Msg::Sync];
    assert_eq!(one.ask(&statement).words(), "1 Z(I)");
    // The next Bind needs a Parse: the one server that has the statement is taken.
    two.run("begin");
    direct.run("begin; lock table t");
    one.send(&[bind("s", &[]), Msg::Sync]);
    let waits = "select count(*) from pg_locks where not granted";
    eventually("it waits for the lock", || direct.value(waits) != "0");
    cancel(&proxy, &one.key);
    assert_eq!(one.ready().words(), "E(57014) Z(I)");
    direct.run("commit");
    let again = [bind("s", &[]), execute(), Msg::Sync];
    assert_eq!(one.ask(&again).words(), "2 C(SELECT 0) Z(I)");
}

#[test]
fn a_cancel_request_reaches_the_peer_that_has_the_client() {
    let numbered = |id: usize| {
        let config = Config::over(cluster(Version::V15)).general("workers", "2");
        config.general("peer_id", &id.to_string())
    };
    let proxies = [1, 2, 3].map(|id| numbered(id).start());
    let entry = |(id, proxy): (usize, &Proxy)| {
        format!("[peers.{id}]\nhost = \"127.0.0.1\"\nport = {}\n", proxy.addr().port())
    };
    let peers: String = (1..).zip(&proxies).map(entry).collect();
    for (id, proxy) in (1..).zip(&proxies) {
        proxy.reload(&numbered(id).more(&peers));
        assert_eq!(proxy.show("peers").len(), 3);
    }
    let mut direct = Session::open(addr(cluster(Version::V15)), "postgres");
    for (has, asked) in (0..9).map(|both| (both / 3, both % 3)) {
        let name = format!("peers{has}{asked}");
        let params = [("application_name", name.as_str())];
        let mut session = Session::with(proxies[has].addr(), "postgres", &params);
        session.send(&[query("select pg_sleep(3600)")]);
        let sql = format!(
            "select count(*) from pg_stat_activity where application_name = '{name}' and \
             wait_event = 'PgSleep'"
        );
        eventually("the statement runs", || direct.value(&sql) == "1");
        Session::raw(proxies[asked].addr(), &cancel_request(&session.key)).rest();
        assert_eq!(session.ready().words(), "T E(57014) Z(I)", "{name}");
    }
}

#[test]
fn a_key_of_a_peer_that_is_not_there_cancels_nothing() {
    let config = Config::over(cluster(Version::V15)).general("peer_id", "5");
    let proxy = config.start();
    let session = proxy.open("postgres");
    assert_eq!(session.key[1..3], [5, 0], "PgBouncer's place");
    assert_eq!(session.key[7] & 3, 3);
    let mut other = session.key.clone();
    other[1] = 6;
    Session::raw(proxy.addr(), &cancel_request(&other)).rest();
    assert_eq!(proxy.counter("cancels"), 0);
}

#[test]
fn requests_that_a_peer_does_not_get_are_counted_in_the_log() {
    let config = Config::over(cluster(Version::V15)).general("peer_id", "5");
    let proxy = config.more("[peers.6]\nhost = \"127.0.0.1\"\nport = 1\n").start();
    let mut key = proxy.open("postgres").key.clone();
    key[1] = 6;
    for _ in 0..20 {
        cancel(&proxy, &key);
    }
    let words = "a cancel request is not passed on";
    let line = |part: &str| proxy.log().lines().any(|it| it.contains(words) && it.contains(part));
    eventually("the first is told", || line("peer 6 at 127.0.0.1"));
    eventually("the others are counted", || line(" more in "));
}
