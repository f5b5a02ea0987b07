//! Counts of the cache, for operators.

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
