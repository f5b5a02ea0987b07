//! The engine's side of its connections: buffers, closes, and bytes that a peer does not read.

use std::time::Duration;

use refrain_pool::{Conn, Now, Output};

use refrain_echo::parts::Echo;

type Ports = refrain_pool::Ports<Echo>;

/// Time in which a connection that is to be closed may send its queued bytes.
const CLOSING_MAX: Duration = Duration::from_secs(5);

fn send(ports: &mut Ports) -> (Conn, Vec<u8>) {
    match ports.next() {
        Some(Output::Send { conn, bytes }) => (conn, bytes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_send_a_turn_and_one_at_a_time() {
    let mut ports = Ports::default();
    let conn = ports.open();
    ports.out(conn).extend_from_slice(b"ab");
    ports.out(conn).extend_from_slice(b"c");
    let (_, bytes) = send(&mut ports);
    assert_eq!(bytes, b"abc");
    ports.out(conn).extend_from_slice(b"d");
    assert!(ports.next().is_none(), "the first send is still under way");
    assert_eq!(ports.queued(conn), 4);
    assert!(ports.sent(conn, bytes), "the engine hears of it");
    assert_eq!(ports.queued(conn), 1);
    let (_, bytes) = send(&mut ports);
    assert_eq!(bytes, b"d");
    assert!(ports.sent(conn, bytes));
    assert_eq!(ports.queued(conn), 0, "all has gone");
}

#[test]
fn a_close_waits_for_what_is_queued() {
    let mut ports = Ports::default();
    let conn = ports.open();
    ports.out(conn).extend_from_slice(b"bye");
    ports.close(conn);
    let (_, bytes) = send(&mut ports);
    assert!(ports.next().is_none());
    ports.sent(conn, bytes);
    assert!(matches!(ports.next(), Some(Output::Close { .. })));
    assert_eq!(ports.open(), conn, "its number is free again");
}

#[test]
fn a_peer_that_does_not_read_is_given_up() {
    let mut ports = Ports::default();
    let conn = ports.open();
    ports.out(conn).extend_from_slice(b"rows");
    let _ = send(&mut ports);
    ports.out(conn).extend_from_slice(b"bye");
    ports.close(conn);
    ports.tick(Now(1));
    ports.tick(Now(0).after(CLOSING_MAX));
    assert!(ports.next().is_none(), "its time is not over");
    ports.tick(Now(1).after(CLOSING_MAX));
    assert!(matches!(ports.next(), Some(Output::Close { .. })));
    assert!(!ports.are_closing());
}

#[test]
fn an_abandoned_connection_closes_at_once() {
    let mut ports = Ports::default();
    let conn = ports.open();
    ports.out(conn).extend_from_slice(b"lost");
    let _ = send(&mut ports);
    ports.abandon(conn);
    assert!(matches!(ports.next(), Some(Output::Close { .. })));
}
