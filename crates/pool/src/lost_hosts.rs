//! The hosts whose servers cannot be connected to, over all cores and pools.
//!
//! Every pool tries again and again, on every core. The log tells the loss of a host once, and once
//! that it was found again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use refrain_config::Host;

use crate::time::Now;

/// The hosts that are lost.
#[derive(Debug, Default)]
pub(crate) struct LostHosts {
    /// For each host when the first attempt failed.
    hosts: Mutex<HashMap<String, Now>>,
    /// Number of hosts. Logins to servers look at it without the lock.
    count: AtomicUsize,
}

impl LostHosts {
    /// Notes that a host could not be connected to. Returns whether that is new.
    pub(crate) fn lose(&self, host: &Host, now: Now) -> bool {
        let mut hosts = self.lock();
        let before = hosts.len();
        hosts.entry(host.to_string()).or_insert(now);
        self.count.store(hosts.len(), Relaxed);
        hosts.len() > before
    }

    /// Whether no host is lost.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// Whether a host is lost.
    pub(crate) fn has(&self, host: &Host) -> bool {
        !self.is_empty() && self.lock().contains_key(&host.to_string())
    }

    /// Notes that a server of a host has answered. Returns how long the host was lost, if it was.
    pub(crate) fn find(&self, host: &Host, now: Now) -> Option<Duration> {
        let mut hosts = self.lock();
        let since = hosts.remove(&host.to_string());
        self.count.store(hosts.len(), Relaxed);
        Some(Duration::from_micros(now.since(since?)))
    }

    /// Forgets the hosts that are not configured any more.
    pub(crate) fn keep<'a>(&self, configured: impl Iterator<Item = &'a Host>) {
        if self.count.load(Relaxed) == 0 {
            return;
        }
        let configured: Vec<_> = configured.map(Host::to_string).collect();
        let mut hosts = self.lock();
        hosts.retain(|host, _| configured.contains(host));
        self.count.store(hosts.len(), Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Now>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(port: u16) -> Host {
        Host::Unix { dir: "/tmp".into(), port }
    }

    #[test]
    fn a_host_is_lost_once_and_found_once() {
        let lost = LostHosts::default();
        assert_eq!(lost.find(&host(1), Now(5)), None);
        assert!(lost.lose(&host(1), Now(10)));
        assert!(!lost.lose(&host(1), Now(20)));
        assert!(lost.lose(&host(2), Now(20)));
        assert_eq!(lost.find(&host(1), Now(40)), Some(Duration::from_micros(30)));
        assert_eq!(lost.find(&host(1), Now(50)), None);
        assert!(lost.lose(&host(1), Now(60)));
    }

    #[test]
    fn hosts_that_are_gone_from_the_configuration_are_forgotten() {
        let lost = LostHosts::default();
        assert!(lost.lose(&host(1), Now(10)) && lost.lose(&host(2), Now(10)));
        lost.keep([host(2)].iter());
        assert_eq!(lost.find(&host(1), Now(20)), None);
        assert!(lost.find(&host(2), Now(20)).is_some());
    }
}
