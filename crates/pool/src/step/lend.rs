//! A client's requests for a server, and the ends of its transactions.

use refrain_config::PoolMode;

use crate::client::WaitingFor;
use crate::disconnect::DisconnectReason;
use crate::engine::{Linked, Step};
use crate::ids::Conn;
use crate::protocol::Protocol;
use crate::step::lending::count_transaction;
use crate::waiters::Waiter;

impl<P: Protocol> Step<'_, P> {
    /// Gives a client a server, or queues the client until there is one. Returns the server that
    /// the client has now.
    #[inline]
    pub fn lend(&mut self, conn: Conn) -> Option<Conn> {
        let id = self.engine.connections.client(conn)?.pool;
        let pool = self.engine.core_state.pool_in_use(id);
        if pool.waiters.is_empty()
            && let Some(server) = pool.take()
        {
            let delay = pool.settings.options.server_check_delay;
            if delay.is_none_or(|delay| !self.is_stale(server, delay)) {
                self.link(conn, server);
                return Some(server);
            }
            self.engine.core_state.pool_in_use(id).leave_idle(server);
        }
        let is_marked = self.engine.core_state.pool_in_use(id).choice.marked;
        if is_marked
            && !self.are_stale(id)
            && let Some(server) = self.pick(id, conn)
        {
            self.link(conn, server);
            return Some(server);
        }
        let pool = self.engine.core_state.pool_in_use(id);
        let most = pool.settings.options.max_waiting;
        if most.is_some_and(|most| pool.is_crowded(most as usize)) {
            self.end_client(conn, DisconnectReason::TooManyWaiting);
            return None;
        }
        pool.waiters.push(Waiter::Client(conn));
        let client = self.engine.connections.client(conn)?;
        client.waiting_for = WaitingFor::Server;
        client.waiting = self.now;
        client.waits_alone = false;
        self.grow(id);
        None
    }

    /// Returns the server that is lent to a client.
    #[inline]
    pub fn server_of(&mut self, client: Conn) -> Option<Conn> {
        self.engine.connections.client(client)?.link
    }

    /// Notes that a client's server gets a request, before the server owes the reply. The time of
    /// the request counts from now if the server owes nothing else.
    pub fn request_begins(&mut self, server: Conn) {
        let Some(server) = self.engine.connections.server(server) else { return };
        if !P::activity(&server.session).owes {
            server.request_begins(self.now);
        }
    }

    /// Notes that a client has got the whole reply to a request, and counts the request. The times
    /// of the next request, and of doing nothing, count from now.
    pub fn request_over(&mut self, client: Conn, server: Conn) {
        let Linked { now, client, server, core_state, .. } = self.linked(client, server);
        core_state.pool_in_use(server.pool).request_over(client, server, now);
    }

    /// Takes a server back from a client whose transaction is over. The client keeps the server if
    /// it `keeps` state there, or if the pool's mode says so. Returns whether it keeps the server.
    /// If its user or its database is not configured any more, or in a shutdown, its session ends.
    #[inline]
    pub fn transaction_over(&mut self, client: Conn, server: Conn, keeps: bool) -> bool {
        let Some(s) = self.engine.connections.server(server) else { return false };
        let core_state = &mut self.engine.core_state;
        let leaves = core_state.is_shutting_down();
        let pool = core_state.pool_in_use(s.pool);
        if pool.removed || leaves {
            let removed = pool.removed;
            if !s.line.is_empty() {
                self.unlink(client, server);
            }
            let cause =
                if removed { DisconnectReason::Removed } else { DisconnectReason::Shutdown };
            self.end_client(client, cause);
            return false;
        }
        if keeps || pool.settings.options.pool_mode == PoolMode::Session {
            count_transaction(s, pool, self.now);
            return true;
        }
        self.unlink(client, server);
        false
    }
}
