//! Runs of seeds: once for the checkers, twice to check that a run is a function of its seed. A run
//! takes one event after the other from the queue, and calls the function of each.

use refrain_pool::Event;
use refrain_sim::panics::guarded;

use crate::client::Client;
use crate::plan::PATIENCE;
use crate::plant::Plant;
use crate::world::{Happening, Tally, World};

/// The most events of a run. A run with more events makes no progress.
const EVENTS_MAX: u64 = 30_000_000;

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

    /// Runs the world for a while.
    pub(crate) fn run_for(&mut self, span: u64) {
        let until = self.now + span;
        while self.violation.is_none() && self.queue.next_at().is_some_and(|at| at <= until) {
            self.advance();
        }
        self.now = self.now.max(until);
    }

    /// Lets the next event happen. Returns false if there is none.
    pub(crate) fn advance(&mut self) -> bool {
        let Some((at, what)) = self.queue.pop() else { return false };
        self.now = self.now.max(at);
        self.events += 1;
        self.happen(what);
        true
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Deliver(link, way) => self.deliver(link, way),
            Happening::Sent(link) => self.sent(link),
            Happening::Connect(link, lies) => self.connect(link, lies),
            Happening::Unstall(link, way) => self.unpause(link, way),
            Happening::Arrive(slot) => self.client_arrives(slot),
            Happening::Act(client, number) => self.client_acts(client, number),
            Happening::Attack(at) => self.hostile_acts(at),
            Happening::Work(backend) => self.backend_works(backend),
            Happening::Tick(core) => self.tick(core),
            Happening::Turn(core) => {
                self.workers[core].turning = false;
                self.collect(core);
            }
            Happening::Tell(core, message) => self.step(core, Event::Message(message)),
            Happening::HandOver(link, core, transfer) => self.arrive(link, core, transfer),
            Happening::Broken(link) => self.broken(link),
            Happening::Supervisor => self.operator(),
            Happening::Balance => self.balance(),
            Happening::Order(command) => self.order(&command),
            Happening::Calm => self.calm(),
        }
    }
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
