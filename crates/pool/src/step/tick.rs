//! Timeouts of clients and servers, and the removal of unused servers and pools.
//!
//! The hot path sets no timers. Every [`TICK`], as long as anything could be due, a tick looks at
//! what may be due: the connections that are watched ([`crate::connections`]), the clients of their
//! servers, and the pools of the agenda ([`crate::agenda`]) with the clients that wait there. So a
//! tick costs in proportion to the clients that do something, and a timeout may come late by one
//! [`TICK`].
//!
//! Clients that do nothing have one timeout: `client_idle_timeout`, or a shorter one that a client
//! has set for itself. All of them are looked at when the first of them may be due, but at most
//! [`IDLE_SCANS`] times in the shortest timeout.

use std::time::Duration;

use refrain_config::General;

use crate::client::{Client, Phase, WaitingFor};
use crate::connections::Connection;
use crate::crowd::CrowdNews;
use crate::disconnect::DisconnectReason;
use crate::engine::{Engine, Step};
use crate::event::{Action, Level, News};
use crate::hosts::LOOK;
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
/// How often all clients are looked at, at most, in the shortest timeout of idle clients. So that
/// timeout may come late by this part of it.
const IDLE_SCANS: u32 = 64;

impl<P: Protocol> Engine<P> {
    /// Returns the latest time for the next [`crate::Event::Tick`]; `None` while nothing can be
    /// due.
    pub fn next_tick(&self, ports: &Ports<P>) -> Option<Now> {
        let next = self.ticked.after(TICK);
        if let Some(due) = self.patience_ends() {
            return Some(due.min(next));
        }
        let agenda = &self.core_state.agenda;
        if self.connections.client_count() > 0
            || ports.are_closing()
            || self.connections.has_watched()
            || !agenda.is_empty()
        {
            return Some(next);
        }
        // An unused pool needs one more tick, which forgets the pool.
        agenda.first_rest().map(|due| due.max(next))
    }
}

/// Whether each tick looks at a connection.
pub(crate) fn is_always_watched<P: Protocol>(connection: &Connection<P>) -> bool {
    match connection {
        Connection::Free => false,
        Connection::Client(client) => {
            client.ended.is_some() || P::phase(&client.session) == Phase::Login
        }
        Connection::Server(_) | Connection::Side(_) => true,
    }
}

impl<P: Protocol> Step<'_, P> {
    /// Does all work that is due.
    pub(crate) fn tick(&mut self) {
        self.sharing().disperse_late_lines();
        if self.now < self.engine.ticked.after(TICK) && !self.engine.lines.servers.is_empty() {
            return;
        }
        let swept = self.now.0 / SWEEP_US != self.engine.ticked.0 / SWEEP_US;
        self.engine.ticked = self.now;
        self.ports.tick(self.now);
        let options = self.engine.core_state.shared.options();
        self.tick_watched(&options.general);
        if self.engine.core_state.draining || self.engine.core_state.idle_due <= self.now {
            self.tick_all_clients(&options.general);
        }
        self.dismiss_unwelcome();
        let pools = self.engine.core_state.begin_visits(self.now);
        for &pool in &pools {
            self.tick_pool(pool, &options.general);
        }
        self.engine.core_state.end_visits(pools);
        if swept {
            self.engine.core_state.shared.sweep();
        }
        P::tick(self, swept);
    }

    /// Looks at the connections that are watched, and at the clients of servers.
    fn tick_watched(&mut self, general: &General) {
        let watched = self.engine.connections.take_watched();
        for &conn in &watched {
            match self.engine.connections.get(conn) {
                Connection::Client(_) => self.tick_client(conn, general),
                Connection::Server(server) => match server.client() {
                    Some(client) => self.tick_client(client, general),
                    None => self.tick_server(conn),
                },
                Connection::Side(_) => self.tick_side(conn),
                Connection::Free => {}
            }
        }
        self.engine.connections.keep_watched(watched, is_always_watched);
    }

    /// Looks at all clients, and finds out when the first of them may be idle for too long.
    fn tick_all_clients(&mut self, general: &General) {
        for conn in self.engine.connections.conns() {
            if matches!(self.engine.connections.get(conn), Connection::Client(_)) {
                self.tick_client(conn, general);
            }
        }
        let now = self.now;
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let timeouts = core_state.pools().filter_map(|p| p.settings.options.client_idle_timeout);
        let own = P::shortest_idle_timeout(&core_state.protocol);
        let Some(shortest) = timeouts.chain(own).min() else {
            core_state.idle_due = Now(u64::MAX);
            return;
        };
        let due = |client: &Client<P>| {
            let option = core_state.peek_pool(client.pool)?.settings.options.client_idle_timeout;
            let own = P::idle_timeout(&client.session);
            Some(client.requested.after(option.into_iter().chain(own).min()?))
        };
        // A client that comes later, or asks for something, has at least the shortest timeout.
        let first = connections.clients().filter_map(due).fold(now.after(shortest), Now::min);
        core_state.idle_due = first.max(now.after(shortest / IDLE_SCANS));
    }

    /// Ends a client's session if a timeout says so, or if a shutdown has begun and the client has
    /// nothing under way.
    fn tick_client(&mut self, conn: Conn, general: &General) {
        let now = self.now;
        let Engine { core_state, connections, .. } = &*self.engine;
        let Connection::Client(client) = connections.get(conn) else { return };
        let server = client.link.and_then(|server| match connections.get(server) {
            Connection::Server(server) => Some(&**server),
            _ => None,
        });
        // The server does not work for a client in its line yet.
        let lines_up = server.is_some_and(|server| server.line.has(conn));
        if client.waiting_for == WaitingFor::Turn && lines_up {
            return;
        }
        let due = |since: Now, span: Option<Duration>| span.is_some_and(|s| since.after(s) <= now);
        let cause = match P::phase(&client.session) {
            Phase::Console => None,
            // A client that logs in again has been connected for longer.
            Phase::Login => due(client.requested, general.client_login_timeout)
                .then_some(DisconnectReason::LoginTimeout),
            Phase::Entering | Phase::Checking | Phase::Ready => {
                let pool = core_state.peek_pool(client.pool).expect("a pool in use is open");
                overdue(client, server, pool, now)
            }
        };
        let link = client.link;
        if let Some(cause) = cause {
            if matches!(cause, DisconnectReason::QueryTimeout | DisconnectReason::ClientGone)
                && let Some(server) = link
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

    /// Looks at the clients that wait for a server of a pool, or to be let in.
    fn tick_waiting(&mut self, id: PoolId, general: &General) {
        let entering = |step: &Self, at: usize| {
            step.engine.core_state.peek_pool(id).and_then(|pool| pool.entering.get(at).copied())
        };
        let mut at = 0;
        while let Some(client) = entering(self, at) {
            self.tick_client(client, general);
            at += usize::from(entering(self, at) == Some(client));
        }
        self.tell_waiting(id);
        let first = |step: &Self| step.engine.core_state.peek_pool(id)?.waiters.first_client();
        // The first has waited longest. If it may wait on, so may the others.
        while let Some(client) = first(self) {
            self.tick_client(client, general);
            if first(self) == Some(client) {
                return;
            }
        }
    }

    /// Tells the clients that have waited for long for a server of a pool that they wait, each
    /// once.
    fn tell_waiting(&mut self, id: PoolId) {
        let Some(pool) = self.engine.core_state.peek_pool(id) else { return };
        let Some(patience) = pool.settings.options.query_wait_notify else { return };
        let Engine { connections, core_state, .. } = &mut *self.engine;
        let waiting = core_state.peek_pool(id).into_iter().flat_map(|it| it.waiters.all_clients());
        for conn in waiting {
            let Some(client) = connections.client(conn) else { continue };
            // Those behind have come later.
            if client.waiting.after(patience) > self.now {
                return;
            }
            if client.notified.replace(client.waiting) != Some(client.waiting) {
                P::tell_wait(&client.session, self.ports.out(conn));
            }
        }
    }

    fn tick_server(&mut self, conn: Conn) {
        let now = self.now;
        let Engine { core_state, connections, .. } = &*self.engine;
        let Connection::Server(server) = connections.get(conn) else { return };
        let pool = core_state.peek_pool(server.pool).expect("a pool in use is open");
        let is_draining = core_state.database_drain.concerns(pool, now);
        let options = &pool.settings.options;
        match server.state {
            ServerState::Connecting | ServerState::Login(_) => {
                if server.connected.after(options.server_connect_timeout) <= now {
                    P::connect_failed(self, conn, "server_connect_timeout");
                } else if server.place.is_some() && server.connected.after(LOOK) <= now {
                    self.supply().note_slow(conn);
                }
            }
            ServerState::Idle => {
                let renewed = server.reconnects != pool.shared.reconnects();
                let old = server.expires <= now || server.close_needed || renewed;
                let unused =
                    options.server_idle_timeout.is_some_and(|s| server.since.after(s) <= now);
                let spare =
                    || core_state.shared.counts.servers(server.pool) > options.min_pool_size;
                let leaves = is_draining && !pool.is_wanted();
                if old || unused && spare() || leaves {
                    self.close_server(conn);
                } else if P::ends_soon(
                    &server.session,
                    Duration::from_micros(now.since(server.since)),
                ) {
                    self.keep_idle(conn);
                }
            }
            ServerState::Resetting | ServerState::Held(_) if server.is_ownerless() => {
                if server.since.after(DRAIN_MAX) > now {
                    return;
                }
                if server.is_asked {
                    return self.server_gone(conn, "it gives no answer");
                }
                self.cancel_server(conn);
                self.close_server(conn);
            }
            ServerState::Held(_) | ServerState::Resetting | ServerState::Cancelling => {}
        }
    }

    /// Takes an idle server out of its pool until the protocol has made sure that it stays.
    #[cold]
    fn keep_idle(&mut self, conn: Conn) {
        let Some(server) = self.engine.connections.server(conn) else { return };
        server.state = ServerState::Resetting;
        server.since = self.now;
        self.engine.core_state.pool_in_use(server.pool).remove_idle(conn);
        P::keep(self, conn);
    }

    /// Tells the log of clients that wait because of a limit. If a pool connects no server though
    /// clients have waited for seconds and it may try, the limits forbid it.
    fn tick_crowd(&mut self, id: PoolId) {
        let (now, leaves) = (self.now, self.engine.core_state.leaves(id, self.now));
        let Engine { core_state, connections, .. } = &mut *self.engine;
        let Some(pool) = core_state.find_pool(id) else { return };
        let first = pool.waiters.first_client().and_then(|client| connections.client(client));
        if first.is_none() && !pool.crowd.needs_tick() {
            return;
        }
        let longest = first.map_or(0, |client| now.since(client.waiting));
        let serves = !leaves && !pool.choice.paused && !pool.removed;
        let is_trying = pool.connecting > 0 || pool.asked > 0;
        let is_at_limit = serves && !is_trying && pool.retry <= now;
        let seen = (pool.waiting(), Duration::from_micros(longest), is_at_limit);
        let options = &pool.settings.options;
        match pool.crowd.tick(&pool.shared.crowd, now, seen) {
            Some(CrowdNews::Begins(clients)) => {
                let size = options.pool_size;
                let told = format!("{clients} clients; pool_size is {size}");
                self.log().note_news(id, Level::Warn, News::PoolFull, told);
            }
            Some(CrowdNews::Over(span)) => {
                let told = format!("after {} s", span.as_secs());
                self.log().note_news(id, Level::Info, News::PoolFullOver, told);
            }
            None => {}
        }
    }

    fn tick_pool(&mut self, id: PoolId, general: &General) {
        let (now, core) = (self.now, self.engine.core_state.core);
        self.tick_crowd(id);
        let Some(pool) = self.engine.core_state.find_pool(id) else { return };
        if pool.is_unused() {
            pool.unused_since.get_or_insert(now);
            if pool.forgotten_at().is_some_and(|due| due <= now) {
                return self.engine.core_state.close_pool(id);
            } else if pool.settings.options.min_pool_size == 0 {
                return;
            }
        }
        pool.report_reads(core, now);
        self.tick_waiting(id, general);
        self.supply().shrink(id);
        self.supply().renew_marked(id);
        // The database's drain may be over.
        self.serve_jobs(id);
        P::tick_pool(self, id);
        // Another core may not have known the pool when it was asked, or may have a server now. So
        // `grow` asks again.
        self.engine.core_state.pool(id).ask_due = true;
        self.supply().grow(id);
        let shared = self.engine.core_state.shared.clone();
        let leaves = self.engine.core_state.leaves(id, self.now);
        let pool = self.engine.core_state.pool(id);
        if pool.wants_server && pool.wanted(leaves) == 0 {
            pool.wants_server = false;
            for other in self.engine.core_state.others() {
                let message = CoreMessage::GotServer { pool: id, core };
                self.ports.act(Action::Tell { core: other, message });
            }
        }
        // The first core keeps the pool's minimum for all cores.
        let pool = self.engine.core_state.pool(id);
        let min = pool.settings.options.min_pool_size;
        let may = !leaves && pool.may_try_login(self.now);
        if core == Core(0) && may && shared.counts.servers(id) < min {
            self.supply().try_connect(id, 0);
        }
    }
}

/// Returns the timeout that a client has exceeded, or another reason for which its session ends.
fn overdue<P: Protocol>(
    client: &Client<P>,
    server: Option<&Server<P>>,
    pool: &Pool<P>,
    now: Now,
) -> Option<DisconnectReason> {
    let options = &pool.settings.options;
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
        if due(client.requested, options.client_idle_timeout) {
            return Some(DisconnectReason::ClientIdleTimeout);
        }
        // A server that the client holds has its settings, and ends the session by itself.
        let own = P::idle_timeout(&client.session);
        let idle = client.waiting_for == WaitingFor::Nothing && due(client.requested, own);
        return idle.then_some(DisconnectReason::IdleSessionTimeout);
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
    } else if options.server_fast_close
        && P::idle(&server.session).is_some()
        && server.is_obsolete(pool.shared.reconnects())
    {
        Some(DisconnectReason::ServerObsolete)
    } else {
        None
    }
}
