//! What the clients of a soak report, and what they have in common.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Words kept about each kind of mishap.
const WORDS_MAX: usize = 20;

/// Counts over all clients.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Set when it is time to end.
    pub(super) over: AtomicBool,
    pub(super) sessions: AtomicU64,
    /// Things done with a session, each of a transaction or more.
    pub(super) units: AtomicU64,
    /// Rows that were looked at.
    pub(super) rows: AtomicU64,
    pub(super) cancels: AtomicU64,
    /// Clients that went without a word, most of them in the middle of something.
    pub(super) vanished: AtomicU64,
    /// Servers that were told to end.
    pub(super) kills: AtomicU64,
    /// Sessions that ended without their client's doing: one a kill at most.
    pub(super) lost: Mishaps,
    /// Answers that no client may get.
    pub(super) wrong: Mishaps,
    /// Answers that did not come.
    pub(super) stuck: Mishaps,
}

impl Tally {
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Mishaps of one kind: how many, and the first of them in words.
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
