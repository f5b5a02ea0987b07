//! The counts that the clients of a soak share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The most descriptions that are kept for each kind of mishap.
const WORDS_MAX: usize = 20;

/// Counts over all clients.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Set when the run is over.
    pub(super) over: AtomicBool,
    pub(super) sessions: AtomicU64,
    /// Units of work, each of a transaction or more.
    pub(super) units: AtomicU64,
    /// Rows that clients checked.
    pub(super) rows: AtomicU64,
    pub(super) cancels: AtomicU64,
    /// Clients that closed their connection without Terminate, most of them during a request.
    pub(super) vanished: AtomicU64,
    /// Servers that the run ended.
    pub(super) kills: AtomicU64,
    /// Sessions that their client did not end: at most one for each kill.
    pub(super) lost: Mishaps,
    /// Wrong replies.
    pub(super) wrong: Mishaps,
    /// Replies that did not come.
    pub(super) stuck: Mishaps,
}

impl Tally {
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }
}

/// Adds one to a counter.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Mishaps of one kind: their number, and the first of them in words.
#[derive(Debug, Default)]
pub(crate) struct Mishaps {
    count: AtomicU64,
    words: Mutex<Vec<String>>,
}

impl Mishaps {
    pub(crate) fn add(&self, words: String) {
        count(&self.count);
        let mut known = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < WORDS_MAX {
            known.push(words);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub(crate) fn words(&self) -> Vec<String> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
