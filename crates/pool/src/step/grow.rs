//! New servers, and idle ones that are asked whether they are there before they are lent
//! (`server_check_delay`).
//!
//! A pool connects one more server if a client waits, a job on which clients depend, or a login is
//! to be confirmed, and the limits allow it.
//!
//! The server used last is lent next. If that one was idle for too long, all were. So clients wait,
//! here and at other cores, and as many servers are asked; each goes to the first in line once it
//! has answered. Jobs wait likewise: the first in line may be a client. Where one does not answer,
//! the others that were idle are closed with it, and new ones are connected.

use std::sync::Arc;
use std::time::Duration;

use crate::choice::LendOrder;
use crate::connections::{Connection, Connections};
use crate::counts::ConnectPermit;
use crate::engine::Supply;
use crate::event::Action;
use crate::hosts::HostPlace;
use crate::ids::{Conn, PoolId};
use crate::message::{CoreMessage, RoomWish};
use crate::pool::Pool;
use crate::protocol::Protocol;
use crate::refusal::Refusal;
use crate::server::{Server, ServerState};
use crate::time::Now;

/// Number of servers that one core connects for one pool at the same time.
const CONNECTING_MAX: u32 = 8;
/// Time for which a client waits before its pool, which has servers, asks others to make room, and
/// for which a server was idle that is the only one of its pool. Connecting a server costs more
/// than most transactions, so pools that all want more take turns this slowly at most.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);
/// Time after which a pool asks again that others make room. A wish counts for as long.
pub(crate) const ASK_AGAIN: Duration = Duration::from_millis(250);

/// Whether an idle server may be lent without having been asked, if one is asked that was idle for
/// `delay`.
pub(crate) fn is_fresh<P: Protocol>(
    connections: &Connections<P>,
    server: Conn,
    delay: Option<Duration>,
    now: Now,
) -> bool {
    let Some(delay) = delay.filter(|_| P::ASKS) else { return true };
    !matches!(connections.get(server), Connection::Server(server) if server.is_stale(delay, now))
}

impl<P: Protocol> Supply<'_, P> {
    /// Looks for servers for waiting clients: asks the other cores, and connects new ones as far as
    /// the limits allow.
    pub(crate) fn grow(&mut self, id: PoolId) {
        let (now, core) = (self.now, self.core_state.core);
        let shared = self.core_state.shared.clone();
        let leaves = self.core_state.leaves(id, now);
        let Some(pool) = self.core_state.find_pool(id) else { return };
        let wanted = pool.wanted(leaves);
        if wanted == 0 || pool.choice.paused || pool.removed {
            return;
        }
        if self.are_stale(id) {
            self.ask_idle(id);
        }
        let pool = self.core_state.pool(id);
        let elsewhere = shared.counts.servers(id) > pool.servers;
        if elsewhere && (pool.ask_due || !pool.wants_server) {
            pool.ask_due = false;
            pool.wants_server = true;
            for other in self.core_state.others() {
                let message = CoreMessage::WantsServer { pool: id, core, since: now };
                self.ports.act(Action::Tell { core: other, message });
            }
        }
        if let Some(refusal) = self.core_state.pool(id).shared.refusal.at(now) {
            return self.refuse(id, &refusal);
        }
        loop {
            let pool = self.core_state.pool(id);
            let most = wanted.min(CONNECTING_MAX as usize);
            // A server that takes long at one of several hosts is not waited for.
            let awaited = (pool.connecting - pool.slow) as usize + pool.asked_for_wanted();
            if awaited >= most || pool.connecting >= CONNECTING_MAX || now < pool.retry {
                return;
            }
            let reserve = self.may_use_reserve(id);
            let pool = self.core_state.pool(id);
            let beyond = if reserve { pool.settings.options.reserve_pool_size } else { 0 };
            if !self.try_connect(id, beyond) {
                return self.ask_for_room(id);
            }
        }
    }

    /// Asks all cores for a server of another pool that makes room, if a limit that the pool shares
    /// with others keeps it from a server. A pool that has one asks once its client has waited.
    fn ask_for_room(&mut self, id: PoolId) {
        let now = self.now;
        let Self { core_state, connections, .. } = self;
        let (core, shared) = (core_state.core, core_state.shared.clone());
        let pool = core_state.pool(id);
        if now < pool.ask_for_room {
            return;
        }
        let client = pool.first_waiting().and_then(|client| connections.client(client));
        let Some(client) = client else { return };
        let since = client.waiting.max(client.connected);
        let presses = since.after(PATIENCE) <= now;
        let counts = &shared.counts;
        let is_short = || {
            let is_full =
                pool.settings.hosts.is_none() && shared.full_hosts.has(&pool.settings.host);
            is_full || counts.shortage(&pool.shared).is_some()
        };
        if !presses && counts.servers(id) > 0 || !is_short() {
            return;
        }
        pool.ask_for_room = if presses { now.after(ASK_AGAIN) } else { since.after(PATIENCE) };
        pool.shared.want_room();
        let wish = RoomWish { pool: id, core, since, asked: now };
        self.ports.act(Action::Tell { core, message: CoreMessage::WantsRoom { wish } });
    }

    /// Tells clients that wait for a server of a pool why they get none: servers refuse the pool's
    /// login, and no server is left.
    #[cold]
    fn refuse(&mut self, id: PoolId, refusal: &Refusal) {
        let pool = self.core_state.pool(id);
        if pool.connecting == 0 && !pool.shared.is_live() {
            P::refuse_waiting(self, id, refusal);
        }
    }

    /// Whether the first client has waited for `reserve_pool_timeout`, after which the reserve may
    /// be used.
    pub(crate) fn may_use_reserve(&mut self, id: PoolId) -> bool {
        let pool = self.core_state.pool(id);
        let timeout = pool.settings.options.reserve_pool_timeout;
        let Some(first) = pool.waiters.first_client() else { return false };
        let waiting = self.connections.client(first).map_or(self.now, |client| client.waiting);
        waiting.after(timeout) <= self.now
    }

    /// Connects a server that nobody waits for, since it is of interest whether it lets the pool's
    /// user in. It may be one more than the pool has room for: then the next tick closes another.
    pub fn try_login(&mut self, id: PoolId) {
        let now = self.now;
        let leaves = self.core_state.leaves(id, now);
        let Some(pool) = self.core_state.find_pool(id) else { return };
        if leaves || !pool.may_try_login(now) {
            return;
        }
        let beyond = pool.settings.options.reserve_pool_size.max(1);
        self.try_connect(id, beyond);
    }

    /// Puts the settings of a pool that are in force now into force on this core.
    pub(crate) fn renew_settings(&mut self, id: PoolId) {
        let pool = self.core_state.pool(id);
        let now = pool.shared.settings();
        pool.choice.lend_in(LendOrder::of(&now.options));
        let before = std::mem::replace(&mut pool.settings, now);
        P::reloaded(self, id, &before);
    }

    /// Connects one more server, if a host can be tried now, and the limits allow so many servers
    /// `beyond` the pool's size. Returns false if not.
    pub(crate) fn try_connect(&mut self, id: PoolId, beyond: u32) -> bool {
        let has_hosts = self.core_state.pool(id).settings.hosts.is_some();
        // The choice of a host goes by the settings. Where there is one host they are looked at
        // once a permit is there: clients of a full pool ask for one again and again.
        if has_hosts {
            self.renew_outdated(id);
        }
        if self.is_host_full(id) {
            return false;
        }
        let Some(place) = self.choose_place(id) else { return false };
        let core_state = &mut self.core_state;
        let (core, pool) = (core_state.core, core_state.pool(id).shared.clone());
        if core_state.shared.counts.admit_server(&pool, core, beyond) == ConnectPermit::Refused {
            if let Some(place) = place {
                place.leave(true);
            }
            return false;
        }
        if !has_hosts {
            self.renew_outdated(id);
        }
        self.connect(id, place);
        true
    }

    /// Whether the only host of a pool has no room for one more server.
    fn is_host_full(&mut self, id: PoolId) -> bool {
        let now = self.now;
        let shared = self.core_state.shared.clone();
        let pool = self.core_state.pool(id);
        let (settings, pause) = (&pool.settings, pool.settings.options.server_login_retry);
        settings.hosts.is_none()
            && shared.full_hosts.refuses(&settings.host, now, pause)
            && !std::mem::take(&mut pool.has_room)
    }

    /// Connects a server that is counted already: a server of another pool has made room. Returns
    /// false if it is not wanted any more, or no host can be tried now.
    pub(crate) fn connect_counted(&mut self, id: PoolId) -> bool {
        let leaves = self.core_state.leaves(id, self.now);
        let pool = self.core_state.find_pool(id);
        let is_wanted =
            |pool: &mut Pool<P>| pool.wanted(leaves) > 0 && !pool.choice.paused && !pool.removed;
        if !pool.is_some_and(is_wanted) {
            return false;
        }
        self.renew_outdated(id);
        let Some(place) = self.choose_place(id) else { return false };
        self.connect(id, place);
        true
    }

    /// Puts the pool's settings into force on a core that has not reloaded yet: it would connect to
    /// where the servers were.
    fn renew_outdated(&mut self, id: PoolId) {
        let pool = self.core_state.pool(id);
        if !Arc::ptr_eq(&pool.settings, &pool.shared.settings()) {
            self.renew_settings(id);
        }
    }

    /// Chooses the place of the next server among several hosts; `Some(None)` if there is one host.
    /// Returns `None` if no host can be tried now.
    fn choose_place(&mut self, id: PoolId) -> Option<Option<HostPlace>> {
        let core_state = &mut self.core_state;
        let Some(hosts) = &core_state.pool(id).settings.hosts else { return Some(None) };
        let (hosts, core) = (hosts.clone(), core_state.core);
        let [dice] = core_state.random();
        Some(Some(hosts.choose(self.now, (id, core), dice)?))
    }

    /// Connects one more server, which was admitted.
    fn connect(&mut self, id: PoolId, place: Option<HostPlace>) {
        let pool = self.core_state.pool(id);
        let host = place.as_ref().map_or(&pool.settings.host, HostPlace::host).clone();
        let conn = self.ports.open();
        let serial = self.core_state.shared.serial();
        let session = P::server(&self.core_state.protocol, self.now);
        let pool = self.core_state.pool(id);
        pool.servers += 1;
        pool.connecting += 1;
        let at = (host.clone(), place);
        let mut server = Server::new((serial, conn, id), at, self.now, session);
        server.reconnects = pool.shared.reconnects();
        self.connections.set(conn, Connection::Server(Box::new(server)));
        self.ports.act(Action::Connect { conn, host });
    }

    /// Whether all idle servers of a pool were idle for so long that they have to be asked.
    pub(crate) fn are_stale(&mut self, id: PoolId) -> bool {
        let pool = self.core_state.pool_in_use(id);
        let delay = pool.settings.options.server_check_delay;
        let Some(&last) = pool.idle().last() else { return false };
        !is_fresh(self.connections, last, delay, self.now)
    }

    /// Asks idle servers whether they are there: as many as clients wait for, here and at other
    /// cores, and jobs. Clients and jobs that wait while a server is idle wait for that.
    pub(crate) fn ask_idle(&mut self, id: PoolId) {
        let leaves = self.core_state.leaves(id, self.now);
        loop {
            let pool = self.core_state.pool_in_use(id);
            let jobs = if leaves { 0 } else { pool.waiting_jobs() };
            let wanted = pool.waiting() + pool.asking.len() + jobs;
            if pool.asked as usize >= wanted || !self.ask_next(id) {
                return;
            }
        }
    }

    /// Asks the idle server of a pool that was used last whether it is there. False if none is
    /// idle.
    fn ask_next(&mut self, id: PoolId) -> bool {
        let pool = self.core_state.pool_in_use(id);
        let Some(conn) = pool.take_for_job() else { return false };
        pool.asked += 1;
        let Some(server) = self.connections.server(conn) else { return false };
        server.state = ServerState::Resetting;
        server.since = self.now;
        server.is_asked = true;
        P::ask_server(self, conn);
        true
    }

    /// Looks for a server of a pool for which nobody waits, but which a request could have used
    /// just now: asks one that was idle for long, and the other cores, or connects one. Those that
    /// are idle did not suit the request; one at another host may.
    pub(crate) fn grow_for_next(&mut self, id: PoolId) {
        let (now, core) = (self.now, self.core_state.core);
        let pool = self.core_state.pool_in_use(id);
        if pool.asked > 0 || pool.connecting > 0 || pool.choice.paused || pool.removed {
            return;
        }
        if self.are_stale(id) {
            self.ask_next(id);
            return;
        }
        let pool = self.core_state.pool(id);
        let hosts = pool.settings.hosts.as_ref().map_or(1, |hosts| hosts.in_use());
        // All pools take turns at the hosts together, so a host may get two servers of this one.
        let is_enough = pool.idle().len() > 2 * (hosts - 1);
        if is_enough || !pool.may_try_login(now) || self.try_connect(id, 0) {
            return;
        }
        let servers = self.core_state.shared.counts.servers(id);
        let pool = self.core_state.pool(id);
        if servers > pool.servers && !pool.wants_server {
            pool.wants_server = true;
            for other in self.core_state.others() {
                let message = CoreMessage::WantsServer { pool: id, core, since: now };
                self.ports.act(Action::Tell { core: other, message });
            }
        }
    }
}
