//! TextStatements: the statements that stand for query strings that differ only in their literals.
//!
//! One text stands for them, with literals of no meaning. It is a statement like those that clients
//! prepare: whether it is a read is found out in the same way, by what it names. No server gets it.
//! The number of that text says with the literals all that a query string says.

use std::hash::BuildHasherDefault;
use std::rc::Rc;

use hashlink::LruCache;
use refrain_cache::Seed;
use refrain_sql::comments::without_comments;
use refrain_sql::normalize::{self, Class, Key, Sample, Span};

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

impl Seen<'_> {
    /// Returns the text's place in the table. Texts that are read under other settings have others.
    #[inline]
    fn place(&self) -> Key {
        Key(self.key.0 ^ self.env.mixed().wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

impl TextStatements {
    /// Returns the statement that stands for a text.
    #[inline]
    pub(crate) fn find(&mut self, seen: Seen<'_>) -> Option<&TextStatement> {
        let found = self.table.get(&seen.place())?;
        (found.env == seen.env && found.sample.matches(seen.text, seen.spans)).then_some(found)
    }

    /// Adds a statement that stands for a text.
    pub(crate) fn add(
        &mut self,
        store: &ResultStore,
        seen: Seen<'_>,
        cached: Rc<CachedStatement>,
    ) -> TextStatement {
        let number = number_of(store, &canonical(seen.text, seen.spans));
        let sample = Rc::new(Sample::new(seen.text, seen.spans));
        let statement = TextStatement { sample, env: seen.env, number, cached };
        self.table.insert(seen.place(), statement.clone());
        statement
    }
}

/// Returns a text with other literals: the same for all texts that differ only in these.
pub(crate) fn canonical(text: &[u8], spans: &[Span]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        bytes.extend_from_slice(text.get(at..span.start as usize).unwrap_or_default());
        bytes.extend_from_slice(match span.class {
            Class::Int4 => b"0",
            Class::Int4Edge => b"2147483648",
            Class::Int8 => b"4294967296",
            Class::Int8Edge => b"9223372036854775808",
            Class::Numeric => b"0.5",
            Class::Str => b"''",
            Class::EStr => b"E''",
            Class::Dollar => b"$$$$",
            Class::Bit => b"B''",
            Class::Hex => b"X''",
        });
        at = span.end as usize;
    }
    bytes.extend_from_slice(text.get(at..).unwrap_or_default());
    bytes
}

/// Returns the number of a canonical text.
fn number_of(store: &ResultStore, canonical: &[u8]) -> u64 {
    store.numbers.number(&[b"text ", canonical].concat())
}

/// Returns the text that stands for a text without its comments, and for all that differ from it
/// only in literals, where these can be told.
pub(crate) fn canonical_of(seed: &Seed, text: impl AsRef<[u8]>) -> Box<[u8]> {
    let text = without_comments(text.as_ref().trim_ascii(), false);
    let mut spans = Vec::new();
    if normalize::normalize(&text, seed, LITERALS_MAX, &mut spans).is_err() {
        spans.clear();
    }
    canonical(&text, &spans).into()
}

/// Returns a text for people to look at, with literals of no meaning and without comments. A rule
/// of the cache for that text is one for this.
pub fn without_literals(text: &[u8]) -> String {
    let bare = without_comments(text.trim_ascii(), false);
    let mut spans = Vec::new();
    let found = normalize::normalize(&bare, &Seed::default(), LITERALS_MAX, &mut spans);
    let shown = match found {
        Ok(_) => canonical(&bare, &spans),
        Err(_) => refrain_sql::literals::without_literals(&bare),
    };
    String::from_utf8_lossy(&shown).into_owned()
}

/// Whether a literal of a text may name a moment that depends on the present.
pub(crate) fn name_moment(text: &[u8], seed: &Seed) -> bool {
    let mut spans = Vec::new();
    let found = normalize::normalize(text, seed, LITERALS_MAX, &mut spans);
    found.is_ok() && spans.iter().any(|span| span.names_moment(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_only_in_literals_have_one_canonical_text_which_is_its_own() {
        let of = |text: &str| {
            let mut spans = Vec::new();
            let found = normalize::normalize(text.as_bytes(), &Seed::default(), 99, &mut spans);
            assert!(found.is_ok(), "{text}");
            String::from_utf8(canonical(text.as_bytes(), &spans)).unwrap()
        };
        let all = "select 1, 2147483648, 5000000000, 9223372036854775808, 1e9, 'a', E'\\n', \
                   $x$y$x$, B'01', X'ff' from t";
        let canonical = of(all);
        assert_eq!(of(&canonical), canonical);
        assert_eq!(of("select 7 from t where a='x'"), of("select 12345 from t where a='it''s'"));
        assert_ne!(of("select 7 from t"), of("select '7' from t"));
    }
}
