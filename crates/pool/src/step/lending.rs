//! Lending servers: which client gets one, when the server comes back, and in what state.
//!
//! A server goes back to its pool only with the protocol's proof that the server owes nothing
//! ([`crate::Parts::Idle`]). Before that, the protocol may have to ask the server something, or to
//! reset the server. A cancel request under way holds the server back: the request must not hit the
//! next client (E81).
//!
//! One limit counts for all cores. A core whose client waits asks the other cores for an idle
//! server, and connects one itself if the limit allows. An idle server is handed over to the core
//! whose client waits.
//!
//! Jobs that servers do for Refrain: a job waits in line with the clients, is done by a server when
//! it comes free, or by a client's own server, which the client gets back.

use crate::client::{Client, WaitingFor};
use crate::connections::Connection;
use crate::engine::{Engine, Step};
use crate::event::Action;
use crate::ids::{Conn, Core, PoolId};
use crate::inbox::Rest;
use crate::pool::Pool;
use crate::protocol::{Fitness, Protocol};
use crate::server::{Holder, Server, ServerState};
use crate::step::grow::is_fresh;
use crate::time::Now;
use crate::transfer::{Moving, Transfer};
use crate::waiters::Waiter;

/// Microseconds by which another core must have asked before the first client here began to wait,
/// to get a free server before that client. Handing a server over costs more than a transaction.
const PATIENCE_US: u64 = 5_000;

/// Counts a transaction that is over, and the time that it took.
pub(crate) fn count_transaction<P: Protocol>(server: &mut Server<P>, pool: &mut Pool<P>, now: Now) {
    let took = now.since(std::mem::replace(&mut server.since, now));
    pool.counters.pool.xacts += 1;
    pool.counters.xact_time.count(took);
}

impl<P: Protocol> Step<'_, P> {
    /// Lends an idle server to a client.
    #[inline]
    pub(crate) fn link(&mut self, conn: Conn, server: Conn) {
        let linked = self.linked(conn, server);
        linked.server.state = ServerState::Held(Holder::Client(conn));
        linked.server.since = linked.now;
        linked.client.link = Some(server);
        linked.core_state.pool(linked.server.pool).counters.pool.server_assignments += 1;
        P::lent(linked);
    }

    /// Takes a quiescent server from its client, and frees it.
    #[inline]
    pub fn unlink(&mut self, client: Conn, server: Conn) {
        let (c, s) = self.engine.connections.pair(client, server);
        count_transaction(s, self.engine.core_state.pool_in_use(s.pool), self.now);
        (c.link, c.cancel_wanted) = (None, false);
        (c.read, c.resent) = (None, false);
        s.state = ServerState::Resetting;
        // Refrain may have stopped reading one of the two because the other reads slowly. From now
        // on neither feeds the other.
        if std::mem::take(&mut s.paused) {
            self.ports.act(Action::Resume { conn: server });
        }
        if c.paused || c.waiting_for == WaitingFor::Turn {
            if c.waiting_for == WaitingFor::Turn {
                c.waiting_for = WaitingFor::Nothing;
            }
            self.engine.connections.read_on(client);
        }
        self.free(server);
    }

    /// Parts a client from its server, as the first step of closing them or of leaving them to
    /// others.
    pub fn part(&mut self, client: Conn, server: Conn) {
        let (client, server) = self.engine.connections.pair(client, server);
        client.link = None;
        server.state = ServerState::Resetting;
    }

    /// Takes a server from a client that has sent nothing to it, and reads the client on. The
    /// server may owe a reply that nobody gets.
    pub fn part_unused(&mut self, conn: Conn, server: Conn) {
        self.sharing().close_line(server);
        self.part(conn, server);
        let (client, s) = self.engine.connections.pair(conn, server);
        client.cancel_wanted = false;
        s.since = self.now;
        if std::mem::take(&mut s.paused) {
            self.ports.act(Action::Resume { conn: server });
        }
        self.engine.connections.unblock(conn);
    }

    /// Takes a server from a client that has left.
    pub(crate) fn take_back(&mut self, server: Conn, client: &Client<P>) {
        let Some(s) = self.engine.connections.server(server) else { return };
        if s.line.has(client.conn) {
            return s.line.forsake(client.conn);
        }
        // What the server does for a client that has left, others do not wait for.
        self.sharing().close_line(server);
        let Some(s) = self.engine.connections.server(server) else { return };
        // The server does a job for Refrain, and does not go back to the client afterwards.
        if let ServerState::Held(Holder::Job(_, back)) = &mut s.state {
            *back = None;
            return P::abandon_job(self, server);
        }
        s.state = ServerState::Resetting;
        s.since = self.now;
        if !s.line.is_empty() {
            return self.leave_to_line(server);
        }
        let core_state = &mut self.engine.core_state;
        let (ends, drains) =
            (core_state.is_shutting_down(), core_state.is_draining(client.pool, self.now));
        let pool = core_state.pool(client.pool);
        let leaves = pool.removed || drains || ends && !pool.is_wanted();
        // A server that waits for the rest of a message cannot be used again (E75). It would take a
        // goodbye for that rest.
        if client.is_half_sent() {
            return self.drop_server(server, false);
        }
        if leaves {
            return self.close_server(server);
        }
        let fitness = P::take_back(self, server, client);
        if fitness == Fitness::Unfit {
            return self.close_server(server);
        }
        let Some(s) = self.engine.connections.server(server) else { return };
        if std::mem::take(&mut s.paused) {
            self.ports.act(Action::Resume { conn: server });
        }
        if fitness == Fitness::Fit {
            self.make_fit(server);
        }
    }

    /// Leaves a server whose client has gone to those behind the client. Nobody gets the replies to
    /// the client's request.
    fn leave_to_line(&mut self, server: Conn) {
        let Some(s) = self.engine.connections.server(server) else { return };
        s.inbox.rest_goes = Rest::Nowhere;
        if std::mem::take(&mut s.paused) {
            self.ports.act(Action::Resume { conn: server });
        }
    }

    /// Closes a server that no client holds, with a goodbye if it was logged in. Clients in its
    /// line go elsewhere.
    pub fn close_server(&mut self, conn: Conn) {
        self.sharing().disperse(conn);
        self.supply().close(conn);
    }

    /// Forgets a server, and closes its connection without a goodbye.
    pub(crate) fn drop_server(&mut self, conn: Conn, gone: bool) {
        self.sharing().disperse(conn);
        self.supply().close_silently(conn, gone);
    }

    /// Stops reading a server while too much is queued to its client. Those behind the client go
    /// elsewhere.
    #[inline]
    pub fn push_back_on_server(&mut self, client: Conn, server: Conn) {
        let Some(s) = self.engine.connections.server(server) else { return };
        let high = self.engine.core_state.pool_in_use(s.pool).settings.options.buffer_high;
        if !s.paused && self.ports.queued(client) > high {
            s.paused = true;
            self.ports.act(Action::Pause { conn: server });
            self.sharing().leave_holder(server);
        }
    }

    /// Whether clients may join at a server of this core.
    #[inline]
    pub fn has_open_lines(&self) -> bool {
        self.engine.lines.open > 0
    }

    /// Makes a server without a client fit for the next one, and frees it once it is.
    pub fn make_fit(&mut self, server: Conn) {
        if self.next_turn(server) {
            return;
        }
        match P::make_fit(self, server) {
            Fitness::Fit => self.free(server),
            Fitness::Busy => {}
            Fitness::Unfit => self.close_server(server),
        }
    }

    /// Gives a server without a holder to the next in line, a client or a job, or to another core,
    /// or back to the pool. Closes it if it is not to be used again.
    #[inline]
    pub(crate) fn free(&mut self, server: Conn) {
        let Some(s) = self.engine.connections.server(server) else { return };
        if s.line.is_used() {
            return self.free_shared(server);
        }
        if s.is_asked {
            return self.free_asked(server);
        }
        // Nobody can say which request a cancel hits. One under way could hit the next client's
        // (E81).
        if s.cancels > 0 {
            s.state = ServerState::Cancelling;
            return;
        }
        let Some(proof) = P::idle(&s.session) else {
            return self.close_server(server);
        };
        let leaves = self.engine.core_state.leaves(s.pool, self.now);
        let pool = self.engine.core_state.pool_in_use(s.pool);
        let unwanted = pool.choice.paused || pool.removed || leaves && !pool.is_wanted();
        if unwanted || s.has_to_leave(pool.shared.reconnects(), self.now) {
            return self.close_server(server);
        }
        if !leaves && P::begin_own_job(self, server) {
            return;
        }
        self.hand_out(server, proof, leaves);
    }

    /// Goes on with the next request in a server's line. Returns false if there is none.
    #[inline]
    pub(crate) fn next_turn(&mut self, server: Conn) -> bool {
        let now = self.now;
        let Some(s) = self.engine.connections.server(server) else { return false };
        let Some(next) = s.line.next() else { return false };
        s.since = now;
        // Of the request before, nobody may have got the replies.
        s.request_begins(now);
        let Some(client) = next.client else {
            s.state = ServerState::Resetting;
            P::turn_of_nobody_begins(&mut s.session);
            return true;
        };
        s.state = ServerState::Held(Holder::Client(client));
        let linked = self.linked(client, server);
        let pool = linked.core_state.pool_in_use(linked.server.pool);
        pool.counters.turn_time.count(now.since(next.since));
        P::turn_begins(linked);
        let wants_cancel = self
            .engine
            .connections
            .client(client)
            .is_some_and(|client| std::mem::take(&mut client.cancel_wanted));
        if wants_cancel {
            self.sharing().leave_holder(server);
            P::cancel(self, client, server);
        }
        true
    }

    /// Gives a shared server to the next in its line. Frees it if nobody is left there.
    #[cold]
    fn free_shared(&mut self, server: Conn) {
        if !self.next_turn(server) {
            self.sharing().close_line(server);
            self.free(server);
        }
    }

    /// Frees a server that has answered that it is there.
    #[cold]
    fn free_asked(&mut self, server: Conn) {
        let Some(s) = self.engine.connections.server(server) else { return };
        s.is_asked = false;
        let pool = self.engine.core_state.pool_in_use(s.pool);
        pool.asked = pool.asked.checked_sub(1).expect("it was asked");
        self.free(server);
    }

    /// Gives a free server to another core, to the first in line here, or to the pool. No job
    /// begins on a server that `leaves`: jobs keep their places then, and clients pass them.
    fn hand_out(&mut self, server: Conn, proof: P::Idle, leaves: bool) {
        let Some(s) = self.engine.connections.server(server) else { return };
        s.state = ServerState::Idle;
        s.since = self.now;
        let id = s.pool;
        if let Some(core) = self.next_core(id)
            && self.ports.queued(server) == 0
        {
            return self.hand_over(server, core);
        }
        if !self.engine.core_state.pool_in_use(id).creditors.is_empty()
            && self.supply().makes_room(server)
        {
            return;
        }
        loop {
            let pool = self.engine.core_state.pool_in_use(id);
            match if leaves { pool.waiters.next_client() } else { pool.waiters.next() } {
                Some(Waiter::Client(client)) => return self.serve_waiting(client, server),
                // A job for which nothing is left to do has left the line, and the next is due.
                Some(Waiter::Job(job)) => {
                    if P::begin_job(self, server, *job) {
                        return;
                    }
                }
                None => return pool.put_back(server, proof),
            }
        }
    }

    /// Lends a server to a client that has waited, and reads the client on.
    fn serve_waiting(&mut self, client: Conn, server: Conn) {
        let now = self.now;
        if let Some(c) = self.engine.connections.client(client) {
            let waited = now.since(c.waiting);
            self.engine.core_state.pool(c.pool).counters.wait_time.count(waited);
        }
        self.link(client, server);
        self.engine.connections.unblock(client);
    }

    /// Hands over an idle server whose output has been sent, if another core has asked for one
    /// meanwhile.
    pub(crate) fn offer(&mut self, server: Conn) {
        let Some(s) = self.engine.connections.server(server) else { return };
        if !matches!(s.state, ServerState::Idle) || self.ports.queued(server) > 0 {
            return;
        }
        let id = s.pool;
        if let Some(core) = self.next_core(id) {
            self.hand_over(server, core);
        }
    }

    /// Moves an idle server to another core. No output may be queued to it.
    pub(crate) fn hand_over(&mut self, conn: Conn, to: Core) {
        let Connection::Server(mut server) = self.engine.connections.take(conn) else { return };
        let pool = self.engine.core_state.pool(server.pool);
        pool.remove_idle(conn);
        pool.asking.retain(|(core, _)| *core != to);
        pool.servers = pool.servers.checked_sub(1).expect("no more servers go than came");
        pool.counters.pool.handovers += 1;
        server.state = ServerState::Resetting;
        P::depart(&mut server.session);
        let transfer = Transfer(Moving::Server(*server));
        self.ports.act(Action::HandOver { conn, to, transfer: Box::new(transfer) });
    }

    /// Gives an idle server to another core whose client waits, or remembers that the core waits.
    pub(crate) fn core_asks(&mut self, id: PoolId, core: Core, since: Now) {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let Some(pool) = core_state.find_pool(id) else { return };
        let delay = pool.settings.options.server_check_delay;
        // The coldest may have been idle for too long even if the last was not.
        let is_fresh = |server| is_fresh(connections, server, delay, self.now);
        let may_go = |server| self.ports.queued(server) == 0 && is_fresh(server);
        if let Some(server) = pool.take_coldest(may_go) {
            return self.hand_over(server, core);
        }
        pool.asking.retain(|(other, _)| *other != core);
        pool.asking.push((core, since));
        let mut supply = self.supply();
        if supply.are_stale(id) {
            supply.ask_idle(id);
        }
    }

    /// Returns the core that gets a free server before the first client here, if any. A job here
    /// does not hold a server back from a client of another core.
    #[inline]
    pub(crate) fn next_core(&mut self, pool: PoolId) -> Option<Core> {
        let pool = self.engine.core_state.pool_in_use(pool);
        let (core, since) = *pool.asking.iter().min_by_key(|(_, since)| *since)?;
        let first = pool.waiters.first_client();
        let ours = first.and_then(|client| Some(self.engine.connections.client(client)?.waiting));
        let theirs_first = ours.is_none_or(|ours| since.0 + PATIENCE_US < ours.0);
        theirs_first.then_some(core)
    }

    /// Puts a job in line, behind the clients and jobs that wait for a server. When its turn comes,
    /// the pool calls [`crate::Background::begin_job`]: at once, if a server is idle. No timeout
    /// ends the wait, since no client waits with the job; the protocol limits the number of its
    /// jobs.
    pub fn queue_job(&mut self, id: PoolId, job: P::Job) {
        let Some(pool) = self.engine.core_state.find_pool(id) else { return };
        pool.waiters.push(Waiter::Job(Box::new(job)));
        if pool.removed {
            return self.supply().lose_jobs(id);
        }
        self.serve_jobs(id);
        self.supply().grow(id);
    }

    /// Whether the idle server that the next job would get was idle for so long that it has to be
    /// asked.
    fn is_next_stale(&mut self, id: PoolId) -> bool {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let Some(pool) = core_state.find_pool(id) else { return false };
        let delay = pool.settings.options.server_check_delay;
        pool.next_for_job().is_some_and(|next| !is_fresh(connections, next, delay, self.now))
    }

    /// Gives idle servers to the jobs in line. If the next server was idle for so long that it has
    /// to be asked, the jobs wait for the answer in line: a server goes to the first there, which
    /// may be a client.
    pub(crate) fn serve_jobs(&mut self, id: PoolId) {
        let core_state = &mut self.engine.core_state;
        if core_state.leaves(id, self.now) {
            return;
        }
        let waits = |step: &mut Self| {
            step.engine.core_state.find_pool(id).is_some_and(|pool| pool.waiters.jobs() > 0)
        };
        while waits(self) {
            if self.is_next_stale(id) {
                return self.supply().ask_idle(id);
            }
            let Some(server) = self.engine.core_state.pool(id).take_for_job() else { return };
            self.free(server);
        }
    }

    /// Lets a server do a job, whose first messages the protocol has just sent to the server.
    /// `back` is the client that gets the server back, and waits until then.
    pub fn start_job(&mut self, server: Conn, job: P::Job, back: Option<Conn>) {
        let Some(s) = self.engine.connections.server(server) else { return };
        s.state = ServerState::Held(Holder::Job(Box::new(job), back));
        s.since = self.now;
        if let Some(client) = back.and_then(|client| self.engine.connections.client(client)) {
            client.waiting_for = WaitingFor::Job;
        }
    }

    /// Ends a server's job. Returns the job, and the client that has the server back. The protocol
    /// has to unblock that client ([`crate::connections::Connections::unblock`]), or to call
    /// [`Step::make_fit`] if there is no client.
    pub fn finish_job(&mut self, server: Conn) -> Option<(Box<P::Job>, Option<Conn>)> {
        let s = self.engine.connections.server(server)?;
        if !s.is_at_work() {
            return None;
        }
        let state = std::mem::replace(&mut s.state, ServerState::Resetting);
        let ServerState::Held(Holder::Job(job, back)) = state else { return None };
        s.since = self.now;
        if let Some(client) = back {
            s.state = ServerState::Held(Holder::Client(client));
        }
        Some((job, back))
    }
}
