//! Account: the figures of the replies of one rule, over all shards.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The figures of the replies of one rule. Shards write them as replies come and go, not at a hit.
#[derive(Debug, Default)]
pub struct Account {
    entries: AtomicU64,
    bytes: AtomicU64,
    evicted: AtomicU64,
    outdated: AtomicU64,
}

/// The figures of an account at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Replies.
    pub entries: u64,
    /// Bytes that they take, without the tables that all replies share.
    pub bytes: u64,
    /// Replies that had to make room.
    pub evicted: u64,
    /// Replies that were asked for and were void.
    pub outdated: u64,
}

impl Account {
    /// Returns the figures.
    pub fn figures(&self) -> Figures {
        Figures {
            entries: self.entries.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            evicted: self.evicted.load(Relaxed),
            outdated: self.outdated.load(Relaxed),
        }
    }

    pub(crate) fn comes(&self, bytes: usize) {
        self.entries.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn goes(&self, bytes: usize) {
        self.entries.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes as u64, Relaxed);
    }

    pub(crate) fn is_evicted(&self) {
        self.evicted.fetch_add(1, Relaxed);
    }

    pub(crate) fn is_outdated(&self) {
        self.outdated.fetch_add(1, Relaxed);
    }
}
