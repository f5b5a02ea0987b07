//! A short run of seeds must find no violation, and the checkers must find every planted bug.

use refrain_sim::panics::quiet_panics;
use refrain_sim_mysql::plant::{PLANTS, Plant};
use refrain_sim_mysql::run::{Kind, run, run_twice};
use refrain_sim_mysql::world::Tally;

/// Number of seeds of the short run. `cargo xtask test` runs more.
const SEEDS: u64 = 200;
/// Number of seeds with hostile ends, whose packets of 16 MiB take their time in a program that is
/// not optimised.
const HOSTILE_SEEDS: u64 = 5;
/// Number of seeds within which the checkers must find a planted bug.
const PLANTED_SEEDS: u64 = 400;

#[test]
fn seeds_find_nothing() {
    quiet_panics(|_, _| ());
    for (is_hostile, seeds) in [(false, SEEDS), (true, HOSTILE_SEEDS)] {
        let kind = Kind { is_hostile, ..Kind::default() };
        let mut tally = Tally::default();
        for seed in 0..seeds {
            let report = if seed % 10 == 0 { run_twice(seed, kind) } else { run(seed, kind) };
            assert_eq!(report.violation, None, "replay: sim-mysql --seed {seed} --trace");
            tally.add(report.tally);
        }
        // What no world does, no checker can judge.
        let Tally { replies, logins, rows, commands, spoiled } = tally;
        assert!(replies > 20 * seeds && logins > 2 * seeds && commands > 50 * seeds, "{tally:?}");
        assert!(rows > 2 * seeds, "{tally:?}");
        assert_eq!(spoiled > 500 * seeds, is_hostile, "{tally:?}");
    }
}

/// Returns the first seed that finds a planted bug, with the violation. A seed that has the same
/// violation without the bug does not count.
fn found(plant: Plant) -> Option<(u64, String)> {
    let kind = Kind { plant: Some(plant), ..Kind::default() };
    (0..PLANTED_SEEDS).find_map(|seed| {
        let violation = run(seed, kind).violation?;
        let alone = run(seed, Kind::default()).violation;
        (alone.as_ref() != Some(&violation)).then_some((seed, violation))
    })
}

#[test]
fn every_planted_bug_is_found() {
    quiet_panics(|_, _| ());
    for (name, plant) in PLANTS {
        let found = found(plant);
        assert!(found.is_some(), "{name} is not found within {PLANTED_SEEDS} seeds");
        println!("{name}: {found:?}");
    }
}
