//! PublishedTables: those that replies read, and whether all their changes are in the stream.
//!
//! A table counts as covered once all transactions are over that ran when it was first seen
//! published: what they wrote before that never comes. The same is true of a table that gets
//! another partition, and of all tables when a publication has changed.

use std::collections::{BTreeMap, BTreeSet};

use crate::changes::questions::Looked;
use crate::changes::snapshot::XidSnapshot;
use crate::changes::waits::Waits;
use crate::results::changes::Uncovered;

/// Whether tables are covered, by OID.
pub(super) type FoundCoverage = BTreeMap<u32, Result<(), Uncovered>>;

/// The tables that replies read.
#[derive(Debug, Default)]
pub(super) struct PublishedTables {
    known: BTreeMap<u32, PublishedTable>,
    /// Differs if a publication was changed.
    as_of: String,
    /// The news that were told last, of each table.
    told: FoundCoverage,
}

#[derive(Debug)]
struct PublishedTable {
    members: BTreeSet<u32>,
    published: Result<(), Uncovered>,
    /// The transactions that may have written before it was published.
    waits: Option<Waits>,
}

impl PublishedTables {
    /// Takes in what the catalog says of these tables. The first snapshot behind this has the
    /// number `next`; without it nothing is waited for, which is a bug that a test plants.
    pub(super) fn learn(&mut self, asked: &[u32], mut looked: Looked, next: Option<u64>) {
        let is_same = looked.as_of == self.as_of;
        self.as_of = looked.as_of;
        for oid in asked {
            let missing = || (BTreeSet::new(), Err(Uncovered::Missing));
            let (members, published) = looked.tables.remove(oid).unwrap_or_else(missing);
            let before = self
                .known
                .remove(oid)
                .filter(|before| is_same && before.published.is_ok() && before.members == members);
            let waits = match before {
                Some(before) => before.waits,
                None => next.map(Waits::new),
            };
            self.known.insert(*oid, PublishedTable { members, published, waits });
        }
    }

    /// Takes in a snapshot.
    pub(super) fn hear(&mut self, number: u64, snapshot: &XidSnapshot) {
        for table in self.known.values_mut() {
            table.waits.take_if(|waits| waits.hears(number, snapshot));
        }
    }

    /// Whether a snapshot may show that a table is covered.
    pub(super) fn wait(&self) -> bool {
        self.known.values().any(|table| table.published.is_ok() && table.waits.is_some())
    }

    /// Returns the tables of which something else is true than was told before, and what.
    pub(super) fn news(&mut self) -> FoundCoverage {
        let mut news = FoundCoverage::new();
        for (oid, table) in &self.known {
            let late = if table.waits.is_some() { Err(Uncovered::Late) } else { Ok(()) };
            let found = table.published.and(late);
            if self.told.get(oid) != Some(&found) {
                news.insert(*oid, found);
            }
        }
        self.told.extend(news.iter().map(|(oid, found)| (*oid, *found)));
        // A table that is gone is forgotten, as by whom it is told.
        for (oid, _) in news.iter().filter(|(_, found)| **found == Err(Uncovered::Missing)) {
            self.known.remove(oid);
            self.told.remove(oid);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(published: Result<(), Uncovered>, members: &[u32], as_of: &str) -> Looked {
        let table = (members.iter().copied().collect(), published);
        Looked { tables: [(7, table)].into(), as_of: as_of.to_owned(), ..Looked::default() }
    }

    fn snapshot(text: &str) -> XidSnapshot {
        XidSnapshot::read(text).unwrap()
    }

    #[test]
    fn a_table_is_covered_once_those_are_over_that_ran_when_it_was_first_seen_published() {
        let mut tables = PublishedTables::default();
        tables.learn(&[7], looked(Err(Uncovered::Unpublished), &[7], "a"), Some(1));
        assert_eq!(tables.news(), [(7, Err(Uncovered::Unpublished))].into());
        assert!(!tables.wait());
        tables.learn(&[7], looked(Ok(()), &[7], "b"), Some(4));
        assert_eq!(tables.news(), [(7, Err(Uncovered::Late))].into());
        tables.hear(3, &snapshot("9:9:"));
        assert!(tables.news().is_empty(), "that snapshot is from before");
        tables.hear(4, &snapshot("5:9:5"));
        tables.learn(&[7], looked(Ok(()), &[7], "b"), Some(5));
        tables.hear(5, &snapshot("5:12:5,11"));
        assert!(tables.news().is_empty() && tables.wait());
        tables.hear(6, &snapshot("11:12:11"));
        assert_eq!(tables.news(), [(7, Ok(()))].into());
        tables.learn(&[7], looked(Ok(()), &[7], "b"), Some(7));
        assert!(tables.news().is_empty());
    }

    #[test]
    fn another_child_and_another_publication_begin_the_wait_anew() {
        let mut tables = PublishedTables::default();
        for (number, (members, as_of)) in
            [(&[7][..], "a"), (&[7, 8], "a"), (&[7, 8], "b")].into_iter().enumerate()
        {
            let number = number as u64;
            tables.learn(&[7], looked(Ok(()), members, as_of), Some(number));
            assert_eq!(tables.news(), [(7, Err(Uncovered::Late))].into());
            tables.hear(number, &snapshot("9:9:"));
            assert_eq!(tables.news(), [(7, Ok(()))].into());
        }
        tables.learn(&[7], looked(Err(Uncovered::Kinds), &[7, 8], "b"), Some(9));
        assert_eq!(tables.news(), [(7, Err(Uncovered::Kinds))].into());
        tables.learn(&[7], Looked { as_of: "b".to_owned(), ..Looked::default() }, Some(9));
        assert_eq!(tables.news(), [(7, Err(Uncovered::Missing))].into());
        assert!(!tables.wait() && tables.known.is_empty());
    }
}
