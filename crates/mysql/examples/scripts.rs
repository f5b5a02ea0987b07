//! Runs one script of the engine's harness: what `cargo xtask bench instructions` counts.
//!
//! `scripts` lists them, with the transactions in a run of each and whether it allocates nothing;
//! `scripts NAME RUNS` runs one.

#![expect(clippy::print_stdout, reason = "it is run by hand and by xtask")]

#[path = "../tests/common/mod.rs"]
mod common;

use crate::common::{World, scripts};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(runs)) = (arguments.next(), arguments.next()) else {
        for script in scripts() {
            println!("{}\t{}\t{}", script.name, script.transactions, script.lean);
        }
        return;
    };
    let runs: u64 = runs.parse().expect("a number of runs");
    // The stack of a thread begins at a page. Where the first one begins depends on the path of the
    // program and on the environment, and the C library copies with fewer instructions what lies
    // well, so the counts would differ from folder to folder.
    let counted = std::thread::spawn(move || run(&name, runs));
    counted.join().expect("the script runs");
}

/// Runs a script once, and then so many times more.
fn run(name: &str, runs: u64) {
    let all = scripts();
    let script = all.iter().find(|script| script.name == name).expect("a script of this name");
    let mut world = World::new(script);
    let bytes = world.run(script);
    for _ in 0..runs {
        assert_eq!(world.run(script), bytes, "every run is alike");
    }
}
