//! Runs of seeds: once for the checkers, twice to check that a run is a function of its seed.

use refrain_sim::panics::guarded;

use crate::plant::Plant;
use crate::world::{Tally, World};

/// The kind of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kind {
    /// The planted bug, if there is one.
    pub plant: Option<Plant>,
    /// Whether there are ends that break the protocol.
    pub is_hostile: bool,
    /// The number of lines of the trace that are kept.
    pub lines: usize,
}

/// The result of a seed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The violation, if there was one.
    pub violation: Option<String>,
    /// A hash of all events.
    pub hash: u64,
    /// Number of events.
    pub events: u64,
    /// How often things happened.
    pub tally: Tally,
    /// The last lines of the trace, if the caller asked for any.
    pub lines: Vec<String>,
}

/// Runs a seed.
pub fn run(seed: u64, kind: Kind) -> Report {
    let Kind { plant, is_hostile, lines } = kind;
    let mut world = World::new(seed, plant, is_hostile, lines > 0);
    let violation = guarded(seed, || world.run());
    Report {
        seed,
        violation,
        hash: world.trace.hash(),
        events: world.events,
        tally: world.tally,
        lines: world.trace.lines(lines).map(str::to_owned).collect(),
    }
}

/// Runs a seed twice and compares the runs.
pub fn run_twice(seed: u64, kind: Kind) -> Report {
    let (first, second) = (run(seed, kind), run(seed, kind));
    let differs = (first.hash, first.events) != (second.hash, second.events);
    if differs && first.violation.is_none() {
        let violation = Some("determinism: two runs of the seed differ".to_owned());
        return Report { violation, ..first };
    }
    first
}
