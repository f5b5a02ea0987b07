//! Texts that clients send as such (COM_QUERY), where each is counted by itself.
//!
//! Texts that differ in their literals alone are one, which is found by the hash of the beginning
//! of the text as people may see it (`shown`). Only a text that is new is written down.
//!
//! A core counts them if `stat_texts` says so: a text has to be read once more for that.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use hashbrown::HashTable;
use refrain_config::General;
use refrain_pool::figures::StatementFigures;
use refrain_pool::ids::PoolId;
use refrain_pool::seed::Seed;

use crate::registry::number_of;
use crate::shown::beginning;

/// One text for so many statements with figures may be known and have none any more.
const STALE_PART: usize = 8;
/// So many more may.
const STALE_MORE: usize = 16;

/// The choice of what cores count, by the options.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    /// Statements of which a core has figures, at most.
    most: AtomicUsize,
    /// Whether each text is counted by itself.
    texts: AtomicBool,
}

impl Counting {
    /// Takes what the options say.
    pub(crate) fn set(&self, options: &General) {
        self.most.store(options.stat_statements_max as usize, Relaxed);
        self.texts.store(options.stat_texts && options.stat_statements_max > 0, Relaxed);
    }

    /// Makes the figures and texts of a core.
    pub(crate) fn begin(&self, seed: Seed) -> (StatementFigures, Texts) {
        let (mut figures, mut texts) = (StatementFigures::default(), Texts::new(seed));
        self.apply(&mut figures, &mut texts);
        (figures, texts)
    }

    /// Has a core count what the options say by now.
    pub(crate) fn apply(&self, figures: &mut StatementFigures, texts: &mut Texts) {
        figures.limit(self.most.load(Relaxed));
        texts.set(self.texts.load(Relaxed));
    }
}

/// A text that is counted by itself.
#[derive(Clone, Debug)]
pub struct KnownText {
    /// Its number.
    pub id: u64,
    /// Its pool.
    pub pool: PoolId,
    /// The text as people may see it.
    pub shown: Arc<str>,
}

/// The texts that a core counts by themselves.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    is_on: bool,
    seed: Seed,
    known: HashTable<KnownText>,
    /// Room for a text as people may see it.
    room: Vec<u8>,
}

impl Texts {
    /// Makes an empty list.
    fn new(seed: Seed) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Counts texts by themselves from now on, or together.
    fn set(&mut self, is_on: bool) {
        self.is_on = is_on;
        if !is_on && !self.known.is_empty() {
            self.known = HashTable::new();
        }
    }

    /// Returns the number of a text of a pool; 0 if it is counted with others. `is_multibyte` says
    /// whether a byte of a character may be a quote, if anybody asks.
    #[inline]
    pub(crate) fn number(
        &mut self,
        pool: PoolId,
        (text, is_multibyte): (&[u8], impl FnOnce() -> bool),
        figures: &StatementFigures,
    ) -> u64 {
        if self.is_on { self.find(pool, (text, is_multibyte()), figures) } else { 0 }
    }

    fn find(
        &mut self,
        pool: PoolId,
        (text, is_multibyte): (&[u8], bool),
        figures: &StatementFigures,
    ) -> u64 {
        let shown = beginning(text, is_multibyte, &mut self.room);
        // A text and a prepared statement with the same letters are two.
        let id = number_of(self.seed.hash_one((pool, b'Q', &shown)));
        if self.known.find(id, |known| known.id == id).is_none() {
            let text = KnownText { id, pool, shown: shown.into() };
            self.add(text, figures);
        }
        id
    }

    /// Adds a text. Those that have no figures any more make room.
    #[cold]
    fn add(&mut self, text: KnownText, figures: &StatementFigures) {
        let count = figures.statements();
        if self.known.len() >= count + count / STALE_PART + STALE_MORE {
            let counted = figures.ids();
            self.known.retain(|known| counted.contains(&known.id));
        }
        self.known.insert_unique(text.id, text, |known| known.id);
    }

    /// Returns what is shown of the text of this number, if it is known.
    pub(crate) fn shown(&self, id: u64) -> Option<&str> {
        self.known.find(id, |known| known.id == id).map(|known| &*known.shown)
    }

    /// Returns the texts that are known.
    pub(crate) fn all(&self) -> Vec<KnownText> {
        self.known.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: PoolId = PoolId(3);

    fn counting(most: usize) -> (Texts, StatementFigures) {
        let (mut texts, mut figures) = (Texts::default(), StatementFigures::default());
        texts.set(true);
        figures.limit(most);
        (texts, figures)
    }

    fn number(texts: &mut Texts, figures: &StatementFigures, text: &str) -> u64 {
        texts.number(POOL, (text.as_bytes(), || false), figures)
    }

    #[test]
    fn texts_that_are_shown_alike_are_one() {
        let (mut texts, figures) = counting(10);
        let one = number(&mut texts, &figures, "SELECT a FROM t");
        for text in ["  SELECT a FROM t\n", "SELECT/* b */a FROM t", "/* c */ SELECT a FROM t"] {
            assert_eq!(number(&mut texts, &figures, text), one, "{text}");
        }
        let multibyte = texts.number(POOL, (b"SELECT `\x81` FROM t", || true), &figures);
        assert_ne!(texts.number(POOL, (b"SELECT `\x81` FROM t", || false), &figures), multibyte);
    }

    /// Far more may have figures than do: their blocks are limited too.
    #[test]
    fn texts_are_known_for_the_statements_with_figures() {
        let (mut texts, mut figures) = counting(100_000);
        for at in 0..2_000 {
            let id = number(&mut texts, &figures, &format!("SELECT c{at}x"));
            if at % 20 == 0 {
                figures.count(id, POOL, 1, 1);
            }
        }
        let (known, due) = (texts.all(), figures.ids());
        assert_eq!((due.len(), figures.statements()), (100, 100));
        assert!(known.len() <= 100 + 100 / STALE_PART + STALE_MORE + 1, "{}", known.len());
        assert!(due.iter().all(|id| known.iter().any(|text| text.id == *id)));
    }

    #[test]
    fn texts_that_differ_in_literals_are_one() {
        let (mut texts, figures) = counting(10);
        let mut number =
            |pool, text: &str| texts.number(pool, (text.as_bytes(), || false), &figures);
        let one = number(POOL, "SELECT a FROM t WHERE id = 1 AND b = 'x'");
        assert_eq!(number(POOL, "SELECT a FROM t WHERE id = 4711 AND b = 'it''s'"), one);
        let others = [
            number(POOL, "SELECT a FROM t WHERE id = a AND b = 'x'"),
            number(PoolId(4), "SELECT a FROM t WHERE id = 1 AND b = 'x'"),
            number(POOL, "SELECT a FROM t"),
            one,
        ];
        let distinct: std::collections::HashSet<_> = others.into_iter().collect();
        assert_eq!((distinct.len(), texts.all().len()), (4, 4));
        let shown: Vec<_> = texts.all().into_iter().filter(|text| text.id == one).collect();
        assert_eq!(&*shown[0].shown, "SELECT a FROM t WHERE id = 0 AND b = ''");
    }

    #[test]
    fn long_texts_are_one_by_their_beginning() {
        let (mut texts, figures) = counting(10);
        let rows = |count: usize, value: &str| {
            let rows = vec![format!("(1, '{value}')"); count].join(", ");
            format!("INSERT INTO t VALUES {rows}")
        };
        let mut number = |text: String| texts.number(POOL, (text.as_bytes(), || false), &figures);
        let long = number(rows(1_000, "x"));
        assert_eq!(number(rows(900, "another")), long);
        assert_ne!(number(rows(2, "x")), long);
        let shown = &texts.all()[0].shown;
        assert!(texts.all().iter().all(|text| text.shown.len() <= 1_024), "{shown}");
    }

    #[test]
    fn their_number_is_limited_and_off_is_off() {
        let (mut texts, mut figures) = counting(8);
        for at in 0..1_000 {
            let id = number(&mut texts, &figures, &format!("SELECT c{at}x"));
            figures.count(id, POOL, 1, 1);
            assert!(texts.all().iter().any(|text| text.id == id));
        }
        assert!(texts.all().len() <= 8 + 1 + STALE_MORE, "{}", texts.all().len());
        texts.set(false);
        assert_eq!((number(&mut texts, &figures, "SELECT 1"), texts.all().len()), (0, 0));
    }
}
