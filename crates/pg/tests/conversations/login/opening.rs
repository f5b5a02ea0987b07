//! The beginning of a client's connection, up to its startup packet.

use std::net::SocketAddr;

use refrain_pool::ids::Peer;

use crate::talk::*;

/// SSLRequest.
const SSL: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
/// GSSENCRequest.
const GSS: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x30";

fn trusting(general: &str) -> Conversation {
    Conversation::new(format!("{general}\n{}", options("")))
}

#[test]
fn encryption_is_denied_once_each_and_then_the_startup_packet_is_read() {
    let talk = one_server();
    let alice = talk.newcomer();
    alice.sends_bytes(GSS).gets_bytes(b"N");
    alice.sends_bytes(SSL).gets_bytes(b"N");
    alice.asks_to_log_in(&[]);
    alice.is_let_in();
}

#[test]
fn a_second_request_for_encryption_ends_the_connection() {
    let talk = one_server();
    let alice = talk.newcomer();
    alice.sends_bytes(SSL).gets_bytes(b"N");
    let words = "unsupported frontend protocol 1234.5679: server supports 3.0 to 3.2";
    alice.sends_bytes(SSL).gets([fatal("0A000", words)]);
    assert!(alice.is_closed());
}

#[test]
fn bytes_that_came_with_a_request_for_encryption_are_not_read_as_plain_text() {
    let talk = one_server();
    let alice = talk.newcomer();
    alice.sends_bytes(&[SSL, &startup(0, &[("user", "u")]).bytes].concat());
    let words = fatal("08P01", "received unencrypted data after SSL request");
    alice.gets_bytes(&[b"N", &words.bytes[..]].concat());
    assert!(alice.is_closed());
    assert_eq!(talk.connections(), 0);
}

#[test]
fn a_startup_packet_that_arrives_byte_by_byte_is_the_same_login() {
    let talk = one_server();
    let alice = talk.newcomer();
    alice.sends_byte_by_byte([startup(0, &[("user", "u"), ("database", "d")])]);
    alice.is_let_in();
}

#[test]
fn a_packet_longer_than_any_startup_packet_is_closed_without_a_word() {
    let talk = one_server();
    let alice = talk.newcomer();
    alice.sends_bytes(b"\0\0\x27\x11\0\x03\0\0").gets_nothing();
    assert!(alice.is_closed());
    assert_eq!(talk.log(), [("client_protocol", "invalid length of startup packet".to_owned())]);
}

#[test]
fn an_older_protocol_is_refused_and_a_newer_minor_version_negotiated() {
    let talk = one_server();
    let (old, new) = (talk.newcomer(), talk.newcomer());
    old.sends_bytes(b"\0\0\0\x09\0\x02\0\0\0");
    let words = "unsupported frontend protocol 2.0: server supports 3.0 to 3.2";
    old.gets([fatal("0A000", words)]);
    new.sends([startup(9, &[("user", "u"), ("database", "d"), ("_pq_.x", "1")])]);
    let got = new.forgets();
    assert_eq!(got[0].bytes, b"v\0\0\0\x13\0\x03\0\x02\0\0\0\x01_pq_.x\0");
    let key = got.iter().find(|line| line.bytes[0] == b'K').map(|line| line.bytes.len());
    assert_eq!(key, Some(5 + 4 + 32), "3.2 has longer keys");
}

#[test]
fn a_startup_packet_without_a_user_or_for_unknown_replication_is_refused() {
    let talk = one_server();
    let (nobody, replica) = (talk.newcomer(), talk.newcomer());
    nobody.sends([startup(0, &[("database", "d")])]);
    nobody.gets([fatal("28000", "no PostgreSQL user name specified in startup packet")]);
    replica.sends([startup(0, &[("user", "u"), ("replication", "maybe")])]);
    replica.gets([error_like("invalid value for parameter \"replication\"")]);
    assert!(nobody.is_closed() && replica.is_closed());
}

#[test]
fn one_client_too_many_is_told_so_before_it_is_asked_for_a_password() {
    let talk = trusting("max_client_conn = 1");
    let (_alice, bob) = (talk.client(), talk.newcomer());
    bob.asks_to_log_in(&[]);
    bob.gets([fatal("53300", "sorry, too many clients already")]);
    assert!(bob.is_closed());
}

#[test]
fn a_login_is_refused_in_the_words_that_the_options_choose() {
    let talk = trusting("max_client_conn = 1\npooler_errors = \"pgbouncer\"");
    let _alice = talk.client();
    let (bob, nobody, old) = (talk.newcomer(), talk.newcomer(), talk.newcomer());
    bob.asks_to_log_in(&[]);
    bob.gets([fatal("08P01", "no more connections allowed (max_client_conn)")]);
    nobody.sends([startup(0, &[("database", "d")])]);
    nobody.gets([fatal("08P01", "no username supplied")]);
    old.sends_bytes(b"\0\0\0\x09\0\x02\0\0\0");
    old.gets([fatal("08P01", "old V2 protocol not supported")]);
    assert!(bob.is_closed() && nobody.is_closed() && old.is_closed());
}

#[test]
fn a_login_in_the_clear_is_refused_in_the_words_that_the_options_choose() {
    let talk =
        Conversation::new(format!("pooler_errors = \"pgbouncer\"\n{}", encrypting("require")));
    let alice = talk.newcomer();
    alice.asks_to_log_in(&[]);
    alice.gets([fatal("08P01", "SSL required")]);
}

#[test]
fn servers_see_the_address_of_a_client_if_they_are_to() {
    let tcp = Peer::Tcp(SocketAddr::from(([10, 0, 0, 1], 5000)));
    let unix = Peer::Unix { uid: Some(0), is_own: true, name: None };
    let till = [("application_name", "till")];
    type Parameters<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, Peer, Parameters<'_>, &str); 4] = [
        ("true", tcp.clone(), &till, "'till - 10.0.0.1:5000'"),
        ("true", tcp.clone(), &[], "'app - 10.0.0.1:5000'"),
        ("true", unix, &[], "'app - unix:6432'"),
        ("false", tcp, &till, "'till'"),
    ];
    for (option, peer, parameters, seen) in cases {
        let talk = trusting(&format!("application_name_add_host = {option}"));
        let client = talk.newcomer_from(0, peer);
        client.asks_to_log_in(parameters);
        client.is_let_in();
        client.sends([query("select 1")]);
        let got = talk.server(1).forgets();
        let text = String::from_utf8_lossy(&got[0].bytes).into_owned();
        assert!(text.contains("application_name") && text.contains(seen), "{seen}: {text}");
    }
}

#[test]
fn connections_that_say_nothing_make_way_for_later_ones() {
    let talk = trusting("max_login_conn = 2");
    let flood = Peer::Tcp(SocketAddr::from(([10, 0, 0, 1], 5000)));
    let silent = talk.newcomer_from(0, flood.clone());
    let second = talk.newcomer_from(0, flood);
    let alice = talk.client();
    assert!(silent.is_closed() && !second.is_closed() && !alice.is_closed());
    silent.gets_nothing();
}

/// Options under which clients may encrypt, or have to.
fn encrypting(mode: &str) -> String {
    format!(
        "client_tls_sslmode = {mode:?}\nclient_tls_cert_file = \"/c\"\nclient_tls_key_file = \"/k\"\n{}",
        options("")
    )
}

#[test]
fn a_request_for_tls_is_granted_and_the_login_follows_the_handshake() {
    for mode in ["allow", "prefer", "require"] {
        let talk = Conversation::new(encrypting(mode));
        let alice = talk.newcomer();
        alice.sends_bytes(GSS).gets_bytes(b"N");
        alice.sends_bytes(SSL).gets_bytes(b"S");
        assert_eq!(alice.handshake(), Some((1, Vec::new())), "the answer is in the clear");
        alice.secures(b"hash");
        alice.asks_to_log_in(&[]);
        alice.is_let_in();
    }
}

#[test]
fn bytes_between_a_request_for_tls_and_the_handshake_end_the_connection() {
    let talk = Conversation::new(encrypting("prefer"));
    let alice = talk.newcomer();
    alice.sends_bytes(&[SSL, &startup(0, &[("user", "u")]).bytes].concat()).gets_bytes(b"S");
    assert_eq!(alice.handshake(), Some((1, Vec::new())), "they are no part of the handshake");
    alice.secures(b"hash");
    alice.asks_to_log_in(&[]);
    alice.gets([fatal("08P01", "received unencrypted data after SSL request")]);
    assert!(alice.is_closed());
    assert_eq!(talk.connections(), 0);

    let bob = talk.newcomer();
    bob.sends_bytes(SSL).gets_bytes(b"S");
    // The loop has not begun to encrypt, or these bytes would not come here.
    bob.sends_bytes(&startup(0, &[("user", "u")]).bytes).gets_nothing();
    assert!(bob.is_closed());
}

#[test]
fn a_second_request_for_tls_or_one_within_tls_is_none() {
    let talk = Conversation::new(encrypting("prefer"));
    let alice = talk.newcomer();
    alice.sends_bytes(SSL).gets_bytes(b"S");
    alice.secures(b"hash");
    let words = "unsupported frontend protocol 1234.5679: server supports 3.0 to 3.2";
    alice.sends_bytes(SSL).gets([fatal("0A000", words)]);
    assert!(alice.is_closed());
}

#[test]
fn a_handshake_without_a_request_is_passed_on() {
    let talk = Conversation::new(encrypting("require"));
    let alice = talk.newcomer();
    alice.sends_bytes(b"\x16\x03\x01hello").gets_nothing();
    assert_eq!(alice.handshake(), Some((0, b"\x16\x03\x01hello".to_vec())));
    alice.secures(b"hash");
    alice.asks_to_log_in(&[]);
    alice.is_let_in();

    let unasked = one_server().newcomer();
    unasked.sends_bytes(b"\x16\x03\x01\0\0hello").gets_nothing();
    assert!(unasked.is_closed());
}

#[test]
fn a_client_in_the_clear_is_refused_where_it_has_to_encrypt() {
    let talk = Conversation::new(encrypting("require"));
    let (alice, bob) = (
        talk.newcomer(),
        talk.newcomer_from(0, Peer::Unix { uid: None, is_own: false, name: None }),
    );
    alice.asks_to_log_in(&[]);
    let words =
        "no pg_hba.conf entry for host \"127.0.0.1\", user \"u\", database \"d\", no encryption";
    alice.gets([fatal("28000", words)]);
    assert!(alice.is_closed());
    bob.asks_to_log_in(&[]);
    bob.is_let_in();
}

#[test]
fn a_unix_socket_is_never_encrypted() {
    let talk = Conversation::new(encrypting("prefer"));
    let alice = talk.newcomer_from(0, Peer::Unix { uid: None, is_own: false, name: None });
    alice.sends_bytes(SSL).gets_bytes(b"N");
    assert_eq!(alice.handshake(), None);
}

#[test]
fn a_handshake_that_fails_ends_the_connection_and_is_logged() {
    let talk = Conversation::new(encrypting("prefer"));
    let alice = talk.newcomer();
    alice.sends_bytes(SSL).gets_bytes(b"S");
    alice.fails("received corrupt message");
    assert!(alice.is_closed());
    assert_eq!(talk.log(), [("tls", "received corrupt message".to_owned())]);
}
