//! The time of the next checkpoint: a second after the last write.
//!
//! SQLite copies its WAL into the file at a commit, once the WAL has a thousand pages. Pages
//! written after that would stay in the WAL until the next write: every read looks in the WAL
//! first, and a copy of the file alone would lack them. So a thread also copies the WAL when no
//! write came for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time without a write after which the WAL is copied.
const QUIET_TIME: Duration = Duration::from_secs(1);

/// The time of a pool's next checkpoint.
#[derive(Default)]
pub(crate) struct CheckpointTimer(Mutex<TimerState>);

#[derive(Default)]
struct TimerState {
    /// When the last write ended.
    last: Option<Instant>,
    /// True if a call of [`CheckpointTimer::look`] is scheduled.
    scheduled: bool,
}

impl CheckpointTimer {
    fn state(&self) -> MutexGuard<'_, TimerState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the end of a write. Returns when to call [`CheckpointTimer::look`], unless a call is
    /// scheduled already.
    pub(crate) fn wrote(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        state.last = Some(now);
        let scheduled = std::mem::replace(&mut state.scheduled, true);
        (!scheduled).then(|| now + QUIET_TIME)
    }

    /// Returns when to look again, if there was a write meanwhile; none if it is time for the
    /// checkpoint.
    pub(crate) fn look(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        let again = state.last.map(|last| last + QUIET_TIME).filter(|again| *again > now);
        state.scheduled = again.is_some();
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_begins_with_the_last_write() {
        let (timer, begin) = (CheckpointTimer::default(), Instant::now());
        let after = |parts: u32| begin + QUIET_TIME / 10 * parts;
        assert_eq!(timer.wrote(after(0)), Some(after(10)));
        assert_eq!(timer.wrote(after(5)), None);
        assert_eq!(timer.look(after(10)), Some(after(15)));
        assert_eq!(timer.look(after(15)), None);
        assert_eq!(timer.wrote(after(16)), Some(after(26)));
    }
}
