//! One core's part of a pool: its idle servers, its waiting clients, and which is next.
//!
//! Servers are lent last in, first out: the server used last has a warm cache, and surplus servers
//! grow old and are closed. Clients are served first in, first out: otherwise, under load, one
//! could wait for ever.
//!
//! A server stands in `idle` exactly while its state is `ServerState::Idle`, and a client in
//! `waiting` exactly while it waits for a server ([`crate::Engine::check`]).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use refrain_config::{Autoprepare, PoolMode, TrackFunctions};

use crate::ground::ids::{Conn, Core};
use crate::ground::stats::Counters;
use crate::ground::time::Now;
use crate::normalized::queries::NormalizedQueries;
use crate::normalized::query::Bounds;
use crate::pipeline::calls::Calls;
use crate::pipeline::outstanding::Quiescent;
use crate::settings::session::Settings;
use crate::state::shared::{PoolSettings, PoolShared};

/// Bytes of the startup settings that a server has accepted and that are kept.
const PROVEN_BYTES_MAX: usize = 1024 * 1024;

/// One core's part of a pool.
#[derive(Debug)]
pub(crate) struct Pool {
    /// What all cores share of it.
    pub(crate) shared: Arc<PoolShared>,
    /// What is configured, as of the last reload.
    pub(crate) settings: Arc<PoolSettings>,
    idle: Vec<Conn>,
    waiting: VecDeque<Conn>,
    /// Clients that have shown who they are, and cannot be let in before a server was reached.
    pub(crate) entering: Vec<Conn>,
    /// Clients of this core, from when they have shown who they are.
    pub(crate) clients: u32,
    /// When somebody had it last, as of the last look.
    pub(crate) used: Now,
    /// Servers of this core, idle and lent and being connected.
    pub(crate) servers: u32,
    /// Those being connected or logged in to.
    pub(crate) connecting: u32,
    /// Whether no servers are lent.
    pub(crate) paused: bool,
    /// Whether its user or its database is not configured any more, as of the last reload.
    pub(crate) removed: bool,
    /// Whether other cores may know that clients wait here: until they are told that none does.
    pub(crate) wants_server: bool,
    /// Whether they are told again, where clients wait still.
    pub(crate) ask_due: bool,
    /// Cores that asked for a server, and since when their first client waits.
    pub(crate) asking: Vec<(Core, Now)>,
    /// When the next attempt to connect may be made.
    pub(crate) retry: Now,
    /// What was done.
    pub(crate) counters: Counters,
    /// The protocol's part.
    pub(crate) protocol: PoolPart,
}

impl Pool {
    /// A pool without servers and clients.
    pub(crate) fn new(shared: Arc<PoolShared>, paused: bool, now: Now) -> Self {
        Self {
            settings: shared.settings(),
            removed: shared.is_removed(),
            shared,
            idle: Vec::new(),
            waiting: VecDeque::new(),
            entering: Vec::new(),
            clients: 0,
            used: now,
            servers: 0,
            connecting: 0,
            paused,
            wants_server: false,
            ask_due: false,
            asking: Vec::new(),
            retry: Now(0),
            counters: Counters::default(),
            protocol: PoolPart::default(),
        }
    }

    /// Whether nobody here has anything of it, and no core waits for a word of ours.
    pub(crate) fn is_unused(&self) -> bool {
        self.clients == 0 && self.servers == 0 && self.asking.is_empty() && !self.wants_server
    }

    /// When it is to be forgotten, if nobody has it until then; `None` where it is kept. One that
    /// no server was ever reached for is kept until the next may be tried.
    pub(crate) fn forgotten_at(&self) -> Option<Now> {
        let options = &self.settings.options;
        if !self.is_unused() || options.min_pool_size > 0 && !self.removed {
            return None;
        }
        if self.shared.server_parameters().is_none() {
            return Some(self.retry);
        }
        options.pool_idle_timeout.map(|timeout| self.used.after(timeout))
    }

    /// The name that servers know the database by.
    pub(crate) fn server_database(&self) -> &str {
        self.settings.server.dbname.as_deref().unwrap_or(&self.shared.database)
    }

    /// Puts a server back, with the proof that it owes nothing.
    pub(crate) fn put_back(&mut self, server: Conn, _proof: Quiescent) {
        self.idle.push(server);
    }

    /// Takes out the idle server that was used last, unless the pool is paused.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Conn> {
        if self.paused { None } else { self.idle.pop() }
    }

    /// Takes out the least recently used of the idle servers that may go.
    pub(crate) fn take_coldest(&mut self, may_go: impl Fn(Conn) -> bool) -> Option<Conn> {
        let index = self.idle.iter().position(|&server| may_go(server))?;
        Some(self.idle.remove(index))
    }

    /// Takes this server out, if it is idle.
    pub(crate) fn remove_idle(&mut self, server: Conn) {
        self.idle.retain(|&idle| idle != server);
    }

    /// Queues a client, behind all others.
    pub(crate) fn wait(&mut self, client: Conn) {
        self.waiting.push_back(client);
    }

    /// All that are idle.
    pub(crate) fn idle(&self) -> &[Conn] {
        &self.idle
    }

    /// All clients that wait, the first first.
    pub(crate) fn all_waiting(&self) -> impl Iterator<Item = Conn> {
        self.waiting.iter().copied()
    }

    /// Takes out the client that has waited longest.
    pub(crate) fn next_waiting(&mut self) -> Option<Conn> {
        self.waiting.pop_front()
    }

    /// Returns the client that has waited longest. It stays in the queue.
    pub(crate) fn first_waiting(&self) -> Option<Conn> {
        self.waiting.front().copied()
    }

    /// Takes this client out, if it waits.
    pub(crate) fn remove_waiting(&mut self, client: Conn) {
        self.waiting.retain(|&waiting| waiting != client);
    }

    /// Whether a client here or at another core wants a server.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.waiting.is_empty() || !self.asking.is_empty()
    }

    /// How many clients wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// PostgreSQL's part of one core's pool.
#[derive(Debug, Default)]
pub(crate) struct PoolPart {
    /// The normalized queries of its simple queries, for autoprepare.
    pub(crate) normalized_queries: NormalizedQueries,
    /// Clients whose query strings wait for news of their normalized queries.
    awaiting_analysis: Vec<Conn>,
    /// Those of them that are to be read again.
    woken: Vec<Conn>,
    /// Settings that a server has accepted, and what it made of them.
    proven: HashMap<Arc<Settings>, Arc<Settings>>,
    proven_bytes: usize,
    /// What Refrain has learned of the functions that its clients' texts call.
    pub(crate) calls: Calls,
}

impl PoolPart {
    /// Makes a client wait for news of a normalized query.
    pub(crate) fn wait_for_news(&mut self, client: Conn) {
        self.awaiting_analysis.push(client);
    }

    /// Wakes all clients that wait for news of a normalized query.
    pub(crate) fn wake(&mut self) {
        self.woken.append(&mut self.awaiting_analysis);
    }

    /// Takes the clients whose input is to be read again.
    #[inline]
    pub(crate) fn take_woken(&mut self) -> Vec<Conn> {
        std::mem::take(&mut self.woken)
    }

    /// Returns what a server made of these startup settings, if one has accepted them.
    pub(crate) fn proven(&self, wants: &Arc<Settings>) -> Option<Arc<Settings>> {
        self.proven.get(wants).cloned()
    }

    /// Remembers that a server has accepted these startup settings, and what it made of them.
    pub(crate) fn prove(&mut self, wants: Arc<Settings>, made: Arc<Settings>) {
        let bytes = wants.bytes() + made.bytes();
        if self.proven_bytes + bytes > PROVEN_BYTES_MAX {
            (self.proven, self.proven_bytes) = (HashMap::new(), 0);
        }
        if self.proven.insert(wants, made).is_none() {
            self.proven_bytes += bytes;
        }
    }
}

/// Whether simple queries are prepared.
#[inline]
pub(crate) fn autoprepares(pool: &Pool) -> bool {
    pool.settings.options.autoprepare == Autoprepare::On && pool.settings.is_postgres
}

/// When servers are asked what functions have left in their sessions.
#[inline]
pub(crate) fn tracks(pool: &Pool) -> TrackFunctions {
    let options = &pool.settings.options;
    let keeps = options.pool_mode == PoolMode::Session && !autoprepares(pool);
    if keeps || !pool.settings.is_postgres { TrackFunctions::Off } else { options.track_functions }
}

/// What of normalized queries is kept.
pub(crate) fn bounds(pool: &Pool) -> Bounds {
    let options = &pool.settings.options;
    Bounds {
        threshold: options.autoprepare_threshold,
        statements: options.autoprepare_limit as usize,
        bytes: options.autoprepare_memory_limit,
        age_us: u64::try_from(options.autoprepare_max_age.as_micros()).unwrap_or(u64::MAX),
    }
}
