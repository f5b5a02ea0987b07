//! Defaults: the settings with which sessions begin, which ALTER ROLE and ALTER DATABASE change.
//!
//! A session takes its defaults when it begins. A standby may begin one before it has replayed a
//! change, and has the old defaults for as long as the connection lasts. PostgreSQL reports few
//! settings, so Refrain cannot see that. So reads run on connections alone that were opened when
//! their standby was known to have replayed the last change. It is known to have done so once a
//! read was proven there, be it on a connection that is too old itself.
//!
//! Behind one name there may be several standbys, so a standby is known by the time when it was
//! started, to the microsecond. One that is started anew is another one: it may have to replay
//! again what it had replayed. A standby that survives the crash of one of its processes replays
//! again as well, and that is not found out.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most standbys of which it is known what they have replayed. Connections to others are opened
/// twice.
const STANDBYS_MAX: usize = 64;

/// The changes of defaults in one database, and the standbys that have replayed them.
#[derive(Debug, Default)]
pub(crate) struct StandbyDefaults {
    /// The count of schema changes behind the last change of defaults; zero if there was none.
    changed: AtomicU64,
    /// Counts beginnings of sessions and findings about standbys.
    moments: AtomicU64,
    replayed: Mutex<Vec<ReplayedDefaults>>,
}

/// A standby that has replayed a change of defaults.
#[derive(Clone, Copy, Debug)]
struct ReplayedDefaults {
    /// When the standby was started, in microseconds.
    started: u64,
    /// The count of schema changes behind the change.
    change: u64,
    /// The moment at which that was found out.
    found: u64,
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

    /// Returns the moment at which a session is about to begin.
    pub(crate) fn begin(&self) -> u64 {
        self.moments.fetch_add(1, SeqCst) + 1
    }

    /// Notes that a standby, which was `started` then, has replayed so many schema changes. Returns
    /// the count of schema changes up to which a session that has `begun` there has all defaults,
    /// if that is certain.
    pub(crate) fn replays(&self, started: u64, schema_changes: u64, begun: u64) -> Option<u64> {
        let change = self.changed();
        if change == 0 {
            return Some(0);
        } else if schema_changes < change {
            return None;
        }
        let mut all = self.all();
        let place = all.iter().position(|known| known.started == started);
        if let Some(known) = place.map(|place| all[place]).filter(|known| known.change >= change) {
            return (known.found < begun).then_some(known.change);
        }
        if let Some(place) = place.or((all.len() >= STANDBYS_MAX).then_some(0)) {
            all.remove(place);
        }
        all.push(ReplayedDefaults { started, change, found: self.begin() });
        None
    }

    fn all(&self) -> MutexGuard<'_, Vec<ReplayedDefaults>> {
        self.replayed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_the_defaults_that_its_standby_was_known_to_have_replayed() {
        let defaults = StandbyDefaults::default();
        let first = defaults.begin();
        assert_eq!(defaults.replays(1, 7, first), Some(0), "nothing has changed");
        defaults.change(9);
        assert_eq!(defaults.replays(1, 8, first), None, "it has not replayed the change");
        let second = defaults.begin();
        assert_eq!(defaults.replays(1, 9, second), None, "it may have done so since");
        let third = defaults.begin();
        assert_eq!(defaults.replays(1, 9, first), None);
        assert_eq!(defaults.replays(1, 10, third), Some(9));
        assert_eq!(defaults.replays(2, 10, third), None, "another standby");
        defaults.change(12);
        assert_eq!(defaults.replays(1, 12, third), None);
        assert_eq!(defaults.replays(1, 12, defaults.begin()), Some(12));
    }

    #[test]
    fn so_many_standbys_are_known() {
        let defaults = StandbyDefaults::default();
        defaults.change(9);
        for started in 0..=STANDBYS_MAX as u64 {
            assert_eq!(defaults.replays(started, 9, 0), None);
        }
        assert_eq!(defaults.all().len(), STANDBYS_MAX);
        let begun = defaults.begin();
        assert_eq!(defaults.replays(STANDBYS_MAX as u64, 9, begun), Some(9));
        assert_eq!(defaults.replays(0, 9, begun), None);
    }
}
