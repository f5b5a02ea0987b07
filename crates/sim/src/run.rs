//! Runs of seeds: once for the checkers, twice to check that a run is a function of its seed.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::client::Client;
use crate::lookups::Tally;
use crate::plan::PATIENCE;
use crate::plant::Plant;
use crate::world::{Sharing, World};

/// The most events of a run. A run with more events makes no progress.
const EVENTS_MAX: u64 = 3_000_000;

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
    /// The last lines of the trace, if the caller asked for any.
    pub lines: Vec<String>,
}

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
    /// The running seed, if there is one.
    static CURRENT: RefCell<Option<u64>> = const { RefCell::new(None) };
}

/// Turns panics of the engine, which are its assertions, into violations, and does not print them.
pub fn quiet_panics(say: fn(u64, &str)) {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let Some(seed) = CURRENT.with_borrow(|seed| *seed) else { return others(info) };
        let text = info.to_string();
        say(seed, &text);
        LAST_PANIC.with_borrow_mut(|last| *last = text);
    }));
}

impl World {
    /// Runs the world to its end. Returns the violation, if there is one.
    pub fn run(&mut self) -> Option<String> {
        let deadline = self.now + self.plan.calm + PATIENCE;
        while self.violation.is_none() && !self.clients.iter().all(Client::is_done) {
            if !self.advance() || self.now > deadline || self.events > EVENTS_MAX {
                self.stuck();
            }
        }
        self.end();
        self.violation.take()
    }
}

/// Runs a seed, and keeps the last `lines` lines of its trace.
pub fn run(seed: u64, plant: Option<Plant>, lines: usize) -> Report {
    CURRENT.with_borrow_mut(|current| *current = Some(seed));
    let mut world = World::new(seed, plant, lines > 0);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.run()));
    CURRENT.with_borrow_mut(|current| *current = None);
    let violation = outcome.unwrap_or_else(|_| {
        Some(LAST_PANIC.with_borrow(|last| format!("assertion: {}", last.replace('\n', " "))))
    });
    Report {
        seed,
        violation,
        hash: world.trace.hash(),
        events: world.events,
        sharing: world.sharing,
        logins: Tally { lookups: world.lookups.directory.answers(), ..world.lookups.tally },
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
