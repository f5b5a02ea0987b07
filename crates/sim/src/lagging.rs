//! Worlds whose reads run on standbys, which lag behind: how far, how they fail, and the allowance
//! that reads have to miss acknowledged writes.

use crate::rng::Rng;
use crate::versions::Staleness;

/// The plan of a world in which reads run on standbys.
#[derive(Clone, Debug)]
pub struct StandbyReads {
    /// The age of what reads show, at most, in microseconds.
    max_lag: u64,
    /// The longest time between two steps of a standby that does not stall, in microseconds.
    lag: u64,
    /// The longest time for which a standby stalls, in microseconds.
    stall: u64,
    /// The chance that a standby stalls, per thousand steps.
    stalls: u64,
    /// The chance that a standby dies, per thousand moments of the operator.
    pub(crate) deaths: u64,
    /// The chance that somebody writes past the engine, per thousand moments of the operator.
    pub(crate) past: u64,
    /// The chance that a read is in the way of what its standby replays, per thousand reads.
    pub(crate) conflicts: u64,
}

impl StandbyReads {
    /// Draws a plan. With `caches`, nobody writes past the engine: a cache would not hear of it.
    pub(crate) fn new(rng: &mut Rng, caches: bool) -> Self {
        let mut rate = |of_worlds, most| if rng.chance(of_worlds) { rng.range(1, most) } else { 0 };
        let (stalls, deaths) = (rate(600, 100), rate(400, 60));
        let (past, conflicts) = (rate(if caches { 0 } else { 700 }, 600), rate(300, 200));
        Self {
            max_lag: *rng.pick(&[100_000, 100_000, 300_000, 1_000_000, 10_000_000]),
            lag: *rng.pick(&[500, 2_000, 20_000, 200_000]),
            stall: *rng.pick(&[50_000, 500_000, 5_000_000]),
            stalls,
            deaths,
            past,
            conflicts,
        }
    }

    /// Returns the options of the database.
    pub(crate) fn options(&self) -> String {
        format!("reads = \"standby\"\nmax_lag = \"{}ms\"\n", self.max_lag / 1_000)
    }

    /// Returns what reads may miss where a cache lets them miss this.
    pub(crate) fn staleness(&self, cached: Option<Staleness>) -> Staleness {
        let of_cache = cached.unwrap_or(Staleness::NONE);
        Staleness { age: of_cache.age.max(self.max_lag), own: of_cache.own }
    }

    /// Draws the time until a standby's next step.
    pub(crate) fn step(&self, rng: &mut Rng) -> u64 {
        if rng.chance(self.stalls) { rng.below(self.stall) } else { rng.below(self.lag) + 1 }
    }
}
