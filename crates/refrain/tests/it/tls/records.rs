//! Records that no driver sends, within sessions that are open. They end the session that sent
//! them, if any, and harm no other.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use rustls::StreamOwned;
use xtask::records::{self, ContentType, RECORD_BYTES_MAX, TLS12, TLS13};

use crate::session::{LIMIT, Session, startup};
use crate::tls::{files, hello, is_in, is_logged, new_client, nothing_is_left, to_clients};
use crate::transport::{Sealing, Way};
use crate::world::Proxy;

/// An alert that ends nothing, and says that there will be no second handshake.
const NO_RENEGOTIATION: [u8; 2] = [1, 100];

/// The words of the log for each kind of bytes below.
const WORDS: [&str; 7] = [
    "its connection broke (received corrupt message of type MessageTooLarge)",
    "its connection broke (peer sent excess record size)",
    "its connection broke (peer misbehaved: TooManyEmptyFragments)",
    "its connection broke (cannot decrypt peer's message)",
    "its connection broke (cannot decrypt peer's message)",
    "its connection broke (cannot decrypt peer's message)",
    "its connection broke (received corrupt message of type InvalidContentType)",
];

/// Configures Refrain, which logs the end of a session that was a client's fault at this level
/// alone.
fn started() -> Proxy {
    to_clients("prefer", "server").general("log_level", "\"debug\"").start()
}

/// Opens a session with this version of TLS.
fn open(proxy: &Proxy, version: &'static rustls::SupportedProtocolVersion) -> Session {
    let root = fs::read_to_string(files().path("root.crt")).unwrap();
    let way = Way::Tls(records::client(&root, version).unwrap(), Sealing::Whole);
    let first = startup(0x0003_0000, &[("user", "postgres"), ("database", "postgres")]);
    let mut session = Session::named("C1".to_owned(), proxy.addr(), &way, &first);
    assert!(session.ready().status().is_some());
    session
}

/// Returns a record with a header that announces this length, and bytes of no use.
fn announced(length: u16) -> Vec<u8> {
    [&[0x17, 3, 3][..], &length.to_be_bytes(), &vec![7; usize::from(length)]].concat()
}

#[test]
fn records_that_break_the_protocol_end_their_session_alone() {
    let proxy = started();
    for version in [&TLS12, &TLS13] {
        let mut other = open(&proxy, version);
        // The session before has left a server.
        other.run("select 1");
        let before = proxy.descriptors();
        for (kind, words) in WORDS.iter().enumerate() {
            let mut session = open(&proxy, version);
            session.run("select 1");
            let transport = session.transport();
            let sealed = transport.records();
            let bytes = match kind {
                // A record of more than TLS permits, as announced and as sealed.
                0 => announced(0xffff),
                1 => sealed.data(&vec![0; RECORD_BYTES_MAX + 1]).unwrap(),
                // A flood of records of nothing.
                2 => (0..10_000).flat_map(|_| sealed.data(b"").unwrap()).collect(),
                // The end of the stream in the clear, as anybody on the way could put it in.
                3 => vec![0x15, 3, 3, 0, 2, 1, 0],
                // A changed byte.
                4 => {
                    let mut record = sealed.data(b"S\0\0\0\x04").unwrap();
                    record[9] ^= 1;
                    record
                }
                // A record twice.
                5 => sealed.data(b"H\0\0\0\x04").unwrap().repeat(2),
                // Contents of no kind.
                _ => sealed.seal(ContentType::Unknown(99), b"what").unwrap(),
            };
            // The peer may have gone before it has taken all.
            let _ = transport.write_raw(&bytes);
            let mut rest = Vec::new();
            let told = loop {
                match transport.read(&mut rest) {
                    Ok(0) => break "the end".to_owned(),
                    Ok(_) => {}
                    Err(error) => break error.to_string(),
                }
            };
            assert!(rest.is_empty(), "{kind}: {}", rest.escape_ascii());
            // rustls has no alert for what is merely too much, and bytes that were not read turn an
            // alert into a reset.
            let known = ["alert [2, ", "the end", "reset by peer"];
            assert!(known.iter().any(|known| told.contains(known)), "{kind}: {told}");
            is_logged(&proxy, words);
            other.run("select 1");
        }
        other.leave();
        nothing_is_left_but_a_server(&proxy, before);
    }
}

/// Waits until the console's client is the only one.
fn nothing_is_left_but_a_server(proxy: &Proxy, descriptors: usize) {
    proxy.order("reconnect");
    nothing_is_left(proxy, descriptors);
}

#[test]
fn a_second_handshake_is_declined_once_and_then_ends_the_session() {
    let proxy = started();
    let mut session = open(&proxy, &TLS12);
    for round in 0..2 {
        let transport = session.transport();
        let again = transport.records().seal(ContentType::Handshake, &hello()[5..]).unwrap();
        transport.write_raw(&again).unwrap();
        let told = transport.read(&mut Vec::new());
        if round == 0 {
            let told = told.unwrap_err().to_string();
            assert_eq!(told, format!("alert {NO_RENEGOTIATION:?}"));
            session.run("select 1");
        } else {
            assert_eq!(told.unwrap(), 0);
        }
    }
    is_logged(&proxy, "TooManyRenegotiationRequests");
    is_in(&proxy, "sslmode=require");
}

#[test]
fn keys_may_be_changed_but_not_without_end() {
    let proxy = started();
    let tcp = TcpStream::connect(proxy.addr()).unwrap();
    tcp.set_read_timeout(Some(LIMIT)).unwrap();
    let mut stream = StreamOwned::new(new_client(&["postgresql"]), tcp);
    stream
        .write_all(&startup(0x0003_0000, &[("user", "postgres"), ("database", "postgres")]))
        .unwrap();
    let mut ask = |updates: usize| -> std::io::Result<()> {
        for _ in 0..updates {
            stream.conn.refresh_traffic_keys().map_err(std::io::Error::other)?;
        }
        stream.write_all(b"S\0\0\0\x04")?;
        let mut got = Vec::new();
        while !got.ends_with(b"Z\0\0\0\x05I") {
            let mut chunk = [0; 4096];
            match stream.read(&mut chunk)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                count => got.extend_from_slice(&chunk[..count]),
            }
        }
        Ok(())
    };
    // That of the login, and one for each Sync.
    ask(0).unwrap();
    for _ in 0..50 {
        ask(20).unwrap();
    }
    ask(10_000).unwrap_err();
    is_in(&proxy, "sslmode=require");
    is_logged(&proxy, "TooManyKeyUpdateRequests");
}

#[test]
fn bytes_behind_the_end_of_a_stream_are_not_read() {
    let proxy = started();
    let mut observer = proxy.open("postgres");
    observer.run("drop table if exists behind; create table behind (a int)");
    for is_polite in [true, false] {
        let mut session = open(&proxy, &TLS13);
        session.run("begin; insert into behind values (1)");
        let transport = session.transport();
        let mut bytes = Vec::new();
        if is_polite {
            bytes.extend(transport.records().goodbye().unwrap());
            bytes.extend(transport.records().data(b"Q\0\0\0\x0bcommit\0").unwrap());
        } else {
            // The end of TCP's stream, without one of TLS's own, within a record.
            bytes = transport.records().data(b"Q\0\0\0\x0bcommit\0").unwrap();
            bytes.pop();
        }
        transport.write_raw(&bytes).unwrap();
        transport.shut();
        assert_eq!(transport.read(&mut Vec::new()).unwrap(), 0);
    }
    assert_eq!(observer.value("select count(*) from behind"), "0");
}
