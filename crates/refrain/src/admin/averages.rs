//! Statistics per database, and their averages over the last period.
//!
//! As in PgBouncer, an average covers the time since the beginning of the previous period, so
//! between one and two periods: long enough to be steady, and never empty right after a period
//! began.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use refrain_pg::Counters;
use refrain_pool::Now;

/// PgBouncer's default `stats_period`.
const PERIOD: Duration = Duration::from_secs(60);

/// PgBouncer's figures, in the order in which it shows them.
pub(super) type Figures = [u64; 11];

/// The names of [`Figures`] in `SHOW STATS_TOTALS` and `SHOW STATS_AVERAGES`.
pub(super) const FIGURES: [&str; 11] = [
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
    ]
}

pub(super) fn add(sum: &mut Figures, more: &Figures) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// The divisor of each average: `None` for the time that has passed, otherwise the figure that
/// counts what took the time.
const COUNTED_BY: [Option<usize>; 11] =
    [None, None, None, None, None, Some(1), Some(2), Some(0), None, None, None];

/// The totals at the beginnings of this period and of the one before.
#[derive(Debug)]
pub(super) struct Averages {
    older: (Now, Totals),
    newer: (Now, Totals),
}

impl Averages {
    pub(super) fn new(now: Now) -> Self {
        Self { older: (now, Totals::new()), newer: (now, Totals::new()) }
    }

    /// True if a period is over.
    pub(super) fn is_due(&self, now: Now) -> bool {
        now >= self.newer.0.after(PERIOD)
    }

    /// Begins a period with these totals.
    pub(super) fn roll(&mut self, now: Now, totals: Totals) {
        self.older = std::mem::replace(&mut self.newer, (now, totals));
    }

    /// Returns the averages of a database: counts per second, and times in microseconds.
    pub(super) fn of(&self, database: &str, now: Now, totals: &Figures) -> Figures {
        let (since, older) = &self.older;
        let older = older.get(database).copied().unwrap_or_default();
        let grown = |at: usize| totals[at].saturating_sub(older[at]);
        std::array::from_fn(|at| {
            let (grown, scale, by) = match COUNTED_BY[at] {
                Some(count) => (grown(at), 1, grown(count)),
                None => (grown(at), 1_000_000, now.since(*since)),
            };
            let average = u128::from(grown) * scale / u128::from(by.max(1));
            u64::try_from(average).unwrap_or(u64::MAX)
        })
    }
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
        assert!(!averages.is_due(at(59)));
        assert!(averages.is_due(at(60)));
        averages.roll(at(60), Totals::from([("a".into(), counters(600, 30_000))]));
        averages.roll(at(120), Totals::from([("a".into(), counters(600, 30_000))]));
        assert_eq!(of(&averages, 120, counters(600, 30_000)), (0, 0));
        assert_eq!(of(&averages, 160, counters(800, 50_000)), (2, 100));
    }
}
