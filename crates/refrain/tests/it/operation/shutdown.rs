//! A shutdown by TERM: transactions end, no client begins another, and all are told.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::thread;

use refrain_differ::msg::Msg;
use xtask::ports::free_port;

use crate::session::{Session, bind, execute, parse, query};
use crate::world::{Config, Version, cluster, eventually};

/// Clients that ask without a pause.
const HOT: usize = 64;

/// Asks without a pause until the session ends. Returns what the client was told last.
fn asks_on(mut session: Session, request: &[Msg]) -> String {
    let is_end = |msg: &&Msg| matches!(msg, Msg::Query(_) | Msg::Sync);
    let replies = request.iter().filter(is_end).count();
    loop {
        session.send(request);
        for _ in 0..replies {
            let reply = session.ready();
            if reply.status().is_none() {
                return reply.words();
            }
        }
    }
}

fn hot_clients_are_told(config: Config, request: &(impl Fn() -> Vec<Msg> + Sync)) {
    let mut proxy = config.general("workers", "2").start();
    let all_are_hot = Barrier::new(HOT + 1);
    thread::scope(|scope| {
        let client = || {
            let mut session = proxy.open("postgres");
            session.run("select 1");
            all_are_hot.wait();
            asks_on(session, &request())
        };
        let clients: Vec<_> = (0..HOT).map(|_| scope.spawn(client)).collect();
        all_are_hot.wait();
        proxy.signal("TERM");
        for client in clients {
            assert_eq!(client.join().unwrap(), "E(57P01)");
        }
    });
    proxy.wait_for_end();
}

fn over_15() -> Config {
    Config::over(cluster(Version::V15)).pool("pool_size", "8")
}

#[test]
fn hot_clients_are_told_that_the_program_ends() {
    hot_clients_are_told(over_15(), &|| vec![query("select 1")]);
    let extended = || vec![parse("", "select $1::int"), bind("", &["7"]), execute(), Msg::Sync];
    hot_clients_are_told(over_15(), &extended);
}

#[test]
fn hot_clients_with_long_replies_or_pipelines_are_told() {
    hot_clients_are_told(over_15(), &|| vec![query("select 1"), query("select 2")]);
    hot_clients_are_told(over_15(), &|| vec![query("select repeat('x', 300000)")]);
}

#[test]
fn hot_clients_that_share_servers_or_keep_them_are_told() {
    let shares = over_15().pool("share_servers", "\"reads\"").pool("share_min_servers", "1");
    hot_clients_are_told(shares, &|| vec![query("select 1")]);
    let keeps = over_15().pool("pool_mode", "\"session\"").pool("pool_size", "64");
    hot_clients_are_told(keeps, &|| vec![query("select 1")]);
}

/// Returns the first line of an answer over HTTP.
fn asked(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn the_console_and_the_metrics_answer_until_the_end() {
    let port = free_port().unwrap();
    let mut proxy = over_15().general("metrics_listen", &format!("\"127.0.0.1:{port}\"")).start();
    let (mut console, mut busy) = (proxy.console(), proxy.open("postgres"));
    busy.run("begin");
    proxy.signal("TERM");
    eventually("the shutdown begins", || asked(port, "/healthz").starts_with("HTTP/1.1 503 "));
    assert!(asked(port, "/metrics").starts_with("HTTP/1.1 200 "));
    let pools = console.query("show pools").words();
    assert!(pools.ends_with("C(SHOW) Z(I)"), "{pools}");
    busy.send(&[query("commit")]);
    assert_eq!(busy.rest().words(), "C(COMMIT) Z(I) E(57P01)");
    assert_eq!(console.rest().words(), "E(57P01)");
    proxy.wait_for_end();
}
