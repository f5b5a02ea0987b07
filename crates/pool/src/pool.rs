//! One core's part of a pool: its idle servers, its waiting clients, and which is next.
//!
//! Servers are lent last in, first out: the server used last has a warm cache, and surplus servers
//! grow old and are closed. Clients are served first in, first out: otherwise, under load, one
//! could wait for ever.
//!
//! A server stands in `idle` exactly while its state is `ServerState::Idle`, and a client in
//! `waiting` exactly while it waits for a server ([`crate::Engine::check`]).

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ids::{Conn, Core};
use crate::parts::Parts;
use crate::pool_shared::PoolShared;
use crate::settings::PoolSettings;
use crate::stats::Counters;
use crate::time::Now;

/// One core's part of a pool.
#[derive(Debug)]
pub struct Pool<P: Parts> {
    /// What all cores share of it.
    pub shared: Arc<PoolShared<P>>,
    /// What is configured, as of the last reload.
    pub settings: Arc<PoolSettings>,
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
    pub counters: Counters<P::Counters>,
    /// The protocol's part.
    pub protocol: P::Pool,
}

impl<P: Parts> Pool<P> {
    /// Whether its user or its database is not configured any more, as of the last reload.
    pub fn is_removed(&self) -> bool {
        self.removed
    }

    /// A pool without servers and clients.
    pub(crate) fn new(shared: Arc<PoolShared<P>>, paused: bool, now: Now) -> Self {
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
            protocol: P::Pool::default(),
        }
    }

    /// Returns how many servers of this core it has, idle and lent and being connected.
    #[inline]
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// Returns how many servers are being connected or logged in to.
    pub fn connecting(&self) -> u32 {
        self.connecting
    }

    /// Whether no servers are lent.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Returns how many cores have asked for a server.
    pub fn asking(&self) -> usize {
        self.asking.len()
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
        if !P::is_known(&self.shared.protocol) {
            return Some(self.retry);
        }
        options.pool_idle_timeout.map(|timeout| self.used.after(timeout))
    }

    /// The name that servers know the database by.
    pub fn server_database(&self) -> &str {
        self.settings.server.dbname.as_deref().unwrap_or(&self.shared.database)
    }

    /// Puts a server back, with the proof that it owes nothing.
    pub(crate) fn put_back(&mut self, server: Conn, _proof: P::Idle) {
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
    pub fn idle(&self) -> &[Conn] {
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
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
