//! Packets that break the protocol, in either direction.

use refrain_mysql::errors::Brand;
use refrain_mysql::login::{ClientLogin, ClientStep, ServerLogin, ServerStep, Welcome};
use refrain_mysql_wire::handshake::{Attributes, HandshakeResponse41, NONCE_BYTES};
use refrain_mysql_wire::packet;
use refrain_mysql_wire::reply::ErrPacket;
use refrain_mysql_wire::{Capabilities, Status};
use refrain_pool::disconnect::DisconnectReason;

use super::wire::{flavour, wanted};

/// Returns a response with these capabilities.
pub(crate) fn response(capabilities: Capabilities) -> HandshakeResponse41<'static> {
    HandshakeResponse41 {
        capabilities: capabilities - Capabilities::SSL,
        max_packet: 1 << 24,
        collation: 45,
        user: b"ann",
        proof: b"12345678901234567890",
        database: b"shop",
        plugin: b"mysql_native_password",
        attributes: Attributes(b"\x01a\x01b"),
        zstd_level: 0,
    }
}

/// Greets a client.
fn greet(brand: Brand) -> (ClientLogin, Capabilities) {
    let greeting = flavour(brand, "mysql_native_password");
    let welcome = Welcome {
        flavour: &greeting,
        random: [1; NONCE_BYTES],
        connection_id: 1,
        has_tls: false,
        host: "127.0.0.1",
    };
    (ClientLogin::greet(&welcome, &mut Vec::new()), greeting.offered(false))
}

/// Sends a client's first packet. Returns the reason and the error's number, state and sequence id.
fn refused(payload: &[u8], sequence: u8) -> (DisconnectReason, u16, [u8; 5], u8) {
    let (mut login, _) = greet(Brand::MySql);
    let mut out = Vec::new();
    let step = login.input(payload, sequence, &mut out);
    let ClientStep::Refused(reason) = step else { panic!("{step:?}") };
    let packet = packet::split(&out).expect("a packet");
    assert!(packet.rest.is_empty());
    let err = ErrPacket::read(packet.payload).expect("an error");
    // Nothing more is taken.
    assert!(matches!(
        login.input(payload, login.sequence(), &mut Vec::new()),
        ClientStep::Refused(_)
    ));
    (reason, err.number, err.sqlstate.expect("a state"), packet.header.sequence)
}

#[test]
fn clients_that_break_the_protocol_are_told() {
    let (_, offered) = greet(Brand::MySql);
    let mut whole = Vec::new();
    response(offered).write(&mut whole);
    let old = Capabilities::LONG_FLAG | Capabilities::TRANSACTIONS;
    let mut insecure = Vec::new();
    response(offered - Capabilities::SECURE_CONNECTION).write(&mut insecure);
    let old = [&(old.bits() as u16).to_le_bytes()[..], b"\0\0\x01ann\0"].concat();
    for old in [old, insecure] {
        assert_eq!(refused(&old, 1), (DisconnectReason::ClientVersion, 1251, *b"08004", 2));
    }
    let bad = (DisconnectReason::ClientProtocol, 1043, *b"08S01", 2);
    let plugin = b"mysql_native_password\0\x04\x01a\x01b".len();
    for cut in (0..whole.len() - plugin).filter(|&cut| cut != 1) {
        assert_eq!(refused(&whole[..cut], 1), bad, "cut at {cut}");
    }
    // A request for TLS that is not offered.
    assert_eq!(refused(&[&whole[..1], &[whole[1] | 8], &whole[2..32]].concat(), 1), bad);
    assert_eq!(refused(&whole, 0), (DisconnectReason::Synchronization, 1156, *b"08S01", 1));
}

#[test]
fn no_packet_of_a_client_panics() {
    let (_, offered) = greet(Brand::MariaDb);
    let mut whole = Vec::new();
    response(offered).write(&mut whole);
    for at in 0..whole.len() {
        for byte in [0, 1, 0x7F, 0xFB, 0xFE, 0xFF] {
            let mut changed = whole.clone();
            changed[at] = byte;
            let (mut login, _) = greet(Brand::MariaDb);
            let step = login.input(&changed, 1, &mut Vec::new());
            assert!(matches!(step, ClientStep::WhoIs | ClientStep::Refused(_)), "{step:?}");
        }
    }
}

/// Feeds packets to the login to a server. Returns the reason of its failure.
fn fails(payloads: &[&[u8]]) -> (String, bool) {
    let mut login = ServerLogin::new(wanted("ann", "secret"), [0; 20]);
    let (last, first) = payloads.split_last().expect("a packet");
    let mut sequence = 0;
    for payload in first {
        let mut out = Vec::new();
        let step = login.input(payload, sequence, &mut out);
        assert!(matches!(step, ServerStep::More), "{step:?}");
        sequence = login.sequence();
    }
    let step = login.input(last, sequence, &mut Vec::new());
    let ServerStep::Failed(failure) = step else { panic!("{step:?}") };
    (failure.why, failure.is_outage)
}

/// Returns the greeting of a server with this plugin.
fn greeting(plugin: &str) -> Vec<u8> {
    let flavour = flavour(Brand::MySql, plugin);
    let mut greeting = flavour.greeting(5, [b'n'; NONCE_BYTES], false);
    greeting.plugin = plugin.as_bytes();
    greeting.status = Status::AUTOCOMMIT;
    let mut out = Vec::new();
    greeting.write(&mut out);
    out
}

#[test]
fn a_server_that_breaks_the_protocol_is_left() {
    let sha2 = greeting("caching_sha2_password");
    let native = greeting("mysql_native_password");
    let switch = |plugin: &str, data: &[u8]| [b"\xfe", plugin.as_bytes(), b"\0", data].concat();
    let cases: &[(&[&[u8]], &str, bool)] = &[
        (&[b""], "greeting is none of", false),
        (&[b"\x09old\0"], "greeting is none of", false),
        (&[b"\xff\x10\x04#08004Too many connections"], "Too many connections (1040)", true),
        (&[b"\xff\x10\x04Too many connections"], "Too many connections (1040)", true),
        (&[b"\xff\x69\x04Host 'x' is blocked"], "Host 'x' is blocked (1129)", true),
        (&[b"\xff\x6a\x04Host 'x' is not allowed"], "Host 'x' is not allowed (1130)", false),
        (&[&sha2, b"\xff\x1d\x04#08S01Server shutdown in progress"], "(1053)", true),
        (&[&sha2, b"\xff\x15\x04#28000Access denied"], "Access denied (1045)", false),
        (&[&sha2, &switch("client_ed25519", &[1; 32])], "asks for client_ed25519, which", false),
        (&[&sha2, &switch("parsec", &[1; 32])], "asks for parsec, which", false),
        (&[&sha2, &switch("mysql_clear_password", b"")], "asks for mysql_clear_password", false),
        (&[&sha2, b"\xfe"], "asks for mysql_old_password", false),
        (&[&sha2, &switch("mysql_native_password", b"short\0")], "without a nonce", false),
        (&[&sha2, b""], "malformed", false),
        (&[&sha2, b"\x01\x05"], "data that no plugin", false),
        (&[&native, b"\x01\x04"], "data that no plugin", false),
        (&[&sha2, b"\x01\x03", b"\x01\x03"], "data that no plugin", false),
        (&[&sha2, b"\x01\x04", b"\x01no key"], "RSA key", false),
        (&[&sha2, b"\x01\x04", b"\x01\xff"], "RSA key", false),
        (&[&sha2, b"\x01\x03", &switch("mysql_native_password", &[1; 21])], "in the middle", false),
    ];
    for (payloads, words, is_outage) in cases {
        let (why, outage) = fails(payloads);
        assert!(why.contains(words), "{why} and not {words}");
        assert_eq!(outage, *is_outage, "{why}");
    }
}

#[test]
fn no_packet_of_a_server_panics() {
    let whole = greeting("caching_sha2_password");
    for cut in 0..whole.len() {
        let mut login = ServerLogin::new(wanted("ann", "secret"), [0; 20]);
        let step = login.input(&whole[..cut], 0, &mut Vec::new());
        assert!(matches!(step, ServerStep::Failed(_) | ServerStep::More), "{step:?}");
    }
    for at in 0..whole.len() {
        for byte in [0, 1, 0x7F, 0xFB, 0xFE, 0xFF] {
            let mut changed = whole.clone();
            changed[at] = byte;
            let mut login = ServerLogin::new(wanted("ann", "secret"), [0; 20]);
            let mut out = Vec::new();
            login.input(&changed, 0, &mut out);
            login.input(b"\x01\x04", 2, &mut out);
        }
    }
    let mut login = ServerLogin::new(wanted("ann", "secret"), [0; 20]);
    let step = login.input(&whole, 3, &mut Vec::new());
    assert!(matches!(step, ServerStep::Failed(_)), "{step:?}");
}
