//! Encryption that the protocol asks for in its own words, of clients, servers and side
//! connections.

use refrain_echo::parts::Greeting;
use refrain_pool::event::TlsPeer;

use crate::harness::{ServerId, World};

#[test]
fn a_server_that_speaks_first_is_asked_for_tls() {
    let mut world = World::new("");
    let anna = world.client_of("secure app");
    let server_end = world.last_server();
    assert_eq!(world.server_heard(server_end), "", "the server speaks first");
    world.server_says(server_end, "host tls\n");
    assert_eq!(world.server_heard(server_end), "tls\n");
    let (with, clear, early) = world.secures();
    assert!(matches!(with, TlsPeer::Server(host) if host.to_string() == "127.0.0.1:1"));
    assert_eq!((clear, early.as_str()), (4, ""), "behind the request");
    assert_eq!(world.server_heard(server_end), "hello secure app\n");
    assert!(world.heard(anna).starts_with("welcome"));
    assert_eq!(world.asks(anna, "one"), "one\n");
    assert_eq!(world.server_part(server_end).secured().map(|tls| tls.version), Some("TLSv1.3"));
}

#[test]
fn a_server_whose_handshake_fails_could_not_be_connected() {
    let mut world = World::new("");
    let anna = world.client_of("secure app");
    world.server_says(ServerId(0), "host tls\n");
    world.connect_fails(ServerId(0));
    assert_eq!(world.heard(anna), "error server_down\n");
    assert!(!world.is_up(ServerId(0)));
}

#[test]
fn a_client_that_has_been_greeted_asks_for_tls() {
    let mut world = World::new("");
    world.greets(Greeting::AtOnce);
    let anna = world.silent_client(0);
    assert_eq!(world.heard(anna), "hello 0\n");
    world.says(anna, "tls");
    assert_eq!(world.secures(), (TlsPeer::Client, 0, String::new()), "the greeting is sent");
    assert_eq!(world.heard(anna), "secured\n");
    assert!(world.client_part(anna).secured().is_some());
    assert!(world.asks(anna, "shop app").starts_with("welcome"));
}

#[test]
fn bytes_behind_a_request_for_tls_are_of_the_handshake() {
    let mut world = World::new("");
    let anna = world.silent_client(0);
    let conn = world.client_part(anna).conn();
    for text in ["tls\nclient", " hello"] {
        world.event(0, refrain_pool::Event::Bytes { conn, bytes: text.as_bytes() });
    }
    world.settle();
    assert_eq!(world.secures(), (TlsPeer::Client, 0, "client hello".to_owned()));
    assert!(world.asks(anna, "shop app").contains("welcome"));
}

#[test]
fn a_side_connection_asks_for_tls() {
    let mut world = World::new("");
    world.greets(Greeting::Probed);
    let anna = world.silent_client(0);
    let side = world.last_server();
    world.server_says(side, "host tls\n");
    assert_eq!(world.server_heard(side), "tls\n");
    assert!(matches!(world.secures(), (TlsPeer::Server(_), 4, _)));
    assert_eq!(world.server_heard(side), "sure\nquit\n");
    assert_eq!(world.heard(anna), "hello 0\n");
}
