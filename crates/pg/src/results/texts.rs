//! TextStatements: the statements that stand for query strings that differ only in their literals.
//!
//! One text of them is a statement like those that clients prepare: whether it is a read is found
//! out in the same way. The number of a text is that of the bytes outside of its literals; with the
//! literals it says all that the text says.

use std::hash::BuildHasherDefault;
use std::rc::Rc;

use hashlink::LruCache;
use refrain_cache::Seed;
use refrain_sql::normalize::{self, Key, Sample, Span};

use crate::ground::ids::EnvId;
use crate::results::store::ResultStore;
use crate::statements::of_core::CachedStatement;
use crate::statements::of_server::IdHasher;

/// Most literals of a text whose reply is kept.
pub(crate) const LITERALS_MAX: usize = 256;
/// Most statements that a pool remembers on a core.
const STATEMENTS_MAX: usize = 4096;

/// A statement that stands for texts.
#[derive(Clone, Debug)]
pub(crate) struct TextStatement {
    sample: Rc<Sample>,
    env: EnvId,
    /// The number of the bytes outside of the literals.
    pub(crate) number: u64,
    pub(crate) cached: Rc<CachedStatement>,
}

/// The statements that stand for texts, of one pool on one core.
#[derive(Debug)]
pub(crate) struct TextStatements {
    table: LruCache<Key, TextStatement, BuildHasherDefault<IdHasher>>,
}

impl Default for TextStatements {
    fn default() -> Self {
        Self { table: LruCache::with_hasher(STATEMENTS_MAX, BuildHasherDefault::default()) }
    }
}

/// A text with its literals, and the settings under which it is read.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) spans: &'a [Span],
    pub(crate) key: Key,
    pub(crate) env: EnvId,
}

impl TextStatements {
    /// Returns the statement that stands for a text.
    #[inline]
    pub(crate) fn find(&mut self, seen: Seen<'_>) -> Option<&TextStatement> {
        let found = self.table.get(&seen.key)?;
        (found.env == seen.env && found.sample.matches(seen.text, seen.spans)).then_some(found)
    }

    /// Adds a statement that stands for a text.
    pub(crate) fn add(
        &mut self,
        store: &ResultStore,
        seen: Seen<'_>,
        cached: Rc<CachedStatement>,
    ) -> TextStatement {
        let number = store.numbers.number(&outside(seen.text, seen.spans));
        let sample = Rc::new(Sample::new(seen.text, seen.spans));
        let statement = TextStatement { sample, env: seen.env, number, cached };
        self.table.insert(seen.key, statement.clone());
        statement
    }
}

/// Returns the bytes of a text outside of its literals, with the class of each literal in its place.
fn outside(text: &[u8], spans: &[Span]) -> Vec<u8> {
    let mut bytes = b"text ".to_vec();
    let mut at = 0;
    for span in spans {
        bytes.extend_from_slice(text.get(at..span.start as usize).unwrap_or_default());
        // No text has a zero byte.
        bytes.extend_from_slice(&[0, span.class as u8]);
        at = span.end as usize;
    }
    bytes.extend_from_slice(text.get(at..).unwrap_or_default());
    bytes
}

/// Returns the number of a text, without its literals where they can be told.
pub(crate) fn number(store: &ResultStore, seed: &Seed, text: &[u8]) -> u64 {
    let mut spans = Vec::new();
    if normalize::normalize(text, seed, LITERALS_MAX, &mut spans).is_err() {
        spans.clear();
    }
    store.numbers.number(&outside(text, &spans))
}
