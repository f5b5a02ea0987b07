//! Hidden: the words of texts behind which a database hides volatile functions, as a server has
//! said.
//!
//! What: functions, views, operators, casts, domains and policies that run a volatile function are
//! words of texts ([`refrain_sql::hidden`]). A server is asked for all those of its database,
//! beside the question about statements, if they are not known or old.
//!
//! Why: most texts name none, and most databases have none. To follow the bodies of functions for
//! each statement would cost a server more than all the rest of the question.
//!
//! What always holds: the words count for one state of the schema. As long as they are not known, a
//! text may hide anything, and nothing is found out about statements.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_pool::Now;
use refrain_sql::hidden::{Hides, Words};

use crate::reads::question::{FIRST_OWN, oids};
use crate::statements::statement::Statement;

/// Time after which the words are asked for again, in microseconds: the schema may change past
/// Refrain.
const AGE_US: u64 = 60_000_000;
/// Most words. A database with more hides something behind each text.
const WORDS_MAX: usize = 4096;

/// The words of a database.
#[derive(Debug, Default)]
pub(crate) struct Hidden {
    /// One more than the count of schema changes as of which there are none.
    none_as_of: AtomicU64,
    known: Mutex<Option<KnownWords>>,
}

#[derive(Debug)]
struct KnownWords {
    words: Arc<Words>,
    schema_changes: u64,
    at: Now,
}

impl Hidden {
    /// True if it is known that no text hides anything, as of this count of schema changes.
    #[inline]
    pub(crate) fn are_none(&self, schema_changes: u64) -> bool {
        self.none_as_of.load(Relaxed) == schema_changes + 1
    }

    /// Returns the words as of this count of schema changes.
    pub(crate) fn words(&self, schema_changes: u64) -> Option<Arc<Words>> {
        let known = self.known();
        let current = known.as_ref().filter(|known| known.schema_changes == schema_changes);
        current.map(|known| known.words.clone())
    }

    /// Whether a server is to be asked for them.
    pub(crate) fn are_due(&self, schema_changes: u64, now: Now) -> bool {
        let known = self.known();
        let current = known.as_ref().filter(|known| known.schema_changes == schema_changes);
        current.is_none_or(|known| known.at.0 + AGE_US <= now.0)
    }

    /// Records the words as of this count of schema changes. True if they are others than those as
    /// of the same count before, or the first that there are: nothing has counted the change. Then
    /// they are those as of the next count.
    pub(crate) fn learn(&self, words: Words, schema_changes: u64, now: Now) -> bool {
        let words = if are_too_many(&words) { Words::any() } else { words };
        let mut known = self.known();
        let silent = match &*known {
            // Another has asked since.
            Some(before) if before.schema_changes > schema_changes => return false,
            Some(before) if before.schema_changes == schema_changes => *before.words != words,
            Some(_) => false,
            None => !words.is_empty(),
        };
        // The change that nothing has counted is to be counted.
        let schema_changes = schema_changes + u64::from(silent);
        self.none_as_of.store(if words.is_empty() { schema_changes + 1 } else { 0 }, Relaxed);
        *known = Some(KnownWords { words: Arc::new(words), schema_changes, at: now });
        silent
    }

    fn known(&self) -> MutexGuard<'_, Option<KnownWords>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if there are more words than are kept.
pub(crate) fn are_too_many(words: &Words) -> bool {
    words.len() > WORDS_MAX
}

/// Returns what a statement may hide behind words.
pub(crate) fn hidden_in(statement: &Statement, words: &Words) -> Hides {
    words.hidden(statement.text(), oids(statement.parameters()).any(|oid| oid >= FIRST_OWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(names: impl Iterator<Item = usize>) -> Words {
        let mut words = Words::default();
        names.for_each(|name| words.add(name.to_string().as_bytes(), Hides::Volatile));
        words
    }

    #[test]
    fn words_count_for_one_state_of_the_schema_and_a_minute() {
        let hidden = Hidden::default();
        assert!(!hidden.are_none(0) && hidden.are_due(0, Now(1)) && hidden.words(0).is_none());
        assert!(!hidden.learn(Words::default(), 0, Now(1)));
        assert!(hidden.are_none(0) && !hidden.are_none(1));
        assert!(!hidden.are_due(0, Now(AGE_US)) && hidden.are_due(0, Now(1 + AGE_US)));
        assert!(hidden.are_due(1, Now(2)) && hidden.words(1).is_none());
        assert!(!hidden.learn(words(0..1), 1, Now(2)), "the count has told of it");
        assert!(!hidden.are_none(0) && !hidden.are_none(1));
        assert_eq!(hidden.words(1).as_deref(), Some(&words(0..1)));
    }

    #[test]
    fn a_change_past_refrain_shows_in_the_words() {
        let hidden = Hidden::default();
        assert!(hidden.learn(words(0..1), 0, Now(1)), "verdicts may be older");
        assert!(hidden.words(0).is_none() && hidden.words(1).is_some());
        assert!(!hidden.learn(words(0..2), 0, Now(2)), "another has asked since");
        assert!(!hidden.learn(words(0..1), 1, Now(2)));
        assert!(hidden.learn(words(0..2), 1, Now(3)));
        assert!(hidden.learn(Words::default(), 2, Now(4)) && hidden.are_none(3));
    }

    #[test]
    fn too_many_words_are_all() {
        let hidden = Hidden::default();
        hidden.learn(words(0..WORDS_MAX), 0, Now(1));
        assert_eq!(hidden.words(1).map(|words| words.len()), Some(WORDS_MAX));
        hidden.learn(words(0..WORDS_MAX + 1), 2, Now(1));
        assert_eq!(hidden.words(2).as_deref(), Some(&Words::any()));
    }
}
