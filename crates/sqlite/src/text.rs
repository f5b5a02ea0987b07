//! A text and its hash, by which the cache finds a statement.
//!
//! The hash is over the exact bytes and is computed once: a caller that runs a text again and again
//! keeps the hash beside it and need not walk over the text.

use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

/// Seeded once for each process, so that a client cannot choose texts that collide.
static SEED: LazyLock<foldhash::quality::RandomState> = LazyLock::new(Default::default);

/// A text with its hash.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    sql: &'a str,
    hash: u64,
}

impl<'a> Text<'a> {
    /// Hashes a text.
    pub fn new(sql: &'a str) -> Text<'a> {
        let mut hasher = SEED.build_hasher();
        hasher.write(sql.as_bytes());
        Text { sql, hash: hasher.finish() }
    }

    /// Makes a text whose [`Text::hash`] was computed before, in this process.
    ///
    /// A wrong hash finds no statement. It cannot find a wrong one, as the bytes are compared.
    pub fn with_hash(sql: &'a str, hash: u64) -> Text<'a> {
        Text { sql, hash }
    }

    /// Returns the text.
    pub fn sql(&self) -> &'a str {
        self.sql
    }

    /// Returns its hash, which is the same in all connections of this process.
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(sql: &'a str) -> Self {
        Text::new(sql)
    }
}

/// First words of statements that are never kept.
///
/// Some change the schema and with it every statement, some run once in the life of a database, and
/// some answer from facts that SQLite reads when it compiles them.
const NEVER_KEPT: &[&str] = &[
    "ALTER", "ANALYZE", "ATTACH", "CREATE", "DETACH", "DROP", "EXPLAIN", "PRAGMA", "REINDEX",
    "VACUUM",
];

/// True if a statement of this text may be kept.
pub(crate) fn may_be_kept(sql: &str) -> bool {
    let word = first_word(sql);
    !NEVER_KEPT.iter().any(|never| never.eq_ignore_ascii_case(word))
}

/// Returns the first word after white space, comments and empty statements.
pub(crate) fn first_word(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c', ';', '\u{feff}']);
        let (end, length) = match rest.as_bytes() {
            [b'-', b'-', ..] => (rest.find('\n'), 1),
            [b'/', b'*', ..] => (rest[2..].find("*/").map(|end| end + 2), 2),
            _ => break,
        };
        rest = end.map_or("", |end| &rest[end + length..]);
    }
    let end = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
    &rest[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_over_the_exact_bytes() {
        assert_eq!(Text::new("SELECT 1").hash(), Text::new("SELECT 1").hash());
        assert_ne!(Text::new("SELECT 1").hash(), Text::new("SELECT 1 ").hash());
    }

    #[test]
    fn words_behind_comments() {
        let cases = [
            ("SELECT 1", "SELECT"),
            (" -- a\n/* b */ ;drop table t", "drop"),
            ("/* open", ""),
            ("-- only", ""),
            ("(VALUES (1))", ""),
            ("/*/ x */ PRAGMA a", "PRAGMA"),
        ];
        for (sql, word) in cases {
            assert_eq!(first_word(sql), word, "{sql}");
        }
        assert!(may_be_kept("INSERT INTO t VALUES (1)"));
        assert!(!may_be_kept("Create TABLE t (a)"));
    }
}
