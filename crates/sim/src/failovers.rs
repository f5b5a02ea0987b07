//! Failovers: the primary dies or stops, comes back as a standby, and a host is promoted after a
//! while.

use crate::backend::Stage;
use crate::world::{Happening, World};

/// The longest time until a host is promoted, in microseconds.
const PROMOTION_MAX: u64 = 600_000;

impl World {
    /// Ends the primary's sessions: it is a standby once it takes connections again. The other host
    /// is promoted after a while. Nothing happens while no host is the primary.
    pub(crate) fn fail_over(&mut self) {
        let Some(primary) = self.hosts.primary() else { return };
        self.trace.line(self.now, "fail over", &format!("host {primary}"), String::new);
        let until = self.now + self.rng.range(100, 500_000);
        self.hosts.demote();
        self.hosts.stop(primary, until);
        if self.rng.chance(200) {
            self.hosts.stop(1 - primary, until);
        }
        self.faults.servers += 1;
        let dies = self.rng.chance(500);
        for number in 0..self.backends.len() {
            if self.backends[number].host != primary {
                continue;
            }
            // A connection between two cores breaks for neither.
            let link = self.backends[number].link;
            let breaks = dies && self.links[link.0].leaving.is_none();
            match self.backends[number].stage {
                Stage::Over => {}
                _ if breaks => self.reset(link),
                _ => self.shut_down(number),
            }
        }
        // After a restart the same host may be the primary again.
        let next = if self.rng.chance(300) { primary } else { 1 - primary };
        let delay = self.rng.below(PROMOTION_MAX);
        self.later(delay, Happening::Promote(next));
    }

    /// Promotes a host.
    pub(crate) fn promote(&mut self, host: usize) {
        if self.hosts.promote(host) {
            self.promotions += 1;
            self.trace.line(self.now, "promote", &format!("host {host}"), String::new);
        }
    }
}
