//! A run to its end, and the checks there.
//!
//! - *After faults stop, all clients finish in time*: this rules out lost wake-ups, starvation, and
//!   connections that are never closed.
//! - *No leaks*: the engines count as many servers as there are, no more than the pool may have,
//!   and each of them is clean; no statement has a client; and after a stop no server, client or
//!   connection is left.

use refrain_pool::event::Command;

use crate::backend::Stage;
use crate::client::Client;
use crate::net::Peer;
use crate::plan::PATIENCE;
use crate::world::{Sharing, World};

/// The most events of a run. A run with more events makes no progress.
const EVENTS_MAX: u64 = 3_000_000;

impl World {
    /// Runs the world to its end. Returns the violation, if there is one.
    pub fn run(&mut self) -> Option<String> {
        let deadline = self.now + self.plan.calm + PATIENCE;
        while self.violation.is_none() && !self.clients.iter().all(Client::is_done) {
            if !self.advance() || self.now > deadline || self.events > EVENTS_MAX {
                self.stuck();
            }
        }
        self.end();
        self.violation.take()
    }

    /// Reports that the clients did not finish, with a trace of all links, pools, clients and
    /// servers.
    pub(crate) fn stuck(&mut self) {
        for (number, link) in self.links.iter().enumerate().filter(|(_, link)| link.conn.is_some())
        {
            self.trace.line(self.now, "link", number.to_string(), || {
                format!("{:?} up {} down {}", link.peer, link.up.summary(), link.down.summary())
            });
        }
        let waiting = self.clients.iter().filter(|client| !client.is_done());
        let states: Vec<String> = waiting.map(|client| client.status()).collect();
        let events = self.events;
        let now = self.clock();
        for worker in &self.workers {
            let view = worker.engine.snapshot(now);
            for pool in &view.pools {
                let (paused, waiting) = (pool.paused, pool.waiting);
                self.trace.line(self.now, "pool", format_args!("{:?}", view.core), || {
                    format!("{} paused {paused} waiting {waiting}", pool.user)
                });
            }
            for client in &view.clients {
                self.trace.line(self.now, "client", format_args!("{:?}", view.core), || {
                    format!("{client:?}")
                });
            }
            for server in &view.servers {
                self.trace.line(self.now, "server", format_args!("{:?}", view.core), || {
                    format!("{server:?}")
                });
            }
        }
        self.violate("liveness", || format!("after {events} events: {}", states.join("; ")));
    }

    /// Runs the world on, and checks servers, clients and statements that are left.
    pub(crate) fn end(&mut self) {
        if !self.is_calm {
            self.run_for(self.plan.calm);
        }
        // A read that sleeps takes up to two seconds, and its client may have left.
        self.run_for(3_000_000);
        self.count_sharing();
        self.check_clients();
        self.check_servers();
        // The engine may need a while to read and drop the replies to a client that has left.
        self.run_for(30_000_000);
        self.check_servers();
        self.check_clean();
        self.check_asking();
        if !self.faults.drained {
            self.order(&Command::Reconnect(None));
            self.run_for(2_000_000);
            self.check_servers();
        }
        self.order(&Command::Stop);
        self.run_for(5_000_000);
        self.check_nothing_left();
    }

    /// Adds up how often clients shared a server.
    fn count_sharing(&mut self) {
        let now = self.clock();
        for worker in &self.workers {
            let view = worker.engine.snapshot(now);
            let pools = view.pools.iter().map(|pool| &pool.counters).chain([&view.forgotten]);
            for counters in pools {
                self.sharing.add(Sharing {
                    shared: counters.pool.requests_shared,
                    resent: counters.pool.requests_resent,
                    moved: counters.pool.requests_moved,
                    hits: counters.protocol.cache_hits,
                    overtaken: counters.protocol.cache_fills_outdated,
                    away: counters.protocol.standby_reads,
                    returned: counters.protocol.standby_reads_returned,
                });
            }
        }
    }

    /// Returns the number of servers that the engines count for a user of a database, those at
    /// standbys included.
    fn servers_of(&self, database: &str, user: &str) -> u32 {
        let pools = self.shared.pools();
        let own = pools.iter().filter(|pool| (&*pool.database, &*pool.user) == (database, user));
        own.map(|pool| self.shared.counts.servers(pool.id)).sum()
    }

    fn check_clients(&mut self) {
        let counts: Vec<usize> =
            self.workers.iter().map(|worker| worker.engine.client_count()).collect();
        if counts.iter().any(|count| *count > 0) {
            let counted = self.shared.lobby.total();
            self.violate("leaks", || {
                format!("clients are counted that have left: {counts:?}, {counted}")
            });
        }
        let statements = refrain_pg::statements(&self.shared);
        if let Some(one) = statements.iter().find(|statement| statement.clients > 0) {
            self.violate("leaks", || {
                format!("clients are counted for {:?}: {}", one.text, one.clients)
            });
        }
    }

    fn check_servers(&mut self) {
        for (database, user) in self.plan.pools() {
            let counted = self.servers_of(&database, &user);
            let open = (0..self.backends.len()).filter(|number| {
                let backend = &self.backends[*number];
                backend.is_of(&database, &user) && self.links[backend.link.0].conn.is_some()
            });
            // The engine may not know yet that a server has fallen silent.
            let open = open.filter(|number| {
                let backend = &self.backends[*number];
                backend.stage != Stage::Over || self.links[backend.link.0].is_silent
            });
            // The engine may not have heard yet that a server has refused the login.
            let (refused, live): (Vec<_>, Vec<_>) =
                open.partition(|number| self.backends[*number].stage == Stage::Refused);
            // A server that has just been closed is not counted any more, while its Terminate is on
            // the way.
            let lent = |number: &&usize| self.links[self.backends[**number].link.0].lent;
            let at_least = live.len() - live.iter().filter(lent).count();
            let fits = (at_least..=live.len() + refused.len()).contains(&(counted as usize));
            let connecting = self.links.iter().any(|link| match link.peer {
                Peer::Backend(number) if link.conn.is_some() => {
                    number.is_none_or(|number| self.backends[number].is_new())
                }
                _ => false,
            });
            if !fits && !connecting {
                let live = live.len();
                self.violate("leaks", || {
                    format!("{counted} servers are counted, {live} are there")
                });
            }
            if counted > self.plan.servers_max {
                self.violate("leaks", || format!("{counted} servers in one pool"));
            }
        }
    }

    fn check_clean(&mut self) {
        for number in 0..self.backends.len() {
            let backend = &self.backends[number];
            let left = backend.session.leftovers();
            let open = self.links[backend.link.0].conn.is_some() && backend.is_serving();
            if open && !left.is_empty() {
                self.violate("lending", || format!("idle server {number} has {left}"));
            }
        }
    }

    /// Checks that no core believes that another one still waits for servers. A core keeps a pool
    /// as long as another core asks for its servers.
    fn check_asking(&mut self) {
        let now = self.clock();
        for core in 0..self.workers.len() {
            let pools = self.workers[core].engine.snapshot(now).pools;
            if let Some(pool) = pools.iter().find(|pool| pool.asking > 0) {
                let (user, asking) = (&pool.user, pool.asking);
                self.violate("leaks", || {
                    format!("core {core} believes that {asking} cores wait for {user}'s servers")
                });
            }
        }
    }

    fn check_nothing_left(&mut self) {
        for (database, user) in self.plan.pools() {
            let counted = self.servers_of(&database, &user);
            if counted > 0 {
                self.violate("leaks", || format!("{counted} servers are counted after a stop"));
            }
        }
        let open = self.links.iter().position(|link| link.conn.is_some() || !link.down.dead);
        if let Some(open) = open {
            let peer = self.links[open].peer;
            self.violate("leaks", || format!("link {open} to {peer:?} is open after a stop"));
        }
        let statements = refrain_pg::statements(&self.shared);
        if let Some(one) = statements.iter().find(|s| s.clients > 0 || s.servers > 0) {
            let counts = (one.clients, one.servers);
            self.violate("leaks", || format!("{counts:?} are counted for {:?}", one.text));
        }
        let counted = self.shared.lobby.total();
        if counted > 0 {
            self.violate("leaks", || format!("{counted} clients are counted after a stop"));
        }
    }
}
