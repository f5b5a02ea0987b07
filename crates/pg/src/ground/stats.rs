//! Counters of one pool on one core, and the histogram of times.
//!
//! They are plain integers: the core alone writes them, and a reader gets a copy that the core
//! makes between two steps ([`crate::state::snapshot::Snapshot`]).

/// Number of buckets of a histogram. Their bounds are powers of two microseconds: bucket `i` counts
/// times below `2^i` µs and not below half of that; the last bucket counts all longer times.
pub const BUCKETS: usize = 28;

/// Histogram of how long things took.
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

    /// Returns how many times were counted.
    pub fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        self.sum_us += other.sum_us;
    }
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// Counts of one pool on one core, since the start.
        #[derive(Clone, Debug, Default)]
        pub struct Counters {
            $($(#[doc = $doc])+ pub $name: u64,)*
            /// How long transactions took, from lending the server to its return.
            pub xact_time: Histogram,
            /// How long queries took, from the request to its ReadyForQuery.
            pub query_time: Histogram,
            /// How long clients waited for a server.
            pub wait_time: Histogram,
        }

        impl Counters {
            /// Iterates over the name and value of each plain counter.
            pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }

            /// Iterates over the help text of each plain counter, in the order of [`Self::rows`].
            pub fn meanings() -> impl Iterator<Item = &'static str> {
                [$(concat!($($doc),+).trim_ascii(),)*].into_iter()
            }

            /// Adds the counts of `other`.
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
    /// Times that a server was lent to a client.
    server_assignments,
    /// Transactions that ended.
    xacts,
    /// Queries that ended: each ReadyForQuery that a client was sent.
    queries,
    /// Bytes received from clients.
    bytes_received,
    /// Bytes sent to clients.
    bytes_sent,
    /// Parse messages received from clients.
    client_parses,
    /// Parse messages sent to servers.
    server_parses,
    /// Bind messages received from clients.
    binds,
    /// Uses of a prepared statement that the server already had.
    prepare_hits,
    /// Uses of a prepared statement that Refrain had to prepare on the server first.
    prepare_misses,
    /// Parse messages that Refrain answered without the server.
    parses_answered,
    /// Close messages that Refrain answered without the server.
    closes_answered,
    /// Prepared statements closed on a server to make room for others.
    evictions,
    /// Prepared statements that servers must prepare anew, because the schema may have changed or a
    /// plan was stale.
    statements_renewed,
    /// Queries that asked what functions had left behind in a session.
    session_checks,
    /// Statements run without being kept for reuse: too large, beyond a limit, or parsed while the
    /// settings were unknown.
    statements_not_kept,
    /// Changes to the maps of prepared statements that were undone, because the server refused or
    /// skipped the message.
    changes_undone,
    /// Errors 26000 (prepared statement does not exist) for a statement that Refrain prepared:
    /// always zero, or a bug.
    lost_statements,
    /// Times that a client with session state began to keep its server.
    pins,
    /// Changes of a server's default settings that Refrain noticed in a session that was open
    /// before.
    defaults_learned,
    /// Times that the settings of a server were changed to those of the client that was to use it.
    settings_synced,
    /// Servers reset because a client left session state behind.
    resets,
    /// Logins of clients that succeeded.
    client_logins,
    /// Logins of clients that failed.
    client_login_failures,
    /// Logins to servers that succeeded.
    server_logins,
    /// Connections or logins to servers that failed.
    server_login_failures,
    /// Cancel requests sent to servers.
    cancels,
    /// Servers closed because they broke the protocol, for example by an unexpected message.
    unexpected_messages,
    /// Servers handed over to another worker thread.
    handovers,
    /// Errors (ErrorResponse) sent by servers.
    server_errors,
    /// Pools that a worker thread removed because they were no longer used.
    pools_forgotten,
    /// Simple queries that autoprepare ran as a prepared statement.
    auto_hits,
    /// Times that autoprepare verified a normalized query: its queries can run as a prepared
    /// statement.
    auto_verified,
    /// Times that autoprepare refused or could not verify a normalized query: its queries run as
    /// sent.
    auto_refusals,
    /// Simple queries run again as sent, because their prepared statement failed before it ran.
    auto_fallbacks,
    /// Transactions that failed where the query as sent would not have failed: zero while the
    /// schema does not change.
    auto_failures_in_transaction,
    /// Times that autoprepare gave up a normalized query, because its prepared statement was slower
    /// than the queries as sent.
    auto_too_slow,
    /// Times that FLUSH AUTOPREPARE made a pool forget its normalized queries.
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
