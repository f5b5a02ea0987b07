//! `/metrics` and `/healthz` while callers misbehave, there or at the port for clients: both are
//! answered, and a lack of descriptors, threads or memory ends nothing.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};

use xtask::ports::free_port;

use crate::session::{LIMIT, Session};
use crate::world::{Config, Proxy, Version, cluster, eventually};

/// Returns a configuration over SQLite, and the port of its metrics.
fn config() -> (Config, u16) {
    let port = free_port().unwrap();
    let address = format!("\"127.0.0.1:{port}\"");
    (Config::sqlite().general("metrics_listen", &address), port)
}

fn start() -> (Proxy, u16) {
    let (config, port) = config();
    (config.start(), port)
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Reads until the other side closes or resets the connection.
fn rest(stream: &mut TcpStream) -> String {
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Err(error) if error.kind() != io::ErrorKind::ConnectionReset => panic!("{error}"),
        _ => String::from_utf8(said).unwrap(),
    }
}

pub(crate) fn ask(port: u16, request: &str) -> String {
    let mut stream = connect(port);
    stream.write_all(request.as_bytes()).unwrap();
    rest(&mut stream)
}

pub(crate) fn get(port: u16, path: &str) -> String {
    ask(port, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
}

fn is_well(port: u16) {
    let said = get(port, "/healthz");
    assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("\r\n\r\nok\n"), "{said:?}");
    let said = get(port, "/metrics");
    assert!(said.starts_with("HTTP/1.1 200 "), "{said:?}");
    assert!(said.contains("\nrefrain_cores_answering 2\n"), "{said}");
}

#[test]
fn the_metrics_come_in_the_form_that_is_asked_for() {
    let (_proxy, port) = start();
    let asked = |headers: &str| {
        let mut stream = connect(port);
        let request = format!("GET /metrics HTTP/1.1\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        let end = said.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let body = said.split_off(end);
        (String::from_utf8(said).unwrap(), body)
    };
    let (head, open) = asked("Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(head.contains("\r\nContent-Type: application/openmetrics-text; version=1.0.0;"));
    let open = String::from_utf8(open).unwrap();
    assert!(open.ends_with("\n# EOF\n"), "{open}");
    // A counter's samples have an ending that its family has not.
    let counters =
        open.lines().filter_map(|line| line.strip_suffix(" counter")).collect::<Vec<_>>();
    assert!(counters.len() > 20, "{open}");
    for counter in counters {
        let name = counter.strip_prefix("# TYPE ").unwrap();
        assert!(!name.ends_with("_total"), "{name}");
        let others = open.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with([' ', '{']))
        });
        assert_eq!(others.count(), 0, "{name}");
    }
    let (head, small) = asked("Accept-Encoding: gzip\r\n");
    assert!(head.contains("\r\nContent-Encoding: gzip\r\n"), "{head}");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*small).read_to_string(&mut text).unwrap();
    assert!(text.contains("\nrefrain_cores_answering 2\n") && !text.contains("# EOF"), "{text}");
    assert!(small.len() * 2 < text.len(), "{} of {} bytes", small.len(), text.len());
}

#[test]
fn what_is_asked_for_is_answered() {
    let (_proxy, port) = start();
    is_well(port);
    let head = ask(port, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head:?}");
    assert!(!head.contains("\r\nContent-Length: 0\r\n"), "{head:?}");
    assert!(ask(port, "GET /healthz?x HTTP/1.0\n\n").ends_with("\r\n\r\nok\n"));
    assert!(get(port, "/x").starts_with("HTTP/1.1 404 "));
    let post = ask(port, "POST /metrics HTTP/1.1\r\nContent-Length: 2\r\n\r\nxx");
    assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("\r\nAllow: GET, HEAD\r\n"));
    assert!(ask(port, "no request\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // A request may come byte by byte.
    let mut slow = connect(port);
    b"GET /healthz HTTP/1.1\r\n\r\n".iter().for_each(|byte| slow.write_all(&[*byte]).unwrap());
    slow.shutdown(Shutdown::Write).unwrap();
    assert!(rest(&mut slow).ends_with("\r\n\r\nok\n"));
}

#[test]
fn without_descriptors_there_is_an_answer() {
    let (config, port) = config();
    let mut proxy = config.start_with_descriptors(150);
    is_well(port);
    let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(proxy.addr()).unwrap()).collect();
    let mut taken = 0;
    eventually("it takes no more", || {
        let before = std::mem::replace(&mut taken, proxy.descriptors());
        taken == before
    });
    for _ in 0..10 {
        is_well(port);
    }
    drop(silent);
    is_well(port);
    assert!(proxy.is_running());
}

#[test]
fn connections_take_no_threads_and_are_few() {
    let (mut proxy, port) = start();
    is_well(port);
    let (threads, descriptors) = (proxy.threads(), proxy.descriptors());
    let silent: Vec<_> = (0..400).map(|_| connect(port)).collect();
    let mut slow: Vec<_> = (0..100).map(|_| connect(port)).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"GET /healthz HT").unwrap());
    is_well(port);
    // The kernel's workers of io_uring count as threads, and come and go.
    assert!(proxy.threads() < threads + 20, "{} threads", proxy.threads());
    assert!(proxy.descriptors() < descriptors + 100, "{} descriptors", proxy.descriptors());
    drop((silent, slow));
    is_well(port);
    assert!(proxy.is_running());
}

#[test]
fn a_request_without_end_is_cut_off() {
    let (mut proxy, port) = start();
    let before = proxy.memory();
    let chunk = [b'x'; 1 << 16];
    let mut endless = connect(port);
    endless.write_all(b"GET /healthz HTTP/1.1\r\nX: ").unwrap();
    // 64 MiB, if the server took them all.
    let sent = (0..1024).take_while(|_| endless.write_all(&chunk).is_ok()).count();
    assert!(sent < 1024, "all of it was taken");
    assert!(proxy.memory() < before + (8 << 20), "{} bytes", proxy.memory());
    let long = "x".repeat(9000);
    assert!(get(port, &format!("/{long}")).starts_with("HTTP/1.1 431 "));
    let many = "A: b\r\n".repeat(1000);
    let said = ask(port, &format!("GET /healthz HTTP/1.1\r\n{many}\r\n"));
    assert!(said.starts_with("HTTP/1.1 431 "), "{said:?}");
    is_well(port);
    assert!(proxy.is_running());
}

#[test]
fn who_does_not_read_keeps_nobody_waiting() {
    let (mut proxy, port) = start();
    let mut deaf: Vec<_> = (0..100).map(|_| connect(port)).collect();
    for stream in &mut deaf {
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    }
    is_well(port);
    let mut gone = connect(port);
    gone.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    drop(gone);
    is_well(port);
    assert!(proxy.is_running());
}

#[test]
fn readiness_is_that_every_database_has_a_host() {
    let (metrics, lost) = (free_port().unwrap(), free_port().unwrap());
    let config = Config::over(cluster(Version::V15)).only("postgres");
    let config = config.general("metrics_listen", &format!("\"127.0.0.1:{metrics}\""));
    let more = format!("[databases.lost]\nhost = \"127.0.0.1\"\nport = {lost}\n");
    let proxy = config.more(&more).start();
    let is = |status: &str, body: &str| {
        let said = get(metrics, "/readyz");
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said:?}");
        assert!(said.ends_with(body), "{said:?}");
    };
    is("200", "\r\n\r\nready\n");
    assert!(Session::login(proxy.addr(), &[("user", "postgres"), ("database", "lost")]).is_err());
    is("503", &format!("\r\n\r\ndatabase lost: no host may serve (127.0.0.1:{lost})\n"));
    assert!(get(metrics, "/healthz").starts_with("HTTP/1.1 200 "));
    // Who asks finds out that the host is back: a load balancer sends no client meanwhile.
    let _back = TcpListener::bind((Ipv4Addr::LOCALHOST, lost)).unwrap();
    is("200", "ready\n");
    assert_eq!(proxy.open("postgres").value("select 1"), "1");
}
