//! A connection going from one driver to another.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use refrain_drive::{Driver, Socket, Token};

use crate::harness::{Driven, Seen, on_both, pattern};

/// Takes on sockets, receives until the connection is told to go back or ends, and says how far it
/// got.
fn receive_some(driven: &mut Driven, token: Token, from: usize, until: usize) -> (usize, Socket) {
    let mut at = from;
    let mut going = false;
    loop {
        driven.turn(Duration::from_secs(1));
        while let Some(seen) = driven.seen.pop_front() {
            match seen {
                Seen::Received(found, bytes) => {
                    assert_eq!(found, token);
                    assert!(bytes == pattern(at, bytes.len()));
                    at += bytes.len();
                }
                Seen::Detached(found, socket) => {
                    assert_eq!(found, token);
                    return (at, socket);
                }
                other => panic!("{other:?}"),
            }
        }
        if at >= until && !going {
            driven.kernel.detach(token);
            going = true;
        }
    }
}

on_both! {
    fn no_byte_is_lost_on_the_way(driven) {
        const ALL: usize = 8 << 20;
        let mut peer = driven.pair(Token(0));
        let writer = thread::spawn(move || {
            for at in (0..ALL).step_by(1 << 12) {
                peer.write_all(&pattern(at, 1 << 12)).unwrap();
            }
            peer
        });
        let (to_other, from_here) = mpsc::channel::<(usize, Socket)>();
        let (to_here, from_other) = mpsc::channel();
        let mut other = driven.another();
        let thread = thread::spawn(move || {
            for (at, socket) in from_here {
                other.kernel.adopt(Token(5), socket);
                let until = (at + 200_000).min(ALL);
                to_here.send(receive_some(&mut other, Token(5), at, until)).unwrap();
            }
        });
        let mut at = 0;
        loop {
            let (reached, socket) = receive_some(driven, Token(0), at, (at + 100_000).min(ALL));
            at = reached;
            if at == ALL {
                break;
            }
            to_other.send((at, socket)).unwrap();
            let (reached, socket) = from_other.recv().unwrap();
            at = reached;
            driven.kernel.adopt(Token(0), socket);
        }
        drop(to_other);
        thread.join().unwrap();
        writer.join().unwrap();
    }

    fn a_detached_socket_is_left_alone(driven) {
        let mut peer = driven.pair(Token(0));
        driven.turn(Duration::ZERO);
        driven.kernel.detach(Token(0));
        let socket = driven.detached(Token(0));
        peer.write_all(b"later").unwrap();
        driven.assert_silent(Token(0));
        // The token is free.
        let mut second = driven.pair(Token(0));
        second.write_all(b"second").unwrap();
        assert_eq!(driven.received(Token(0), 6), b"second");
        driven.kernel.adopt(Token(1), socket);
        assert_eq!(driven.received(Token(1), 5), b"later");
    }

    fn what_is_being_sent_goes_out_first(driven) {
        let mut peer = driven.pair(Token(0));
        let given = driven.overfill(Token(0));
        driven.kernel.detach(Token(0));
        driven.calm_down();
        assert!(!driven.seen.iter().any(|seen| matches!(seen, Seen::Detached(..))));
        let reader = thread::spawn(move || {
            let mut all = vec![0; given];
            peer.read_exact(&mut all).unwrap();
            assert!(all == pattern(0, given));
        });
        driven.detached(Token(0));
        assert!(matches!(driven.seen.pop_front(), Some(Seen::Sent(Token(0)))));
        reader.join().unwrap();
    }

    fn close_ends_a_detach(driven) {
        let peer = driven.pair(Token(0));
        driven.turn(Duration::ZERO);
        driven.kernel.detach(Token(0));
        driven.kernel.close(Token(0));
        driven.assert_silent(Token(0));
        let mut peer = peer;
        assert_eq!(peer.read(&mut [0]).unwrap(), 0);
    }

    fn the_end_is_found_by_who_has_the_socket(driven) {
        let peer = driven.pair(Token(0));
        driven.turn(Duration::ZERO);
        driven.kernel.detach(Token(0));
        drop(peer);
        let socket = driven.detached(Token(0));
        driven.kernel.adopt(Token(1), socket);
        assert!(driven.closed(Token(1)).is_none());
        assert!(driven.seen.is_empty(), "{:?}", driven.seen);
    }
}
