//! What time alone brings: timeouts, ages, purges.
//!
//! Nothing is armed on the hot path. A tenth of a second apart, and only while there is anything that could be
//! due, the tables are looked through: timeouts are that exact.

use std::time::Duration;

use crate::client::{Blocked, Client, Phase};
use crate::engine::{Engine, Step};
use crate::event::Action;
use crate::fault::Cause;
use crate::ids::{Conn, Core, PoolId};
use crate::ledger::Copying;
use crate::pool::Pool;
use crate::ports::Ports;
use crate::roles::Role;
use crate::server::{Custody, Server};
use crate::shared::{Admission, Message};
use crate::time::Now;
use refrain_config::PoolOptions;
use refrain_wire::back::Status;

/// Time between two looks.
const TICK: Duration = Duration::from_millis(100);
/// Time a server may take to finish for a client that has left, or has ended its stream and seems to have.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// Time between two sweeps of the statements a core knows.
const SWEEP_US: u64 = 10_000_000;

impl Engine {
    /// When [`crate::Event::Tick`] is to be stepped at the latest; `None` while there is nothing to look at.
    pub fn next_tick(&self, ports: &Ports) -> Option<Now> {
        // A pool whose last client has left hungry still has to tell the other cores that it wants no server.
        let has_work = |p: &Pool| p.servers > 0 || p.hungry || p.settings.options.min_pool_size > 0;
        let next = self.ticked.after(TICK);
        if self.clients > 0 || ports.are_closing() || self.hub.pools().any(has_work) {
            return Some(next);
        }
        // A pool that nobody has is looked at once more, when it is to be forgotten.
        let due = self.hub.pools().filter_map(Pool::forgotten_at).min();
        due.map(|due| due.max(next))
    }
}

impl Step<'_> {
    /// Looks for what is due.
    pub(crate) fn tick(&mut self) {
        let swept = self.now.0 / SWEEP_US != self.engine.ticked.0 / SWEEP_US;
        self.engine.ticked = self.now;
        self.ports.tick(self.now);
        for conn in self.engine.roles.conns() {
            match self.engine.roles.get(conn) {
                Role::Client(_) => self.tick_client(conn),
                Role::Server(_) => self.tick_server(conn),
                Role::Cancel(run) => {
                    let timeout = self.engine.hub.shared.options().general.cancel_timeout;
                    if timeout.is_some_and(|timeout| run.since.after(timeout) <= self.now) {
                        self.cancel_late(conn);
                    }
                }
                Role::Free => {}
            }
        }
        let pools: Vec<PoolId> = self.engine.hub.pools().map(|pool| pool.shared.id).collect();
        for pool in pools {
            self.tick_pool(pool);
        }
        if swept {
            self.engine.hub.sweep();
        }
        let shared = &self.engine.hub.shared;
        if shared.registry.due(self.now, shared.options().general.max_statement_bytes / 2) {
            shared.registry.purge(self.now);
        }
    }

    fn tick_client(&mut self, conn: Conn) {
        let now = self.now;
        let Some(client) = self.engine.roles.client(conn) else { return };
        let due = |since: Now, span: Option<Duration>| span.is_some_and(|s| since.after(s) <= now);
        let general = &self.engine.hub.shared.options().general;
        let cause = match client.phase {
            Phase::Console(..) => None,
            Phase::Opening | Phase::Proving(..) => {
                due(client.connected, general.client_login_timeout).then_some(Cause::LoginTimeout)
            }
            Phase::Entering(..) | Phase::Checking(..) | Phase::Ready(_) => {
                let options = &self.engine.hub.pool(client.pool).settings.options;
                let link = client.link;
                let (client, server) = match link {
                    Some(server) => {
                        let (client, server) = self.engine.roles.pair(conn, server);
                        (&*client, Some(&*server))
                    }
                    None => (&*client, None),
                };
                overdue(client, server, options, now)
            }
        };
        if let Some(cause) = cause {
            if matches!(cause, Cause::QueryTimeout | Cause::ClientGone)
                && let Some(server) = self.engine.roles.client(conn).and_then(|c| c.link)
            {
                self.cancel_server(server);
            }
            if cause == Cause::LoginTimeout {
                self.engine.hub.shared.lobby.note_timeout();
                return self.end_login(conn, cause);
            }
            self.end_client(conn, cause);
        } else if self.engine.hub.draining {
            self.drain_client(conn);
        }
    }

    /// While draining, a client leaves when it has nothing under way: nothing that it was not answered in full, and
    /// no request of which the beginning has come.
    fn drain_client(&mut self, conn: Conn) {
        let Some(client) = self.engine.roles.client(conn) else { return };
        let ready = matches!(client.phase, Phase::Ready(_));
        let speaks = ready && (client.inbox.held() > 0 || client.inbox.rest > 0);
        let (link, waits) = (client.link, client.blocked != Blocked::No);
        let is_quiet = |server: &Server| ready && server.ledger.quiescent().is_some();
        let busy = match link {
            Some(server) => !self.engine.roles.server(server).is_some_and(|s| is_quiet(s)),
            None => waits,
        };
        if !busy && !speaks {
            self.end_client(conn, Cause::Shutdown);
        }
    }

    fn tick_server(&mut self, conn: Conn) {
        let now = self.now;
        let shared = self.engine.hub.shared.clone();
        let Some(server) = self.engine.roles.server(conn) else { return };
        let vacates = self.engine.hub.vacates(server.pool, now);
        let pool = self.engine.hub.pool(server.pool);
        let options = &pool.settings.options;
        match server.custody {
            Custody::Connecting | Custody::Login(_) => {
                if server.connected.after(options.server_connect_timeout) <= now {
                    self.connect_failed(conn, "server_connect_timeout");
                }
            }
            Custody::Idle => {
                let renewed = server.era != pool.shared.era();
                let old = server.expires <= now || server.close_needed || renewed;
                let unused =
                    options.server_idle_timeout.is_some_and(|s| server.since.after(s) <= now);
                let spare = || shared.servers(server.pool) > options.min_pool_size;
                let leaves = vacates && !pool.is_wanted();
                if old || unused && spare() || leaves {
                    self.close_server(conn);
                }
            }
            Custody::Resetting | Custody::Job(_) if server.is_ownerless() => {
                if server.since.after(DRAIN_MAX) <= now {
                    self.cancel_server(conn);
                    self.close_server(conn);
                }
            }
            Custody::Lent(_) | Custody::Job(_) | Custody::Resetting | Custody::Cancelling => {}
        }
    }

    /// Closes idle servers of a pool that has more than it may have, the one first that was used longest ago.
    fn shrink(&mut self, id: PoolId) {
        let shared = self.engine.hub.shared.clone();
        let pool = self.engine.hub.pool(id);
        for _ in 0..shared.surplus(&pool.shared) {
            let Some(server) = self.engine.hub.pool(id).take_coldest(|_| true) else { return };
            self.close_server(server);
        }
    }

    fn tick_pool(&mut self, id: PoolId) {
        let now = self.now;
        let pool = self.engine.hub.pool(id);
        if pool.forgotten_at().is_some_and(|due| due <= now) {
            return self.engine.hub.close_pool(id);
        } else if !pool.is_unused() {
            pool.used = now;
        } else if pool.settings.options.min_pool_size == 0 {
            return;
        }
        self.shrink(id);
        let pool = self.engine.hub.pool(id);
        // In case that the answer has been lost.
        pool.wake();
        let woken = pool.take_woken();
        self.look_again(woken);
        // A core that did not know the pool yet, or has had a server since, is asked again.
        self.engine.hub.pool(id).ask_due = true;
        self.grow(id);
        let (shared, core) = (self.engine.hub.shared.clone(), self.engine.hub.core);
        let pool = self.engine.hub.pool(id);
        if pool.hungry && pool.waiting() == 0 && pool.entering.is_empty() {
            pool.hungry = false;
            for other in self.engine.hub.others() {
                let message = Message::Sated { pool: id, core };
                self.ports.act(Action::Tell { core: other, message });
            }
        }
        // One core keeps the minimum: the first.
        let pool = self.engine.hub.pool(id);
        let min = pool.settings.options.min_pool_size;
        let leaves = self.engine.hub.draining || self.engine.hub.vacates(id, self.now);
        let pool = self.engine.hub.pool(id);
        let serves = !pool.paused && !pool.removed;
        let calm = pool.connecting == 0 && serves && self.now >= pool.retry;
        if core == Core(0) && calm && !leaves && shared.servers(id) < min {
            let pool = self.engine.hub.pool(id).shared.clone();
            if shared.admit_server(&pool, core, false) == Admission::Granted {
                self.connect(id);
            }
        }
    }
}

/// Which of its times a client has overstepped.
fn overdue(
    client: &Client,
    server: Option<&Server>,
    options: &PoolOptions,
    now: Now,
) -> Option<Cause> {
    let due = |since: Now, span: Option<Duration>| span.is_some_and(|s| since.after(s) <= now);
    if due(client.ended.unwrap_or(now), client.ended.map(|_| DRAIN_MAX)) {
        return Some(Cause::ClientGone);
    }
    let waits = client.blocked == Blocked::Waiting || matches!(client.phase, Phase::Entering(..));
    if waits {
        let since = client.waiting.max(client.connected);
        return due(since, options.query_wait_timeout).then_some(Cause::QueryWaitTimeout);
    }
    let Some(server) = server else {
        let idle = due(client.requested, options.client_idle_timeout);
        return idle.then_some(Cause::ClientIdleTimeout);
    };
    let ledger = &server.ledger;
    let quiet = ledger.is_empty() && ledger.copying() == Copying::No;
    let in_transaction = ledger.status() != Status::Idle || ledger.is_open();
    if !quiet && due(server.asked, options.query_timeout) {
        Some(Cause::QueryTimeout)
    } else if in_transaction && due(server.since, options.transaction_timeout) {
        Some(Cause::TransactionTimeout)
    } else if quiet && in_transaction && due(server.asked, options.idle_transaction_timeout) {
        Some(Cause::IdleTransactionTimeout)
    } else if quiet && !in_transaction && due(client.requested, options.client_idle_timeout) {
        Some(Cause::ClientIdleTimeout)
    } else {
        None
    }
}
