//! Runs of seeds: once for the checkers, twice to check that a run is a function of its seed.

use crate::lookups::Tally;
use crate::panics::guarded;
use crate::plant::Plant;
use crate::world::{Sharing, World};

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
    /// How often clients shared a server.
    pub sharing: Sharing,
    /// How logins ended.
    pub logins: Tally,
    /// Number of hosts that were promoted.
    pub promotions: u64,
    /// The last lines of the trace, if the caller asked for any.
    pub lines: Vec<String>,
}

/// Runs a seed, and keeps the last `lines` lines of its trace.
pub fn run(seed: u64, plant: Option<Plant>, lines: usize) -> Report {
    let mut world = World::new(seed, plant, lines > 0);
    let violation = guarded(seed, || world.run());
    Report {
        seed,
        violation,
        hash: world.trace.hash(),
        events: world.events,
        sharing: world.sharing,
        logins: Tally { lookups: world.lookups.directory.answers(), ..world.lookups.tally },
        promotions: world.promotions,
        lines: world.trace.lines(lines).map(str::to_owned).collect(),
    }
}

/// Runs a seed twice and compares the runs.
pub fn run_twice(seed: u64, plant: Option<Plant>) -> Report {
    let first = run(seed, plant, 0);
    let second = run(seed, plant, 0);
    let differs = (first.hash, first.events) != (second.hash, second.events);
    if differs && first.violation.is_none() {
        let violation = Some("determinism: two runs of the seed differ".to_owned());
        return Report { violation, ..first };
    }
    first
}
