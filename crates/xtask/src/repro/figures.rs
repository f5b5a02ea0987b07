//! Figures of requests: how many there were, how long they took, how many failed or got a wrong
//! reply.

use std::fmt::Write as _;
use std::time::Duration;

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The reply was right.
    Right,
    /// The reply was wrong.
    Wrong(String),
    /// The reply was an error.
    Failed(String),
}

/// Figures of many requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// Times of the requests with a right reply, in microseconds.
    took_us: Vec<u32>,
    /// Length of the measurement.
    time: Duration,
    /// Requests that failed.
    pub(super) failed: u64,
    /// Requests that got a wrong reply.
    pub(super) wrong: u64,
    /// Words about the first request that failed.
    first_failed: Option<String>,
    /// Words about the first request that got a wrong reply.
    first_wrong: Option<String>,
}

impl Figures {
    /// Counts a request with its outcome and its time.
    pub(super) fn count(&mut self, outcome: Outcome, took: Duration) {
        match outcome {
            Outcome::Right => {
                self.took_us.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
            }
            Outcome::Wrong(what) => {
                self.wrong += 1;
                self.first_wrong.get_or_insert(what);
            }
            Outcome::Failed(what) => {
                self.failed += 1;
                self.first_failed.get_or_insert(what);
            }
        }
    }

    /// Adds figures of another client from the same time.
    pub(super) fn beside(&mut self, other: Figures) {
        self.time = self.time.max(other.time);
        self.merge(other);
    }

    /// Adds figures from another time.
    pub(super) fn then(&mut self, other: Figures) {
        self.time += other.time;
        self.merge(other);
    }

    fn merge(&mut self, other: Figures) {
        self.took_us.extend(other.took_us);
        self.took_us.sort_unstable();
        self.failed += other.failed;
        self.wrong += other.wrong;
        self.first_failed = self.first_failed.take().or(other.first_failed);
        self.first_wrong = self.first_wrong.take().or(other.first_wrong);
    }

    /// Sets the length of the measurement.
    pub(super) fn lasted(mut self, time: Duration) -> Figures {
        self.took_us.sort_unstable();
        self.time = time;
        self
    }

    /// Returns the number of requests with a right reply.
    pub(super) fn answered(&self) -> usize {
        self.took_us.len()
    }

    /// Returns the rate of right replies per second.
    pub(super) fn per_second(&self) -> f64 {
        self.took_us.len() as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Returns the average time of a request, in microseconds.
    pub(super) fn mean_us(&self) -> f64 {
        let sum: u64 = self.took_us.iter().map(|us| u64::from(*us)).sum();
        sum as f64 / self.took_us.len().max(1) as f64
    }

    /// Returns the time, in microseconds, that this share of the requests exceeds.
    pub(super) fn tail_us(&self, share: f64) -> f64 {
        let place = (self.took_us.len() as f64 * (1.0 - share)) as usize;
        let last = self.took_us.len().saturating_sub(1);
        self.took_us.get(place.min(last)).map_or(0.0, |us| f64::from(*us))
    }

    /// Returns one line of a table.
    pub(super) fn line(&self, name: &str) -> String {
        let (p99, p999) = (self.tail_us(0.01), self.tail_us(0.001));
        let mut line = format!(
            "{name:<18} {:>9.0}/s  mean {:>8.0} us  p99 {p99:>8.0} us  p99.9 {p999:>8.0} us  failed {}  wrong {}",
            self.per_second(),
            self.mean_us(),
            self.failed,
            self.wrong
        );
        for what in [&self.first_failed, &self.first_wrong].into_iter().flatten() {
            let _ = write!(line, "\n{:<18} for example: {what}", "");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn figures_are_those_of_all_clients() {
        let mut one = Figures::default();
        (1..=99).for_each(|_| one.count(Outcome::Right, us(100)));
        let mut two = Figures::default();
        two.count(Outcome::Right, us(10_100));
        two.count(Outcome::Failed("no".into()), us(1));
        two.count(Outcome::Wrong("0".into()), us(1));
        let mut all = one.lasted(us(500_000));
        all.beside(two.lasted(us(500_000)));
        assert_eq!((all.answered(), all.failed, all.wrong), (100, 1, 1));
        assert_eq!((all.per_second(), all.mean_us()), (200.0, 200.0));
        assert_eq!((all.tail_us(0.02), all.tail_us(0.01)), (100.0, 10_100.0));
        assert!(all.line("all").contains("for example: no"), "{}", all.line("all"));
    }
}
