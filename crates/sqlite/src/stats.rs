//! The statistics of a connection.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

/// Counters of a connection's statement cache, since the connection was opened.
///
/// The statistics of several connections can be added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Texts whose statement was kept and not in use.
    pub hits: u64,
    /// Texts that were compiled.
    pub misses: u64,
    /// Misses of texts that were not seen recently.
    pub first_uses: u64,
    /// Misses of texts whose kept statement was in use.
    pub busy_misses: u64,
    /// Kept statements that were evicted, for a newer one or for a smaller cache.
    pub evictions: u64,
    /// Statements that were finalised because of the error they ended with.
    pub finalized_errors: u64,
    /// How often SQLite compiled a statement again. Without a change of the schema: never.
    pub reprepares: u64,
    /// Statements kept now and not in use.
    pub entries: u64,
    /// Memory of `entries`, in bytes, as SQLite counts it.
    pub bytes: u64,
    /// Time spent in compiling, in nanoseconds.
    pub prepare_ns: u64,
    /// Compiling time that the hits saved, in nanoseconds.
    pub saved_ns: u64,
}

impl AddAssign for CacheStats {
    fn add_assign(&mut self, other: CacheStats) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.first_uses += other.first_uses;
        self.busy_misses += other.busy_misses;
        self.evictions += other.evictions;
        self.finalized_errors += other.finalized_errors;
        self.reprepares += other.reprepares;
        self.entries += other.entries;
        self.bytes += other.bytes;
        self.prepare_ns += other.prepare_ns;
        self.saved_ns += other.saved_ns;
    }
}

/// Statistics of one kept statement.
#[derive(Clone, Debug)]
pub struct StatementStats {
    /// The text, as SQLite split it off.
    pub sql: String,
    /// How often it ran on this connection.
    pub calls: u64,
    /// How often it was found in the cache.
    pub hits: u64,
    /// Rows it gave.
    pub rows: u64,
    /// How long it took to compile.
    pub prepare: Duration,
    /// How long a run takes, on average over the runs that were timed.
    pub run: Duration,
    /// How often it was compiled again.
    pub reprepares: u64,
    /// Its memory in bytes, as SQLite counts it.
    pub bytes: u64,
    /// When it was last returned.
    pub last_used: Instant,
}
