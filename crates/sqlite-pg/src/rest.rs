//! When nobody writes any more.
//!
//! SQLite copies its WAL into the file at a commit, once the WAL has a thousand pages. What was written after that would
//! stay there until somebody writes again: every read looks there first, and whoever copies the file alone copies
//! less than there is. So it is copied as well when no write came for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long nobody must have written.
const REST: Duration = Duration::from_secs(1);

/// Whether a pool's sessions write.
#[derive(Default)]
pub(crate) struct Rest(Mutex<State>);

#[derive(Default)]
struct State {
    /// When the last write ended.
    last: Option<Instant>,
    /// Whether somebody looks later.
    watched: bool,
}

impl Rest {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write has ended. When to look, unless somebody does anyway.
    pub(crate) fn wrote(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        state.last = Some(now);
        let watched = std::mem::replace(&mut state.watched, true);
        (!watched).then(|| now + REST)
    }

    /// Looks. When to look again, if there was a write meanwhile.
    pub(crate) fn look(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state();
        let again = state.last.map(|last| last + REST).filter(|again| *again > now);
        state.watched = again.is_some();
        again
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_begins_with_the_last_write() {
        let (rest, begin) = (Rest::default(), Instant::now());
        let after = |parts: u32| begin + REST / 10 * parts;
        assert_eq!(rest.wrote(after(0)), Some(after(10)));
        assert_eq!(rest.wrote(after(5)), None);
        assert_eq!(rest.look(after(10)), Some(after(15)));
        assert_eq!(rest.look(after(15)), None);
        assert_eq!(rest.wrote(after(16)), Some(after(26)));
    }
}
