//! What the operator is told: errors that no client can mend.
//!
//! A damaged page, a full disk, a file that is gone: the client that met it is told, and so is whoever runs the
//! program. A client that asks again and again fills no log: of each kind there is one line in a while.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// What an operator is told: PostgreSQL's code for it, and words.
pub type Teller = Arc<dyn Fn(&'static str, &str) + Send + Sync>;

/// Between two lines of one kind.
const PAUSE: Duration = Duration::from_secs(10);

/// The kinds that are an operator's matter, by their SQLSTATE.
const KINDS: &[&str] = &[
    "XX001", // a damaged page, or no database at all
    "53100", // the disk is full
    "53200", // memory is
    "58030", // reading or writing failed
    "58P01", // the file is gone
];

/// Who is told.
pub(crate) struct Operator {
    teller: Teller,
    /// When each kind was told last.
    told: Mutex<[Option<Instant>; KINDS.len()]>,
}

impl Operator {
    pub(crate) fn new(teller: Teller) -> Self {
        Self { teller, told: Mutex::default() }
    }

    /// Tells what happens seldom.
    pub(crate) fn tell(&self, sqlstate: &'static str, words: &str) {
        (self.teller)(sqlstate, words);
    }

    /// Tells of an error, if it is an operator's matter and was not told just now.
    pub(crate) fn hears_of(&self, failure: &Failure, now: Instant) {
        let Some(kind) = KINDS.iter().position(|kind| *kind == failure.sqlstate) else { return };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let due = told[kind].is_none_or(|last| now.duration_since(last) >= PAUSE);
        if due {
            told[kind] = Some(now);
            drop(told);
            self.tell(failure.sqlstate, &failure.message);
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
        let operator = Operator::new(Arc::new(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
        }));
        let begun = Instant::now();
        let hears = |sqlstate, after| {
            operator.hears_of(&Failure::new(sqlstate, ""), begun + after);
            lines.load(Ordering::Relaxed)
        };
        assert_eq!(hears("XX001", Duration::ZERO), 1);
        assert_eq!(hears("XX001", PAUSE / 2), 1);
        assert_eq!(hears("53100", PAUSE / 2), 2);
        assert_eq!(hears("42601", PAUSE / 2), 2);
        assert_eq!(hears("XX001", PAUSE), 3);
    }
}
