//! One core's part of a pool: its idle servers, and the line of those that wait for one.
//!
//! Servers are lent last in, first out: the server used last has a warm cache, and surplus servers
//! grow old and are closed. With `server_round_robin` they are lent first in, first out. Clients
//! and jobs that wait are served first in, first out (`waiters.rs`).
//!
//! A server stands in `idle` exactly while its state is `ServerState::Idle`
//! ([`crate::Engine::check`]).

use std::sync::Arc;

use crate::agenda::Visits;
use crate::choice::{Choice, LendOrder};
use crate::client::Client;
use crate::crowd::CrowdPart;
use crate::ids::{Conn, Core};
use crate::message::RoomWish;
use crate::parts::Parts;
use crate::pool_shared::PoolShared;
use crate::server::Server;
use crate::settings::PoolSettings;
use crate::stats::Counters;
use crate::time::Now;
use crate::waiters::Waiters;
use crate::width::Load;

/// One core's part of a pool.
#[derive(Debug)]
pub struct Pool<P: Parts> {
    /// The part of the pool that all cores share.
    pub shared: Arc<PoolShared<P>>,
    /// The pool's settings, as of the last reload.
    pub settings: Arc<PoolSettings>,
    idle: Vec<Conn>,
    /// The clients and jobs that wait for a server.
    pub(crate) waiters: Waiters<P>,
    /// Servers at which further clients may join.
    pub(crate) open_lines: Vec<Conn>,
    /// The reads that were sent since the last tick.
    pub(crate) load: Load,
    /// Number of servers on which reads run before reads share a server; zero before the first
    /// reads were counted, and then the least number counts.
    width: usize,
    /// Clients that have authenticated, and cannot be let in before a server was reached.
    pub(crate) entering: Vec<Conn>,
    /// Number of clients of this core, from [`crate::Step::enter`] on.
    pub(crate) clients: u32,
    /// The first tick that found the pool unused, since the pool was last used.
    pub(crate) unused_since: Option<Now>,
    /// The visits of the next ticks.
    pub(crate) visits: Visits,
    /// Number of servers beyond the limits that the last tick could not close.
    pub(crate) surplus: u32,
    /// Number of servers of this core: idle, lent, or being connected.
    pub(crate) servers: u32,
    /// Number of servers of this core that are being connected or logged in to.
    pub(crate) connecting: u32,
    /// Number of those that take so long that another host is tried beside them.
    pub(crate) slow: u32,
    /// Number of servers that are asked whether they are there, before they are lent.
    pub(crate) asked: u32,
    /// The state by which it chooses among its idle servers.
    pub(crate) choice: Choice,
    /// Whether the pool's user or database is not configured any more, as of the last reload.
    pub(crate) removed: bool,
    /// Whether this core has told the other cores that it wants a server, and has not yet told them
    /// that it wants none.
    pub(crate) wants_server: bool,
    /// Whether [`crate::Supply::grow`] asks the other cores again if clients still wait.
    pub(crate) ask_due: bool,
    /// Cores that asked for a server, and the time at which each asked.
    pub(crate) asking: Vec<(Core, Now)>,
    /// The pools for which a server of this pool makes room when it comes free.
    pub(crate) creditors: Vec<RoomWish>,
    /// When the pool may ask again that a server of another pool makes room.
    pub(crate) ask_for_room: Now,
    /// Whether a server of another pool has just made room at the host of this one.
    pub(crate) has_room: bool,
    /// When the next attempt to connect may be made.
    pub(crate) retry: Now,
    /// The clients that wait because of a limit.
    pub(crate) crowd: CrowdPart,
    /// The counters of this core's part.
    pub counters: Counters<P::Counters>,
    /// The protocol's part.
    pub protocol: P::Pool,
}

impl<P: Parts> Pool<P> {
    /// Whether the pool's user or database is not configured any more, as of the last reload.
    pub fn is_removed(&self) -> bool {
        self.removed
    }

    /// Makes a pool without servers and clients.
    pub(crate) fn new(shared: Arc<PoolShared<P>>, paused: bool) -> Self {
        let settings = shared.settings();
        let choice = Choice::new(paused, LendOrder::of(&settings.options));
        Self {
            settings,
            removed: shared.is_removed(),
            shared,
            idle: Vec::new(),
            waiters: Waiters::default(),
            open_lines: Vec::new(),
            load: Load::default(),
            width: 0,
            entering: Vec::new(),
            clients: 0,
            unused_since: None,
            visits: Visits::default(),
            surplus: 0,
            servers: 0,
            connecting: 0,
            slow: 0,
            asked: 0,
            choice,
            wants_server: false,
            ask_due: false,
            asking: Vec::new(),
            creditors: Vec::new(),
            ask_for_room: Now(0),
            has_room: false,
            retry: Now(0),
            crowd: CrowdPart::default(),
            counters: Counters::default(),
            protocol: P::Pool::default(),
        }
    }

    /// Returns the number of servers of this core: idle, lent, or being connected.
    #[inline]
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// Returns the number of servers of this core that are being connected or logged in to.
    pub fn connecting(&self) -> u32 {
        self.connecting
    }

    /// Whether a server that no client waits for may be connected now: none is being connected, and
    /// no failed attempt has to be waited out.
    pub(crate) fn may_try_login(&self, now: Now) -> bool {
        let serves = !self.choice.paused && !self.removed;
        let is_due = now >= self.retry && self.shared.refusal.at(now).is_none();
        serves && self.connecting == 0 && is_due
    }

    /// Returns the number of servers of this core that are logged in and not idle.
    #[inline]
    pub(crate) fn at_work(&self) -> usize {
        (self.servers as usize).saturating_sub(self.connecting as usize + self.idle.len())
    }

    /// Returns the number of servers on which reads run before reads share a server.
    #[inline]
    pub(crate) fn width(&self) -> usize {
        let options = &self.settings.options;
        let width = if self.width == 0 { options.share_min_servers as usize } else { self.width };
        width.min(options.pool_size as usize)
    }

    /// Reports the reads that were sent since the last tick, if there were ever any, and gets the
    /// width that follows.
    pub(crate) fn report_reads(&mut self, core: Core, now: Now) {
        let options = &self.settings.options;
        let bounds = (options.share_min_servers, options.pool_size);
        let load = std::mem::take(&mut self.load);
        if self.width > 0 || !load.is_empty() {
            self.width = self.shared.report_reads(core, now, load, bounds);
        }
    }

    /// Whether the pool is paused, so that no idle server is lent.
    #[inline]
    pub fn is_paused(&self) -> bool {
        self.choice.paused
    }

    /// Notes that a server has traces of a client that others may meet.
    pub fn mark(&mut self) {
        self.choice.mark();
    }

    /// Returns the number of other cores that want a server.
    pub fn asking(&self) -> usize {
        self.asking.len()
    }

    /// Whether this core has no client and no server of the pool, and neither this core nor
    /// another waits for a server of the other. A job on which clients of other pools depend is a
    /// use.
    pub(crate) fn is_unused(&self) -> bool {
        let is_awaited = self.waiters.jobs() > 0 && P::needs_server(&self.protocol);
        self.clients == 0
            && self.servers == 0
            && self.asking.is_empty()
            && !self.wants_server
            && !is_awaited
    }

    /// Returns the time at which this core forgets the pool if the pool stays unused, or `None` if
    /// this core keeps it. If no server was ever reached, the pool is kept until the next attempt
    /// to connect may be made.
    pub(crate) fn forgotten_at(&self) -> Option<Now> {
        let options = &self.settings.options;
        if !self.is_unused() || options.min_pool_size > 0 && !self.removed {
            return None;
        }
        if !P::is_known(&self.shared.protocol) {
            return Some(
                self.shared.refusal.counts_until().map_or(self.retry, |u| u.max(self.retry)),
            );
        }
        options
            .pool_idle_timeout
            .zip(self.unused_since)
            .map(|(timeout, since)| since.after(timeout))
    }

    /// Whether the next tick has work in this pool, even if nobody uses the pool until then: a
    /// client waits or waited, another core has to be told, a server is too many, or one may be too
    /// few, which the first core looks for.
    pub(crate) fn needs_tick(&self, core: Core) -> bool {
        let keeps_minimum = core == Core(0) && self.settings.options.min_pool_size > 0;
        !self.waiters.is_empty()
            || !self.entering.is_empty()
            || self.wants_server
            || self.surplus > 0
            || self.choice.missed
            || self.crowd.needs_tick()
            || keeps_minimum && !self.removed
            || P::is_due(&self.protocol)
    }

    /// Returns the database's name at the server.
    pub fn server_database(&self) -> &str {
        self.settings.server.dbname.as_deref().unwrap_or(&self.shared.database)
    }

    /// Puts a server back, with the proof that it owes nothing.
    pub(crate) fn put_back(&mut self, server: Conn, _proof: P::Idle) {
        self.idle.push(server);
    }

    /// Takes out the most recently used idle server, if any client gets that one.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Conn> {
        if self.choice.lends_last { self.idle.pop() } else { None }
    }

    /// Puts a server back that [`Self::take`] has taken out.
    #[cold]
    pub(crate) fn leave_idle(&mut self, server: Conn) {
        self.idle.push(server);
    }

    /// Returns the idle server that [`Self::take_for_job`] takes out.
    pub(crate) fn next_for_job(&self) -> Option<Conn> {
        match self.choice.order {
            _ if self.choice.paused => None,
            LendOrder::First => self.idle.first().copied(),
            LendOrder::Last => self.idle.last().copied(),
        }
    }

    /// Takes out the idle server for a job that a client would get, unless the pool is paused.
    pub(crate) fn take_for_job(&mut self) -> Option<Conn> {
        let next = self.next_for_job()?;
        self.remove_idle(next);
        Some(next)
    }

    /// Takes out the least recently used idle server for which `may_go` is true.
    pub(crate) fn take_coldest(&mut self, may_go: impl Fn(Conn) -> bool) -> Option<Conn> {
        let index = self.idle.iter().position(|&server| may_go(server))?;
        Some(self.idle.remove(index))
    }

    /// Takes out a server, if it is idle.
    pub(crate) fn remove_idle(&mut self, server: Conn) {
        self.idle.retain(|&idle| idle != server);
    }

    /// Returns the idle servers.
    pub fn idle(&self) -> &[Conn] {
        &self.idle
    }

    /// Whether a client here or at another core wants a server. A job is no reason to keep a server
    /// that has to leave.
    pub(crate) fn is_wanted(&self) -> bool {
        self.waiters.clients() > 0 || !self.asking.is_empty()
    }

    /// Returns the number of servers for which somebody waits. While the pool `leaves`, jobs keep
    /// their places, and wait for none.
    pub(crate) fn wanted(&self, leaves: bool) -> usize {
        // Most jobs are no wish for a server. Refrain makes no connection, and takes none from
        // another core, to learn what nobody waits for: the job begins on the next server that
        // clients need.
        let by_jobs = !leaves && self.waiters.jobs() > 0 && P::needs_server(&self.protocol);
        self.waiting() + usize::from(!self.entering.is_empty() || by_jobs)
    }

    /// Returns the number of servers that are asked for those who are [`Self::wanted`]: jobs that
    /// are no wish for a server wait for the others.
    pub(crate) fn asked_for_wanted(&self) -> usize {
        let is_wish = self.waiters.jobs() > 0 && P::needs_server(&self.protocol);
        let for_jobs = self.waiters.jobs() - usize::from(is_wish);
        (self.asked as usize).saturating_sub(for_jobs)
    }

    /// Whether one more client may not wait for a server, if at most this number of clients may.
    /// Nobody waits long for an idle server that is asked first, unless a job or another core gets
    /// that one.
    pub(crate) fn is_crowded(&self, most: usize) -> bool {
        let others = self.asking.len() + self.waiters.jobs();
        let idle = if self.choice.paused { 0 } else { self.idle.len() };
        let at_hand = (self.asked as usize + idle).saturating_sub(others);
        self.waiting() >= most.saturating_add(at_hand)
    }

    /// Returns the client that has waited longest for a server, be it to be let in or later.
    pub(crate) fn first_waiting(&self) -> Option<Conn> {
        self.waiters.first_client().or(self.entering.first().copied())
    }

    /// Returns the number of clients that wait for a server.
    pub fn waiting(&self) -> usize {
        self.waiters.clients()
    }

    /// Returns the number of jobs that wait for a server.
    pub fn waiting_jobs(&self) -> usize {
        self.waiters.jobs()
    }

    /// Counts a request of which a client has got the whole reply. Returns the microseconds that
    /// the request took. The times of the next request, and of doing nothing, count from now.
    #[inline]
    pub fn request_over(
        &mut self,
        client: &mut Client<P>,
        server: &mut Server<P>,
        now: Now,
    ) -> u64 {
        client.note_reply(now);
        let took = server.request_ends(now);
        self.counters.pool.queries += 1;
        self.counters.query_time.count(took);
        took
    }
}
