//! The world: engines, the network, model clients and servers, and one queue of events.
//!
//! The world runs in one thread. Time is virtual and jumps from one event to the next. All choices
//! come from the seed's streams, so a run is a function of its seed.
//!
//! Later modules add methods: `engines` steps the engines and carries out their actions, `clients`
//! and `backends` are the two ends, `delivery` hands bytes to either, `faults` has the operator and
//! restarts, `dispatch` picks the function for the next event, and `check` has the checks at the
//! end.

use std::collections::HashSet;
use std::sync::Arc;

use refrain_mysql::parts::My;
use refrain_pool::event::Command;
use refrain_pool::message::CoreMessage;
use refrain_pool::shared::Shared;
use refrain_pool::{Core, Now, Transfer};
use refrain_sim::net::{Link, LinkId, Way};
use refrain_sim::queue::Queue;
use refrain_sim::rng::Rng;
use refrain_sim::trace::Trace;
use refrain_sim::worker::Worker;

use crate::backend::Backend;
use crate::client::Client;
use crate::hostile::Hostile;
use crate::plan::Plan;
use crate::plant::Plant;

/// An event of the world.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A piece arrives.
    Deliver(LinkId, Way),
    /// The kernel gives a buffer back.
    Sent(LinkId),
    /// A connection to a server is accepted or refused. Whether it is one that lies.
    Connect(LinkId, bool),
    /// A paused reader reads again.
    Unstall(LinkId, Way),
    /// A client connects.
    Arrive(usize),
    /// A client acts, by the number of its appointment.
    Act(usize, u32),
    /// A hostile client connects or acts.
    Attack(usize),
    /// A session of the model server goes on.
    Work(usize),
    /// An engine gets a tick.
    Tick(usize),
    /// An engine's output is collected.
    Turn(usize),
    /// A core gets a message of another core.
    Tell(usize, CoreMessage),
    /// A server or client arrives at another core.
    HandOver(LinkId, Core, Box<Transfer<My>>),
    /// An engine notices a broken connection.
    Broken(LinkId),
    /// The operator acts.
    Supervisor,
    /// A core gives clients to another.
    Balance,
    /// The operator gives this command, which undoes an earlier one.
    Order(Command),
    /// Faults stop.
    Calm,
}

/// The rows that the servers have.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// All that were ever written.
    pub(crate) written: HashSet<String>,
    /// The rows that remain.
    pub(crate) committed: HashSet<String>,
}

/// How often something happened that a checker has to judge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Replies that clients have got.
    pub replies: u64,
    /// Logins that succeeded.
    pub logins: u64,
    /// Rows that clients know to be there.
    pub rows: u64,
    /// Commands that servers have got.
    pub commands: u64,
    /// Bytes that hostile ends have sent.
    pub spoiled: u64,
}

impl Tally {
    /// Adds another world's.
    pub fn add(&mut self, other: Self) {
        self.replies += other.replies;
        self.logins += other.logins;
        self.rows += other.rows;
        self.commands += other.commands;
        self.spoiled += other.spoiled;
    }
}

/// The world.
#[derive(Debug)]
pub struct World {
    pub(crate) plan: Plan,
    pub(crate) plant: Option<Plant>,
    /// Number of places that a bug which strikes once still lets pass.
    pub(crate) plant_waits: u64,
    pub(crate) planted: bool,
    pub(crate) now: u64,
    pub(crate) queue: Queue<Happening>,
    /// The stream of choices for the network and the servers.
    pub(crate) rng: Rng,
    pub(crate) shared: Arc<Shared<My>>,
    pub(crate) workers: Vec<Worker<My>>,
    pub(crate) links: Vec<Link<My>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) hostile: Vec<Hostile>,
    pub(crate) backends: Vec<Backend>,
    pub(crate) rows: Rows,
    /// Number of faults so far, which excuse endings of clients.
    pub(crate) faults: u32,
    /// Whether the engines are drained.
    pub(crate) is_drained: bool,
    /// The time until which connections to servers are refused.
    pub(crate) down_until: u64,
    /// Whether faults have stopped.
    pub(crate) is_calm: bool,
    pub(crate) violation: Option<String>,
    /// How often things happened.
    pub tally: Tally,
    /// The trace of all events.
    pub trace: Trace,
    /// Number of events so far.
    pub events: u64,
}

impl World {
    /// Makes the world of a seed. With `hostile`, there are ends that break the protocol.
    pub fn new(seed: u64, plant: Option<Plant>, hostile: bool, traced: bool) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::new(&mut rng.fork(1), plant, hostile);
        let mut entropy = rng.fork(2);
        let options = plan.options.clone();
        let shared = Shared::new(options, plan.cores, &mut |bytes| entropy.fill(bytes));
        let workers = (0..plan.cores)
            .map(|core| Worker::new(core, &shared, rng.fork(100 + u64::from(core))))
            .collect();
        let mut clients = Vec::new();
        for slot in 0..plan.slots {
            let mut fork = rng.fork(1000 + slot as u64);
            clients.push(Client::new(slot, slot, &plan, &mut fork));
        }
        let hostile = (0..plan.hostile).map(|at| Hostile::new(rng.fork(5000 + at as u64)));
        let hostile = hostile.collect();
        let plant_waits = rng.below(12);
        let mut world = Self {
            plan,
            plant,
            plant_waits,
            planted: false,
            now: 1_000_000,
            queue: Queue::default(),
            rng: rng.fork(3),
            shared,
            workers,
            links: Vec::new(),
            clients,
            hostile,
            backends: Vec::new(),
            rows: Rows::default(),
            faults: 0,
            is_drained: false,
            down_until: 0,
            is_calm: false,
            violation: None,
            tally: Tally::default(),
            trace: Trace::new(traced),
            events: 0,
        };
        world.plan_ahead();
        world
    }

    fn plan_ahead(&mut self) {
        for slot in 0..self.clients.len() {
            let delay = self.rng.below(5_000);
            self.later(delay, Happening::Arrive(slot));
        }
        for at in 0..self.hostile.len() {
            let delay = self.rng.below(5_000);
            self.later(delay, Happening::Attack(at));
        }
        let calm = self.plan.calm;
        self.later(calm, Happening::Calm);
        self.later(2_000, Happening::Supervisor);
        if self.workers.len() > 1 {
            self.later(2_000, Happening::Balance);
        }
    }

    /// Adds an event that happens after `delay` microseconds.
    pub(crate) fn later(&mut self, delay: u64, what: Happening) {
        self.queue.push(self.now + delay, what);
    }

    /// Moves the sender's bytes into the pipe, as far as they fit.
    pub(crate) fn pump(&mut self, id: LinkId, way: Way) {
        let (rng, plan) = (&mut self.rng, &self.plan);
        let delays = self.links[id.0].pump(way, self.now, || {
            let most = if rng.chance(100) { 7 } else { plan.piece };
            let most = usize::try_from(rng.range(1, most)).unwrap_or(1);
            (most, rng.range(plan.latency.0, plan.latency.1))
        });
        for delay in delays {
            self.later(delay, Happening::Deliver(id, way));
        }
        if way == Way::Down && self.links[id.0].owes_buffer() {
            let delay = self.rng.below(100);
            self.later(delay, Happening::Sent(id));
        }
    }

    /// Lets a reader read again.
    pub(crate) fn unpause(&mut self, id: LinkId, way: Way) {
        let pipe = self.links[id.0].pipe(way);
        pipe.paused = false;
        let due = std::mem::take(&mut pipe.due);
        for _ in 0..due {
            self.later(0, Happening::Deliver(id, way));
        }
    }

    /// Breaks a link. The bytes in flight are lost, and the engine notices a little later.
    pub(crate) fn break_link(&mut self, id: LinkId) {
        self.trace.fold([self.now, id.0 as u64, 7], &[]);
        self.trace.line(
            self.now,
            "reset",
            format_args!("{:?}", self.links[id.0].peer),
            String::new,
        );
        let link = &mut self.links[id.0];
        link.up.kill();
        link.down.kill();
        let delay = self.rng.below(200);
        self.later(delay, Happening::Broken(id));
    }

    /// Returns the time in the engines' type.
    pub(crate) fn clock(&self) -> Now {
        Now(self.now)
    }

    /// Notes a violation. The first one ends the run.
    pub(crate) fn violate(&mut self, checker: &str, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            let what = format!("{checker}: {}", what());
            self.trace.line(self.now, "VIOLATION", checker, || what.clone());
            self.violation = Some(what);
        }
    }

    /// Whether there are ends that break the protocol, and may do so by now.
    pub(crate) fn is_hostile(&self) -> bool {
        self.plan.hostile > 0 && !self.is_calm
    }

    /// Whether a bug that strikes once strikes here.
    pub(crate) fn strikes(&mut self) -> bool {
        if self.planted {
            return false;
        }
        if self.plant_waits > 0 {
            self.plant_waits -= 1;
            return false;
        }
        self.planted = true;
        true
    }
}
