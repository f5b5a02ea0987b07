//! The hosts that have no room for one more server, over all cores and pools.
//!
//! A server that refuses a login for that reason has made a process for it first. So a pool that
//! has a server does not try again at such a host, except that one attempt by any pool may be made
//! after a while. A pool that has none gets the place of another pool's server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use refrain_config::Host;

use crate::time::Now;

/// The hosts that are full.
#[derive(Debug, Default)]
pub(crate) struct FullHosts {
    /// For each host when the next attempt may be made.
    hosts: Mutex<HashMap<String, Now>>,
    /// Number of hosts. Who wants to connect a server looks at it without the lock.
    count: AtomicUsize,
}

impl FullHosts {
    /// Notes that a host had no room. The next attempt may be made after `pause`.
    pub(crate) fn fill(&self, host: &Host, now: Now, pause: Duration) {
        let mut hosts = self.lock();
        hosts.insert(host.to_string(), now.after(pause));
        self.count.store(hosts.len(), Relaxed);
    }

    /// Whether a host is known to be full.
    pub(crate) fn has(&self, host: &Host) -> bool {
        self.count.load(Relaxed) > 0 && self.lock().contains_key(&host.to_string())
    }

    /// Whether no attempt may be made at a host now. If one may, the next one may after `pause`.
    pub(crate) fn refuses(&self, host: &Host, now: Now, pause: Duration) -> bool {
        if self.count.load(Relaxed) == 0 {
            return false;
        }
        let mut hosts = self.lock();
        let Some(due) = hosts.get_mut(&host.to_string()) else { return false };
        let is_early = now < *due;
        if !is_early {
            *due = now.after(pause);
        }
        is_early
    }

    /// Notes that a host has had room for one more server.
    pub(crate) fn had_room(&self, host: &Host) {
        if self.count.load(Relaxed) > 0 {
            let mut hosts = self.lock();
            hosts.remove(&host.to_string());
            self.count.store(hosts.len(), Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Now>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
