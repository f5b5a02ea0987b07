//! Running seeds: once to see what is violated, twice to see that nothing but the seed decides.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::client::Client;
use crate::plan::PATIENCE;
use crate::plant::Plant;
use crate::world::World;

/// Events of a run, at most: one that makes more goes round in circles.
const EVENTS_MAX: u64 = 3_000_000;

/// What came of a seed.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What was violated, if anything.
    pub violation: Option<String>,
    /// Folds all that happened.
    pub hash: u64,
    /// How many events there were.
    pub events: u64,
    /// The last of them, where asked for.
    pub lines: Vec<String>,
}

thread_local! {
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
    /// The seed that runs, if one does.
    static CURRENT: RefCell<Option<u64>> = const { RefCell::new(None) };
}

/// Has panics of the engine (its assertions) remembered as violations instead of printed.
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
    /// Runs to the end; what was violated, if anything.
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

/// Runs a seed; keeps so many of the last events.
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
        lines: world.trace.lines(lines).map(str::to_owned).collect(),
    }
}

/// Runs a seed twice, and compares.
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
