//! PublishedTables: those that replies read, and whether all their changes are in the stream.
//!
//! A table counts as covered once all transactions are over that ran when it was first seen
//! published: what they wrote before that never comes. The same is true of a table that gets
//! another partition, and of all tables when a publication has changed.
//!
//! A table's rows are in relations below it, and a publication may name those above it in their
//! place. So a commit to a relation touches each table that is above or below it. The stream says
//! nothing when a relation moves: only the looks do, and the table is late from then on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use refrain_cache::Topic;

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
    /// The topics of the tables that a change of each relation touches.
    touched: HashMap<u32, Vec<Topic>>,
    /// Differs if a publication was changed.
    as_of: String,
    /// The news that were told last, of each table.
    told: FoundCoverage,
}

#[derive(Debug)]
struct PublishedTable {
    /// It, and the relations above and below it.
    relatives: BTreeSet<u32>,
    published: Result<(), Uncovered>,
    /// The transactions that may have written before it was published.
    waits: Option<Waits>,
}

impl PublishedTables {
    /// Takes in what the catalog says of these tables. The first snapshot behind this has the
    /// number `next`; without it nothing is waited for, which is a bug that a test plants. `topic`
    /// returns the topic of a table.
    pub(super) fn learn(
        &mut self,
        asked: &[u32],
        mut looked: Looked,
        next: Option<u64>,
        topic: impl Fn(u32) -> Topic,
    ) {
        let is_same = looked.as_of == self.as_of;
        self.as_of = looked.as_of;
        let mut have_moved = false;
        for oid in asked {
            let missing = || (BTreeSet::new(), Err(Uncovered::Missing));
            let (mut relatives, published) = looked.tables.remove(oid).unwrap_or_else(missing);
            let above = looked.above.get(oid).into_iter().flatten();
            relatives.extend(above.map(|(oid, _)| *oid));
            let before = self.known.remove(oid);
            let stays = before.as_ref().is_some_and(|before| before.relatives == relatives);
            have_moved |= !stays;
            let waits = match before.filter(|before| stays && is_same && before.published.is_ok()) {
                Some(before) => before.waits,
                None => next.map(Waits::new),
            };
            self.known.insert(*oid, PublishedTable { relatives, published, waits });
        }
        if have_moved {
            self.touched.clear();
            for (oid, table) in &self.known {
                let topic = topic(*oid);
                for relative in &table.relatives {
                    self.touched.entry(*relative).or_default().push(topic.clone());
                }
            }
        }
    }

    /// Returns the topics of the tables that a change of a relation touches.
    pub(super) fn touched(&self, oid: u32) -> &[Topic] {
        self.touched.get(&oid).map_or(&[], |topics| topics)
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
        // Who is told forgets a table that is gone, and so does this: if it is asked about anew,
        // that is told anew.
        for (oid, _) in news.iter().filter(|(_, found)| **found == Err(Uncovered::Missing)) {
            self.known.remove(oid);
            self.told.remove(oid);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use refrain_cache::{Seed, Topics};

    use super::*;

    /// Takes in a look at table 7.
    fn learn(tables: &mut PublishedTables, looked: Looked, next: u64) {
        let topics = Topics::new(Seed::default());
        tables.learn(&[7], looked, Some(next), |oid| topics.topic(&oid.to_le_bytes()));
    }

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
        learn(&mut tables, looked(Err(Uncovered::Unpublished), &[7], "a"), 1);
        assert_eq!(tables.news(), [(7, Err(Uncovered::Unpublished))].into());
        assert!(!tables.wait());
        learn(&mut tables, looked(Ok(()), &[7], "b"), 4);
        assert_eq!(tables.news(), [(7, Err(Uncovered::Late))].into());
        tables.hear(3, &snapshot("9:9:"));
        assert!(tables.news().is_empty(), "that snapshot is from before");
        tables.hear(4, &snapshot("5:9:5"));
        learn(&mut tables, looked(Ok(()), &[7], "b"), 5);
        tables.hear(5, &snapshot("5:12:5,11"));
        assert!(tables.news().is_empty() && tables.wait());
        tables.hear(6, &snapshot("11:12:11"));
        assert_eq!(tables.news(), [(7, Ok(()))].into());
        learn(&mut tables, looked(Ok(()), &[7], "b"), 7);
        assert!(tables.news().is_empty());
    }

    #[test]
    fn another_child_and_another_publication_begin_the_wait_anew() {
        let mut tables = PublishedTables::default();
        for (number, (members, as_of)) in
            [(&[7][..], "a"), (&[7, 8], "a"), (&[7, 8], "b")].into_iter().enumerate()
        {
            let number = number as u64;
            learn(&mut tables, looked(Ok(()), members, as_of), number);
            assert_eq!(tables.news(), [(7, Err(Uncovered::Late))].into());
            tables.hear(number, &snapshot("9:9:"));
            assert_eq!(tables.news(), [(7, Ok(()))].into());
        }
        learn(&mut tables, looked(Err(Uncovered::Kinds), &[7, 8], "b"), 9);
        assert_eq!(tables.news(), [(7, Err(Uncovered::Kinds))].into());
        learn(&mut tables, Looked { as_of: "b".to_owned(), ..Looked::default() }, 9);
        assert_eq!(tables.news(), [(7, Err(Uncovered::Missing))].into());
        assert!(!tables.wait() && tables.known.is_empty());
    }

    #[test]
    fn a_change_touches_the_tables_above_and_below_as_the_last_look_has_found_them() {
        let topics = Topics::new(Seed::default());
        let topic = |oid: u32| topics.topic(&oid.to_le_bytes());
        let mut tables = PublishedTables::default();
        let mut look = |below: &[u32], above: &[u32]| {
            let mut looked = looked(Ok(()), below, "a");
            let above = above.iter().map(|oid| (*oid, String::new()));
            looked.above.insert(7, above.collect());
            looked.tables.insert(9, ([9, 8].into(), Ok(())));
            tables.learn(&[7, 9], looked, Some(1), topic);
            let late: Vec<u32> = tables.news().into_keys().collect();
            tables.hear(1, &snapshot("9:9:"));
            tables.news();
            let is = |oid: u32, of: u32| tables.touched(oid).iter().any(|it| it.is(&topic(of)));
            (late, [7, 8, 6, 5].map(|oid| [is(oid, 7), is(oid, 9)]))
        };
        let [both, one, other, none] = [[true, true], [true, false], [false, true], [false, false]];
        assert_eq!(look(&[7], &[]), (vec![7, 9], [one, other, none, none]));
        assert_eq!(look(&[7, 8], &[]), (vec![7], [one, both, none, none]));
        assert_eq!(look(&[7, 8, 6], &[5]), (vec![7], [one, both, one, one]));
        assert_eq!(look(&[7], &[5]), (vec![7], [one, other, none, one]));
    }
}
