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
    /// The time beyond that for which a reply is given while another is being fetched.
    pub stale: u64,
    /// The time beyond `ttl` for which a reply is given if no other can be fetched.
    pub if_error: u64,
    /// The part of the time by which it may be shorter, so that replies that were asked for
    /// together are not due together; in 65,536ths.
    pub jitter: u16,
    /// The queue that keeps the reply; see [`crate::Cache::new`].
    pub queue: u16,
    /// The earliest request of which the reply may be: a client that has written since the reply
    /// was asked for does not get it.
    pub since: u64,
    /// The time for which the asker has waited for the reply, which does not count: otherwise a
    /// reply that takes longer than its own time would be fetched once for each asker.
    pub waited: u64,
}

/// The age of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// It is given.
    Fresh,
    /// It is given while another is being fetched.
    Stale,
    /// It is given if no other can be fetched.
    LastResort,
    /// It is not given.
    Over,
}

impl Terms {
    /// Returns the age of a reply that was asked for at `asked`.
    #[inline]
    pub(crate) fn age(&self, asked: u64, empty: bool, hash: u64, now: u64) -> Age {
        let ttl = if empty { self.empty_ttl } else { self.ttl };
        let past = now.saturating_sub(asked).saturating_sub(self.waited);
        let fresh = ttl - self.shortened(ttl, hash);
        if asked < self.since {
            Age::Over
        } else if past < fresh {
            Age::Fresh
        } else if past < ttl.saturating_add(self.stale) {
            Age::Stale
        } else if past < ttl.saturating_add(self.if_error) {
            Age::LastResort
        } else {
            Age::Over
        }
    }

    /// Returns the time from which on a reply that was asked for at `asked` is given to nobody.
    pub(crate) fn dies(&self, asked: u64, empty: bool) -> u64 {
        let ttl = if empty { self.empty_ttl } else { self.ttl };
        asked.saturating_add(ttl).saturating_add(self.stale.max(self.if_error))
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
        Terms {
            ttl: 100,
            empty_ttl: 10,
            stale: 0,
            if_error: 0,
            jitter: 0,
            queue: 0,
            since: 0,
            waited: 0,
        }
    }

    #[test]
    fn a_reply_is_given_for_a_time_and_not_to_who_has_written_since() {
        let terms = terms();
        let ages = |terms: Terms, empty, at: [u64; 3]| at.map(|now| terms.age(1000, empty, 0, now));
        assert_eq!(ages(terms, false, [1000, 1099, 1100]), [Age::Fresh, Age::Fresh, Age::Over]);
        assert_eq!(ages(terms, true, [1000, 1009, 1010]), [Age::Fresh, Age::Fresh, Age::Over]);
        let since = Terms { since: 1001, stale: 50, ..terms };
        assert_eq!(ages(since, false, [1000, 1099, 1100]), [Age::Over; 3]);
        let stale = Terms { stale: 50, ..terms };
        assert_eq!(ages(stale, false, [1099, 1149, 1150]), [Age::Fresh, Age::Stale, Age::Over]);
        assert_eq!((terms.dies(1000, false), stale.dies(1000, true)), (1100, 1060));
        let waited = Terms { waited: 30, ..terms };
        assert_eq!(ages(waited, false, [1129, 1130, 1131]), [Age::Fresh, Age::Over, Age::Over]);
        let both = Terms { if_error: 70, ..stale };
        let at = [1149, 1150, 1170];
        assert_eq!(ages(both, false, at), [Age::Stale, Age::LastResort, Age::Over]);
        assert_eq!(both.dies(1000, false), 1170);
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
