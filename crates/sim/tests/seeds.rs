//! A short run of seeds must find nothing, and every planted bug must be found.

use refrain_sim::plant::{PLANTS, Plant};
use refrain_sim::run::{quiet_panics, run, run_twice};

/// Seeds of the short run; thousands more with `cargo run --release -p refrain-sim --bin sim`.
const SEEDS: u64 = 300;
/// Seeds within which a planted bug must be found.
const PLANTED_SEEDS: u64 = 400;

#[test]
fn seeds_find_nothing() {
    quiet_panics(|_, _| ());
    for seed in 0..SEEDS {
        let report = if seed % 10 == 0 { run_twice(seed, None) } else { run(seed, None, 0) };
        assert_eq!(report.violation, None, "replay: sim --seed {seed} --trace");
    }
}

/// The first seed that finds a planted bug, and by which checker. A seed that finds something without it
/// shows nothing.
fn found(plant: Plant) -> Option<(u64, String)> {
    (0..PLANTED_SEEDS).find_map(|seed| {
        let twice = plant == Plant::HiddenChance;
        let report = if twice { run_twice(seed, Some(plant)) } else { run(seed, Some(plant), 0) };
        let violation = report.violation?;
        let alone = run(seed, None, 0).violation;
        (alone.as_ref() != Some(&violation)).then_some((seed, violation))
    })
}

#[test]
fn every_planted_bug_is_found() {
    quiet_panics(|_, _| ());
    for (name, plant) in PLANTS {
        assert!(found(plant).is_some(), "{name} is not found within {PLANTED_SEEDS} seeds");
    }
}
