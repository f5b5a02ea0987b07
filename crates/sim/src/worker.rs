//! A core of a world: an engine with its ports and links.

use std::collections::HashMap;
use std::sync::Arc;

use refrain_pool::shared::Shared;
use refrain_pool::{Conn, Core, Engine, Ports, Protocol};

use crate::net::LinkId;
use crate::rng::Rng;

/// A core.
#[derive(Debug)]
pub struct Worker<P: Protocol> {
    /// The engine.
    pub engine: Engine<P>,
    /// The engine's ports.
    pub ports: Ports<P>,
    /// The links of the engine's connections.
    pub links: HashMap<Conn, LinkId>,
    /// Whether a later turn will collect the engine's output.
    pub turning: bool,
    /// When the engine gets its next tick, if that is planned.
    tick: Option<u64>,
    /// When the last message arrives at each core. Messages from one core to another keep their
    /// order.
    told: HashMap<usize, u64>,
}

impl<P: Protocol> Worker<P> {
    /// Makes a core, whose engine has random bytes of this stream.
    pub fn new(core: u16, shared: &Arc<Shared<P>>, mut entropy: Rng) -> Self {
        let fill = Box::new(move |bytes: &mut [u8]| entropy.fill(bytes));
        Self {
            engine: Engine::new(Core(core), shared.clone(), fill),
            ports: Ports::default(),
            links: HashMap::new(),
            turning: false,
            tick: None,
            told: HashMap::new(),
        }
    }

    /// Plans the tick that the engine wants next. Returns how long that takes; `None` if no other
    /// tick is needed than the planned one.
    pub fn plan_tick(&mut self, now: u64) -> Option<u64> {
        let at = self.engine.next_tick(&self.ports)?.0;
        if self.tick.is_some_and(|planned| planned <= at) {
            return None;
        }
        self.tick = Some(at);
        Some(at.saturating_sub(now))
    }

    /// Takes the tick that is due. Returns false if an earlier one has replaced it.
    pub fn take_tick(&mut self, now: u64) -> bool {
        let is_due = self.tick.is_some_and(|planned| planned <= now);
        if is_due {
            self.tick = None;
        }
        is_due
    }

    /// Returns when a message arrives at another core that would do so at this time, if it does not
    /// overtake those before it.
    pub fn tell(&mut self, to: usize, at: u64) -> u64 {
        let last = self.told.entry(to).or_default();
        *last = at.max(*last);
        *last
    }

    /// Returns the most bytes that are queued on one connection.
    pub fn most_queued(&self) -> usize {
        self.links.keys().map(|conn| self.ports.queued(*conn)).max().unwrap_or_default()
    }
}
