//! Decides whether the disk is quick enough to wait for a commit on the loop.
//!
//! Most commits take a fraction of a millisecond. After a commit that took longer than [`LONG`],
//! the loop waits for none for [`REST`], and for twice as long if the next one takes long as well,
//! up to [`REST_MAX`].

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A commit that takes longer than this is a long one.
const LONG: Duration = Duration::from_millis(10);
/// Time after a long commit in which the loop waits for no commit.
const REST: Duration = Duration::from_millis(100);
/// The longest such time, after many long commits in succession.
const REST_MAX: Duration = Duration::from_secs(10);
/// One in so many commits goes to a thread: it copies the WAL into the file, if that has grown
/// long.
const ROUND: u32 = 500;

/// The recent commit times of the disk with a database file.
#[derive(Default)]
pub(crate) struct Disk(Mutex<DiskState>);

#[derive(Default)]
struct DiskState {
    /// When the loop may wait again, and how long the pause is; none if the last commit was short.
    slow: Option<(Instant, Duration)>,
    count: u32,
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the loop may wait for the next commit.
    pub(crate) fn is_quick(&self, now: Instant) -> bool {
        let mut state = self.state();
        state.count = (state.count + 1) % ROUND;
        state.count != 0 && state.slow.is_none_or(|(until, _)| until <= now)
    }

    /// Notes how long the loop has waited for a commit.
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
