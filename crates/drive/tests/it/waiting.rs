//! How a turn ends.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use refrain_drive::{Driver, Token};

use crate::harness::{GUARD, Seen, on_both};

on_both! {
    fn a_turn_waits_as_long_as_it_is_told(driven) {
        let start = Instant::now();
        driven.turn(Duration::ZERO);
        driven.turn(Duration::from_millis(30));
        assert!(start.elapsed() >= Duration::from_millis(30));
        assert!(driven.seen.is_empty());
    }

    fn a_turn_that_does_not_wait_still_looks(driven) {
        driven.turn(Duration::ZERO);
        driven.kernel.waker().wake();
        let start = Instant::now();
        while driven.seen.is_empty() {
            driven.turn(Duration::ZERO);
            assert!(start.elapsed() < GUARD);
        }
    }

    fn another_thread_ends_the_wait(driven) {
        for _ in 0..20 {
            let waker = driven.kernel.waker();
            let thread = thread::spawn(move || waker.wake());
            driven.kernel.turn(None, &mut |_| {}).unwrap();
            thread.join().unwrap();
            driven.turn(Duration::ZERO);
            driven.seen.clear();
        }
    }

    fn wakes_are_coalesced(driven) {
        let waker = driven.kernel.waker();
        for _ in 0..1000 {
            waker.wake();
        }
        driven.calm_down();
        driven.woken();
        assert!(driven.seen.is_empty());
        waker.wake();
        driven.woken();
    }

    /// Bytes sent in a turn that ends for another reason is done when the turn is: what is sent
    /// next goes out with the next turn, and waits for nothing else to happen.
    fn a_wake_holds_up_no_send(driven) {
        let token = Token(1);
        let mut peer = driven.pair(token);
        for _ in 0..20 {
            driven.kernel.waker().wake();
            assert!(driven.kernel.send(token, b"a".to_vec()).is_some());
            while !driven.seen.iter().any(|seen| matches!(seen, Seen::Woken)) {
                driven.turn(GUARD);
            }
            driven.seen.clear();
            assert!(driven.kernel.send(token, b"b".to_vec()).is_some(), "the first has gone");
            driven.turn(Duration::ZERO);
            peer.read_exact(&mut [0; 2]).unwrap();
        }
    }

    /// Whatever was written before a wake is seen after `Woken`, however the two threads
    /// interleave.
    fn no_wake_is_lost(driven) {
        const LAST: u32 = 20_000;
        let written = Arc::new(AtomicU32::new(0));
        let waker = driven.kernel.waker();
        let theirs = Arc::clone(&written);
        let thread = thread::spawn(move || {
            for number in 1..=LAST {
                theirs.store(number, Ordering::Relaxed);
                waker.wake();
            }
        });
        while written.load(Ordering::Relaxed) < LAST {
            driven.woken();
        }
        thread.join().unwrap();
    }

    /// A driver may be opened in one thread and used in another.
    fn a_driver_moves_before_its_first_turn(driven) {
        let mut other = driven.another();
        let mut peer = other.pair(Token(0));
        std::io::Write::write_all(&mut peer, b"hello").unwrap();
        thread::spawn(move || {
            assert_eq!(other.received(Token(0), 5), b"hello");
        })
        .join()
        .unwrap();
    }
}

/// Returns how many tasks of the whole machine wait for a disk, as its load monitors count them.
fn blocked() -> u32 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let line = stat.lines().find_map(|line| line.strip_prefix("procs_blocked "));
    line.unwrap().parse().unwrap()
}

/// True if this kernel can tell a wait for sockets from a wait for a disk: from 6.15 on.
fn tells_waits_apart() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map(|number| number.parse().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(15))
}

on_both! {
    fn a_driver_that_waits_is_idle(driven) {
        // Enough of them to see through whatever else the machine does.
        const DRIVERS: u32 = 64;
        if !tells_waits_apart() {
            return;
        }
        let before = blocked();
        let others = (0..DRIVERS).map(|_| driven.another()).collect::<Vec<_>>();
        let wakers = others.iter().map(|other| other.kernel.waker()).collect::<Vec<_>>();
        let threads = others.into_iter().map(|mut other| {
            thread::spawn(move || other.kernel.turn(Some(GUARD), &mut |_| {}).unwrap())
        });
        let threads = threads.collect::<Vec<_>>();
        thread::sleep(Duration::from_millis(100));
        let during = blocked();
        wakers.iter().for_each(|waker| waker.wake());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(during < before + DRIVERS / 2, "{before} before, {during} while they wait");
    }
}
