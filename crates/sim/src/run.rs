//! Runs of seeds: once for the checkers, twice to check that a run is a function of its seed. A run
//! takes one event after the other from the queue, and calls the function of each.

use crate::client::Client;
use crate::lookups::Tally;
use crate::panics::guarded;
use crate::plan::PATIENCE;
use crate::plant::Plant;
use crate::world::{Happening, Sharing, World};

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
    /// Number of hosts that were promoted.
    pub promotions: u64,
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
        let faults = self.faults.total();
        self.happen(what);
        if self.faults.total() > faults {
            self.note_trouble();
        }
        true
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Deliver(link, way) => self.deliver(link, way),
            Happening::Sent(link) => self.sent(link),
            Happening::Connect(link) => self.connect(link),
            Happening::Unstall(link, way) => self.unpause(link, way),
            Happening::Arrive(client) => self.client_arrives(client),
            Happening::Says(client, bytes) => self.client_says(client, &bytes),
            Happening::Late(client) => self.check_late(client),
            Happening::Act(client, number) => self.client_acts(client, number),
            Happening::Work(backend, number) => self.backend_works(backend, number),
            Happening::Patience(backend, number) => self.check_patience(backend, number),
            Happening::Signal(pid, key, link) => self.signal(pid, &key, link),
            Happening::Tick(core) => self.tick(core),
            Happening::Turn(core) => {
                self.workers[core].turning = false;
                self.collect(core);
            }
            Happening::Tell(core, message) => {
                self.step(core, refrain_pg::Event::Message(message));
            }
            Happening::Judge(core, case) => self.judge(core, case),
            Happening::Read(core, case) => self.read(core, case),
            Happening::HandOver(link, core, transfer) => self.arrive(link, core, transfer),
            Happening::Broken(link) => self.broken(link),
            Happening::Silent(link) => self.end_silent(link),
            Happening::Promote(host) => self.promote(host),
            Happening::Supervisor => self.operator(),
            Happening::Balance => self.balance(),
            Happening::Order(command) => self.order(&command),
            Happening::Calm => self.calm(),
        }
    }
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
