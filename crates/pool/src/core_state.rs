//! The state of one core's engine beside its connections: its pools, the protocol's part, and
//! whether it drains.

use std::sync::Arc;
use std::time::Duration;

use crate::agenda::Agenda;
use crate::database_drain::DatabaseDrain;
use crate::event::Action;
use crate::ids::{ClientSerial, Conn, Core, PoolId};
use crate::message::CoreMessage;
use crate::parts::Parts;
use crate::pool::Pool;
use crate::pool_shared::PoolShared;
use crate::ports::Ports;
use crate::process_ids::ProcessIds;
use crate::server::{HostFinding, Server};
use crate::shared::Shared;
use crate::stats::Counters;
use crate::time::Now;

/// Bytes queued to a client of the console at which Refrain reads the client again.
const CONSOLE_LOW: usize = 64 * 1024;

/// Fills a slice with random bytes.
pub(crate) type Entropy = Box<dyn FnMut(&mut [u8]) + Send>;

/// The state of one core's engine beside the engine's connections.
pub struct CoreState<P: Parts> {
    /// The core's number.
    pub(crate) core: Core,
    /// The state that all cores share.
    pub shared: Arc<Shared<P>>,
    /// The protocol's part.
    pub protocol: P::Core,
    /// Whether a shutdown has begun: no new client is let in, and sessions end when they can.
    pub(crate) draining: bool,
    /// The databases that are drained.
    pub database_drain: DatabaseDrain,
    /// Clients in a transaction that are not allowed any more, while their pool stays.
    pub(crate) unwelcome: Vec<(Conn, ClientSerial)>,
    /// Sum of the counters of the pools that this core has closed.
    pub(crate) forgotten: Counters<P::Counters>,
    /// The earliest time at which a client may have done nothing for too long.
    pub(crate) idle_due: Now,
    /// The pools that the next ticks visit.
    pub(crate) agenda: Agenda,
    /// The process IDs that the core gives.
    pub(crate) process_ids: ProcessIds,
    pools: Vec<Option<Box<Pool<P>>>>,
    entropy: Entropy,
}

impl<P: Parts> CoreState<P> {
    /// Makes the state of a core that has seen nothing yet.
    pub(crate) fn new(core: Core, shared: Arc<Shared<P>>, entropy: Entropy) -> Self {
        Self {
            core,
            protocol: P::core(&shared.protocol),
            process_ids: ProcessIds::new(core, shared.cores),
            shared,
            draining: false,
            database_drain: DatabaseDrain::default(),
            unwelcome: Vec::new(),
            forgotten: Counters::default(),
            idle_due: Now(u64::MAX),
            agenda: Agenda::default(),
            pools: Vec::new(),
            entropy,
        }
    }

    /// Returns the core's number.
    #[inline]
    pub fn core(&self) -> Core {
        self.core
    }

    /// Whether a shutdown has begun: no new client is let in, and sessions end when they can.
    pub fn is_shutting_down(&self) -> bool {
        self.draining
    }

    /// Returns the sum of the counters of the pools that this core has closed.
    pub fn forgotten(&self) -> &Counters<P::Counters> {
        &self.forgotten
    }

    /// Returns this core's part of a pool, and makes the part on first use.
    pub fn open_pool(&mut self, shared: &Arc<PoolShared<P>>, now: Now) -> &mut Pool<P> {
        let place = shared.id.place();
        if self.pools.len() <= place {
            self.pools.resize_with(place + 1, || None);
        }
        let paused = || self.shared.is_paused(&shared.database);
        let make = || Box::new(Pool::new(shared.clone(), paused()));
        let pool = self.pools[place].get_or_insert_with(make);
        assert_eq!(pool.shared.id, shared.id, "a place is used again when all have left it");
        self.agenda.list(shared.id, &mut pool.visits);
        pool.unused_since = None;
        if let Some(timeout) = pool.settings.options.client_idle_timeout {
            self.idle_due = self.idle_due.min(now.after(timeout));
        }
        pool
    }

    /// Opens the pools that keep servers before any client comes. The first core keeps the minimum
    /// of each pool for all cores.
    pub(crate) fn open_kept_pools(&mut self, now: Now) {
        if self.core == Core(0) {
            for pool in self.shared.kept_pools() {
                self.open_pool(&pool, now);
            }
        }
    }

    /// Whether a pool keeps servers at this core before any client comes.
    pub(crate) fn is_kept(&mut self, id: PoolId) -> bool {
        let (core, options) = (self.core, self.shared.options());
        let Some(pool) = self.find_pool(id) else { return false };
        core == Core(0)
            && !pool.removed
            && pool.shared.is_common
            && options.kept_databases().any(|name| name == &*pool.shared.database)
    }

    /// Notes that a client may be idle for too long after this time.
    pub fn look_for_idle_within(&mut self, timeout: Duration, now: Now) {
        self.idle_due = self.idle_due.min(now.after(timeout));
    }

    /// Closes this core's part of a pool that no client or server of this core uses. Forgets the
    /// pool if no other core has it open and it has no server.
    pub(crate) fn close_pool(&mut self, id: PoolId) {
        let mut pool = self.pools[id.place()].take().expect("it is open");
        self.agenda.rest(id, &mut pool.visits, None);
        assert!(pool.shared.id == id && pool.is_unused(), "nobody has it");
        pool.crowd.close(&pool.shared.crowd);
        self.forgotten.add(&pool.counters);
        self.forgotten.pool.pools_forgotten += 1;
        drop(pool);
        self.shared.forget_pool(id);
    }

    /// Returns this core's part of a pool that a client or server of this core belongs to.
    ///
    /// # Panics
    /// If this core has no such pool open.
    #[inline]
    pub fn pool(&mut self, id: PoolId) -> &mut Pool<P> {
        self.find_pool(id).expect("a pool in use is open")
    }

    /// Returns this core's part of a pool like [`Self::pool`], and has no tick visit the pool: for
    /// what each transaction does there. It counts, reads settings, and takes and frees servers, of
    /// which no tick has to know. [`crate::Engine::check`] finds work that no tick does.
    ///
    /// # Panics
    /// If this core has no such pool open.
    #[inline]
    pub fn pool_in_use(&mut self, id: PoolId) -> &mut Pool<P> {
        let (pool, _, _) = self.pool_beside(id);
        pool
    }

    /// Returns this core's part of a pool like [`Self::pool_in_use`], and beside it the protocol's
    /// parts of the core and of all cores.
    ///
    /// # Panics
    /// If this core has no such pool open.
    #[inline]
    pub fn pool_beside(&mut self, id: PoolId) -> (&mut Pool<P>, &mut P::Core, &P::Shared) {
        let pool = open_pool(&mut self.pools, id).expect("a pool in use is open");
        (pool, &mut self.protocol, &self.shared.protocol)
    }

    /// Returns this core's part of a pool, or `None` if this core does not have the pool open. The
    /// next tick visits the pool: whoever asks may change it.
    #[inline]
    pub fn find_pool(&mut self, id: PoolId) -> Option<&mut Pool<P>> {
        let pool = open_pool(&mut self.pools, id)?;
        self.agenda.list(id, &mut pool.visits);
        Some(pool)
    }

    /// Returns this core's part of a pool for reading, or `None` if this core does not have the
    /// pool open.
    #[inline]
    pub fn peek_pool(&self, id: PoolId) -> Option<&Pool<P>> {
        self.pools.get(id.place())?.as_deref().filter(|pool| pool.shared.id == id)
    }

    /// Whether a pool's database is drained, so that servers that no client needs must disconnect.
    #[inline]
    pub fn is_draining(&self, id: PoolId, now: Now) -> bool {
        self.peek_pool(id).is_some_and(|pool| self.database_drain.concerns(pool, now))
    }

    /// Whether servers of a pool disconnect as they come free, since its database is drained or
    /// Refrain stops. No job begins on them.
    pub fn leaves(&self, id: PoolId, now: Now) -> bool {
        self.draining || self.is_draining(id, now)
    }

    /// Returns the number of bytes queued to a connection at which Refrain again reads the
    /// connection that feeds it. The console has no pool, and [`CONSOLE_LOW`].
    pub(crate) fn low_mark(&self, id: PoolId) -> usize {
        self.peek_pool(id).map_or(CONSOLE_LOW, |pool| pool.settings.options.buffer_low)
    }

    /// Iterates over all pools of this core.
    pub fn pools(&self) -> impl Iterator<Item = &Pool<P>> {
        self.pools.iter().flatten().map(|pool| &**pool)
    }

    /// Iterates over all pools of this core, to change them. The next tick visits all of them.
    pub(crate) fn pools_mut(&mut self) -> impl Iterator<Item = &mut Pool<P>> {
        let Self { pools, agenda, .. } = self;
        pools.iter_mut().flatten().map(|pool| {
            agenda.list(pool.shared.id, &mut pool.visits);
            &mut **pool
        })
    }

    /// Takes out the pools that this tick visits, unused ones whose time has come included.
    pub(crate) fn begin_visits(&mut self, now: Now) -> Vec<PoolId> {
        while let Some(id) = self.agenda.due(now) {
            let pool = self.pools[id.place()].as_deref_mut().expect("a pool that rests is open");
            self.agenda.rest(id, &mut pool.visits, None);
            self.agenda.list(id, &mut pool.visits);
        }
        self.agenda.take()
    }

    /// Puts back those of the visited pools that the next tick has to visit again, and lets unused
    /// ones rest until they may be forgotten.
    pub(crate) fn end_visits(&mut self, mut visited: Vec<PoolId>) {
        visited.retain(|&id| {
            let pool = self.pools[id.place()].as_deref_mut();
            let Some(pool) = pool.filter(|pool| pool.shared.id == id) else { return false };
            let again = pool.needs_tick(self.core);
            pool.visits.set_listed(again);
            let due = pool.forgotten_at();
            self.agenda.rest(id, &mut pool.visits, due);
            again
        });
        self.agenda.put_back(visited);
    }

    /// Takes in what a server has shown about its host's state. The server is not lent again. If
    /// the finding is new, the cores are told at once, this one as well, and not when the server
    /// comes free.
    #[cold]
    pub fn find_host(
        &self,
        server: &mut Server<P>,
        finding: HostFinding,
        now: Now,
        ports: &mut Ports<P>,
    ) {
        server.close_needed = true;
        let Some(place) = &server.place else { return };
        match finding {
            HostFinding::Unsuited if place.unsuit() => {
                for core in (0..self.shared.cores).map(Core) {
                    let shown_by = (core == self.core).then_some(server.pool);
                    let message = CoreMessage::HostUnsuited { place: place.clone(), shown_by };
                    ports.act(Action::Tell { core, message });
                }
            }
            HostFinding::Doubtful if place.doubt(now) => {
                let message = CoreMessage::HostDoubted { pool: server.pool };
                ports.act(Action::Tell { core: self.core, message });
            }
            HostFinding::Doubtful | HostFinding::Unsuited => {}
        }
    }

    /// Returns random bytes.
    pub fn random<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        (self.entropy)(&mut bytes);
        bytes
    }

    /// Iterates over all other cores.
    pub fn others(&self) -> impl Iterator<Item = Core> + use<P> {
        let own = self.core;
        (0..self.shared.cores).map(Core).filter(move |core| *core != own)
    }
}

/// Returns a core's part of a pool, or `None` if the core does not have the pool open.
#[inline]
fn open_pool<P: Parts>(pools: &mut [Option<Box<Pool<P>>>], id: PoolId) -> Option<&mut Pool<P>> {
    let pool = pools.get_mut(id.place())?.as_deref_mut();
    pool.filter(|pool| pool.shared.id == id)
}

impl<P: Parts> std::fmt::Debug for CoreState<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoreState").field("core", &self.core).finish_non_exhaustive()
    }
}
