//! A run to its end, and the checks there.
//!
//! - *After faults stop, all clients finish in time*: this rules out lost wake-ups, starvation, and
//!   connections that are never closed.
//! - *No leaks*: the engines count as many servers as there are, no more than a pool may have, and
//!   each of them is clean; and after a stop no server, client or connection is left.

use refrain_pool::event::Command;
use refrain_sim::net::Peer;

use crate::client::Client;
use crate::plan::{LOGIN_S, PATIENCE};
use crate::world::World;

/// The most events of a run. A run with more events makes no progress.
const EVENTS_MAX: u64 = 30_000_000;

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

    /// Reports that the clients did not finish, with a trace of all links, clients and servers.
    pub(crate) fn stuck(&mut self) {
        for (number, link) in self.links.iter().enumerate().filter(|(_, link)| link.conn.is_some())
        {
            self.trace.line(self.now, "link", number.to_string(), || {
                format!("{:?} up {} down {}", link.peer, link.up.summary(), link.down.summary())
            });
        }
        let now = self.clock();
        for worker in &self.workers {
            let view = worker.engine.snapshot(now);
            let core = format!("{:?}", view.core);
            for pool in &view.pools {
                let (paused, waiting) = (pool.paused, pool.waiting);
                self.trace.line(self.now, "pool", &core, || {
                    format!("{} paused {paused} waiting {waiting}", pool.user)
                });
            }
            for client in &view.clients {
                self.trace.line(self.now, "client", &core, || format!("{client:?}"));
            }
            for server in &view.servers {
                self.trace.line(self.now, "server", &core, || format!("{server:?}"));
            }
        }
        let waiting = self.clients.iter().filter(|client| !client.is_done());
        let states: Vec<String> = waiting.map(|client| client.status()).collect();
        let events = self.events;
        self.violate("liveness", || format!("after {events} events: {}", states.join("; ")));
    }

    /// Runs the world on, and checks servers and clients that are left.
    pub(crate) fn end(&mut self) {
        if !self.is_calm {
            self.run_for(self.plan.calm);
        }
        // A client that has ended its stream may wait for its replies as long as some servers are
        // silent at their logins.
        self.run_for(6 * LOGIN_S * 1_000_000);
        self.check_clients();
        // An engine may need a while to read and drop the replies to a client that has left.
        self.run_for(30_000_000);
        self.check_servers();
        self.check_clean();
        if !self.is_drained {
            self.order(&Command::Reconnect(None));
            self.run_for(2_000_000);
            self.check_servers();
        }
        self.order(&Command::Stop);
        self.run_for(5_000_000);
        self.check_nothing_left();
    }

    fn check_clients(&mut self) {
        let counts = self.workers.iter().map(|worker| worker.engine.client_count());
        let counts: Vec<usize> = counts.collect();
        if counts.iter().any(|count| *count > 0) {
            self.violate("leaks", || format!("clients are counted that have left: {counts:?}"));
        }
    }

    fn check_servers(&mut self) {
        let pools = self.shared.pools();
        let counts: Vec<u32> =
            pools.iter().map(|pool| self.shared.counts.servers(pool.id)).collect();
        let servers = self.links.iter().filter(|link| {
            link.conn.is_some() && matches!(link.peer, Peer::Backend(_)) && !link.up.dead
        });
        let (count, counted) = (servers.count(), counts.iter().sum::<u32>());
        if count != counted as usize {
            self.violate("leaks", || format!("{counted} servers are counted, {count} are there"));
        }
        if let Some(most) = counts.iter().max().filter(|most| **most > self.plan.servers_max) {
            self.violate("leaks", || format!("{most} servers in one pool"));
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

    fn check_nothing_left(&mut self) {
        for pool in self.shared.pools() {
            let counted = self.shared.counts.servers(pool.id);
            if counted > 0 {
                self.violate("leaks", || format!("{counted} servers are counted after a stop"));
            }
        }
        let open = self.links.iter().position(|link| link.conn.is_some() || !link.down.dead);
        if let Some(open) = open {
            let peer = self.links[open].peer;
            self.violate("leaks", || format!("link {open} to {peer:?} is open after a stop"));
        }
        let counted = self.shared.lobby.total();
        if counted > 0 {
            self.violate("leaks", || format!("{counted} clients are counted after a stop"));
        }
    }
}
