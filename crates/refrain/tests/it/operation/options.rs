//! Options that no other test covers: each has an effect.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

use refrain_differ::msg::Msg;

use crate::session::{Session, bind, cancel_request, execute, parse, query};
use crate::world::{Config, Proxy, Version, addr, cluster, database, eventually};

fn over_15() -> Config {
    Config::over(cluster(Version::V15))
}

/// Logs in, or returns the SQLSTATE of the refusal.
fn login(proxy: &Proxy, user: &str, database: &str) -> Result<Session, String> {
    Session::login(proxy.addr(), &[("user", user), ("database", database)])
        .map_err(|reply| reply.code())
}

fn wait_for_waiting(proxy: &Proxy, database: &str) {
    eventually("it waits", || {
        proxy.show_of("pools", database).iter().any(|pool| pool["cl_waiting"] == "1")
    });
}

#[test]
fn max_client_connections_of_a_database() {
    let (database, other) = (database("option_db_clients"), database("option_db_others"));
    let proxy = over_15().general("workers", "2").server("max_client_connections", "2").start();
    let (first, _second) = (proxy.open(database), proxy.open(database));
    assert_eq!(login(&proxy, "postgres", database).unwrap_err(), "53300");
    assert_eq!(proxy.open(other).value("select 1"), "1", "under *, each name has its own");
    first.leave();
    eventually("there is room", || login(&proxy, "postgres", database).is_ok());
}

#[test]
fn max_client_connections_of_a_user() {
    let database = database("option_user_clients");
    let proxy = over_15().more("[users.postgres]\nmax_client_connections = 1\n").start();
    let first = proxy.open(database);
    assert_eq!(login(&proxy, "postgres", database).unwrap_err(), "53300");
    first.vanish();
    eventually("there is room", || login(&proxy, "postgres", database).is_ok());
}

fn one_server_for_two(proxy: &Proxy, database: &str) {
    let mut holder = proxy.open(database);
    holder.run("begin");
    let mut waits = proxy.open(database);
    waits.send(&[query("select 1")]);
    wait_for_waiting(proxy, database);
    holder.run("commit");
    assert_eq!(waits.ready().words(), "T D(1) C(SELECT 1) Z(I)");
}

#[test]
fn max_connections_of_a_database() {
    let database = database("option_db_servers");
    let config = over_15().pool("pool_size", "5").server("max_connections", "1");
    one_server_for_two(&config.start(), database);
}

#[test]
fn max_connections_of_a_user() {
    let database = database("option_user_servers");
    let config = over_15().pool("pool_size", "5").more("[users.postgres]\nmax_connections = 1\n");
    one_server_for_two(&config.start(), database);
}

#[test]
fn reserve_pool() {
    let database = database("option_reserve");
    let config = over_15().pool("reserve_pool_size", "1");
    let proxy = config.pool("reserve_pool_timeout", "\"100ms\"").start();
    let mut holder = proxy.open(database);
    holder.run("begin");
    assert_eq!(proxy.open(database).value("select 1"), "1");
}

#[test]
fn servers_that_are_idle_or_old_are_closed() {
    let database = database("option_ages");
    let proxy = over_15().pool("server_idle_timeout", "\"100ms\"").start();
    proxy.open(database).run("select 1");
    eventually("it is closed", || proxy.show_of("servers", database).is_empty());
    let config = over_15().pool("server_lifetime", "\"1s\"");
    let proxy = config.pool("server_lifetime_jitter", "\"0%\"").start();
    let mut session = proxy.open(database);
    let pid = session.pid();
    eventually("it is another", || session.pid() != pid);
}

#[test]
fn server_connect_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let config = over_15().server("host", "\"127.0.0.1\"").server("port", &port);
    let proxy = config.pool("server_connect_timeout", "\"200ms\"").start();
    assert_eq!(login(&proxy, "postgres", "any").unwrap_err(), "57P03");
}

/// Passes everything on to PostgreSQL except cancel requests, whose connections it keeps open.
fn deaf_to_cancels(listener: &TcpListener) {
    let mut kept = Vec::new();
    for client in listener.incoming() {
        let mut client = client.unwrap();
        let mut first = [0; 8];
        client.read_exact(&mut first).unwrap();
        if first[4..] == 80_877_102_u32.to_be_bytes() {
            kept.push(client);
            continue;
        }
        let mut server = TcpStream::connect(addr(cluster(Version::V15))).unwrap();
        server.write_all(&first).unwrap();
        let ways = [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)];
        for (mut from, mut to) in ways {
            thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    }
}

#[test]
fn cancel_timeout() {
    let database = database("option_cancel");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    thread::spawn(move || deaf_to_cancels(&listener));
    let config = over_15().server("host", "\"127.0.0.1\"").server("port", &port);
    let config = config.server("sslmode", "\"disable\"");
    let proxy = config.general("cancel_timeout", "\"200ms\"").start();
    let mut session = proxy.open(database);
    let pid = session.pid();
    session.send(&[query("select pg_sleep(0.1)")]);
    Session::raw(proxy.addr(), &cancel_request(&session.key)).rest();
    assert_eq!(session.ready().words(), "T D() C(SELECT 1) Z(I)");
    let next = session.pid();
    let missed = proxy.counter("cancels") == 0;
    assert!(missed || next != pid, "a cancel that may hit at any time costs the server");
}

#[test]
fn shutdown_timeout() {
    let mut proxy = over_15().general("shutdown_timeout", "\"200ms\"").start();
    let mut busy = proxy.open("postgres");
    busy.run("begin");
    proxy.signal("TERM");
    assert_eq!(busy.rest().words(), "E(57P01)");
    proxy.wait_for_end();
}

#[test]
fn stats_users() {
    let config = over_15().general("admin_users", "[\"somebody\"]");
    let proxy = config.general("stats_users", "[\"postgres\"]").start();
    assert_eq!(proxy.console().query("show version").error(), None);
    assert_eq!(proxy.console().query("pause").code(), "42501");
    assert_eq!(login(&proxy, "nobody", "refrain").unwrap_err(), "42501");
}

#[test]
fn log_format_and_level() {
    let json = over_15().general("log_format", "\"json\"").start();
    // The log has a thread of its own, so a line may come later than its event.
    eventually("something is logged", || !json.log().is_empty());
    assert!(json.log().starts_with('{'), "{}", json.log());
    let quiet = over_15().general("log_level", "\"error\"").start();
    assert_eq!(quiet.log(), "");
}

#[test]
fn server_reset_query() {
    let database = database("option_reset");
    let left = |reset: &str| {
        let config = over_15().pool("pool_mode", "\"session\"");
        let proxy = config.pool("server_reset_query", &format!("{reset:?}")).start();
        let mut first = proxy.open(database);
        first.run("create temp table left_behind (a int)");
        let pid = first.pid();
        first.leave();
        let mut next = proxy.open(database);
        assert_eq!(next.pid(), pid);
        next.value("select count(*) from pg_class where relname = 'left_behind'")
    };
    assert_eq!((left("DISCARD ALL"), left("select 1")), ("0".to_owned(), "1".to_owned()));
}

/// Prepares and runs statements of about 900 bytes, each twice. Returns the last reply.
fn large_statements(proxy: &Proxy, database: &str, count: usize) -> String {
    let mut session = proxy.open(database);
    let mut said = String::new();
    for i in 0..count {
        let (name, text) = (format!("s{i}"), format!("select {i} /* {} */", "x".repeat(880)));
        said = session.ask(&[parse(&name, &text), Msg::Sync]).words();
        for _ in 0..2 {
            session.ask(&[bind(&name, &[]), execute(), Msg::Sync]);
        }
    }
    said
}

#[test]
fn bytes_of_statements() {
    let database = database("option_bytes");
    let config = || over_15().pool("max_cached_statement_bytes", "\"1KiB\"");
    let proxy = config().pool("max_client_statement_bytes", "\"4KiB\"").start();
    assert_eq!(large_statements(&proxy, database, 6), "E(54000) Z(I)");
    let proxy = config().pool("max_server_statement_bytes", "\"4KiB\"").start();
    assert_eq!(large_statements(&proxy, database, 6), "1 Z(I)");
    assert!(proxy.counter("evictions") > 0);
    let proxy = config().general("max_statement_bytes", "\"64KiB\"").start();
    assert_eq!(large_statements(&proxy, database, 90), "1 Z(I)");
    assert!(proxy.counter("statements_not_kept") > 0, "past the bound they run unkept");
}
