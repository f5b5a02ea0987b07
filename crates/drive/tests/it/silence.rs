//! Peers that acknowledge nothing any more.
//!
//! A filter at the peer's socket drops each packet before the kernel there looks at the packet, as
//! if the peer's machine were gone.

use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use refrain_drive::{Driver, Token};
use socket2::{SockFilter, SockRef, TcpKeepalive};

use crate::harness::{Driven, GUARD, on_both, tcp_pair};

/// Has a socket drop all packets that come.
fn go_silent(peer: &TcpStream) {
    // The program of the filter is one instruction, "return 0".
    let return_nothing = SockFilter::new(0x06, 0, 0, 0);
    SockRef::from(peer).attach_filter(&[return_nothing]).unwrap();
}

/// Returns the number of probes that the peer has not acknowledged, as the kernel's table has it.
fn probes(socket: &TcpStream) -> u64 {
    let port = |address: SocketAddr| format!(":{:04X}", address.port());
    let ends = [socket.local_addr(), socket.peer_addr()].map(|address| port(address.unwrap()));
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    let mut ours = rows.filter(|row| row[1].ends_with(&ends[0]) && row[2].ends_with(&ends[1]));
    ours.next().unwrap()[8].parse().unwrap()
}

/// Returns a connection under a token, a second handle of its socket, and the peer. The kernel
/// probes an idle connection each second.
fn probed(driven: &mut Driven, token: Token) -> (TcpStream, TcpStream) {
    let (here, there) = tcp_pair();
    let second = Duration::from_secs(1);
    let probes = TcpKeepalive::new().with_time(second).with_interval(second);
    SockRef::from(&here).set_tcp_keepalive(&probes).unwrap();
    let handle = here.try_clone().unwrap();
    driven.kernel.adopt(token, here.into());
    (handle, there)
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < GUARD, "waited in vain");
        thread::sleep(Duration::from_millis(10));
    }
}

on_both! {
    fn lost_probes_of_a_connection_that_has_nothing_to_send_are_no_silence(driven) {
        let token = Token(1);
        let (here, there) = probed(driven, token);
        go_silent(&there);
        for lost in 1..=2 {
            wait_until(|| probes(&here) >= lost);
            assert_eq!(driven.kernel.unacknowledged(token), None);
        }
    }

    fn bytes_that_are_sent_again_are_silence(driven) {
        let token = Token(1);
        let there = driven.pair(token);
        assert_eq!(driven.kernel.unacknowledged(token), None);
        go_silent(&there);
        driven.send(token, b"hello");
        driven.calm_down();
        wait_until(|| driven.kernel.unacknowledged(token).is_some());
    }

    fn a_peer_that_has_no_room_and_acknowledges_probes_is_not_silent(driven) {
        let token = Token(1);
        let (here, there) = probed(driven, token);
        driven.overfill(token);
        // The kernel asks whether there is room, and is answered.
        for _ in 0..200 {
            driven.turn(Duration::from_millis(5));
            assert_eq!(driven.kernel.unacknowledged(token), None);
        }
        go_silent(&there);
        wait_until(|| driven.kernel.unacknowledged(token).is_some());
        assert!(probes(&here) > 1);
    }
}
