//! Terms: how long a reply may be given, as a rule has it now.
//!
//! A reply keeps no times but that of its request. So a rule that changes acts on replies that are
//! there already.

/// Parts of a whole for [`Terms::jitter`].
const WHOLE: u64 = 1 << 16;

/// How long a reply may be given. All times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The time from the request on for which a reply is fresh.
    pub ttl: u64,
    /// The same for a reply without rows.
    pub empty_ttl: u64,
    /// The time after that in which it is given while another is fetched.
    pub stale: u64,
    /// The part of the time by which it may be shorter, so that replies that were asked for
    /// together are not due together; in 65,536ths.
    pub jitter: u16,
    /// The queue that keeps the reply; see [`crate::Cache::queues`].
    pub queue: u16,
    /// The earliest request of which the reply may be: a client that has written since the reply
    /// was asked for does not get it.
    pub since: u64,
}

/// The state of a reply at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    Fresh,
    Stale,
    Dead,
}

impl Terms {
    /// Judges a reply that was asked for at `asked`.
    #[inline]
    pub(crate) fn age(&self, asked: u64, empty: bool, hash: u64, now: u64) -> Age {
        let ttl = if empty { self.empty_ttl } else { self.ttl };
        let ttl = ttl - self.shortened(ttl, hash);
        let old = now.saturating_sub(asked);
        if asked < self.since {
            Age::Dead
        } else if old < ttl {
            Age::Fresh
        } else if old < ttl.saturating_add(self.stale) {
            Age::Stale
        } else {
            Age::Dead
        }
    }

    /// Returns the time from which on a reply that was asked for at `asked` is given to nobody.
    pub(crate) fn dies(&self, asked: u64, empty: bool) -> u64 {
        let ttl = if empty { self.empty_ttl } else { self.ttl };
        asked.saturating_add(ttl).saturating_add(self.stale)
    }

    /// Returns the time by which a reply is fresh for less than `ttl`: the same for one key.
    #[inline]
    fn shortened(&self, ttl: u64, hash: u64) -> u64 {
        if self.jitter == 0 {
            return 0;
        }
        let most =
            (ttl / WHOLE) * u64::from(self.jitter) + (ttl % WHOLE) * u64::from(self.jitter) / WHOLE;
        (most / WHOLE) * (hash >> 48) + (most % WHOLE) * (hash >> 48) / WHOLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms() -> Terms {
        Terms { ttl: 100, empty_ttl: 10, stale: 50, jitter: 0, queue: 0, since: 0 }
    }

    #[test]
    fn a_reply_is_fresh_then_stale_then_dead() {
        let terms = terms();
        let at = |now| terms.age(1000, false, 0, now);
        assert_eq!((at(1000), at(1099)), (Age::Fresh, Age::Fresh));
        assert_eq!((at(1100), at(1149), at(1150)), (Age::Stale, Age::Stale, Age::Dead));
        assert_eq!(terms.age(1000, true, 0, 1010), Age::Stale);
        assert_eq!(Terms { since: 1001, ..terms }.age(1000, false, 0, 1000), Age::Dead);
    }

    #[test]
    fn jitter_shortens_the_time_by_a_part_at_most() {
        let terms = Terms { ttl: 1_000_000_000, jitter: 6554, ..terms() };
        let shortened: Vec<u64> = [0, u64::MAX / 2, u64::MAX]
            .iter()
            .map(|hash| terms.shortened(terms.ttl, *hash))
            .collect();
        assert_eq!(shortened[0], 0);
        assert!(shortened[1] > 49_000_000 && shortened[1] < 51_000_000);
        assert!(shortened[2] > 99_000_000 && shortened[2] < 100_100_000);
    }
}
