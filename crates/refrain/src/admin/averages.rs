//! Statistics per database and over all, and their averages over the last period.
//!
//! As in PgBouncer, an average covers the time since the beginning of the previous period, so
//! between one and two periods: long enough to be steady, and never empty right after a period
//! began.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use refrain_pg::Counters;
use refrain_pool::Now;

/// PgBouncer's figures, in the order in which it shows them.
pub(super) type Figures = [u64; 12];

/// The names of [`Figures`] in `SHOW STATS_TOTALS`. The last is new in PgBouncer 1.26.
pub(super) const FIGURES: [&str; 12] = [
    "server_assignment_count",
    "xact_count",
    "query_count",
    "bytes_received",
    "bytes_sent",
    "xact_time",
    "query_time",
    "wait_time",
    "client_parse_count",
    "server_parse_count",
    "bind_count",
    "client_connect_count",
];

/// Figures by database.
pub(super) type Totals = BTreeMap<Arc<str>, Figures>;

pub(super) fn figures(counters: &Counters) -> Figures {
    [
        counters.pool.server_assignments,
        counters.pool.xacts,
        counters.pool.queries,
        counters.pool.bytes_received,
        counters.pool.bytes_sent,
        counters.xact_time.sum_us,
        counters.query_time.sum_us,
        counters.wait_time.sum_us,
        counters.protocol.client_parses,
        counters.protocol.server_parses,
        counters.protocol.binds,
        counters.pool.client_logins,
    ]
}

pub(super) fn add(sum: &mut Figures, more: &Figures) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// Counts over all pools.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) xacts: u64,
    pub(super) queries: u64,
    pub(super) query_us: u64,
    pub(super) assignments: u64,
    pub(super) wait_us: u64,
    pub(super) cache_hits: u64,
    pub(super) cache_misses: u64,
    pub(super) autoprepared: u64,
    pub(super) shared: u64,
    pub(super) server_errors: u64,
    pub(super) client_login_failures: u64,
    pub(super) server_login_failures: u64,
}

impl Sums {
    /// Takes the counts out of counters.
    pub(super) fn of(counters: &Counters) -> Self {
        let Counters { pool, protocol, .. } = counters;
        Self {
            xacts: pool.xacts,
            queries: pool.queries,
            query_us: counters.query_time.sum_us,
            assignments: pool.server_assignments,
            wait_us: counters.wait_time.sum_us,
            cache_hits: protocol.cache_hits,
            cache_misses: protocol.cache_misses,
            autoprepared: protocol.auto_hits + protocol.auto_unnamed,
            shared: pool.requests_shared,
            server_errors: pool.server_errors,
            client_login_failures: pool.client_login_failures,
            server_login_failures: pool.server_login_failures,
        }
    }

    /// Returns what has been counted since.
    fn since(&self, older: &Self) -> Self {
        Self {
            xacts: self.xacts.saturating_sub(older.xacts),
            queries: self.queries.saturating_sub(older.queries),
            query_us: self.query_us.saturating_sub(older.query_us),
            assignments: self.assignments.saturating_sub(older.assignments),
            wait_us: self.wait_us.saturating_sub(older.wait_us),
            cache_hits: self.cache_hits.saturating_sub(older.cache_hits),
            cache_misses: self.cache_misses.saturating_sub(older.cache_misses),
            autoprepared: self.autoprepared.saturating_sub(older.autoprepared),
            shared: self.shared.saturating_sub(older.shared),
            server_errors: self.server_errors.saturating_sub(older.server_errors),
            client_login_failures: self
                .client_login_failures
                .saturating_sub(older.client_login_failures),
            server_login_failures: self
                .server_login_failures
                .saturating_sub(older.server_login_failures),
        }
    }
}

/// The divisor of each average: `None` for the time that has passed, otherwise the figure that
/// counts what took the time.
const COUNTED_BY: [Option<usize>; 12] =
    [None, None, None, None, None, Some(1), Some(2), Some(0), None, None, None, None];

/// The totals at the beginnings of this period and of the one before.
#[derive(Debug)]
pub(super) struct Averages {
    older: Period,
    newer: Period,
}

/// The beginning of a period.
#[derive(Debug)]
struct Period {
    begun: Now,
    totals: Totals,
    sums: Sums,
}

impl Averages {
    pub(super) fn new(now: Now) -> Self {
        let period = || Period { begun: now, totals: Totals::new(), sums: Sums::default() };
        Self { older: period(), newer: period() }
    }

    /// True if a period of this length is over.
    pub(super) fn is_due(&self, now: Now, period: Duration) -> bool {
        now >= self.newer.begun.after(period)
    }

    /// Returns the averages over all databases in this period, in PgBouncer's words.
    pub(super) fn words(&self, now: Now, totals: &Totals) -> String {
        let sum = |totals: &Totals| {
            totals.values().fold(Figures::default(), |mut sum, more| {
                add(&mut sum, more);
                sum
            })
        };
        let averages =
            averages(now.since(self.newer.begun), &sum(&self.newer.totals), &sum(totals));
        let [_, xacts, queries, received, sent, xact, query, wait, parses, servers, binds, _] =
            averages;
        format!(
            "stats: {xacts} xacts/s, {queries} queries/s, {parses} client parses/s, {servers} server \
             parses/s, {binds} binds/s, in {received} B/s, out {sent} B/s, xact {xact} us, query \
             {query} us, wait {wait} us"
        )
    }

    /// Begins a period with these totals.
    pub(super) fn roll(&mut self, begun: Now, totals: Totals, sums: Sums) {
        self.older = std::mem::replace(&mut self.newer, Period { begun, totals, sums });
    }

    /// Returns what has been counted over all pools since the beginning of the period before, and
    /// the microseconds since then.
    pub(super) fn recent(&self, now: Now, sums: &Sums) -> (Sums, u64) {
        (sums.since(&self.older.sums), now.since(self.older.begun))
    }

    /// Returns the averages of a database: counts per second, and times in microseconds.
    pub(super) fn of(&self, database: &str, now: Now, totals: &Figures) -> Figures {
        let Period { begun, totals: older, .. } = &self.older;
        let older = older.get(database).copied().unwrap_or_default();
        averages(now.since(*begun), &older, totals)
    }
}

/// Returns the averages of what was counted in so many microseconds.
fn averages(us: u64, before: &Figures, totals: &Figures) -> Figures {
    let grown = |at: usize| totals[at].saturating_sub(before[at]);
    std::array::from_fn(|at| {
        let (grown, scale, by) = match COUNTED_BY[at] {
            Some(count) => (grown(at), 1, grown(count)),
            None => (grown(at), 1_000_000, us),
        };
        let average = u128::from(grown) * scale / u128::from(by.max(1));
        u64::try_from(average).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_of_the_period_before_and_this_one() {
        let mut averages = Averages::new(Now(0));
        let counters = |xacts, us| {
            let mut counters = Counters::default();
            counters.pool.xacts = xacts;
            counters.xact_time.sum_us = us;
            figures(&counters)
        };
        let at = |seconds: u64| Now(seconds * 1_000_000);
        let of = |averages: &Averages, seconds, figures| {
            let average = averages.of("a", at(seconds), &figures);
            (average[1], average[5])
        };
        assert_eq!(of(&averages, 10, counters(100, 5000)), (10, 50));
        let minute = Duration::from_secs(60);
        assert!(!averages.is_due(at(59), minute));
        assert!(averages.is_due(at(60), minute));
        averages.roll(at(60), Totals::from([("a".into(), counters(600, 30_000))]), Sums::default());
        averages.roll(
            at(120),
            Totals::from([("a".into(), counters(600, 30_000))]),
            Sums::default(),
        );
        assert_eq!(of(&averages, 120, counters(600, 30_000)), (0, 0));
        assert_eq!(of(&averages, 160, counters(800, 50_000)), (2, 100));
        let totals =
            Totals::from([("a".into(), counters(800, 50_000)), ("b".into(), counters(40, 0))]);
        let words = averages.words(at(160), &totals);
        assert!(words.starts_with("stats: 6 xacts/s, 0 queries/s, "), "{words}");
        assert!(
            words.ends_with("in 0 B/s, out 0 B/s, xact 83 us, query 0 us, wait 0 us"),
            "{words}"
        );
    }
}
