//! A process that is out of descriptors. The limit is the process's, so each test is run in a child.

use std::env;
use std::fs::File;
use std::process::Command;
use std::time::{Duration, Instant};

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

on_both! {
    fn a_listener_rests_and_goes_on(driven) {
        if is_child() {
            rest_and_go_on(driven);
        }
    }
}
