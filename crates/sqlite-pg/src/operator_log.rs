//! Logs errors that no client can mend.
//!
//! A client that meets a damaged page, a full disk or a missing file gets an error, but the
//! operator also has to know of it. A client that repeats its query must not fill the log: each
//! kind is logged once in [`PAUSE`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// Writes a line for the operator: the SQLSTATE and the message.
pub type LogSink = Arc<dyn Fn(&'static str, &str) + Send + Sync>;

/// The time between two lines of one kind.
const PAUSE: Duration = Duration::from_secs(10);

/// The SQLSTATEs that an operator has to know of.
const KINDS: &[&str] = &[
    "XX001", // a damaged page, or no database at all
    "53100", // the disk is full
    "53200", // memory is
    "58030", // reading or writing failed
    "58P01", // the file is gone
];

/// Writes the operator's log.
pub(crate) struct OperatorLog {
    sink: LogSink,
    /// When each kind was logged last.
    logged: Mutex<[Option<Instant>; KINDS.len()]>,
}

impl OperatorLog {
    pub(crate) fn new(sink: LogSink) -> Self {
        Self { sink, logged: Mutex::default() }
    }

    /// Logs an event that is rare by itself.
    pub(crate) fn log(&self, sqlstate: &'static str, words: &str) {
        (self.sink)(sqlstate, words);
    }

    /// Logs an error that an operator has to know of, unless its kind was logged in the last
    /// [`PAUSE`].
    pub(crate) fn log_failure(&self, failure: &Failure, now: Instant) {
        let Some(kind) = KINDS.iter().position(|kind| *kind == failure.sqlstate) else { return };
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let due = logged[kind].is_none_or(|last| now.duration_since(last) >= PAUSE);
        if due {
            logged[kind] = Some(now);
            drop(logged);
            self.log(failure.sqlstate, &failure.message);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn each_kind_is_told_once_in_a_while_and_others_never() {
        let lines = Arc::new(AtomicUsize::new(0));
        let counted = lines.clone();
        let operator = OperatorLog::new(Arc::new(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
        }));
        let begun = Instant::now();
        let hears = |sqlstate, after| {
            operator.log_failure(&Failure::new(sqlstate, ""), begun + after);
            lines.load(Ordering::Relaxed)
        };
        assert_eq!(hears("XX001", Duration::ZERO), 1);
        assert_eq!(hears("XX001", PAUSE / 2), 1);
        assert_eq!(hears("53100", PAUSE / 2), 2);
        assert_eq!(hears("42601", PAUSE / 2), 2);
        assert_eq!(hears("XX001", PAUSE), 3);
    }
}
