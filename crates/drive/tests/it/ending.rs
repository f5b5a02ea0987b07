//! How a connection ends, and what is left of it.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use refrain_drive::{Driver, Socket, Token};

use crate::harness::{GUARD, on_both, pattern};

/// Reads until the end and holds it against the pattern.
fn read_pattern(mut peer: impl Read, count: usize) {
    let mut all = Vec::new();
    peer.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), count);
    assert!(all == pattern(0, count));
}

on_both! {
    fn the_end_comes_after_the_last_byte(driven) {
        let mut peer = driven.pair(Token(0));
        peer.write_all(&pattern(0, 100_000)).unwrap();
        drop(peer);
        assert_eq!(driven.received(Token(0), 100_000), pattern(0, 100_000));
        assert!(driven.closed(Token(0)).is_none());
        driven.kernel.close(Token(0));
        driven.assert_silent(Token(0));
    }

    fn a_half_closed_peer_still_reads(driven) {
        let mut peer = driven.pair(Token(0));
        peer.shutdown(Shutdown::Write).unwrap();
        assert!(driven.closed(Token(0)).is_none());
        driven.send(Token(0), &pattern(0, 1000));
        driven.kernel.close(Token(0));
        driven.calm_down();
        let mut read = Vec::new();
        peer.read_to_end(&mut read).unwrap();
        assert_eq!(read, pattern(0, 1000));
    }

    fn a_half_closed_peer_that_is_slow_is_waited_for(driven) {
        let mut peer = driven.pair(Token(0));
        peer.shutdown(Shutdown::Write).unwrap();
        assert!(driven.closed(Token(0)).is_none());
        driven.kernel.send(Token(0), pattern(0, 20_000_000));
        driven.turn_beside(move || {
            let mut read = vec![0; 20_000_000];
            peer.read_exact(&mut read).unwrap();
            assert!(read == pattern(0, 20_000_000));
        });
    }

    fn a_peer_that_is_gone_behind_its_end_is_noticed_by_sending(driven) {
        let peer = driven.pair(Token(0));
        drop(peer);
        assert!(driven.closed(Token(0)).is_none());
        // The first is answered by a reset.
        driven.kernel.send(Token(0), vec![1; 10]);
        driven.calm_down();
        driven.kernel.send(Token(0), vec![1; 10]);
        assert!(driven.closed(Token(0)).is_some());
        assert_eq!(driven.kernel.send(Token(0), vec![1; 10]), Some(vec![]));
        driven.kernel.close(Token(0));
        driven.assert_silent(Token(0));
    }

    fn a_reset_is_an_error(driven) {
        let peer = driven.pair(Token(0));
        socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
        drop(peer);
        let error = driven.closed(Token(0)).unwrap();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        driven.kernel.close(Token(0));
        driven.assert_silent(Token(0));
    }

    fn a_reset_is_noticed_by_sending(driven) {
        let peer = driven.pair(Token(0));
        driven.kernel.pause(Token(0));
        driven.calm_down();
        socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO)).unwrap();
        drop(peer);
        driven.kernel.send(Token(0), vec![1; 10]);
        assert!(driven.closed(Token(0)).is_some());
        // What is sent from now on goes nowhere, and does not fail.
        assert_eq!(driven.kernel.send(Token(0), vec![1; 10]), Some(vec![]));
        driven.kernel.close(Token(0));
        driven.assert_silent(Token(0));
    }

    /// A server that dies says why before it goes. That must not be lost to a failing send.
    fn last_words_survive_a_failed_send(driven) {
        let (here, mut peer) = UnixStream::pair().unwrap();
        driven.kernel.adopt(Token(0), here.into());
        driven.calm_down();
        peer.write_all(b"farewell").unwrap();
        drop(peer);
        driven.kernel.send(Token(0), vec![1; 10]);
        assert_eq!(driven.received(Token(0), 8), b"farewell");
        driven.closed(Token(0));
    }

    fn the_end_is_noticed_at_the_latest_on_resume(driven) {
        let mut peer = driven.pair(Token(0));
        driven.kernel.pause(Token(0));
        driven.calm_down();
        peer.write_all(b"bye").unwrap();
        drop(peer);
        driven.assert_silent(Token(0));
        driven.kernel.resume(Token(0));
        assert_eq!(driven.received(Token(0), 3), b"bye");
        assert!(driven.closed(Token(0)).is_none());
    }

    fn what_was_sent_before_close_arrives(driven) {
        let mut peer = driven.pair(Token(0));
        // Bytes that nobody read would make TCP reset the connection.
        peer.write_all(&[0; 1000]).unwrap();
        driven.send(Token(0), &pattern(0, 1000));
        driven.kernel.close(Token(0));
        driven.turn_beside(move || read_pattern(peer, 1000));
    }

    fn what_the_kernel_had_no_room_for_arrives_after_close(driven) {
        let peer = driven.pair(Token(0));
        let given = driven.overfill(Token(0));
        driven.kernel.close(Token(0));
        // Closing twice, or something that is not there, is nothing.
        driven.kernel.close(Token(0));
        driven.kernel.close(Token(77));
        driven.turn_beside(move || read_pattern(peer, given));
        assert!(driven.seen.is_empty(), "{:?}", driven.seen);
    }

    fn a_token_used_anew_hears_nothing_old(driven) {
        for round in 0..200_u32 {
            let mut old = driven.pair(Token(0));
            old.write_all(b"old").unwrap();
            driven.kernel.send(Token(0), b"to the old".to_vec());
            match round % 4 {
                0 => {}
                1 => driven.turn(Duration::ZERO),
                2 => drop(old),
                _ => {
                    driven.turn(Duration::ZERO);
                    drop(old);
                }
            }
            driven.seen.clear();
            driven.kernel.close(Token(0));
            let mut new = driven.pair(Token(0));
            driven.turn(Duration::ZERO);
            new.write_all(b"new").unwrap();
            assert_eq!(driven.received(Token(0), 3), b"new");
            assert!(driven.seen.is_empty(), "{:?}", driven.seen);
            driven.kernel.close(Token(0));
        }
    }

    fn a_slow_send_to_the_old_does_not_reach_the_new(driven) {
        let old = driven.pair(Token(0));
        let given = driven.overfill(Token(0));
        driven.kernel.close(Token(0));
        let mut new = driven.pair(Token(0));
        assert!(driven.kernel.send(Token(0), b"for the new".to_vec()).is_some());
        driven.turn(Duration::ZERO);
        let mut bytes = [0; 11];
        new.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"for the new");
        driven.turn_beside(move || read_pattern(old, given));
        driven.assert_silent(Token(0));
    }

    fn a_driver_may_be_dropped_in_the_middle(driven) {
        let mut other = driven.another();
        let address = other.listen(0);
        let peer = other.pair(Token(0));
        other.overfill(Token(0));
        other.kernel.connect(Token(1), &address);
        other.turn(Duration::ZERO);
        drop(other);
        peer.set_read_timeout(Some(GUARD)).unwrap();
        // It ends, with or without an error.
        let _ = (&peer).read_to_end(&mut Vec::new());
    }

    fn calls_for_nobody_do_nothing(driven) {
        driven.kernel.pause(Token(9));
        driven.kernel.resume(Token(9));
        driven.kernel.detach(Token(9));
        driven.kernel.close(Token(9));
        assert_eq!(driven.kernel.send(Token(9), vec![1]), Some(vec![]));
        driven.assert_silent(Token(9));
        let (here, _there) = UnixStream::pair().unwrap();
        driven.kernel.adopt(Token(9), Socket::from(here));
    }
}
