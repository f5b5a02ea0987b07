//! What the threads of a run have in common.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

pub(super) use crate::soak::tally::Mishaps;

/// Counts over all threads.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Set when it is time to end.
    pub(super) over: AtomicBool,
    /// How many messages are to be sent, by clients and servers that are not to be trusted.
    pub(super) wanted: u64,
    pub(super) messages: AtomicU64,
    pub(super) sessions: AtomicU64,
    /// Sessions that were asked at their end whether they are alive, and were.
    pub(super) alive: AtomicU64,
    /// Sessions of the servers that are not to be trusted.
    pub(super) servers: AtomicU64,
    /// What the canaries were answered.
    pub(super) songs: AtomicU64,
    /// What must not be.
    pub(super) wrong: Mishaps,
}

impl Tally {
    pub(super) fn new(wanted: u64) -> Tally {
        Tally { wanted, ..Tally::default() }
    }

    /// Counts messages; the last one wanted ends the run, and so does the first thing that is wrong.
    pub(super) fn sent(&self, messages: usize) {
        let before = self.messages.fetch_add(messages as u64, Relaxed);
        if before + messages as u64 >= self.wanted {
            self.over.store(true, Relaxed);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }
}
