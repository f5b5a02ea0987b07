//! Whether the disk is quick enough for a commit to be waited for where clients are served.
//!
//! Most commits take a fraction of a millisecond. After one that took long, none is waited for there for a while, and for
//! twice as long if the next takes long as well.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A commit that takes longer is not short.
const LONG: Duration = Duration::from_millis(10);
/// How long nobody waits after one.
const REST: Duration = Duration::from_millis(100);
/// The same after many in succession.
const REST_MAX: Duration = Duration::from_secs(10);
/// Of so many commits one is not waited for: it copies the WAL into the file, if that has grown long.
const ROUND: u32 = 500;

/// What is known of the disk with a database file.
#[derive(Default)]
pub(crate) struct Disk(Mutex<DiskState>);

#[derive(Default)]
struct DiskState {
    /// When the last long commit is forgotten, and how long that takes; none if the last was short.
    slow: Option<(Instant, Duration)>,
    count: u32,
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the next commit may be waited for.
    pub(crate) fn is_quick(&self, now: Instant) -> bool {
        let mut state = self.state();
        state.count = (state.count + 1) % ROUND;
        state.count != 0 && state.slow.is_none_or(|(until, _)| until <= now)
    }

    /// A commit was waited for.
    pub(crate) fn took(&self, since: Instant, now: Instant) {
        let mut state = self.state();
        let is_long = now.saturating_duration_since(since) > LONG;
        let before = state.slow.filter(|_| is_long);
        let rest = before.map_or(REST, |(_, rest)| REST_MAX.min(rest * 2));
        state.slow = is_long.then(|| (now + rest, rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_long_commits_nobody_waits_for_a_while() {
        let (disk, begin) = (Disk::default(), Instant::now());
        assert!(disk.is_quick(begin));
        disk.took(begin, begin + LONG);
        assert!(disk.is_quick(begin + LONG));
        let mut now = begin;
        for rest in [REST, REST * 2, REST * 4] {
            disk.took(now, now + LONG * 2);
            now += LONG * 2;
            assert!(!disk.is_quick(now) && !disk.is_quick(now + rest / 2));
            now += rest;
            assert!(disk.is_quick(now));
        }
        disk.took(now, now);
        disk.took(now, now + LONG * 2);
        assert!(disk.is_quick(now + LONG * 2 + REST), "one short commit, and all is as before");
    }

    #[test]
    fn now_and_then_one_is_not_waited_for() {
        let (disk, now) = (Disk::default(), Instant::now());
        let quick = (0..ROUND * 3).filter(|_| disk.is_quick(now)).count();
        assert_eq!(quick, (ROUND as usize - 1) * 3);
    }
}
