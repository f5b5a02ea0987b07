//! Many connections at once, and less of something than there are.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use refrain_drive::{Driver, Sizing, Token};

use crate::harness::{Driven, Seen, on_both, pattern, tcp};

/// Everybody says its number, and gets it back.
fn echo_all(driven: &mut Driven, peers: &mut [TcpStream]) {
    for (number, peer) in peers.iter_mut().enumerate() {
        peer.write_all(&(number as u32).to_be_bytes()).unwrap();
    }
    let mut heard = vec![Vec::new(); peers.len()];
    let mut left = peers.len();
    while left > 0 {
        driven.turn(Duration::from_secs(1));
        while let Some(seen) = driven.seen.pop_front() {
            let Seen::Received(token, bytes) = seen else { panic!("{seen:?}") };
            let at = token.0 as usize;
            heard[at].extend(bytes);
            if heard[at].len() == 4 {
                left -= 1;
                assert!(driven.kernel.send(token, heard[at].clone()).is_some());
            }
        }
    }
    driven.turn(Duration::ZERO);
    driven.turn(Duration::ZERO);
    for (number, peer) in peers.iter_mut().enumerate() {
        let mut answer = [0; 4];
        peer.read_exact(&mut answer).unwrap();
        assert_eq!(u32::from_be_bytes(answer), number as u32);
    }
}

fn pairs(driven: &mut Driven, count: u32) -> Vec<TcpStream> {
    (0..count).map(|number| driven.pair(Token(number))).collect()
}

on_both! {
    fn two_thousand_are_accepted(driven) {
        const MANY: u32 = 2000;
        let address = driven.listen(0);
        let mut peers = Vec::new();
        for number in 0..MANY {
            peers.push(tcp(&address));
            let (_, socket, peer) = driven.accepted();
            let expected = peers[number as usize].local_addr().unwrap();
            assert_eq!(peer, refrain_drive::Peer::Tcp(expected));
            driven.kernel.adopt(Token(number), socket);
        }
        echo_all(driven, &mut peers);
        echo_all(driven, &mut peers);
        for number in 0..MANY {
            driven.kernel.close(Token(number));
        }
        driven.turn_beside(move || {
            for mut peer in peers {
                assert_eq!(peer.read(&mut [0]).unwrap(), 0);
            }
        });
        assert!(driven.seen.is_empty());
    }

    fn a_thousand_end_at_once(driven) {
        let peers = pairs(driven, 1000);
        driven.calm_down();
        drop(peers);
        for number in 0..1000 {
            assert!(driven.closed(Token(number)).is_none());
            driven.kernel.close(Token(number));
        }
        driven.calm_down();
        assert!(driven.seen.is_empty());
    }
}

/// Far fewer buffers than connections that have something to say.
#[test]
fn too_few_buffers_delay_and_lose_nothing() {
    let sizing = Sizing { buffers: 4, buffer_bytes: 16, entries: 1024, ..Sizing::default() };
    let Some(mut driven) = Driven::uring_sized(sizing) else { return };
    let mut peers = pairs(&mut driven, 300);
    driven.calm_down();
    echo_all(&mut driven, &mut peers);
    echo_all(&mut driven, &mut peers);
    assert!(driven.kernel.starved() > 0);
}

/// A burst needs more buffers than are in use at first.
#[test]
fn more_buffers_are_used_once_needed() {
    let sizing = Sizing { buffers: 512, buffer_bytes: 16, entries: 1024, ..Sizing::default() };
    let Some(mut driven) = Driven::uring_sized(sizing) else { return };
    let mut peers = pairs(&mut driven, 40);
    for (number, peer) in peers.iter_mut().enumerate() {
        peer.write_all(&pattern(number, 1000)).unwrap();
    }
    for number in 0..40 {
        assert_eq!(driven.received(Token(number), 1000), pattern(number as usize, 1000));
    }
    assert!(driven.kernel.starved() > 0);
}

/// One that has more to say than all buffers hold, again and again: another one's word comes in
/// between.
#[test]
fn one_that_says_much_does_not_hold_up_others() {
    const MUCH: usize = 400_000;
    let sizing = Sizing { buffers: 16, buffer_bytes: 16, ..Sizing::default() };
    let Some(mut driven) = Driven::uring_sized(sizing) else { return };
    let mut peers = pairs(&mut driven, 2);
    driven.calm_down();
    let mut quiet = peers.pop().unwrap();
    let mut talker = peers.pop().unwrap();
    let talks = std::thread::spawn(move || talker.write_all(&vec![7; MUCH]).map(|()| talker));
    let mut heard = driven.received(Token(0), 16).len();
    quiet.write_all(b"x").unwrap();
    loop {
        driven.turn(Duration::from_secs(1));
        let mut of_quiet = false;
        while let Some(seen) = driven.seen.pop_front() {
            let Seen::Received(token, bytes) = seen else { panic!("{seen:?}") };
            of_quiet |= token == Token(1);
            heard += bytes.len();
        }
        if of_quiet {
            break;
        }
    }
    assert!(heard < MUCH, "it was heard behind all of the other's");
    driven.received(Token(0), MUCH + 1 - heard);
    drop(talks.join().unwrap().unwrap());
}

/// Far less room for requests and completions than there are of them.
#[test]
fn small_queues_delay_and_lose_nothing() {
    let sizing = Sizing { buffers: 64, buffer_bytes: 4096, entries: 8, ..Sizing::default() };
    let Some(mut driven) = Driven::uring_sized(sizing) else { return };
    let mut peers = pairs(&mut driven, 500);
    echo_all(&mut driven, &mut peers);
    for number in 0..500 {
        driven.kernel.pause(Token(number));
        driven.kernel.resume(Token(number));
    }
    echo_all(&mut driven, &mut peers);
    drop(peers);
    for number in 0..500 {
        driven.closed(Token(number));
        driven.kernel.close(Token(number));
    }
}
