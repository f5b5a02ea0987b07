//! Relations: the tables on whose rows the result of a statement depends, and those whose rows it
//! may change.
//!
//! What always holds: both count for one state of the schema. As long as nothing is known, a
//! statement may change anything.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_cache::Topic;

/// A table on whose rows the result of a statement depends, or something like a table.
///
/// It has two topics, by its OID and by its name: past Refrain it may get another name, or another
/// table may get its name, and Refrain does not learn of that for a while.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) oid: u32,
    /// The writes to it.
    pub(crate) topics: [Topic; 2],
    /// Its schema and its name.
    pub(crate) name: Box<str>,
}

impl Table {
    /// Whether it has this name, with or without a schema.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        is_called(&self.name, name)
    }
}

/// Whether a name with its schema is this name, which may have a schema.
pub(crate) fn is_called(full: &str, name: &str) -> bool {
    full == name || full.split_once('.').is_some_and(|(_, bare)| bare == name)
}

/// The rows that a statement may change.
#[derive(Clone, Debug, Default)]
pub(crate) enum Changes {
    /// Rows of any table of the database, or its schema.
    #[default]
    Anything,
    /// No rows.
    Nothing,
    /// Rows of these tables.
    Tables(Arc<[Topic]>),
}

/// The tables that a statement reads and those that it may change, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct Relations {
    known: Mutex<KnownRelations>,
    /// Counts how often the tables that it reads were found to be others.
    readings: AtomicU64,
}

#[derive(Debug, Default)]
struct KnownRelations {
    /// The count of schema changes as of which `changes` were found, if they were.
    as_of: Option<u64>,
    changes: Changes,
    reads: Arc<[Table]>,
    /// The writes to parents of these that reach all their children.
    above: Arc<[Topic]>,
}

impl Relations {
    /// Records the tables on whose rows the result depends, and the topics of writes to their
    /// parents that reach all children.
    pub(crate) fn learn_reads(&self, reads: Vec<Table>, above: Vec<Topic>) {
        let mut known = self.known();
        let of = |known: &[Table]| known.iter().flat_map(|it| it.topics.clone()).collect();
        let (old, new): (Vec<_>, Vec<_>) = (of(&known.reads), of(&reads));
        if !are_same(&old, &new) || !are_same(&known.above, &above) {
            (known.reads, known.above) = (reads.into(), above.into());
            self.readings.fetch_add(1, Relaxed);
        }
    }

    /// Records what the statement may change, as of this count of schema changes.
    pub(crate) fn learn_changes(&self, changes: Changes, schema_changes: u64) {
        let mut known = self.known();
        known.changes = changes;
        known.as_of = Some(schema_changes);
    }

    /// Counts how often the tables that it reads were found to be others.
    #[inline]
    pub(crate) fn readings(&self) -> u64 {
        self.readings.load(Relaxed)
    }

    /// Returns the tables on whose rows the result depends.
    pub(crate) fn reads(&self) -> Arc<[Table]> {
        self.known().reads.clone()
    }

    /// Returns the topics of writes to their parents that reach all children.
    pub(crate) fn above(&self) -> Arc<[Topic]> {
        self.known().above.clone()
    }

    /// Returns what the statement may change, as of this count of schema changes.
    pub(crate) fn changes(&self, schema_changes: u64) -> Changes {
        let known = self.known();
        if known.as_of == Some(schema_changes) { known.changes.clone() } else { Changes::Anything }
    }

    /// Whether what the statement may change was found as of another count of schema changes.
    pub(crate) fn are_voided(&self, schema_changes: u64) -> bool {
        self.known().as_of.is_some_and(|as_of| as_of != schema_changes)
    }

    /// Forgets what the statement may change if it was found as of another count of schema changes.
    /// True if there was something to forget, which one core alone sees.
    pub(crate) fn take_voided(&self, schema_changes: u64) -> bool {
        let voided = |as_of: &mut u64| *as_of != schema_changes;
        self.known().as_of.take_if(voided).is_some()
    }

    fn known(&self) -> MutexGuard<'_, KnownRelations> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn are_same(old: &[Topic], new: &[Topic]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.is(new))
}
