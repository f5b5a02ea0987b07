//! Connections that are closed in every phase of a send: their descriptors go, read or unread.
//!
//! Each phase is tried a hundred times over TCP and as often over Unix sockets, with a driver that
//! has little patience. How long it takes is not asserted; what lasts for ever fails.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use refrain_drive::{Address, Driver, Listener, Socket, Token};
use socket2::SockRef;

use crate::harness::{Driven, GUARD, on_both, tcp_pair};

const REPETITIONS: u32 = 100;
/// More than the two sockets of a connection hold.
const MUCH: usize = 1 << 20;
const SIP: usize = 16 << 10;
/// So many sips leave a send unfinished.
const SIPS: usize = MUCH / 2 / SIP;
/// io_uring waits for room so many times, then it gives a send to a thread that waits.
const RETRIES: usize = 128;

/// A connection that is about to end.
struct Ending {
    token: Token,
    peer: socket2::Socket,
    /// The target of the driver's descriptor, which is a link.
    place: PathBuf,
}

impl Ending {
    fn begin(driven: &mut Driven, token: Token, unix: bool) -> Ending {
        let (here, peer): (Socket, socket2::Socket) = if unix {
            let (here, peer) = UnixStream::pair().unwrap();
            (here.into(), peer.into())
        } else {
            let (here, peer) = tcp_pair();
            (here.into(), peer.into())
        };
        SockRef::from(&here).set_send_buffer_size(64 << 10).unwrap();
        peer.set_recv_buffer_size(64 << 10).unwrap();
        peer.set_nonblocking(true).unwrap();
        let place = place(here.as_fd().as_raw_fd());
        driven.kernel.adopt(token, here);
        Ending { token, peer, place }
    }

    fn sip(&mut self) {
        // Nothing may be there, or nothing any more.
        let _ = self.peer.read(&mut [0; SIP]);
    }
}

fn place(fd: i32) -> PathBuf {
    fs::read_link(format!("/proc/self/fd/{fd}")).unwrap()
}

/// How many of these sockets this process has a descriptor of.
fn open(places: &[&Path]) -> usize {
    let all = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let open: HashSet<_> = all.filter_map(|entry| fs::read_link(entry.path()).ok()).collect();
    places.iter().filter(|place| open.contains(**place)).count()
}

/// Turns until none of them is open, and after each turn lets the peers do something.
fn all_go(driven: &mut Driven, places: &[&Path], mut meanwhile: impl FnMut()) {
    driven.seen.clear();
    let start = Instant::now();
    loop {
        driven.turn(Duration::from_millis(1));
        let left = open(places);
        if left == 0 {
            break;
        }
        assert!(start.elapsed() < GUARD, "{left} of {} stay open", places.len());
        meanwhile();
    }
    assert!(driven.seen.is_empty(), "{:?}", driven.seen);
}

/// Begins connections, brings each into a phase and closes it. The peers then take some sips each.
fn end(driven: &Driven, sips: usize, phase: impl Fn(&mut Driven, &mut Ending)) {
    let driven = &mut driven.impatient();
    for unix in [false, true] {
        let begin = |number| Ending::begin(driven, Token(number), unix);
        let mut endings: Vec<_> = (0..REPETITIONS).map(begin).collect();
        endings.iter_mut().for_each(|ending| phase(driven, ending));
        endings.iter().for_each(|ending| driven.kernel.close(ending.token));
        let places: Vec<_> = endings.iter().map(|ending| ending.place.clone()).collect();
        let places: Vec<_> = places.iter().map(PathBuf::as_path).collect();
        let mut rounds = 0..sips;
        all_go(driven, &places, || {
            if rounds.next().is_some() {
                endings.iter_mut().for_each(Ending::sip);
            }
        });
    }
}

/// Gives it more than there is room for, once.
fn send_much(driven: &mut Driven, ending: &mut Ending) {
    driven.kernel.send(ending.token, vec![7; MUCH]);
}

on_both! {
    fn nothing_was_sent(driven) {
        end(driven, 0, |_, _| {});
    }

    fn the_kernel_has_not_seen_it(driven) {
        end(driven, 0, send_much);
    }

    fn the_kernel_has_not_seen_it_and_the_peer_begins_to_read(driven) {
        end(driven, SIPS, send_much);
    }

    fn it_waits_for_room(driven) {
        end(driven, 0, |driven, ending| {
            send_much(driven, ending);
            driven.turn(Duration::ZERO);
        });
    }

    fn it_waits_for_room_and_the_peer_reads_some(driven) {
        end(driven, SIPS, |driven, ending| {
            send_much(driven, ending);
            driven.turn(Duration::ZERO);
        });
    }

    fn it_has_waited_and_gone_on(driven) {
        end(driven, 0, |driven, ending| {
            send_much(driven, ending);
            for _ in 0..SIPS / 2 {
                driven.turn(Duration::ZERO);
                ending.sip();
            }
        });
    }

    fn another_send_waits_behind_it(driven) {
        end(driven, SIPS, |driven, ending| {
            driven.overfill(ending.token);
        });
    }

    fn it_is_paused(driven) {
        end(driven, SIPS, |driven, ending| {
            driven.kernel.pause(ending.token);
            send_much(driven, ending);
            driven.turn(Duration::ZERO);
        });
    }

    fn the_peer_has_finished(driven) {
        end(driven, SIPS, |driven, ending| {
            send_much(driven, ending);
            ending.peer.shutdown(Shutdown::Write).unwrap();
            driven.turn(Duration::ZERO);
        });
    }

    fn the_peer_receives_no_more(driven) {
        end(driven, 0, |driven, ending| {
            send_much(driven, ending);
            driven.turn(Duration::ZERO);
            ending.peer.shutdown(Shutdown::Both).unwrap();
        });
    }

    fn it_was_to_be_given_up(driven) {
        end(driven, SIPS, |driven, ending| {
            send_much(driven, ending);
            driven.turn(Duration::ZERO);
            driven.kernel.detach(ending.token);
        });
    }

    fn it_was_to_be_given_up_and_the_kernel_has_not_seen_it(driven) {
        end(driven, 0, |driven, ending| {
            send_much(driven, ending);
            driven.kernel.detach(ending.token);
        });
    }

    /// A send that has found room often enough is in another phase: the kernel waits in a thread.
    fn it_has_gone_on_often(driven) {
        let driven = &mut driven.impatient();
        let mut endings: Vec<_> =
            (0..10).map(|number| Ending::begin(driven, Token(number), true)).collect();
        for ending in &endings {
            driven.kernel.send(ending.token, vec![7; 4 * RETRIES * SIP]);
        }
        for _ in 0..3 * RETRIES {
            driven.turn(Duration::ZERO);
            endings.iter_mut().for_each(Ending::sip);
        }
        endings.iter().for_each(|ending| driven.kernel.close(ending.token));
        let places: Vec<_> = endings.iter().map(|ending| ending.place.as_path()).collect();
        all_go(driven, &places, || {});
    }

    /// A connect gets no reply: the queue of connections to accept is full.
    fn it_connects(driven) {
        let driven = &mut driven.impatient();
        let any = Address::Tcp(([127, 0, 0, 1], 0).into());
        let deaf = Listener::bind(&any, 0).unwrap();
        let address = deaf.local().unwrap();
        let all = || fs::read_dir("/proc/self/fd").unwrap().flatten();
        let links = || all().filter_map(|entry| fs::read_link(entry.path()).ok());
        let before: HashSet<_> = links().collect();
        for number in 0..REPETITIONS {
            driven.kernel.connect(Token(number), &address);
        }
        driven.turn(Duration::ZERO);
        let begun: Vec<_> = links().filter(|link| !before.contains(link)).collect();
        assert!(begun.len() >= REPETITIONS as usize);
        (0..REPETITIONS).for_each(|number| driven.kernel.close(Token(number)));
        // Some of them may be other tests', which go as well.
        let begun: Vec<_> = begun.iter().map(PathBuf::as_path).collect();
        all_go(driven, &begun, || {});
    }
}
