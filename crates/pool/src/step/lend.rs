//! A client's requests for a server, and the ends of its transactions.
//!
//! A pool lends the server used last, or with `server_round_robin` the one used longest ago.
//! Clients may leave traces on servers that nothing removes: once a server of the pool is marked
//! ([`Protocol::is_marked`]), the pool lends each client the idle server that suits it best
//! ([`Protocol::suits`]), and any if none does: nobody waits for a better one. Where one that suits
//! was missed, a tick connects a new server, in place of an idle marked one if the pool is full.

use refrain_config::PoolMode;

use crate::choice::LendOrder;
use crate::client::WaitingFor;
use crate::connections::Connection;
use crate::disconnect::DisconnectReason;
use crate::engine::{Engine, Linked, Step};
use crate::ids::{Conn, PoolId};
use crate::protocol::Protocol;
use crate::step::grow::is_fresh;
use crate::step::lending::count_transaction;
use crate::step::share::REQUEST_BYTES_MAX;
use crate::waiters::Waiter;

/// How well an idle server of another pool suits a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rated {
    /// The server may get the request; the lower, the better.
    As(u8),
    /// It may not get the request now.
    Unfit,
    /// It will suit no request any more.
    Outdated,
}

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
            if is_fresh(&self.engine.connections, server, delay, self.now) {
                self.link(conn, server);
                return Some(server);
            }
            self.engine.core_state.pool_in_use(id).leave_idle(server);
        }
        let picks = self.engine.core_state.pool_in_use(id).choice.picks();
        if picks && let Some(server) = self.pick(id, conn) {
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
        self.supply().grow(id);
        None
    }

    /// Lends a client an idle server of another pool than its own, for one request: the one that
    /// `rates` lowest, of several the one used last. The request is all that the client has sent,
    /// and the caller sends all of it ([`crate::Sharing::await_turn`]): the client's next one is
    /// its own pool's again. If there is no such server, returns `None`, and the pool gets one more
    /// for the next request, as far as the limits allow. Servers that are rated as outdated are
    /// closed.
    pub fn lend_elsewhere(
        &mut self,
        id: PoolId,
        client: Conn,
        rates: impl Fn(&P::Client, &P::Server) -> Rated,
    ) -> Option<Conn> {
        let now = self.now;
        if self.engine.core_state.leaves(id, now) {
            return None;
        }
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let pool = core_state.find_pool(id)?;
        if pool.choice.paused || pool.removed || !pool.waiters.is_empty() {
            return None;
        }
        let Connection::Client(asking) = connections.get(client) else { return None };
        let delay = pool.settings.options.server_check_delay;
        let mut best: Option<(u8, Conn)> = None;
        let mut outdated = Vec::new();
        for &conn in pool.idle().iter().rev() {
            let Connection::Server(server) = connections.get(conn) else { continue };
            let suits =
                pool.choice.lends_last || P::suits(&asking.session, &server.session).is_some();
            let rated = match rates(&asking.session, &server.session) {
                Rated::As(rated) => Some(rated).filter(|_| suits),
                Rated::Unfit => None,
                Rated::Outdated => {
                    outdated.push(conn);
                    None
                }
            };
            let better = rated.filter(|rated| best.is_none_or(|(best, _)| *rated < best));
            if let Some(rated) = better.filter(|_| is_fresh(connections, conn, delay, now)) {
                best = Some((rated, conn));
            }
            if best.is_some_and(|(rated, _)| rated == 0) {
                break;
            }
        }
        for conn in outdated {
            self.engine.core_state.pool_in_use(id).remove_idle(conn);
            self.close_server(conn);
        }
        let Some((_, server)) = best else {
            self.supply().grow_for_next(id);
            return None;
        };
        self.engine.core_state.pool_in_use(id).remove_idle(server);
        self.link(client, server);
        Some(server)
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
        let leaves = self.engine.core_state.is_shutting_down();
        let pool = self.engine.core_state.pool_in_use(s.pool);
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

    /// Lets clients join at the server of a client, whose `request` is all that the server owes,
    /// and all that the client has sent so far, and is known to take so many microseconds. Clients
    /// that wait for a server join at once.
    pub fn open_line(&mut self, client: Conn, server: Conn, request: &[u8], takes_us: u32) {
        if let Some(id) = self.sharing().open_line(client, server, request, takes_us) {
            self.join_waiting(id);
        }
    }

    /// Has the clients join that wait for a server, as far as there is room in a line.
    ///
    /// Otherwise a pool all of whose servers are wanted would never share one. Who waits in front
    /// for a server of its own gets the next one that is free: a client that comes later does not
    /// join while others wait, so each line ends.
    #[cold]
    fn join_waiting(&mut self, id: PoolId) {
        let pool = self.engine.core_state.pool_in_use(id);
        let room = pool.settings.options.share_depth as usize - 1;
        let first: Vec<Conn> = pool.waiters.all_clients().take(room).collect();
        for client in first {
            let Some(c) = self.engine.connections.client(client) else { continue };
            if c.resent || c.waits_alone || c.inbox.held() > REQUEST_BYTES_MAX {
                continue;
            }
            let (input, waiting) = (c.inbox.join(&[]), c.waiting);
            let joins = P::share(self, client, &input);
            let Some(c) = self.engine.connections.client(client) else { continue };
            if joins {
                if c.paused {
                    self.engine.connections.read_on(client);
                }
                let pool = self.engine.core_state.pool_in_use(id);
                pool.waiters.remove_client(client);
                pool.counters.wait_time.count(self.now.since(waiting));
            } else {
                c.inbox.put_back(input, 0);
                c.waits_alone = true;
            }
        }
    }

    /// Takes the idle server out that suits a client best; of several, the one used last, or in a
    /// pool that takes turns the one used longest ago. One that has to be asked first is passed
    /// over.
    #[cold]
    fn pick(&mut self, id: PoolId, client: Conn) -> Option<Conn> {
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let pool = core_state.pool_in_use(id);
        let Connection::Client(client) = connections.get(client) else { return None };
        if !pool.waiters.is_empty() || pool.choice.paused {
            return None;
        }
        let suits = |server: &Conn| match connections.get(*server) {
            Connection::Server(server) => P::suits(&client.session, &server.session),
            _ => None,
        };
        let delay = pool.settings.options.server_check_delay;
        let is_fresh = |server: &&Conn| is_fresh(connections, **server, delay, self.now);
        let takes_turns = pool.choice.order == LendOrder::First;
        let rated = pool.idle().iter().filter(is_fresh).map(|server| (suits(server), *server));
        // They stand in the order in which they were used.
        let (suits, server) = rated.reduce(|best, other| {
            let [is, would] = [best, other].map(|(suits, _)| suits.unwrap_or(usize::MAX));
            if would < is || would == is && !takes_turns { other } else { best }
        })?;
        pool.choice.missed |= suits.is_none();
        pool.remove_idle(server);
        Some(server)
    }
}
