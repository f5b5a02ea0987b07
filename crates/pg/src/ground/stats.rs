//! Counters of one core, and a histogram. Plain integers: one writer, read by making a
//! [`crate::state::snapshot::Snapshot`] between two steps.

/// Bounds of a histogram's buckets are powers of two microseconds: bucket `i` counts what took less
/// than `2^i` µs and not less than half of that; the last one counts the rest.
pub const BUCKETS: usize = 28;

/// How long things took.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Count per bucket.
    pub buckets: [u64; BUCKETS],
    /// Sum of all, in microseconds.
    pub sum_us: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], sum_us: 0 }
    }
}

impl Histogram {
    /// Counts something that took `us` microseconds.
    #[inline]
    pub fn count(&mut self, us: u64) {
        let bucket = (64 - us.leading_zeros()) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        self.sum_us += us;
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        self.sum_us += other.sum_us;
    }
}

macro_rules! counters {
    ($(#[doc = $doc:literal] $name:ident,)*) => {
        /// What was done for one pool at one core, since the start.
        #[derive(Clone, Debug, Default)]
        pub struct Counters {
            $(#[doc = $doc] pub $name: u64,)*
            /// How long transactions took, from lending the server to its return.
            pub xact_time: Histogram,
            /// How long queries took, from the request to its ReadyForQuery.
            pub query_time: Histogram,
            /// How long clients waited for a server.
            pub wait_time: Histogram,
        }

        impl Counters {
            /// Name and value of each plain counter.
            pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }

            /// What each of them counts, in the same order.
            pub fn meanings() -> impl Iterator<Item = &'static str> {
                [$($doc.trim_ascii(),)*].into_iter()
            }

            /// Adds another's counts.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
                self.xact_time.add(&other.xact_time);
                self.query_time.add(&other.query_time);
                self.wait_time.add(&other.wait_time);
            }
        }
    };
}

counters! {
    /// Servers lent to clients.
    server_assignments,
    /// Transactions that ended.
    xacts,
    /// Queries that ended (each ReadyForQuery that a client saw).
    queries,
    /// Bytes received from clients.
    bytes_received,
    /// Bytes sent to clients.
    bytes_sent,
    /// Parse messages that clients sent.
    client_parses,
    /// Parse messages that servers were sent.
    server_parses,
    /// Bind messages.
    binds,
    /// Uses of a statement that its server had already.
    prepare_hits,
    /// Uses of a statement that its server had to be sent first.
    prepare_misses,
    /// Parse messages answered here.
    parses_answered,
    /// Close messages answered here.
    closes_answered,
    /// Statements closed on a server to make room.
    evictions,
    /// Generations of statements begun after DDL or a stale plan.
    generations,
    /// Looks at what functions have left in a session.
    looks,
    /// Statements run without being kept (too large, or past a bound).
    uncached,
    /// Changes undone because the server refused or skipped what made them.
    undone,
    /// Errors 26000 that named a statement of ours: always zero, or a bug.
    lost_statements,
    /// Clients that a state of theirs tied to their server.
    pins,
    /// Changes of what a server gives its sessions to begin with, seen in a session that was there before.
    defaults_learned,
    /// Servers whose settings were put right before use.
    sync_settings,
    /// Servers reset because a client left state behind.
    resets,
    /// Logins of clients that succeeded.
    client_logins,
    /// Logins of clients that failed.
    client_login_failures,
    /// Connections to servers that succeeded.
    server_logins,
    /// Connections to servers that failed.
    server_login_failures,
    /// Cancel requests passed on.
    cancels,
    /// Servers dropped because they broke the protocol.
    server_surprises,
    /// Servers handed to another core.
    handovers,
    /// Errors of any kind sent by servers.
    server_errors,
    /// Pools that a core has forgotten, since nobody used them.
    pools_forgotten,
    /// Simple queries that were run as a prepared statement.
    auto_hits,
    /// NormalizedQueries of simple queries that were found fit to be prepared.
    auto_admissions,
    /// NormalizedQueries of simple queries that are run as they are sent from then on.
    auto_refusals,
    /// Simple queries run again as they were sent, because their prepared statement failed before it ran.
    auto_fallbacks,
    /// Failures inside a transaction that the query as it was sent would not have had: always zero, or a bug.
    auto_failures_in_transaction,
    /// NormalizedQueries given up because their prepared statements were slower than the queries as sent.
    auto_demotions,
    /// Times that all autoprepared statements of a pool or a session were forgotten.
    auto_flushes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_by_powers_of_two() {
        let mut histogram = Histogram::default();
        for us in [0, 1, 2, 3, 4, u64::MAX / 4] {
            histogram.count(us);
        }
        assert_eq!(histogram.buckets[..4], [1, 1, 2, 1]);
        assert_eq!(histogram.buckets[BUCKETS - 1], 1);
        assert_eq!(histogram.total(), 6);
    }
}
