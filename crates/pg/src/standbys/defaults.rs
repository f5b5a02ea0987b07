//! Defaults: the settings with which sessions begin, which ALTER ROLE and ALTER DATABASE change.
//!
//! A session takes its defaults when it begins. A standby may begin one before it has replayed a
//! change, and has the old defaults for as long as the connection lasts. PostgreSQL reports few
//! settings, so Refrain cannot see that. So reads run on connections alone that were opened when
//! their host was known to have replayed the last change. The host is known to have done so once a
//! read was proven there, be it on a connection that is too old itself.
//!
//! Behind one name there may be several standbys. A connection that was too late when it was first
//! asked counts as one that began before all changes. A standby is not found out that replays the
//! change between the beginning of a session and the first question.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most hosts of which it is known what they have replayed. Connections to others are opened twice.
const HOSTS_MAX: usize = 64;

/// The changes of defaults in one database, and the hosts that have replayed them.
#[derive(Debug, Default)]
pub(crate) struct StandbyDefaults {
    /// The count of schema changes behind the last change of defaults; zero if there was none.
    changed: AtomicU64,
    /// The hosts, and the count of schema changes up to which each has replayed all.
    replayed: Mutex<Vec<(String, u64)>>,
}

impl StandbyDefaults {
    /// Notes that the last of so many schema changes was one of defaults.
    pub(crate) fn change(&self, schema_changes: u64) {
        self.changed.fetch_max(schema_changes, SeqCst);
    }

    /// Returns the count of schema changes behind the last change of defaults.
    #[inline]
    pub(crate) fn changed(&self) -> u64 {
        self.changed.load(SeqCst)
    }

    /// Returns the count of schema changes that a host has replayed for certain.
    pub(crate) fn replayed(&self, host: &impl ToString) -> u64 {
        if self.changed() == 0 {
            return 0;
        }
        let (name, hosts) = (host.to_string(), self.hosts());
        hosts.iter().find(|(host, _)| *host == name).map_or(0, |(_, count)| *count)
    }

    /// Notes that a host has replayed so many schema changes.
    pub(crate) fn replays(&self, host: &impl ToString, schema_changes: u64) {
        if self.changed() == 0 {
            return;
        }
        let (name, mut hosts) = (host.to_string(), self.hosts());
        if let Some((_, count)) = hosts.iter_mut().find(|(host, _)| *host == name) {
            *count = schema_changes.max(*count);
            return;
        }
        if hosts.len() >= HOSTS_MAX {
            hosts.remove(0);
        }
        hosts.push((name, schema_changes));
    }

    fn hosts(&self) -> MutexGuard<'_, Vec<(String, u64)>> {
        self.replayed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_known_by_what_they_have_replayed() {
        let defaults = StandbyDefaults::default();
        defaults.replays(&"a", 7);
        assert_eq!((defaults.changed(), defaults.replayed(&"a")), (0, 0));
        defaults.change(9);
        assert_eq!(defaults.replayed(&"a"), 0);
        defaults.replays(&"a", 9);
        defaults.replays(&"a", 8);
        assert_eq!((defaults.replayed(&"a"), defaults.replayed(&"b")), (9, 0));
        (0..HOSTS_MAX).for_each(|host| defaults.replays(&host, 9));
        assert_eq!(defaults.hosts().len(), HOSTS_MAX);
        assert_eq!(defaults.replayed(&"a"), 0);
    }
}
