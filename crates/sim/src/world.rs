//! The world: engines, the network, model clients and servers, and one queue of events.
//!
//! The world runs in one thread. Time is virtual and jumps from one event to the next; events of
//! the same time happen in the order of their creation. All choices come from the seed's streams,
//! so a run is a function of its seed.
//!
//! Later modules add methods: `crate::engines` steps the engines and carries out their actions,
//! `crate::clients` and `crate::backends` are the two ends, `crate::delivery` hands bytes to
//! either, `crate::faults` has the operator, restarts and failovers, `crate::dispatch` picks the
//! function for the next event, and `crate::check` has the checks at the end.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use refrain_pg::parts::Pg;
use refrain_pg::requests::{Case, ReadCase};
use refrain_pg::{Shared, Transfer};
use refrain_pool::event::Command;
use refrain_pool::message::CoreMessage;
use refrain_pool::{Core, Now};

use crate::backend::Backend;
use crate::client::Client;
use crate::hosts::Hosts;
use crate::lookups::Lookups;
use crate::net::{Link, LinkId, Way};
use crate::plan::Plan;
use crate::plant::{Plant, hidden_chance};
use crate::queue::Queue;
use crate::rng::Rng;
use crate::rows::Rows;
use crate::trace::Trace;
use crate::turns::Turns;
use crate::versions::Versions;
use crate::worker::Worker;

/// An event of the world.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A piece arrives.
    Deliver(LinkId, Way),
    /// The kernel gives a buffer back.
    Sent(LinkId),
    /// A connection to a server is accepted or refused.
    Connect(LinkId),
    /// A paused reader reads again.
    Unstall(LinkId, Way),
    /// A client connects.
    Arrive(usize),
    /// A client says this, as its part of its login.
    Says(usize, Vec<u8>),
    /// A client's login has to be over.
    Late(usize),
    /// A client acts, by the number of its appointment.
    Act(usize, u32),
    /// A session of the model server works, by the number of its appointment.
    Work(usize, u32),
    /// A server has worked for so long that nobody may wait behind, by the number of its
    /// appointment.
    Patience(usize, u32),
    /// A cancel request takes effect.
    Signal(u32, Vec<u8>, LinkId),
    /// An engine gets a tick.
    Tick(usize),
    /// An engine's output is collected.
    Turn(usize),
    /// A core gets a message of another core.
    Tell(usize, CoreMessage),
    /// A text is analysed for autoprepare.
    Judge(usize, Box<Case>),
    /// The names in a text are found, for an engine.
    Read(usize, Box<ReadCase>),
    /// A server or client arrives at another core.
    HandOver(LinkId, Core, Box<Transfer>),
    /// An engine notices a broken connection.
    Broken(LinkId),
    /// The program looks whether a server that has fallen silent is at work.
    Silent(LinkId),
    /// A host is promoted, unless another one has become the primary.
    Promote(usize),
    /// A standby replays some of the log.
    Replay(usize),
    /// Clients have to be served that wait since this promotion.
    Served(u64),
    /// The operator acts.
    Supervisor,
    /// A core gives clients to another.
    Balance,
    /// The operator gives this command, which undoes an earlier one.
    Order(Command),
    /// Faults stop.
    Calm,
}

/// Counts of faults so far, which excuse endings of clients.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Connections to servers that broke, were refused or were shut down.
    pub(crate) servers: u32,
    /// Logins that a server refused.
    pub(crate) logins: u32,
    /// Kills by the operator, and sessions that servers ended.
    pub(crate) kills: u32,
    /// Whether the engines are drained.
    pub(crate) drained: bool,
}

impl Faults {
    /// Returns the number of faults because of which a lookup may fail.
    pub(crate) fn total(&self) -> u32 {
        self.servers + self.logins + self.kills
    }
}

/// How often clients of a world shared a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sharing {
    /// Requests that got a server which worked for others.
    pub shared: u64,
    /// Requests that were sent again to another server: a holder was late, or the server went.
    pub resent: u64,
    /// Requests that were sent again to another server: a holder was cancelled, or read slowly.
    pub moved: u64,
    /// Requests that were answered from the cache.
    pub hits: u64,
    /// Replies that writes have overtaken before they came.
    pub overtaken: u64,
    /// Reads that were sent to standbys.
    pub away: u64,
    /// Reads that were sent to standbys, and ran on the primary afterwards.
    pub returned: u64,
}

impl Sharing {
    /// Adds the numbers of another world.
    pub fn add(&mut self, other: Self) {
        self.shared += other.shared;
        self.resent += other.resent;
        self.moved += other.moved;
        self.hits += other.hits;
        self.overtaken += other.overtaken;
        self.away += other.away;
        self.returned += other.returned;
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
    pub(crate) shared: Arc<Shared>,
    pub(crate) workers: Vec<Worker<Pg>>,
    pub(crate) links: Vec<Link>,
    pub(crate) clients: Vec<Client>,
    pub(crate) backends: Vec<Backend>,
    pub(crate) faults: Faults,
    /// The tags with which statements have run that are no reads.
    pub(crate) ran: HashSet<String>,
    /// The rows of the servers, and what clients know of them.
    pub(crate) rows: Rows,
    pub(crate) versions: Versions,
    /// Clients that waited for a server, and those that had one, at the last look.
    pub(crate) turns: Turns,
    /// The server that was the first to begin a request, by the request's tag, for a planted bug.
    pub(crate) first: HashMap<String, usize>,
    /// The users, and what was looked up.
    pub(crate) lookups: Lookups,
    /// How often clients shared a server, once the run has ended.
    pub(crate) sharing: Sharing,
    /// The hosts of the servers.
    pub(crate) hosts: Hosts,
    /// Number of hosts that were promoted.
    pub(crate) promotions: u64,
    /// When a host was last promoted, and when a primary last got a message of a client.
    pub(crate) promoted: u64,
    pub(crate) served: u64,
    /// Whether faults have stopped.
    pub(crate) is_calm: bool,
    pub(crate) violation: Option<String>,
    /// The trace of all events.
    pub trace: Trace,
    /// Number of events so far.
    pub events: u64,
}

impl World {
    /// Creates the world of a seed.
    pub fn new(seed: u64, plant: Option<Plant>, traced: bool) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::new(&mut rng.fork(1), plant);
        let mut entropy = rng.fork(2);
        let options = plan.options.clone();
        let shared = Shared::new(options, plan.cores, &mut |bytes| entropy.fill(bytes));
        match plant {
            Some(Plant::Cache(bug)) => shared.protocol.plant_in_results(bug),
            Some(Plant::Users(bug)) => shared.protocol.plant_in_users(bug),
            Some(Plant::Standbys(bug)) => shared.protocol.plant_in_standbys(bug),
            _ => {}
        }
        let workers = (0..plan.cores)
            .map(|core| Worker::new(core, &shared, rng.fork(100 + u64::from(core))))
            .collect();
        let mut clients = Vec::new();
        for slot in 0..plan.slots {
            let mut fork = rng.fork(1000 + slot as u64);
            clients.push(Client::new(slot, slot, &plan, &mut fork));
        }
        let plant_waits = rng.below(12);
        let lookups = Lookups::new(plan.logins.as_ref());
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
            backends: Vec::new(),
            faults: Faults::default(),
            ran: HashSet::new(),
            rows: plant.map_or_else(Rows::default, Plant::rows),
            versions: Versions::default(),
            turns: Turns::default(),
            first: HashMap::new(),
            lookups,
            sharing: Sharing::default(),
            hosts: Hosts::default(),
            promotions: 0,
            promoted: 0,
            served: 0,
            is_calm: false,
            violation: None,
            trace: Trace::new(traced),
            events: 0,
        };
        for slot in 0..world.clients.len() {
            let delay = world.rng.below(5_000);
            world.later(delay, Happening::Arrive(slot));
        }
        let calm = world.plan.calm;
        world.later(calm, Happening::Calm);
        world.later(2_000, Happening::Supervisor);
        if world.workers.len() > 1 {
            world.later(2_000, Happening::Balance);
        }
        if world.plan.standbys.is_some() {
            (0..world.plan.hosts).for_each(|host| world.later(0, Happening::Replay(host)));
        }
        world
    }

    /// Adds an event that happens after `delay` microseconds.
    pub(crate) fn later(&mut self, delay: u64, what: Happening) {
        self.queue.push(self.now + delay, what);
    }

    /// Moves the sender's bytes into the pipe, as far as they fit.
    pub(crate) fn pump(&mut self, id: LinkId, way: Way) {
        let (rng, plan) = (&mut self.rng, &self.plan);
        let is_hidden = self.plant == Some(Plant::HiddenChance);
        let delays = self.links[id.0].pump(way, self.now, || {
            let most = if rng.chance(100) { 7 } else { plan.piece };
            let most = usize::try_from(rng.range(1, most)).unwrap_or(1);
            let latency = rng.range(plan.latency.0, plan.latency.1);
            (most, if is_hidden { latency + hidden_chance() } else { latency })
        });
        for delay in delays {
            self.later(delay, Happening::Deliver(id, way));
        }
        if way == Way::Down && self.links[id.0].owes_buffer() {
            let lost = self.plant == Some(Plant::LoseSent) && self.strikes();
            if !lost {
                let delay = self.rng.below(100);
                self.later(delay, Happening::Sent(id));
            }
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

    /// Notes the violation that a check has found, if it has.
    pub(crate) fn expect(&mut self, checker: &str, found: Result<(), String>) {
        if let Err(what) = found {
            self.violate(checker, || what);
        }
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

impl World {
    /// Has a server work, after a while.
    pub(crate) fn appoint(&mut self, number: usize, delay: u64) {
        let backend = &mut self.backends[number];
        backend.waits = true;
        backend.number += 1;
        let appointment = backend.number;
        self.later(delay, Happening::Work(number, appointment));
    }

    /// Plans a look at a server that works on a message for so long that nobody may wait behind it.
    pub(crate) fn watch_patience(&mut self, number: usize, takes: u64) {
        if let Some(bound) = self.plan.patience_behind(takes) {
            let appointment = self.backends[number].number;
            self.later(bound, Happening::Patience(number, appointment));
        }
    }

    /// Has a server wait for the lock of another session.
    pub(crate) fn wait_for_lock(&mut self, number: usize, tag: u8, body: Vec<u8>) {
        self.trace
            .line(self.now, "server", format_args!("{number}"), || "waits for a lock".to_owned());
        let backend = &mut self.backends[number];
        backend.current = Some((tag, body, false));
        backend.waits = true;
        backend.waits_for_lock = true;
        backend.number += 1;
        self.watch_patience(number, u64::MAX);
    }

    /// Lets the servers look that wait for locks, if a lock was given up.
    pub(crate) fn look_at_locks(&mut self) {
        if !self.rows.take_released() {
            return;
        }
        for number in 0..self.backends.len() {
            if std::mem::take(&mut self.backends[number].waits_for_lock) {
                let delay = self.rng.below(20);
                self.appoint(number, delay);
            }
        }
    }

    /// Rolls back what a session has not committed that has ended.
    pub(crate) fn give_locks_up(&mut self, number: usize) {
        self.rows.rollback(self.backends[number].session.number);
        self.look_at_locks();
    }
}
