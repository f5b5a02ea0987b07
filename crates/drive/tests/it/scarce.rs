//! A process that is out of descriptors. The limit is the process's, so each test is run in a
//! child.

use std::collections::VecDeque;
use std::env;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::time::{Duration, Instant};

use refrain_drive::Socket;

use crate::harness::{Driven, on_both, tcp};

const CHILD: &str = "REFRAIN_SCARCE_CHILD";

/// Runs this test alone, with few descriptors, and says whether this is that run.
fn is_child() -> bool {
    if env::var_os(CHILD).is_some() {
        return true;
    }
    let thread = std::thread::current();
    let status = Command::new("sh")
        .args(["-c", "ulimit -n 64; exec \"$0\" --exact \"$1\" --test-threads 1"])
        .arg(env::current_exe().unwrap())
        .arg(thread.name().unwrap())
        .env(CHILD, "1")
        .status();
    assert!(status.unwrap().success());
    false
}

fn rest_and_go_on(driven: &mut Driven) {
    let address = driven.listen(0);
    driven.turn(Duration::ZERO);
    let mut all = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        all.push(file);
    }
    all.pop();
    let _client = tcp(&address);
    let start = Instant::now();
    let mut turns = 0;
    while start.elapsed() < Duration::from_millis(250) {
        driven.turn(Duration::from_secs(1));
        turns += 1;
    }
    assert!(driven.seen.is_empty(), "{:?}", driven.seen);
    assert!(turns < 50, "turned in a circle");
    drop(all);
    driven.accepted();
}

/// The descriptor of the next connection that is reported.
fn next_number(driven: &mut Driven, kept: &mut Vec<Socket>) -> i32 {
    let (_, socket, _) = driven.accepted();
    let number = socket.as_fd().as_raw_fd();
    kept.push(socket);
    number
}

/// Of ten connections two find room below the gate, three more as others are closed there, and the
/// next waits in vain.
fn wait_at_the_gate(driven: &mut Driven) {
    let mut driven = driven.gated(50);
    let address = driven.listen(0);
    let _clients: Vec<_> = (0..10).map(|_| tcp(&address)).collect();
    let mut files = VecDeque::new();
    while files.back().is_none_or(|file: &File| file.as_raw_fd() < 47) {
        files.push_back(File::open("/dev/null").unwrap());
    }
    let mut kept = Vec::new();
    assert_eq!([(); 2].map(|()| next_number(&mut driven, &mut kept)), [48, 49]);
    for _ in 0..3 {
        driven.calm_down();
        assert!(driven.seen.is_empty(), "{:?}", driven.seen);
        let free = files.pop_front().unwrap().as_raw_fd();
        assert_eq!(next_number(&mut driven, &mut kept), free);
    }
    assert!(next_number(&mut driven, &mut kept) >= 50);
}

on_both! {
    fn a_listener_rests_and_goes_on(driven) {
        if is_child() {
            rest_and_go_on(driven);
        }
    }

    fn connections_wait_at_the_gate(driven) {
        if is_child() {
            wait_at_the_gate(driven);
        }
    }
}
