//! Timeouts of clients and servers, and the removal of unused servers and pools.
//!
//! The hot path sets no timers. Every [`TICK`], as long as anything could be due, a tick checks all
//! connections and pools. So a timeout may come late by one [`TICK`].

use std::time::Duration;

use refrain_config::PoolOptions;

use crate::client::{Client, Phase, WaitingFor};
use crate::connections::Connection;
use crate::counts::ConnectPermit;
use crate::disconnect::DisconnectReason;
use crate::engine::{Engine, Step};
use crate::event::Action;
use crate::ids::{Conn, Core, PoolId};
use crate::message::CoreMessage;
use crate::pool::Pool;
use crate::ports::Ports;
use crate::protocol::{Activity, Protocol};
use crate::server::{Server, ServerState};
use crate::time::Now;

/// Time between two ticks.
const TICK: Duration = Duration::from_millis(100);
/// Time that a server may take to finish for a client that has left, or that has ended its stream.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// Microseconds between two sweeps, which forget what no core uses any more.
const SWEEP_US: u64 = 10_000_000;

impl<P: Protocol> Engine<P> {
    /// Returns the latest time for the next [`crate::Event::Tick`]; `None` while nothing can be
    /// due.
    pub fn next_tick(&self, ports: &Ports<P>) -> Option<Now> {
        // A pool whose last client left while it waited still has to tell the other cores that it
        // wants no server.
        let has_work =
            |p: &Pool<P>| p.servers > 0 || p.wants_server || p.settings.options.min_pool_size > 0;
        let next = self.ticked.after(TICK);
        if let Some(due) = self.patience_ends() {
            return Some(due.min(next));
        }
        if self.clients > 0 || ports.are_closing() || self.core_state.pools().any(has_work) {
            return Some(next);
        }
        // An unused pool needs one more tick, which forgets the pool.
        let due = self.core_state.pools().filter_map(Pool::forgotten_at).min();
        due.map(|due| due.max(next))
    }
}

impl<P: Protocol> Step<'_, P> {
    /// Does all work that is due.
    pub(crate) fn tick(&mut self) {
        self.disperse_late_lines();
        if self.now < self.engine.ticked.after(TICK) && !self.engine.lines.is_empty() {
            return;
        }
        let swept = self.now.0 / SWEEP_US != self.engine.ticked.0 / SWEEP_US;
        self.engine.ticked = self.now;
        self.ports.tick(self.now);
        for conn in self.engine.connections.conns() {
            match self.engine.connections.get(conn) {
                Connection::Client(_) => self.tick_client(conn),
                Connection::Server(_) => self.tick_server(conn),
                Connection::Cancel(run) => {
                    let timeout = self.engine.core_state.shared.options().general.cancel_timeout;
                    if timeout.is_some_and(|timeout| run.since.after(timeout) <= self.now) {
                        self.cancel_late(conn);
                    }
                }
                Connection::Free => {}
            }
        }
        let pools: Vec<PoolId> =
            self.engine.core_state.pools().map(|pool| pool.shared.id).collect();
        for pool in pools {
            self.tick_pool(pool);
        }
        if swept {
            self.engine.core_state.shared.sweep();
        }
        P::tick(self, swept);
    }

    fn tick_client(&mut self, conn: Conn) {
        let now = self.now;
        let Some(client) = self.engine.connections.client(conn) else { return };
        // The server does not work for a client in its line yet.
        if client.waiting_for == WaitingFor::Turn
            && let Some(server) = client.link
            && self.engine.connections.server(server).is_some_and(|s| s.line.has(conn))
        {
            return;
        }
        let Some(client) = self.engine.connections.client(conn) else { return };
        let due = |since: Now, span: Option<Duration>| span.is_some_and(|s| since.after(s) <= now);
        let general = &self.engine.core_state.shared.options().general;
        let cause = match P::phase(&client.session) {
            Phase::Console => None,
            Phase::Login => due(client.connected, general.client_login_timeout)
                .then_some(DisconnectReason::LoginTimeout),
            Phase::Entering | Phase::Checking | Phase::Ready => {
                let options = &self.engine.core_state.pool(client.pool).settings.options;
                let link = client.link;
                let (client, server) = match link {
                    Some(server) => {
                        let (client, server) = self.engine.connections.pair(conn, server);
                        (&*client, Some(&*server))
                    }
                    None => (&*client, None),
                };
                overdue(client, server, options, now)
            }
        };
        if let Some(cause) = cause {
            if matches!(cause, DisconnectReason::QueryTimeout | DisconnectReason::ClientGone)
                && let Some(server) = self.engine.connections.client(conn).and_then(|c| c.link)
            {
                self.cancel_server(server);
            }
            if cause == DisconnectReason::LoginTimeout {
                self.engine.core_state.shared.lobby.note_timeout();
                return self.end_login(conn, cause);
            }
            self.end_client(conn, cause);
        } else if self.engine.core_state.draining {
            self.drain_client(conn);
        }
    }

    /// Ends a client's session during shutdown if nothing is under way: all requests are answered
    /// in full, and no request has arrived in part.
    fn drain_client(&mut self, conn: Conn) {
        let Some(client) = self.engine.connections.client(conn) else { return };
        let ready = P::phase(&client.session) == Phase::Ready;
        let speaks = ready && (client.inbox.held() > 0 || client.inbox.rest > 0);
        let (link, waits) = (client.link, client.waiting_for != WaitingFor::Nothing);
        let is_quiet = |server: &Server<P>| ready && P::idle(&server.session).is_some();
        let busy = match link {
            Some(server) => !self.engine.connections.server(server).is_some_and(|s| is_quiet(s)),
            None => waits,
        };
        if !busy && !speaks {
            self.end_client(conn, DisconnectReason::Shutdown);
        }
    }

    fn tick_server(&mut self, conn: Conn) {
        let now = self.now;
        let shared = self.engine.core_state.shared.clone();
        let Some(server) = self.engine.connections.server(conn) else { return };
        let is_draining = self.engine.core_state.is_draining(server.pool, now);
        let pool = self.engine.core_state.pool(server.pool);
        let options = &pool.settings.options;
        match server.state {
            ServerState::Connecting | ServerState::Login(_) => {
                if server.connected.after(options.server_connect_timeout) <= now {
                    P::connect_failed(self, conn, "server_connect_timeout");
                }
            }
            ServerState::Idle => {
                let renewed = server.reconnects != pool.shared.reconnects();
                let old = server.expires <= now || server.close_needed || renewed;
                let unused =
                    options.server_idle_timeout.is_some_and(|s| server.since.after(s) <= now);
                let spare = || shared.counts.servers(server.pool) > options.min_pool_size;
                let leaves = is_draining && !pool.is_wanted();
                if old || unused && spare() || leaves {
                    self.close_server(conn);
                }
            }
            ServerState::Resetting | ServerState::Held(_) if server.is_ownerless() => {
                if server.since.after(DRAIN_MAX) <= now {
                    self.cancel_server(conn);
                    self.close_server(conn);
                }
            }
            ServerState::Held(_) | ServerState::Resetting | ServerState::Cancelling => {}
        }
    }

    /// Closes idle servers of a pool that has more servers than allowed, the least recently used
    /// first.
    fn shrink(&mut self, id: PoolId) {
        let shared = self.engine.core_state.shared.clone();
        let pool = self.engine.core_state.pool(id);
        for _ in 0..shared.counts.surplus(&pool.shared) {
            let Some(server) = self.engine.core_state.pool(id).take_coldest(|_| true) else {
                return;
            };
            self.close_server(server);
        }
    }

    fn tick_pool(&mut self, id: PoolId) {
        let now = self.now;
        let pool = self.engine.core_state.pool(id);
        if pool.forgotten_at().is_some_and(|due| due <= now) {
            return self.engine.core_state.close_pool(id);
        } else if !pool.is_unused() {
            pool.used = now;
        } else if pool.settings.options.min_pool_size == 0 {
            return;
        }
        self.shrink(id);
        P::tick_pool(self, id);
        // Another core may not have known the pool when it was asked, or may have a server now. So
        // `grow` asks again.
        self.engine.core_state.pool(id).ask_due = true;
        self.grow(id);
        let (shared, core) = (self.engine.core_state.shared.clone(), self.engine.core_state.core);
        let pool = self.engine.core_state.pool(id);
        if pool.wants_server && pool.waiting() == 0 && pool.entering.is_empty() {
            pool.wants_server = false;
            for other in self.engine.core_state.others() {
                let message = CoreMessage::GotServer { pool: id, core };
                self.ports.act(Action::Tell { core: other, message });
            }
        }
        // The first core keeps the pool's minimum for all cores.
        let pool = self.engine.core_state.pool(id);
        let min = pool.settings.options.min_pool_size;
        let leaves =
            self.engine.core_state.draining || self.engine.core_state.is_draining(id, self.now);
        let pool = self.engine.core_state.pool(id);
        let serves = !pool.paused && !pool.removed;
        let calm = pool.connecting == 0 && serves && self.now >= pool.retry;
        if core == Core(0) && calm && !leaves && shared.counts.servers(id) < min {
            let pool = self.engine.core_state.pool(id).shared.clone();
            if shared.counts.admit_server(&pool, core, false) == ConnectPermit::Granted {
                self.connect(id);
            }
        }
    }
}

/// Returns the timeout that a client has exceeded, if any.
fn overdue<P: Protocol>(
    client: &Client<P>,
    server: Option<&Server<P>>,
    options: &PoolOptions,
    now: Now,
) -> Option<DisconnectReason> {
    let due = |since: Now, span: Option<Duration>| span.is_some_and(|s| since.after(s) <= now);
    if due(client.ended.unwrap_or(now), client.ended.map(|_| DRAIN_MAX)) {
        return Some(DisconnectReason::ClientGone);
    }
    let waits =
        client.waiting_for == WaitingFor::Server || P::phase(&client.session) == Phase::Entering;
    if waits {
        let since = client.waiting.max(client.connected);
        return due(since, options.query_wait_timeout)
            .then_some(DisconnectReason::QueryWaitTimeout);
    }
    let Some(server) = server else {
        let idle = due(client.requested, options.client_idle_timeout);
        return idle.then_some(DisconnectReason::ClientIdleTimeout);
    };
    let Activity { owes, in_transaction } = P::activity(&server.session);
    if owes && due(server.asked, options.query_timeout) {
        Some(DisconnectReason::QueryTimeout)
    } else if in_transaction && due(server.since, options.transaction_timeout) {
        Some(DisconnectReason::TransactionTimeout)
    } else if !owes && in_transaction && due(server.asked, options.idle_transaction_timeout) {
        Some(DisconnectReason::IdleTransactionTimeout)
    } else if !owes && !in_transaction && due(client.requested, options.client_idle_timeout) {
        Some(DisconnectReason::ClientIdleTimeout)
    } else {
        None
    }
}
