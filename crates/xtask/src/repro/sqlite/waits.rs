//! The waits of a thread, and their comparison with those of other threads.

use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

/// The waits of a thread, in the order of time: when each began and how long it was.
#[derive(Debug, Default)]
pub(super) struct Waits(Vec<(Instant, Duration)>);

impl Waits {
    pub(super) fn add(&mut self, begin: Instant, wait: Duration) {
        self.0.push((begin, wait));
    }

    pub(super) fn longest_ms(&self) -> f64 {
        ms(self.0.iter().map(|(_, wait)| *wait).max().unwrap_or_default())
    }

    fn p99_ms(&self) -> f64 {
        let mut all: Vec<_> = self.0.iter().map(|(_, wait)| *wait).collect();
        all.sort_unstable();
        all.get(all.len() * 99 / 100).copied().map_or(0.0, ms)
    }

    /// Returns the longest wait. Each counts without the longest one that `others` had at the same
    /// time.
    pub(super) fn beyond_ms(&self, others: &[&Waits]) -> f64 {
        let beyond = |(begin, wait): &(Instant, Duration)| {
            let at_once = others.iter().map(|other| other.longest_within(*begin, *begin + *wait));
            wait.saturating_sub(at_once.max().unwrap_or_default())
        };
        ms(self.0.iter().map(beyond).max().unwrap_or_default())
    }

    /// Returns the longest of the waits that were under way between two moments.
    fn longest_within(&self, from: Instant, until: Instant) -> Duration {
        let first = self.0.partition_point(|(begin, wait)| *begin + *wait <= from);
        let under_way = self.0.iter().skip(first).take_while(|(begin, _)| *begin < until);
        under_way.map(|(_, wait)| *wait).max().unwrap_or_default()
    }
}

fn ms(wait: Duration) -> f64 {
    wait.as_secs_f64() * 1e3
}

impl Display for Waits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} {:.1}", self.longest_ms(), self.p99_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(start: Instant, all: &[(u64, u64)]) -> Waits {
        let mut waits = Waits::default();
        for (begin, wait) in all {
            waits.add(start + Duration::from_millis(*begin), Duration::from_millis(*wait));
        }
        waits
    }

    #[test]
    fn the_longest_wait_and_the_ninety_ninth_of_a_hundred() {
        let all: Vec<_> = (0..200).map(|at| (1000 * at, 200 - at)).collect();
        let waits = waits(Instant::now(), &all);
        assert_eq!((waits.longest_ms(), waits.p99_ms()), (200.0, 199.0));
    }

    #[test]
    fn of_other_waits_those_at_the_same_time_count() {
        let start = Instant::now();
        let waits_here = waits(start, &[(0, 30), (100, 50), (200, 1)]);
        let other = waits(start, &[(0, 5), (10, 12), (90, 10), (120, 20), (160, 90)]);
        assert_eq!(waits_here.beyond_ms(&[&other]), 30.0);
        let third = waits(start, &[(101, 45)]);
        assert_eq!(waits_here.beyond_ms(&[&other, &third]), 18.0);
        assert_eq!(waits_here.beyond_ms(&[]), 50.0);
    }
}
