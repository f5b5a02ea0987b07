//! Which versions of a row a read may return.
//!
//! A read must see what was committed before it was sent, by whichever client: PostgreSQL may tell
//! others of it before its answer is there. A cache may do with less, as far as its rule allows:
//! [`Staleness`] is that allowance.

use std::collections::BTreeMap;

use crate::rows::RowId;

/// The allowance of reads to miss what was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staleness {
    /// The age of a write that a read may miss, in microseconds, from its acknowledgement to the
    /// moment when the read was sent.
    pub age: u64,
    /// Whether clients may miss writes of that age that are their own.
    pub own: bool,
}

impl Staleness {
    /// Misses nothing: reads that a server answers, and a cache that hears of every write.
    pub const NONE: Self = Self { age: 0, own: false };
}

/// A write that its client knows to be committed.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    at: u64,
    client: usize,
    version: u32,
}

/// The acknowledged writes of a world.
#[derive(Debug, Default)]
pub struct Versions(BTreeMap<RowId, Vec<Acknowledged>>);

impl Versions {
    /// Notes that a client has learned that its write is committed.
    pub fn acknowledge(&mut self, row: RowId, at: u64, client: usize, version: u32) {
        self.0.entry(row).or_default().push(Acknowledged { at, client, version });
    }

    /// Returns the least version that a client's read of a row may return, if the read was sent at
    /// this time.
    pub fn least(&self, row: &RowId, sent: u64, client: usize, allowed: Staleness) -> u32 {
        let counts = |write: &&Acknowledged| {
            let misses = !write.is_of(client) || allowed.own;
            let age = if misses { allowed.age } else { 0 };
            write.at.saturating_add(age) <= sent
        };
        let known = self.0.get(row).into_iter().flatten().filter(counts);
        known.map(|write| write.version).max().unwrap_or(0)
    }
}

impl Acknowledged {
    fn is_of(&self, client: usize) -> bool {
        self.client == client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions() -> (RowId, Versions) {
        let row = ("rows_a".to_owned(), "k".to_owned());
        let mut versions = Versions::default();
        versions.acknowledge(row.clone(), 100, 1, 1);
        versions.acknowledge(row.clone(), 200, 2, 2);
        (row, versions)
    }

    #[test]
    fn a_read_sees_what_was_acknowledged_before_it_was_sent() {
        let (row, versions) = versions();
        let least = |sent| versions.least(&row, sent, 3, Staleness::NONE);
        assert_eq!([least(99), least(100), least(199), least(200)], [0, 1, 1, 2]);
        let other = ("rows_b".to_owned(), "k".to_owned());
        assert_eq!(versions.least(&other, 500, 3, Staleness::NONE), 0);
    }

    #[test]
    fn a_cache_may_miss_writes_that_are_young() {
        let (row, versions) = versions();
        let allowed = Staleness { age: 50, own: true };
        let least = |sent| versions.least(&row, sent, 2, allowed);
        assert_eq!([least(149), least(150), least(249), least(250)], [0, 1, 1, 2]);
    }

    #[test]
    fn a_session_sees_its_own_writes_at_once_and_those_of_others_late() {
        let (row, versions) = versions();
        let allowed = Staleness { age: 1_000, own: false };
        let least = |sent, client| versions.least(&row, sent, client, allowed);
        assert_eq!([least(200, 1), least(200, 2), least(200, 3)], [1, 2, 0]);
        assert_eq!(least(1_100, 3), 1);
    }
}
