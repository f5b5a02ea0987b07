//! The counts that the threads of a run share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

pub(super) use crate::soak::tally::Mishaps;

/// Counts over all threads.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Set when the run is over.
    pub(super) over: AtomicBool,
    /// Number of messages after which the run is over.
    pub(super) wanted: u64,
    pub(super) messages: AtomicU64,
    pub(super) sessions: AtomicU64,
    /// Sessions that were checked at their end and were alive.
    pub(super) alive: AtomicU64,
    /// Spoiled records, of clients and of the lying server.
    pub(super) records: AtomicU64,
    /// Sessions of the lying server.
    pub(super) servers: AtomicU64,
    /// Requests of canaries that got the right reply.
    pub(super) requests: AtomicU64,
    /// Errors that fail the run.
    pub(super) wrong: Mishaps,
}

impl Tally {
    pub(super) fn new(wanted: u64) -> Tally {
        Tally { wanted, ..Tally::default() }
    }

    /// Counts messages. The last one wanted ends the run.
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
