//! Closing servers: one, those of a host that is not in the state that pools want, those that a
//! pool has too many, a marked one for a new one, or one that makes room for another pool, where a
//! limit is reached that pools share: `max_connections` of a database, of a user, or of the server
//! itself.
//!
//! A pool whose clients wait asks all cores ([`CoreMessage::WantsRoom`]), its own first. The idle
//! server goes that was idle for longest. If there is none, the fullest pool owes the room: its
//! next server that comes free goes, unless a client of its own has waited for longer.
//!
//! A pool without a server takes from pools that keep one. It takes the last server of a pool, and
//! a pool that has servers takes any, after `PATIENCE`: pools that all want more take turns, and do
//! not connect a server for each query.

use std::sync::Arc;
use std::time::Duration;

use crate::connections::{Connection, Connections};
use crate::counts::Shortage;
use crate::engine::Supply;
use crate::event::{Action, Level, News};
use crate::hosts::HostPlace;
use crate::ids::{Conn, Core, PoolId};
use crate::message::{CoreMessage, RoomWish};
use crate::pool::Pool;
use crate::pool_shared::PoolShared;
use crate::protocol::Protocol;
use crate::server::{Holder, Server, ServerState};
use crate::step::grow::{ASK_AGAIN, PATIENCE};

/// Time between two servers of a pool that are connected since one was missed.
const RENEWAL_PAUSE: Duration = Duration::from_secs(1);

/// Whether a connection is a server with traces of a client.
pub(crate) fn is_marked<P: Protocol>(connections: &Connections<P>, conn: Conn) -> bool {
    match connections.get(conn) {
        Connection::Server(server) => P::is_marked(&server.session),
        Connection::Client(_) | Connection::Side(_) | Connection::Free => false,
    }
}

/// A pool that needs a server, and the limits that it has to share.
struct Needy<P: Protocol> {
    pool: Arc<PoolShared<P>>,
    /// Number of the pool's servers, over all cores.
    servers: u32,
    /// Whether a client has waited for `PATIENCE`.
    presses: bool,
    shortage: Option<Shortage>,
    is_host_full: bool,
}

impl<P: Protocol> Needy<P> {
    /// Whether a server of this pool would make room.
    fn shares_with(&self, pool: &Pool<P>) -> bool {
        let other = &pool.shared;
        let by = |of: fn(&Shortage) -> bool| self.shortage.as_ref().is_some_and(of);
        other.id != self.pool.id
            && (by(|short| short.database) && other.database == self.pool.database
                || by(|short| short.user) && other.user == self.pool.user
                || self.is_host_full && pool.settings.host == self.pool.settings().host)
    }

    /// Whether a server of a pool with so many goes, which was idle for long or not.
    fn may_take_idle(&self, of: u32, was_idle_long: bool) -> bool {
        match self.servers {
            0 => of > 1 || was_idle_long || self.presses,
            own => self.presses && (was_idle_long || of > own + 1),
        }
    }

    /// Whether a pool with so many servers, all of which are in use, owes room.
    fn may_wait_for(&self, of: u32) -> bool {
        match self.servers {
            0 => of > 1 || self.presses,
            own => self.presses && of > own + 1,
        }
    }
}

impl<P: Protocol> Supply<'_, P> {
    /// Closes a server that nobody uses, with a goodbye if it was logged in.
    pub(crate) fn close(&mut self, conn: Conn) {
        if let Connection::Server(server) = self.connections.take(conn) {
            if !server.is_new() {
                P::goodbye(self.ports.out(conn));
            }
            self.ports.close(conn);
            self.forget_server(&server);
        }
    }

    /// Forgets a server that nobody uses, and closes its connection without a goodbye.
    pub(crate) fn close_silently(&mut self, conn: Conn, gone: bool) {
        if let Connection::Server(server) = self.connections.take(conn) {
            if gone {
                self.ports.abandon(conn)
            } else {
                self.ports.close(conn)
            }
            self.forget_server(&server);
        }
    }

    /// Removes a server from its pool and from all counts. Clients that wait, here or at other
    /// cores, may connect another one.
    pub(crate) fn forget_server(&mut self, server: &Server<P>) {
        let pool = self.core_state.pool(server.pool);
        pool.servers = pool.servers.checked_sub(1).expect("no more servers go than came");
        if pool.servers == 0 {
            pool.choice.unmark();
        }
        if let Some(place) = &server.place {
            place.leave(server.is_new());
        }
        if server.is_new() {
            pool.connecting = pool.connecting.checked_sub(1).expect("it was being connected");
            pool.slow -= u32::from(server.is_slow);
        } else {
            pool.shared.server_dies();
        }
        pool.remove_idle(server.conn);
        if server.is_asked {
            pool.asked = pool.asked.checked_sub(1).expect("it was asked");
            // They were idle for as long as the one that gave no answer.
            let idle = pool.idle().to_vec();
            idle.into_iter().for_each(|idle| self.close(idle));
        }
        let pool = self.core_state.pool(server.pool);
        if let ServerState::Held(Holder::Job(job, _)) = &server.state {
            P::lose_job(pool, job);
        }
        let shared = pool.shared.clone();
        self.count_out(&shared, server.heir);
        self.grow(server.pool);
    }

    /// Counts out a server of a pool, and tells those who may connect one: the heir of the server's
    /// room, and others that wait.
    pub(crate) fn count_out(&mut self, pool: &PoolShared<P>, heir: Option<(PoolId, Core)>) {
        let (shared, own) = (self.core_state.shared.clone(), self.core_state.core);
        let heir = heir.and_then(|(id, core)| Some((shared.pool_of(id)?, core)));
        let gone = shared.counts.server_gone(pool, heir.as_ref().map(|(heir, _)| &**heir));
        if let Some((heir, core)) = heir {
            let pool = heir.id;
            let message = match gone.is_inherited {
                true => CoreMessage::RoomFor { pool, is_counted: true },
                // Another limit is reached as well.
                false => CoreMessage::Room { pool },
            };
            self.ports.act(Action::Tell { core, message });
        }
        for (pool, core) in gone.waiting {
            if core == own {
                self.grow(pool);
            } else {
                self.ports.act(Action::Tell { core, message: CoreMessage::Room { pool } });
            }
        }
    }

    /// Takes the jobs of a pool that gets no server out of the line.
    pub(crate) fn lose_jobs(&mut self, id: PoolId) {
        let Some(pool) = self.core_state.find_pool(id) else { return };
        for job in pool.waiters.take_jobs() {
            P::lose_job(pool, &job);
        }
    }

    /// Has no server of a host be lent again, on any core.
    pub(crate) fn leave_host(&mut self, place: &HostPlace) {
        for core in self.core_state.others() {
            let message = CoreMessage::HostUnsuited { place: place.clone(), shown_by: None };
            self.ports.act(Action::Tell { core, message });
        }
        self.leave_host_here(place);
    }

    /// Handles the message that a host is not in the state that pools want.
    pub(crate) fn host_is_unsuited(&mut self, place: &HostPlace, shown_by: Option<PoolId>) {
        if let Some(pool) = shown_by {
            let told = format!("{}: a server there reports it", place.host());
            self.log().note_host(pool, place.host(), Level::Info, News::HostUnsuited.key(), told);
        }
        // The host may have become good again since.
        if place.is_unsuited() {
            self.leave_host_here(place);
        }
    }

    /// Closes the idle servers of a host, and the others once they are free.
    pub(crate) fn leave_host_here(&mut self, place: &HostPlace) {
        self.leave_servers(|server| server.place.as_ref().is_some_and(|other| other.is(place)));
    }

    /// Closes the idle ones of these servers, and the others once they are free.
    pub(crate) fn leave_servers(&mut self, which: impl Fn(&Server<P>) -> bool) {
        for conn in self.connections.conns() {
            let Connection::Server(server) = self.connections.get(conn) else { continue };
            if server.is_new() || !which(server) {
                continue;
            }
            if matches!(server.state, ServerState::Idle) {
                self.close(conn);
            } else if let Some(server) = self.connections.server(conn) {
                server.make_obsolete();
            }
        }
    }

    /// Closes idle servers of a pool that has more servers than allowed, the least recently used
    /// first.
    pub(crate) fn shrink(&mut self, id: PoolId) {
        let shared = self.core_state.shared.clone();
        let pool = self.core_state.pool(id);
        let surplus = shared.counts.surplus(&pool.shared).min(pool.servers);
        for closed in 0..surplus {
            let pool = self.core_state.pool(id);
            pool.surplus = surplus - closed;
            let Some(server) = pool.take_coldest(|_| true) else { return };
            self.close(server);
        }
        self.core_state.pool(id).surplus = 0;
    }

    /// Connects a server for clients that no server suited lately. A pool of one server stays as it
    /// is: the clients would mark the next one as well.
    pub(crate) fn renew_marked(&mut self, id: PoolId) {
        let now = self.now;
        let leaves = self.core_state.leaves(id, now);
        let Some(pool) = self.core_state.find_pool(id) else { return };
        let waits =
            pool.connecting > 0 || now < pool.retry.max(pool.choice.renewed.after(RENEWAL_PAUSE));
        if !pool.choice.missed || waits {
            return;
        }
        pool.choice.missed = false;
        pool.choice.renewed = now;
        if leaves || pool.choice.paused || pool.removed || pool.settings.options.pool_size < 2 {
            return;
        }
        if !self.try_connect(id, 0)
            && let Some(marked) = self.coldest_marked(id)
        {
            self.close(marked);
            self.try_connect(id, 0);
        }
    }

    /// Returns the marked server of a pool that has been idle for longest.
    fn coldest_marked(&mut self, id: PoolId) -> Option<Conn> {
        let Self { core_state, connections, .. } = self;
        core_state.pool(id).idle().iter().copied().find(|conn| is_marked(connections, *conn))
    }

    /// Looks for a server that makes room for one of another pool, or for a pool that owes the
    /// room. The pool's own core asks the others if it finds no server.
    pub(crate) fn look_for_room(&mut self, wish: RoomWish) {
        let Some(needy) = self.needy(&wish) else { return };
        let own = self.core_state.core;
        if needy.shortage.is_none() && !needy.is_host_full {
            let message = CoreMessage::Room { pool: wish.pool };
            return self.ports.act(Action::Tell { core: wish.core, message });
        }
        if let Some(server) = self.longest_idle(&needy) {
            if needy.pool.is_room_due() {
                self.evict(server, &needy, &wish);
            }
            return;
        }
        self.owe(&needy, &wish);
        if wish.core == own {
            for core in self.core_state.others() {
                self.ports.act(Action::Tell { core, message: CoreMessage::WantsRoom { wish } });
            }
        }
    }

    fn needy(&self, wish: &RoomWish) -> Option<Needy<P>> {
        let shared = &self.core_state.shared;
        let pool = shared.pool_of(wish.pool)?;
        let settings = pool.settings();
        Some(Needy {
            servers: shared.counts.servers(wish.pool),
            presses: wish.since.after(PATIENCE) <= self.now,
            shortage: shared.counts.shortage(&pool),
            is_host_full: settings.hosts.is_none() && shared.full_hosts.has(&settings.host),
            pool,
        })
    }

    /// Returns the server of this core that was idle for longest, of those that may go.
    fn longest_idle(&self, needy: &Needy<P>) -> Option<Conn> {
        let Self { core_state, connections, .. } = self;
        let counts = &core_state.shared.counts;
        let mut found = None;
        for pool in core_state.pools().filter(|pool| needy.shares_with(pool)) {
            let Some(&conn) = pool.idle().first() else { continue };
            let Connection::Server(server) = connections.get(conn) else { continue };
            if found.is_some_and(|(since, _)| since <= server.since) {
                continue;
            }
            let was_idle_long = server.is_stale(PATIENCE, self.now);
            if needy.may_take_idle(counts.servers(pool.shared.id), was_idle_long) {
                found = Some((server.since, conn));
            }
        }
        found.map(|(_, conn)| conn)
    }

    /// Has the fullest pool of this core make room when a server of it comes free.
    fn owe(&mut self, needy: &Needy<P>, wish: &RoomWish) {
        let core_state = &mut self.core_state;
        let counts = &core_state.shared.counts;
        let busy = core_state.pools().filter(|pool| pool.at_work() > 0 && needy.shares_with(pool));
        let sizes = busy.map(|pool| (counts.servers(pool.shared.id), pool.shared.id));
        let fullest = sizes.filter(|(size, _)| needy.may_wait_for(*size)).max_by_key(|(n, _)| *n);
        let Some((_, fullest)) = fullest else { return };
        let creditors = &mut core_state.pool(fullest).creditors;
        creditors.retain(|other| (other.pool, other.core) != (wish.pool, wish.core));
        creditors.push(*wish);
    }

    /// Has a server that comes free make room for a pool that waits for it. Returns false if the
    /// server stays.
    #[cold]
    pub(crate) fn makes_room(&mut self, server: Conn) -> bool {
        let now = self.now;
        let Self { core_state, connections, .. } = self;
        let Some(id) = connections.server(server).map(|server| server.pool) else { return false };
        let pool = core_state.pool(id);
        pool.creditors.retain(|wish| now < wish.asked.after(ASK_AGAIN));
        let first = pool.first_waiting().and_then(|client| connections.client(client));
        let ours = first.map(|client| client.waiting);
        let earliest = (0..pool.creditors.len()).min_by_key(|at| pool.creditors[*at].since);
        let Some(at) = earliest else { return false };
        if ours.is_some_and(|ours| ours <= pool.creditors[at].since) {
            return false;
        }
        let wish = pool.creditors.remove(at);
        let size = core_state.shared.counts.servers(id);
        let Some(needy) = self.needy(&wish) else { return false };
        let is_short = needy.shortage.is_some() || needy.is_host_full;
        let goes = is_short && needy.may_wait_for(size) && needy.pool.is_room_due();
        if goes {
            self.evict(server, &needy, &wish);
        }
        goes
    }

    /// Closes a server that nobody uses, to make room for one of another pool.
    fn evict(&mut self, conn: Conn, needy: &Needy<P>, wish: &RoomWish) {
        let Self { core_state, connections, .. } = self;
        let Some(server) = connections.server(conn) else { return };
        let (id, is_counted) = (server.pool, needy.shortage.is_some());
        server.heir = is_counted.then_some((wish.pool, wish.core));
        core_state.pool(id).counters.pool.servers_evicted += 1;
        let told = format!("for {} of {}", needy.pool.user, needy.pool.database);
        self.log().note_news(id, Level::Info, News::ServerEvicted, told);
        self.close(conn);
        if !is_counted {
            let message = CoreMessage::RoomFor { pool: wish.pool, is_counted };
            self.ports.act(Action::Tell { core: wish.core, message });
        }
    }

    /// Connects a server for which a server of another pool has made room. If none is wanted any
    /// more, another pool gets the room.
    pub(crate) fn room_made(&mut self, id: PoolId, is_counted: bool) {
        if is_counted {
            if !self.connect_counted(id)
                && let Some(pool) = self.core_state.shared.pool_of(id)
            {
                self.count_out(&pool, None);
            }
        } else if let Some(pool) = self.core_state.find_pool(id) {
            // The server's process needs a moment to end. The next tick tries.
            pool.has_room = true;
        }
    }
}
