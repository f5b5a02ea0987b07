//! Counters of one pool on one core, and the histogram of times.
//!
//! The counters are plain integers. Only the core writes them, and a reader gets a copy that the
//! core makes between two steps ([`crate::snapshot::Snapshot`]).

/// Number of buckets of a histogram. Their bounds are powers of two microseconds: bucket `i` counts
/// times below `2^i` µs and not below half of that; the last bucket counts all longer times.
pub const BUCKETS: usize = 28;

/// A histogram of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Number of times in each bucket.
    pub buckets: [u64; BUCKETS],
    /// Sum of all times, in microseconds.
    pub sum_us: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], sum_us: 0 }
    }
}

impl Histogram {
    /// Counts a time of `us` microseconds.
    #[inline]
    pub fn count(&mut self, us: u64) {
        let bucket = (64 - us.leading_zeros()) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        self.sum_us += us;
    }

    /// Returns the number of counted times.
    pub fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the mean of all times, in microseconds.
    pub fn mean_us(&self) -> u64 {
        self.sum_us.checked_div(self.total()).unwrap_or(0)
    }

    /// Returns a time that none of the counted ones reaches, of the last bucket but for those that
    /// have no bound: at most twice the longest, in microseconds.
    pub fn most_us(&self) -> u64 {
        self.buckets.iter().rposition(|&count| count > 0).map_or(0, |bucket| 1 << bucket)
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        self.sum_us += other.sum_us;
    }
}

/// Plain counters that can be listed and added up; [`crate::counters`] makes such a type.
pub trait CounterSet: Clone + std::fmt::Debug + Default + Send + 'static {
    /// Iterates over the name and value of each counter.
    fn rows(&self) -> impl Iterator<Item = (&'static str, u64)>;
    /// Iterates over the help text of each counter, in the order of [`Self::rows`].
    fn meanings() -> impl Iterator<Item = &'static str>;
    /// Adds the counts of `other`.
    fn add(&mut self, other: &Self);
}

/// The counters of a protocol that counts nothing by itself.
impl CounterSet for () {
    fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
        std::iter::empty()
    }

    fn meanings() -> impl Iterator<Item = &'static str> {
        std::iter::empty()
    }

    fn add(&mut self, _other: &Self) {}
}

/// Makes a struct of counters, with their doc comments as help texts.
#[macro_export]
macro_rules! counters {
    ($(#[doc = $about:literal])+ $type:ident: $($(#[doc = $doc:literal])+ $name:ident,)*) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default)]
        pub struct $type {
            $($(#[doc = $doc])+ pub $name: u64,)*
        }

        impl $crate::stats::CounterSet for $type {
            fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }

            fn meanings() -> impl Iterator<Item = &'static str> {
                [$(concat!($($doc),+).trim_ascii(),)*].into_iter()
            }

            fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Counts of one pool on one core that any protocol has, since the start.
    PoolCounters:
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
    /// Requests sent to a server that works for other clients too (`share_servers`).
    requests_shared,
    /// Requests sent again to another server, because a shared server was late or has gone.
    requests_resent,
    /// Requests sent again to another server, because the client before them on a shared server
    /// cancelled its own or read slowly.
    requests_moved,
    /// Requests that did not share a server at once, because others waited for a server.
    requests_alone_wait,
    /// Requests that did not share a server, because they were too long.
    requests_alone_large,
    /// Requests that did not share a server, because as many shared each (`share_depth`).
    requests_alone_full,
    /// Requests that did not share a server, because none had their statement and settings.
    requests_alone_unfit,
    /// Cancel requests sent to servers.
    cancels,
    /// Servers closed because they broke the protocol, for example by an unexpected message.
    unexpected_messages,
    /// Servers handed over to another worker thread.
    handovers,
    /// Servers closed to make room for another pool, because `max_connections` of the database, of
    /// the user or of the server itself was reached.
    servers_evicted,
    /// Clients given to another worker thread, to balance the threads' load.
    client_moves,
    /// Errors (ErrorResponse) sent by servers.
    server_errors,
    /// Pools that a worker thread removed because they were no longer used.
    pools_forgotten,
}

/// Counts of one pool on one core, since the start.
#[derive(Clone, Debug, Default)]
pub struct Counters<C> {
    /// The counters that any protocol has.
    pub pool: PoolCounters,
    /// The counters of this protocol.
    pub protocol: C,
    /// How long transactions took, from lending the server to its return.
    pub xact_time: Histogram,
    /// How long queries took, from the request to the end of its replies.
    pub query_time: Histogram,
    /// How long clients waited for a server.
    pub wait_time: Histogram,
    /// How long requests waited on shared servers behind those of other clients.
    pub turn_time: Histogram,
}

impl<C> Counters<C> {
    /// Returns the counters as those of another protocol, whose own are zero.
    pub(crate) fn of_another<D: Default>(self) -> Counters<D> {
        Counters {
            pool: self.pool,
            protocol: D::default(),
            xact_time: self.xact_time,
            query_time: self.query_time,
            wait_time: self.wait_time,
            turn_time: self.turn_time,
        }
    }
}

impl<C: CounterSet> Counters<C> {
    /// Iterates over the name and value of each plain counter.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.pool.rows().chain(self.protocol.rows())
    }

    /// Iterates over the help text of each plain counter, in the order of [`Self::rows`].
    pub fn meanings() -> impl Iterator<Item = &'static str> {
        PoolCounters::meanings().chain(C::meanings())
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.pool.add(&other.pool);
        self.protocol.add(&other.protocol);
        self.xact_time.add(&other.xact_time);
        self.query_time.add(&other.query_time);
        self.wait_time.add(&other.wait_time);
        self.turn_time.add(&other.turn_time);
    }
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
        assert_eq!(Histogram::default().mean_us() + Histogram::default().most_us(), 0);
        let mut histogram = Histogram::default();
        [100, 1_000].into_iter().for_each(|us| histogram.count(us));
        assert_eq!((histogram.mean_us(), histogram.most_us()), (550, 1_024));
    }
}
