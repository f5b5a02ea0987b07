//! Lending servers: which client gets one, when the server comes back, and in what state.
//!
//! A server goes back to its pool only with the protocol's proof that the server owes nothing
//! ([`crate::Parts::Idle`]). Before that, the protocol may have to ask the server something, or to
//! reset the server. A cancel request under way holds the server back: the request must not hit the
//! next client (E81).
//!
//! One limit counts for all cores. A core whose client waits asks the other cores for an idle
//! server, and connects one itself if the limit allows.

use crate::client::{Client, WaitingFor};
use crate::engine::Step;
use crate::event::Action;
use crate::ids::Conn;
use crate::inbox::Rest;
use crate::pool::Pool;
use crate::protocol::{Fitness, Protocol};
use crate::server::{Holder, Server, ServerState};
use crate::time::Now;
use crate::waiters::Waiter;

/// Counts a transaction that is over, and the time that it took.
pub(crate) fn count_transaction<P: Protocol>(server: &mut Server<P>, pool: &mut Pool<P>, now: Now) {
    let took = now.since(server.since);
    server.since = now;
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
        let pool = linked.core_state.pool(linked.server.pool);
        pool.counters.pool.server_assignments += 1;
        P::lent(linked);
    }

    /// Takes a quiescent server from its client, and frees it.
    #[inline]
    pub fn unlink(&mut self, client: Conn, server: Conn) {
        let (c, s) = self.engine.connections.pair(client, server);
        count_transaction(s, self.engine.core_state.pool_in_use(s.pool), self.now);
        c.link = None;
        c.cancel_wanted = false;
        (c.read, c.resent) = (None, false);
        if c.waiting_for == WaitingFor::Turn {
            c.waiting_for = WaitingFor::Nothing;
            self.engine.runnable.push_back(client);
        }
        s.state = ServerState::Resetting;
        // Refrain may have stopped reading one of the two because the other reads slowly. From now
        // on neither feeds the other.
        if c.paused {
            self.engine.runnable.push_back(client);
        }
        if std::mem::take(&mut s.paused) {
            self.ports.act(Action::Resume { conn: server });
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
        self.close_line(server);
        self.part(conn, server);
        let (client, s) = self.engine.connections.pair(conn, server);
        client.cancel_wanted = false;
        s.since = self.now;
        if std::mem::take(&mut s.paused) {
            self.ports.act(Action::Resume { conn: server });
        }
        self.unblock(conn);
    }

    /// Takes a server from a client that has left.
    pub(crate) fn take_back(&mut self, server: Conn, client: &Client<P>) {
        let Some(s) = self.engine.connections.server(server) else { return };
        if s.line.has(client.conn) {
            return s.line.forsake(client.conn);
        }
        // What the server does for a client that has left, others do not wait for.
        self.close_line(server);
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
        let now = self.now;
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
        let leaves = self.engine.core_state.leaves(s.pool, now);
        let pool = self.engine.core_state.pool_in_use(s.pool);
        let unwanted = pool.choice.paused || pool.removed || leaves && !pool.is_wanted();
        if unwanted || s.has_to_leave(pool.shared.reconnects(), now) {
            return self.close_server(server);
        }
        if !leaves && P::begin_own_job(self, server) {
            return;
        }
        self.hand_out(server, proof, leaves);
    }

    /// Gives a shared server to the next in its line. Frees it if nobody is left there.
    #[cold]
    fn free_shared(&mut self, server: Conn) {
        if !self.next_turn(server) {
            self.close_line(server);
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
        if !self.engine.core_state.pool_in_use(id).creditors.is_empty() && self.makes_room(server) {
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
        self.unblock(client);
    }
}
