//! Jobs that servers do for Refrain: a job waits in line with the clients, is done by a server when
//! it comes free, or by a client's own server, which the client gets back.

use crate::client::WaitingFor;
use crate::engine::Step;
use crate::ids::{Conn, PoolId};
use crate::protocol::Protocol;
use crate::server::{Holder, ServerState};
use crate::waiters::Waiter;

impl<P: Protocol> Step<'_, P> {
    /// Puts a job in line, behind the clients and jobs that wait for a server. When its turn comes,
    /// the pool calls [`crate::Background::begin_job`]: at once, if a server is idle. No timeout
    /// ends the wait, since no client waits with the job; the protocol limits the number of its
    /// jobs.
    pub fn queue_job(&mut self, id: PoolId, job: P::Job) {
        let Some(pool) = self.engine.core_state.find_pool(id) else { return };
        pool.waiters.push(Waiter::Job(Box::new(job)));
        if pool.removed {
            return self.lose_jobs(id);
        }
        self.serve_jobs(id);
        self.grow(id);
    }

    /// Gives idle servers to the jobs in line. If all servers were idle for so long that they have
    /// to be asked, the jobs wait for the answers in line: a server goes to the first there, which
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
            if self.are_stale(id) {
                return self.ask_idle(id);
            }
            let Some(server) = self.engine.core_state.pool(id).take_for_job() else { return };
            self.free(server);
        }
    }

    /// Takes the jobs of a pool that gets no server out of the line.
    pub(crate) fn lose_jobs(&mut self, id: PoolId) {
        let Some(pool) = self.engine.core_state.find_pool(id) else { return };
        for job in pool.waiters.take_jobs() {
            P::lose_job(pool, &job);
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
    /// has to call [`Step::unblock`] for that client, or [`Step::make_fit`] if there is no client.
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
