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
    let all = scripts();
    let script = all.iter().find(|script| script.name == name).expect("a script of this name");
    let runs: u64 = runs.parse().expect("a number of runs");
    let mut world = World::new(script);
    let bytes = world.run(script);
    for _ in 0..runs {
        assert_eq!(world.run(script), bytes, "every run is alike");
    }
}
