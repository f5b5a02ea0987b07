//! Bytes in quantity, and who holds them back.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use refrain_drive::{Driver, Token};

use crate::harness::{Dice, Driven, Seen, on_both, pattern};

const MUCH: usize = 50 << 20;

/// The other end writes and reads the same pattern, each in a thread of its own and in odd pieces.
fn other_end(peer: TcpStream) -> [thread::JoinHandle<TcpStream>; 2] {
    let mut writes = peer.try_clone().unwrap();
    let mut reads = peer;
    let writer = thread::spawn(move || {
        let mut dice = Dice(1);
        let mut at = 0;
        while at < MUCH {
            let size = (1 + dice.below(200_000)).min(MUCH - at);
            writes.write_all(&pattern(at, size)).unwrap();
            at += size;
        }
        writes
    });
    let reader = thread::spawn(move || {
        let mut dice = Dice(2);
        let mut buffer = vec![0; 300_000];
        let mut at = 0;
        while at < MUCH {
            let room = 1 + dice.below(buffer.len());
            let count = reads.read(&mut buffer[..room]).unwrap();
            assert!(count > 0, "ended at {at}");
            assert!(buffer[..count] == pattern(at, count));
            at += count;
        }
        reads
    });
    [writer, reader]
}

/// Sends and receives all, stopping and starting the receiving as the dice fall.
fn exchange(driven: &mut Driven, token: Token) {
    let mut dice = Dice(3);
    let (mut sent, mut received, mut free, mut paused) = (0, 0, true, false);
    while sent < MUCH || received < MUCH || !free {
        while free && sent < MUCH {
            let size = (1 + dice.below(500_000)).min(MUCH - sent);
            free = driven.kernel.send(token, pattern(sent, size)).is_some();
            sent += size;
            if dice.below(3) == 0 {
                break;
            }
        }
        match dice.below(8) {
            0 if received < MUCH => {
                driven.kernel.pause(token);
                paused = true;
            }
            1..=4 if paused => {
                driven.kernel.resume(token);
                paused = false;
            }
            _ => {}
        }
        // Sends may be held back by nobody reading here, so a pause is not waited out.
        driven.turn(if paused { Duration::from_micros(100) } else { Duration::from_secs(1) });
        for seen in driven.seen.drain(..) {
            match seen {
                Seen::Received(_, bytes) => {
                    assert!(bytes == pattern(received, bytes.len()));
                    received += bytes.len();
                }
                Seen::Sent(..) => free = true,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(received, MUCH);
}

on_both! {
    fn fifty_megabytes_each_way(driven) {
        let threads = other_end(driven.pair(Token(0)));
        exchange(driven, Token(0));
        for thread in threads {
            thread.join().unwrap();
        }
    }

    fn a_paused_connection_holds_its_peer_back(driven) {
        let mut peer = driven.pair(Token(0));
        driven.kernel.pause(Token(0));
        driven.calm_down();
        peer.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(count) = peer.write(&pattern(written, 1 << 16)) {
            written += count;
            assert!(written < 1 << 30);
        }
        driven.assert_silent(Token(0));
        driven.kernel.resume(Token(0));
        assert!(driven.received(Token(0), written) == pattern(0, written));
    }

    fn pause_and_resume_in_one_go_lose_nothing(driven) {
        let mut peer = driven.pair(Token(0));
        for round in 0..200 {
            peer.write_all(&pattern(round, 1)).unwrap();
            driven.kernel.pause(Token(0));
            if round % 3 == 0 {
                driven.turn(Duration::ZERO);
            }
            driven.kernel.resume(Token(0));
            if round % 5 == 0 {
                driven.kernel.pause(Token(0));
                driven.kernel.resume(Token(0));
            }
            if round % 7 == 0 {
                driven.turn(Duration::ZERO);
            }
        }
        assert_eq!(driven.received(Token(0), 200), pattern(0, 200));
    }

    /// A slow peer stops its own connection and no other.
    fn one_slow_peer_is_alone_in_it(driven) {
        let slow = driven.pair(Token(0));
        driven.overfill(Token(0));
        let mut quick = driven.pair(Token(1));
        for round in 0..50_u8 {
            quick.write_all(&[round]).unwrap();
            assert_eq!(driven.received(Token(1), 1), [round]);
            driven.send(Token(1), &[round]);
            driven.turn(Duration::ZERO);
            let mut answer = [0];
            quick.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [round]);
        }
        drop(slow);
    }

    fn sent_comes_when_the_peer_reads(driven) {
        let mut peer = driven.pair(Token(0));
        let given = driven.overfill(Token(0));
        driven.assert_silent(Token(0));
        let reader = thread::spawn(move || {
            let mut all = vec![0; given + 4];
            peer.read_exact(&mut all).unwrap();
            assert!(all[..given] == pattern(0, given));
            assert_eq!(&all[given..], b"last");
        });
        driven.sent(Token(0));
        driven.send(Token(0), b"last");
        driven.calm_down();
        reader.join().unwrap();
    }

    /// Several sends between two turns, as long as each is taken.
    fn sends_follow_one_another(driven) {
        let mut peer = driven.pair(Token(0));
        let mut at = 0;
        for size in 1..200 {
            driven.send(Token(0), &pattern(at, size));
            at += size;
        }
        driven.send(Token(0), &[]);
        driven.turn(Duration::ZERO);
        let mut all = vec![0; at];
        peer.read_exact(&mut all).unwrap();
        assert_eq!(all, pattern(0, at));
    }
}
