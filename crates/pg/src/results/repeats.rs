//! Repeats: the requests of a pool that say the same as one shortly before, and the time that they
//! take. A rule of the cache would save most of that time.
//!
//! One second in thirty is looked at, so that the rest of the time costs nothing. What is repeated
//! less often than once a second is not seen: the figures are at most what a rule saves.

use std::collections::{HashMap, HashSet};

use refrain_cache::Seed;
use refrain_pool::Now;

use crate::statements::statement::Statement;

/// Length of a look, in microseconds.
const LOOK_US: u64 = 1_000_000;
/// Time from the begin of a look to that of the next, in looks.
pub(crate) const PERIOD: u64 = 30;
/// Most texts that are remembered.
const TEXTS_MAX: usize = 1000;
/// Most requests of one look.
const REQUESTS_MAX: usize = 50_000;

/// A request that is looked at, until its reply is there.
#[derive(Debug)]
pub(crate) struct Watched {
    /// A hash of all that decides the reply.
    pub(crate) hash: u64,
    /// Its text, with other literals.
    pub(crate) text: Box<[u8]>,
    /// Its prepared statement, if it has one.
    pub(crate) statement: Option<Statement>,
    pub(crate) since: Now,
}

/// Counts of the requests with one text, in the seconds that were looked at. Times are in
/// microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repeated {
    /// Requests.
    pub requests: u64,
    /// The time that they took.
    pub time_us: u64,
    /// Requests among them that said the same as one before, in the same second.
    pub repeats: u64,
    /// The time that these took.
    pub repeated_us: u64,
}

impl Repeated {
    /// Returns what they come to over all time: one second of [`PERIOD`] is looked at.
    pub(crate) fn in_proportion(self) -> Self {
        let Self { requests, time_us, repeats, repeated_us } = self;
        Self {
            requests: requests * PERIOD,
            time_us: time_us * PERIOD,
            repeats: repeats * PERIOD,
            repeated_us: repeated_us * PERIOD,
        }
    }

    /// Adds those of another core.
    pub fn add(&mut self, other: Self) {
        let Self { requests, time_us, repeats, repeated_us } = other;
        self.requests += requests;
        self.time_us += time_us;
        self.repeats += repeats;
        self.repeated_us += repeated_us;
    }
}

/// The repeats of a pool on one core.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    looks: bool,
    /// The requests of the look that is under way.
    seen: HashSet<u64, Seed>,
    texts: HashMap<Box<[u8]>, Repeated, Seed>,
}

impl Repeats {
    /// Whether requests are looked at now.
    #[inline]
    pub(crate) fn looks(&self) -> bool {
        self.looks
    }

    /// Begins a look or ends one, as the time says.
    pub(crate) fn tick(&mut self, now: Now) {
        let looks = (now.0 / LOOK_US).is_multiple_of(PERIOD);
        if self.looks && !looks {
            self.seen.clear();
        }
        self.looks = looks;
    }

    /// Counts a request whose reply is there.
    pub(crate) fn add(&mut self, watched: Watched, now: Now) {
        if !self.looks || self.seen.len() >= REQUESTS_MAX {
            return;
        }
        let (repeats, took) = (!self.seen.insert(watched.hash), now.since(watched.since));
        if let Some(statement) = watched.statement.filter(|_| repeats) {
            statement.was_repeated(took);
        }
        if self.texts.len() < TEXTS_MAX || self.texts.contains_key(&watched.text) {
            let known = self.texts.entry(watched.text).or_default();
            let repeated = u64::from(repeats);
            let repeated_us = took * repeated;
            known.add(Repeated { requests: 1, time_us: took, repeats: repeated, repeated_us });
        }
    }

    /// Iterates over the texts, and their counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Repeated)> {
        self.texts.iter().map(|(text, repeated)| (&**text, *repeated))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn watched(hash: u64, since: u64) -> Watched {
        Watched { hash, text: b"select 0".as_slice().into(), statement: None, since: Now(since) }
    }

    #[test]
    fn what_is_the_same_as_before_in_a_second_counts_as_repeated() {
        let mut repeats = Repeats::default();
        let begin = 60 * SECOND;
        repeats.tick(Now(begin));
        assert!(repeats.looks());
        for hash in [1, 2, 1, 1] {
            repeats.add(watched(hash, begin), Now(begin + 10));
        }
        let expected = Repeated { requests: 4, time_us: 40, repeats: 2, repeated_us: 20 };
        assert_eq!(repeats.iter().collect::<Vec<_>>(), [(&b"select 0"[..], expected)]);
        // Nobody looks, and the next look knows nothing of this one.
        repeats.tick(Now(begin + SECOND));
        repeats.add(watched(1, begin + SECOND), Now(begin + SECOND + 10));
        repeats.tick(Now(begin + PERIOD * SECOND));
        repeats.add(watched(1, begin), Now(begin + 10));
        let counts = repeats.iter().next().map(|(_, repeated)| repeated);
        let counts = counts.map(|counts| (counts.requests, counts.repeats));
        assert_eq!(counts, Some((5, 2)));
    }
}
