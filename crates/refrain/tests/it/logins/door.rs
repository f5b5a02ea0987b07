//! Connections that have not logged in: how many there may be, which are closed, and with what
//! error.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use refrain_differ::reply::{Frame, frame_end};
use socket2::{Domain, Socket, Type};
use xtask::ports::free_port;
use xtask::records::SSL_REQUEST;

use crate::session::{LIMIT, Session, startup};
use crate::world::{Config, Proxy, Version, addr, cluster, eventually};

const SSL: &[u8] = &SSL_REQUEST;
const GSS: &[u8] = &[0, 0, 0, 8, 4, 210, 22, 48];
const PARAMS: [(&str, &str); 2] = [("user", "postgres"), ("database", "postgres")];

fn over_15() -> Config {
    Config::over(cluster(Version::V15))
}

/// Connects from an address of this machine and sends nothing.
fn silent(proxy: &Proxy, from: u8) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0)).into()).unwrap();
    socket.connect(&proxy.addr().into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// True if the connection has been closed without a byte.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let closed = matches!(stream.read(&mut [0]), Ok(0));
    stream.set_nonblocking(false).unwrap();
    closed
}

fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn logging_in(proxy: &Proxy) -> usize {
    let lists = proxy.show("lists");
    let row = lists.iter().find(|row| row["list"] == "login_clients").unwrap();
    row["items"].parse().unwrap()
}

#[test]
fn silent_connections_keep_nobody_out() {
    let proxy = over_15().general("max_client_conn", "3").start();
    let silent: Vec<_> = (0..100).map(|_| silent(&proxy, 1)).collect();
    eventually("they are all there", || logging_in(&proxy) >= 100);
    let mut clients: Vec<_> = (0..3).map(|_| proxy.open("postgres")).collect();
    for client in &mut clients {
        assert_eq!(client.value("select 1"), "1");
    }
    assert_eq!(Session::login(proxy.addr(), &PARAMS).unwrap_err().code(), "53300");
    // An operator can still log in to look for the cause.
    assert!(logging_in(&proxy) >= 100);
    drop(silent);
}

#[test]
fn the_oldest_of_the_address_with_the_most_makes_way() {
    let proxy = over_15().general("max_login_conn", "4").general("workers", "2").start();
    let mut before = silent(&proxy, 1);
    let mut flood: Vec<_> = (0..20).map(|_| silent(&proxy, 2)).collect();
    let mut closed = || flood.iter_mut().filter_map(|late| is_closed(late).then_some(())).count();
    eventually("all but three are closed", || closed() >= 17);
    assert!(!is_closed(&mut before));
    // The connection that was open before and one that comes now can both log in.
    for mut stream in [before, silent(&proxy, 3)] {
        stream.write_all(&startup(0x0003_0000, &PARAMS)).unwrap();
        let mut tag = [0];
        stream.read_exact(&mut tag).unwrap();
        assert_eq!(tag, [b'R']);
    }
    let mut session = proxy.open("postgres");
    assert_eq!(session.value("select 1"), "1");
}

#[test]
fn descriptors_are_kept_for_servers_the_console_and_metrics() {
    let metrics = free_port().unwrap();
    let listen = format!("\"127.0.0.1:{metrics}\"");
    let config = over_15().pool("pool_size", "5").general("metrics_listen", &listen);
    let proxy = config.start_with_descriptors(300);
    let mut silent: Vec<_> = (0..600).map(|_| silent(&proxy, 2)).collect();
    eventually("the first has gone", || is_closed(&mut silent[0]));
    let mut clients: Vec<_> = (0..5).map(|_| proxy.open("postgres")).collect();
    for client in &mut clients {
        client.run("begin");
    }
    assert!(logging_in(&proxy) < 300);
    let text = get(metrics, "/metrics");
    assert!(text.contains("\nrefrain_logins_crowded_out_total "), "{text}");
    eventually("it is logged", || {
        proxy.log().contains("300 file descriptors leave room for")
            && proxy.log().contains("were closed so far to make room")
    });
}

/// Connections that make way are closed a moment after others have come. In that moment all
/// descriptors for clients may be in use.
#[test]
fn who_comes_behind_a_burst_is_let_in() {
    for driver in ["uring", "epoll"] {
        let config = over_15().general("driver", &format!("{driver:?}"));
        let proxy = config.start_with_descriptors(300);
        proxy.signal("STOP");
        let burst: Vec<_> = (0..250).map(|_| silent(&proxy, 2)).collect();
        let mut last = silent(&proxy, 3);
        last.write_all(&startup(0x0003_0000, &PARAMS)).unwrap();
        proxy.signal("CONT");
        let mut tag = [0];
        last.read_exact(&mut tag).unwrap();
        assert_eq!(tag, [b'R'], "{driver}");
        drop(burst);
    }
}

/// Returns SQLSTATE and message of the error after these packets. Reads the refusals (`N`) of
/// requests to encrypt in between.
fn refusal(addr: SocketAddr, packets: &[&[u8]]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let (last, first) = packets.split_last().unwrap();
    for packet in first {
        stream.write_all(packet).unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"N");
    }
    stream.write_all(last).unwrap();
    let mut bytes = Vec::new();
    // A reset at the end loses no bytes.
    let _ = stream.read_to_end(&mut bytes);
    let bytes = bytes.strip_prefix(b"N").unwrap_or(&bytes);
    let end = frame_end(bytes).unwrap()?;
    let frame = Frame::new(bytes[0], &bytes[5..end]);
    assert_eq!((frame.tag, end), (b'E', bytes.len()));
    Some((frame.field(b'C').to_vec(), frame.field(b'M').to_vec()))
}

#[test]
fn what_is_wrong_with_a_first_packet_is_said_as_postgresql_does() {
    let proxy = over_15().start();
    let direct = addr(cluster(Version::V18));
    let packet = |version: u32, body: &[u8]| {
        let length = u32::try_from(body.len() + 8).unwrap();
        [&length.to_be_bytes(), &version.to_be_bytes(), body].concat()
    };
    let v4 = packet(0x0004_0000, b"\0");
    let nobody = packet(0x0003_0000, b"\0");
    let cut = packet(0x0003_0000, b"user\0postgres");
    let more = packet(0x0003_0000, b"user\0postgres\0\0x");
    let with = |request: &[u8]| [request, &startup(0x0003_0000, &PARAMS)].concat();
    let (ssl, gss) = (with(SSL), with(GSS));
    let cases: [&[&[u8]]; 10] = [
        &[SSL, SSL],
        &[GSS, GSS],
        &[&v4],
        &[&nobody],
        &[&cut],
        &[&more],
        &[&ssl],
        &[&gss],
        &[&[0, 0, 0, 4]],
        &[&[0, 0, 99, 4, 0, 3, 0, 0]],
    ];
    for case in cases {
        assert_eq!(refusal(proxy.addr(), case), refusal(direct, case), "{case:?}");
    }
}

/// Repeated requests of one kind are refused. Released PostgreSQL versions forget a request once
/// the other kind is asked for, which is fixed upstream.
#[test]
fn each_way_to_encrypt_is_asked_for_once() {
    let proxy = over_15().start();
    for requests in [[SSL, GSS, SSL], [GSS, SSL, GSS]] {
        let (sqlstate, _) = refusal(proxy.addr(), &requests).unwrap();
        assert_eq!(sqlstate, b"0A000", "{requests:?}");
    }
    let mut session = Session::raw(proxy.addr(), &[]);
    for request in [GSS, SSL] {
        session.write(request);
        let mut byte = [0];
        session.second().read_exact(&mut byte).unwrap();
        assert_eq!(byte, *b"N");
    }
    session.write(&startup(0x0003_0000, &PARAMS));
    assert!(session.ready().status().is_some());
}

#[test]
fn a_message_that_proves_nothing() {
    let user = "[users.postgres]\npassword = \"secret\"\n";
    for (auth, wanted) in [("password", "password"), ("md5", "password"), ("scram", "SASL")] {
        let config = over_15().general("auth", &format!("{auth:?}")).more(user);
        let proxy = config.start();
        let mut session = Session::raw(proxy.addr(), &startup(0x0003_0000, &PARAMS));
        session.write(b"Q\0\0\0\x0dselect 1\0");
        let reply = session.rest();
        let error = reply.error().unwrap();
        assert_eq!(error.field(b'C'), b"08P01");
        let message = format!("expected {wanted} response, got message type 81");
        assert_eq!(String::from_utf8_lossy(error.field(b'M')), message);
    }
}

/// The message is that of PostgreSQL's log: PostgreSQL sends its clients nothing at this point.
#[test]
fn a_login_that_takes_too_long() {
    let user = "[users.postgres]\npassword = \"secret\"\n";
    let config = over_15().general("auth", "\"scram\"").more(user);
    let proxy = config.general("client_login_timeout", "\"200ms\"").start();
    let mut asked = Session::raw(proxy.addr(), &startup(0x0003_0000, &PARAMS));
    let reply = asked.rest();
    let error = reply.error().unwrap();
    assert_eq!(error.field(b'C'), b"57014");
    assert_eq!(error.field(b'M'), b"canceling authentication due to timeout");
    // Without a startup packet the client gets no error, from PostgreSQL or from Refrain.
    for begun in [&b""[..], &[0, 0], SSL] {
        let mut stream = TcpStream::connect(proxy.addr()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.write_all(begun).unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        assert_eq!(said, if begun == SSL { &b"N"[..] } else { b"" });
    }
}
