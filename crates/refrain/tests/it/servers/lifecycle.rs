//! Clients, servers and the program itself come and go (E75 to E79, E84).

use std::thread;

use refrain_differ::msg::Msg;
use xtask::postgres::Cluster;

use crate::session::{Session, bind, encode, execute, parse, query};
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually};

fn over_15() -> Config {
    Config::over(cluster(Version::V15))
}

/// Holds a conversation that works in a healthy pool, as a new client.
fn serves(proxy: &Proxy, database: &str) {
    let mut session = proxy.open(database);
    let msgs = [parse("s", "select $1::int"), bind("s", &["7"]), execute(), Msg::Sync];
    assert_eq!(session.ask(&msgs).words(), "1 2 D(7) C(SELECT 1) Z(I)");
    assert_eq!(session.query("select 8").words(), "T D(8) C(SELECT 1) Z(I)");
    session.leave();
}

/// A client sends these bytes and vanishes. Then the pool's one server must serve another client.
fn vanish_after(proxy: &Proxy, database: &str, bytes: &[u8]) {
    let mut session = proxy.open(database);
    session.write(bytes);
    session.vanish();
    serves(proxy, database);
    // The same, after all possible replies have come.
    let mut session = proxy.open(database);
    session.run("select 1");
    session.write(bytes);
    session.write(&encode(&[Msg::Flush]));
    session.vanish();
    serves(proxy, database);
}

#[test]
fn e75_e76_a_client_that_vanishes_leaves_nothing() {
    let database = database("vanish");
    Session::open(addr(cluster(Version::V15)), database).run("create table t (a int)");
    let proxy = over_15().start();
    let insert = || vec![parse("", "insert into t values (1)"), bind("", &[]), execute()];
    let whole = encode(&insert());
    let half = &whole[..whole.len() - 3];
    let copy = [query("copy t from stdin"), Msg::CopyData(b"1\n".to_vec())];
    let statements = [parse("a", "select 1"), parse("b", "selec"), parse("c", "select 2")];
    let large = encode(&[query(&format!("select '{}'", "x".repeat(300_000)))]);
    let all: [&[u8]; 9] = [
        &whole,
        half,
        &encode(&[query("begin; insert into t values (2)")]),
        &encode(&[query("begin; select 1/0")]),
        &encode(&copy),
        &encode(&statements),
        &large[..100_000],
        &encode(&[query("select repeat('x', 1000) from generate_series(1, 20000)")]),
        &encode(&[parse("s", "select 1"), bind("s", &[]), execute(), Msg::Sync]),
    ];
    for bytes in all {
        vanish_after(&proxy, database, bytes);
    }
    assert_eq!(proxy.open(database).value("select count(*) from t"), "0");
    assert_eq!(proxy.counter("lost_statements"), 0);
    assert_eq!(proxy.counter("unexpected_messages"), 0);
}

#[test]
fn e75_a_vanished_client_does_not_cost_the_server() {
    let database = database("vanish_kept");
    let proxy = over_15().start();
    let mut other = proxy.open(database);
    let pid = other.pid();
    let mut session = proxy.open(database);
    session.send(&[parse("s", "select 1"), bind("s", &[]), execute(), Msg::Flush]);
    assert_eq!(session.answer().map(|frame| frame.tag), Some(b'1'));
    session.vanish();
    assert_eq!(other.pid(), pid, "an open segment can be ended, and the server kept");
    let mut session = proxy.open(database);
    session.run("begin");
    session.vanish();
    assert_eq!(other.pid(), pid, "a transaction can be rolled back, and the server kept");
}

fn kill_servers(database: &str) {
    let mut direct = Session::open(addr(cluster(Version::V15)), "postgres");
    let of = format!("from pg_stat_activity where datname = '{database}'");
    direct.run(&format!("select pg_terminate_backend(pid) {of}"));
    eventually("they end", || direct.value(&format!("select count(*) {of}")) == "0");
}

#[test]
fn e77_a_server_that_dies_takes_its_client_along() {
    let database = database("dying");
    let proxy = over_15().pool("pool_size", "2").start();
    let mut busy = proxy.open(database);
    busy.run("begin");
    let mut idle = proxy.open(database);
    let named = [parse("s", "select 1"), bind("s", &[]), execute(), Msg::Sync];
    assert_eq!(idle.ask(&named).words(), "1 2 D(1) C(SELECT 1) Z(I)");
    kill_servers(database);
    let replies = busy.rest().words();
    assert!(replies == "E(57P01)" || replies == "E(08006)", "{replies}");
    // A client without a server notices nothing, and its statements are still there.
    let again = [bind("s", &[]), execute(), Msg::Sync];
    assert_eq!(idle.ask(&again).words(), "2 D(1) C(SELECT 1) Z(I)");
    serves(&proxy, database);
}

#[test]
fn e77_a_server_that_dies_in_a_pipeline() {
    let database = database("dying_busy");
    let proxy = over_15().start();
    let mut session = proxy.open(database);
    session.send(&[parse("s", "select pg_sleep(600)"), bind("s", &[]), execute(), Msg::Sync]);
    let sleeps = format!(
        "select count(*) from pg_stat_activity where datname = '{database}' \
         and wait_event = 'PgSleep'"
    );
    let mut direct = Session::open(addr(cluster(Version::V15)), "postgres");
    eventually("it sleeps", || direct.value(&sleeps) == "1");
    kill_servers(database);
    let replies = session.rest().words();
    assert!(replies.ends_with("E(57P01)") || replies.ends_with("E(08006)"), "{replies}");
    assert!(!replies.contains('Z'), "{replies}");
    serves(&proxy, database);
}

#[test]
fn e78_e79_postgresql_goes_down_and_comes_back() {
    let mut cluster = Cluster::start(Version::V15, &[]).unwrap();
    let config = Config::over(&cluster).pool("server_login_retry", "\"10ms\"");
    let proxy = config.pool("query_wait_timeout", "\"20s\"").start();
    let mut session = proxy.open("postgres");
    let statement = [parse("s", "select 'there'"), bind("s", &[]), execute(), Msg::Sync];
    assert_eq!(session.ask(&statement).words(), "1 2 D(there) C(SELECT 1) Z(I)");
    cluster.stop();
    cluster.resume().unwrap();
    let again = [bind("s", &[]), execute(), Msg::Sync];
    assert_eq!(session.ask(&again).words(), "2 D(there) C(SELECT 1) Z(I)");
    cluster.stop();
    let refused = session.query("select 1");
    assert!(!refused.code().is_empty(), "{}", refused.words());
    cluster.resume().unwrap();
    eventually("it is served again", || {
        let params = [("user", "postgres"), ("database", "postgres")];
        let session = Session::login(proxy.addr(), &params);
        session.is_ok_and(|mut session| session.query("select 1").error().is_none())
    });
}

#[test]
fn clients_wait_while_postgresql_is_down() {
    let mut cluster = Cluster::start(Version::V15, &[]).unwrap();
    let config = Config::over(&cluster).pool("server_login_retry", "\"10ms\"");
    let config = config.general("log_level", "\"debug\"");
    let proxy = config.pool("server_unavailable", "\"wait\"").start();
    let mut session = proxy.open("postgres");
    session.run("select 1");
    cluster.stop();
    session.send(&[query("select 2")]);
    let (addr, params) = (proxy.addr(), [("user", "postgres"), ("database", "postgres")]);
    let newcomer = thread::spawn(move || Session::login(addr, &params).unwrap().value("select 3"));
    let failures = || proxy.log().matches("could not connect to server").count();
    eventually("it is tried several times", || failures() >= 5);
    cluster.resume().unwrap();
    assert_eq!(session.ready().value(), "2");
    assert_eq!(newcomer.join().unwrap(), "3");
}

#[test]
fn a_server_that_is_down_at_the_start() {
    let mut cluster = Cluster::start(Version::V15, &[]).unwrap();
    cluster.stop();
    let proxy = Config::over(&cluster).pool("server_login_retry", "\"10ms\"").start();
    let params = [("user", "postgres"), ("database", "postgres")];
    let refused = Session::login(proxy.addr(), &params).unwrap_err();
    assert_eq!(refused.code(), "57P03", "{}", refused.words());
    let sentence = "client disconnected: could not connect to server (";
    eventually("why is logged", || {
        let log = proxy.log();
        let mut lines = log.lines().filter(|line| line.contains(sentence));
        lines.any(|line| line.contains("Connection refused"))
    });
    cluster.resume().unwrap();
    eventually("it is served", || {
        Session::login(proxy.addr(), &params)
            .is_ok_and(|mut session| session.value("select 1") == "1")
    });
}

#[test]
fn e84_terminating_waits_for_transactions() {
    let database = database("drain");
    let mut proxy = over_15().pool("pool_size", "3").start();
    let mut busy = proxy.open(database);
    busy.run("begin");
    let mut idle = proxy.open(database);
    idle.run("select 1");
    proxy.signal("TERM");
    assert_eq!(idle.rest().code(), "57P01");
    assert_eq!(busy.query("select 2").words(), "T D(2) C(SELECT 1) Z(T)");
    let refused = std::net::TcpStream::connect(proxy.addr()).is_err();
    assert!(refused, "no further client is accepted");
    busy.send(&[query("commit")]);
    let replies = busy.rest().words();
    assert!(replies.starts_with("C(COMMIT) Z(I)"), "{replies}");
    proxy.wait_for_end();
}

/// Sends the beginning of a request after a COMMIT, and the rest when the drain has begun.
fn drained_amid_a_request(proxy: &mut Proxy, database: &str) {
    let mut busy = proxy.open(database);
    let mut idle = proxy.open("postgres");
    busy.run("begin");
    let both = encode(&[query("commit"), query("select 2"), query("select 3")]);
    busy.write(&both[..both.len() - 2]);
    assert_eq!(busy.ready().words(), "C(COMMIT) Z(I)");
    assert_eq!(busy.ready().words(), "T D(2) C(SELECT 1) Z(I)");
    proxy.signal("TERM");
    assert_eq!(idle.rest().code(), "57P01");
    busy.write(&both[both.len() - 2..]);
    assert_eq!(busy.ready().words(), "T D(3) C(SELECT 1) Z(I)");
    assert_eq!(busy.rest().words(), "E(57P01)");
    proxy.wait_for_end();
}

#[test]
fn e84_nobody_is_cut_off_amid_a_request() {
    let database = database("drain_pipeline");
    drained_amid_a_request(&mut over_15().start(), database);
    let config = over_15().pool("pool_mode", "\"session\"");
    drained_amid_a_request(&mut config.pool("pool_size", "2").start(), database);
}

#[test]
fn terminating_twice_does_not_wait() {
    let mut proxy = over_15().start();
    let mut busy = proxy.open("postgres");
    busy.run("begin");
    proxy.signal("TERM");
    // If two signals of one kind are pending at once, they become one.
    eventually("it has heard the first", || {
        proxy.log().contains("waiting for transactions to end")
    });
    proxy.signal("TERM");
    assert_eq!(busy.rest().code(), "57P01");
    proxy.wait_for_end();
}

/// Configures two cores, and servers enough.
fn many() -> Config {
    over_15().general("workers", "2").pool("pool_size", "8")
}

#[test]
fn a_database_can_be_dropped_that_clients_have_just_left() {
    let proxy = many().pool("min_pool_size", "1").start();
    let mut owner = proxy.open("postgres");
    owner.run("create database \"leav\"\"ing\"");
    let mut clients: Vec<_> = (0..4).map(|_| proxy.open("leav\"ing")).collect();
    // One server is being reset, one still works for a client that has left, and the rest are idle.
    clients.iter_mut().for_each(|client| client.run("begin; select 1; commit"));
    clients[0].run("create temp table t (a int)");
    clients[1].send(&[query("select pg_sleep(0.5)")]);
    clients.into_iter().for_each(Session::leave);
    owner.run("/* */ drop DATABASE if exists \"leav\"\"ing\"");
    owner.run("create database leaving");
    let mut last = proxy.open("leaving");
    last.run("listen x");
    last.vanish();
    let rename = [parse("", "alter database leaving rename to left_behind"), bind("", &[])];
    let replies = owner.ask(&[&rename[..], &[execute(), Msg::Sync]].concat()).words();
    assert_eq!(replies, "1 2 C(ALTER DATABASE) Z(I)");
    let mut source = proxy.open("left_behind");
    source.run("set work_mem = '1MB'");
    source.leave();
    owner.run("create database copied template left_behind");
    assert_eq!(proxy.open("copied").value("select 1"), "1", "nothing is left for ever");
    owner.run("drop database left_behind");
}

#[test]
fn a_database_that_is_to_be_left_still_serves_who_waits() {
    let database = database("in_demand");
    let proxy = many().pool("pool_size", "1").start();
    let mut owner = proxy.open("postgres");
    let mut holder = proxy.open(database);
    holder.run("begin");
    let mut waits = proxy.open(database);
    waits.send(&[query("select 7")]);
    owner.send(&[query(&format!("drop database {database}"))]);
    let asks = format!("select count(*) from pg_stat_activity where query like 'drop%{database}'");
    let mut direct = Session::open(addr(cluster(Version::V15)), "postgres");
    eventually("it is asked for", || direct.value(&asks) == "1");
    holder.run("commit");
    assert_eq!(waits.ready().words(), "T D(7) C(SELECT 1) Z(I)");
    assert_eq!(owner.ready().words(), "C(DROP DATABASE) Z(I)");
}
