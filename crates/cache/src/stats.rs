//! Counts of the cache and views of replies, for operators.

use std::sync::Arc;

use crate::topics::TopicSet;

/// A reply, to look at. Times are in microseconds.
#[derive(Clone, Debug)]
pub struct EntryView {
    /// Bytes that key and reply take.
    pub bytes: usize,
    /// The time since it was asked for.
    pub age: u64,
    /// The time after which it is given to nobody.
    pub left: u64,
    /// The time that it took to fetch it.
    pub took: u64,
    /// How often it was used of late, at most 3.
    pub uses: u8,
    /// The things on which it depends.
    pub topics: Arc<TopicSet>,
}

/// Counts of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Replies.
    pub entries: u64,
    /// Bytes that they take, with the cache's own tables.
    pub bytes: u64,
    /// Replies that are being fetched.
    pub flights: u64,
    /// Replies that had to make room.
    pub evicted: u64,
    /// Replies that were asked for and were out of date.
    pub outdated: u64,
    /// Replies that were asked for and were too old.
    pub expired: u64,
    /// Replies that were dropped since nobody gets them any more.
    pub swept: u64,
}

impl Stats {
    pub(crate) fn add(&mut self, other: Self) {
        let Self { entries, bytes, flights, evicted, outdated, expired, swept } = other;
        self.entries += entries;
        self.bytes += bytes;
        self.flights += flights;
        self.evicted += evicted;
        self.outdated += outdated;
        self.expired += expired;
        self.swept += swept;
    }
}
