//! Normalized queries: texts that differ only in their literals, found by all the rest of them.
//!
//! An application that writes its values into the text of an INSERT sends a new text each time. All
//! of these texts share one entry here. Only INSERT is looked up, because only there a literal's
//! place says what becomes of it (`dialect/literals.rs`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;
use hashlink::LruCache;
use refrain_sql::lex::Lexer;
use refrain_sql::normalize::{Key, Sample, Span, normalize};

/// The most normalized queries that are kept.
const KEPT_MAX: usize = 1024;
/// The most literals of a text that is looked up.
const LITERALS_MAX: usize = 1000;

/// The normalized queries that are kept: each with a `T`, or a note that it has none.
pub(crate) struct NormalizedQueries<T> {
    seed: RandomState,
    kept: Mutex<LruCache<Key, NormalizedQuery<T>>>,
}

/// A normalized query that is kept.
struct NormalizedQuery<T> {
    sample: Arc<Sample>,
    found: Option<T>,
}

/// The literals of a text, and where its normalized query is found.
pub(crate) struct NormalizedText {
    pub(crate) key: Key,
    pub(crate) spans: Vec<Span>,
}

impl<T> Default for NormalizedQueries<T> {
    fn default() -> Self {
        Self { seed: RandomState::default(), kept: Mutex::new(LruCache::new(KEPT_MAX)) }
    }
}

impl<T: Clone> NormalizedQueries<T> {
    fn kept(&self) -> MutexGuard<'_, LruCache<Key, NormalizedQuery<T>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the literals of an INSERT; none if it has none, or cannot be normalized.
    pub(crate) fn read(&self, text: &str) -> Option<NormalizedText> {
        let first = Lexer::new(text.as_bytes(), false).significant()?;
        if !first.of(text.as_bytes()).eq_ignore_ascii_case(b"insert") {
            return None;
        }
        let mut spans = Vec::new();
        let key = normalize(text.as_bytes(), &self.seed, LITERALS_MAX, &mut spans).ok()?;
        (!spans.is_empty()).then_some(NormalizedText { key, spans })
    }

    /// Returns what is kept of a text's normalized query; none if it is not known.
    pub(crate) fn get(&self, text: &str, of: &NormalizedText) -> Option<Option<T>> {
        let mut kept = self.kept();
        let known = kept.get(&of.key)?;
        known.sample.matches(text.as_bytes(), &of.spans).then(|| known.found.clone())
    }

    /// Keeps something of a normalized query, or that there is nothing.
    pub(crate) fn set(&self, key: Key, sample: Arc<Sample>, found: Option<T>) {
        self.kept().insert(key, NormalizedQuery { sample, found });
    }

    /// Forgets a normalized query.
    pub(crate) fn forget(&self, key: &Key) {
        self.kept().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_in_literals_alone_share_an_entry() {
        let queries = NormalizedQueries::default();
        let first = "INSERT INTO t VALUES (1, 'a')";
        let read = queries.read(first).unwrap();
        assert_eq!(queries.get(first, &read), None);
        let sample = Arc::new(Sample::new(first.as_bytes(), &read.spans));
        queries.set(read.key, sample, Some("found"));
        let get = |text: &str| queries.get(text, &queries.read(text).unwrap());
        assert_eq!(get("INSERT INTO t VALUES (1, 'a')"), Some(Some("found")));
        assert_eq!(get("INSERT INTO t VALUES (22, 'it''s')"), Some(Some("found")));
        for other in [
            "INSERT INTO t VALUES (1,  'a')",
            "INSERT INTO t VALUES (1, E'a')",
            "INSERT INTO t VALUES (3000000000, 'a')",
            "INSERT INTO t VALUES (1.0, 'a')",
            "INSERT INTO t VALUES (-1, 'a')",
            "INSERT INTO u VALUES (1, 'a')",
        ] {
            assert_eq!(get(other), None, "{other}");
        }
        queries.forget(&read.key);
        assert_eq!(get(first), None);
    }

    #[test]
    fn what_is_no_insert_with_literals_is_not_looked_up() {
        let queries = NormalizedQueries::<()>::default();
        for text in [
            "SELECT 1",
            "UPDATE t SET a = 1",
            "INSERT INTO t VALUES ($1)",
            "INSERT INTO t VALUES ($1, 2)",
            "INSERT INTO t DEFAULT VALUES",
            "INSERT INTO t VALUES (1); SELECT 2",
            "",
        ] {
            assert!(queries.read(text).is_none(), "{text}");
        }
    }
}
