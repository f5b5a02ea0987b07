//! An error as the client gets it.

use std::borrow::Cow;

use refrain_pg_wire::back::field;
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_sql::lex::{Lexer, TokenKind};
use refrain_sqlite::{Error, Interruption};

/// Names for the SQLSTATEs that sessions raise.
pub(crate) mod state {
    pub(crate) const PROTOCOL_VIOLATION: &str = "08P01";
    pub(crate) const NOT_SUPPORTED: &str = "0A000";
    pub(crate) const TOO_LARGE_NUMBER: &str = "22003";
    pub(crate) const BAD_DATETIME: &str = "22007";
    pub(crate) const BAD_PARAMETER_VALUE: &str = "22023";
    pub(crate) const BAD_BINARY: &str = "22P03";
    pub(crate) const BAD_TEXT: &str = "22P02";
    pub(crate) const BAD_COPY: &str = "22P04";
    pub(crate) const ACTIVE_TRANSACTION: &str = "25001";
    pub(crate) const NO_TRANSACTION: &str = "25P01";
    pub(crate) const FAILED_TRANSACTION: &str = "25P02";
    pub(crate) const READ_ONLY: &str = "25006";
    pub(crate) const NO_STATEMENT: &str = "26000";
    pub(crate) const NO_PORTAL: &str = "34000";
    pub(crate) const DUPLICATE_CURSOR: &str = "42P03";
    pub(crate) const DUPLICATE_STATEMENT: &str = "42P05";
    pub(crate) const SYNTAX: &str = "42601";
    pub(crate) const NO_OBJECT: &str = "42704";
    pub(crate) const WRONG_TYPE: &str = "42804";
    pub(crate) const LOCK_NOT_AVAILABLE: &str = "55P03";
    pub(crate) const CANCELLED: &str = "57014";
    pub(crate) const IO_ERROR: &str = "58030";
    pub(crate) const CORRUPT: &str = "XX001";
    pub(crate) const UNDEFINED_FILE: &str = "58P01";
}

/// The mark before each part of an error that a function raises and SQLite carries.
const CARRIED: char = '\u{2}';

/// The SQLSTATEs that functions raise.
const RAISED: &[&str] = &[
    "0A000", "21000", "22001", "22003", "22007", "22008", "22011", "22012", "2201W", "2201X",
    "2201E", "2201F", "22021", "22023", "22P02", "22P05", "42704", "42P01", "3F000", "23502",
    "40P01", "54000", "55000", "55P03", "55P04", "58000", "2200H",
];

/// Hints for SQLite's errors, by words of their messages.
const SQLITE_HINTS: &[(&str, &str)] = &[
    (
        "\"-shm\" was",
        "restart Refrain: all committed data is in the WAL, and SQLite makes a new index",
    ),
    ("out of memory", "sqlite_max_memory limits the memory of a connection: work in smaller parts"),
    ("integer overflow", "the sum is larger than a bigint: write sum(x::double precision)"),
    ("because it is a view", "write to the table that it reads"),
    ("no such table: pg_", "SQLite's own dialect has no catalog of PostgreSQL"),
    (
        "no such table: information_schema",
        "ask SQLite: SELECT name, type FROM sqlite_schema, PRAGMA table_info(t)",
    ),
    ("syntax error", "this was read as SQLite's dialect; docs/sqlite.md says when that is so"),
    (
        "ON CONFLICT clause does not match",
        "name the columns of one UNIQUE or PRIMARY KEY, each once",
    ),
    (
        "cannot drop UNIQUE column",
        "drop its constraint first: ALTER TABLE t DROP CONSTRAINT t_a_key",
    ),
    ("subqueries prohibited", "arrays are read by queries: compare with = and IN, or leave it out"),
    ("non-deterministic", "a partial index cannot have LIKE: compare with = < > or IN"),
    ("after drop column", "DROP INDEX first"),
    (
        "Cannot add a column with non-constant default",
        "create a new table, fill it with INSERT … SELECT, drop the old one and rename",
    ),
    (
        "Cannot add a NOT NULL column with default value NULL",
        "give it a default, or create a new table, fill it with INSERT … SELECT, drop the old one and rename",
    ),
    ("no such column", "SQLite does not see the column from there: put it into the query itself"),
    ("nested too deep", "the statement is too long for SQLite: read its parts one by one"),
    ("argument of ntile", "the number of groups must be larger than 0"),
    ("may not be altered", "DROP VIEW, then CREATE VIEW"),
    ("from view", "DROP VIEW, then CREATE VIEW"),
    ("columns of view", "DROP VIEW, then CREATE VIEW"),
    ("use DROP TABLE", "use DROP TABLE"),
    ("no other columns exist", "DROP TABLE, or add another column first"),
    ("pg_catalog", "only queries of psql and drivers on PostgreSQL's catalog are supported"),
    ("error in view", "DROP VIEW first, and create the view again afterwards"),
    ("circular reference", "WITH RECURSIVE needs UNION ALL, with the reference on its right side"),
];

/// SQLite's words for a duplicate key, and the hint for statements that move keys.
const TAKEN: (&str, &str) = (
    "UNIQUE constraint failed",
    "another row has this key. SQLite checks row by row: an UPDATE that moves several keys has to move them to free values first",
);

/// The message for a statement whose `statement_timeout` is over. A function that waits raises it
/// itself.
pub(crate) const TIMEOUT: &str = "canceling statement due to statement timeout";

/// The objects that an error is about; an empty name stands for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) table: String,
    pub(crate) column: String,
    pub(crate) constraint: String,
}

/// An error with all its fields for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) sqlstate: &'static str,
    pub(crate) message: Cow<'static, str>,
    pub(crate) hint: Cow<'static, str>,
    pub(crate) detail: Cow<'static, str>,
    /// The schema, table, column and constraint that it is about, where PostgreSQL tells them.
    pub(crate) about: Option<Box<About>>,
    /// Its position in the text, in characters from 1; 0 for none.
    pub(crate) position: usize,
    /// The routine where PostgreSQL raises it, for errors that clients recognise by that.
    pub(crate) routine: &'static str,
}

impl Failure {
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        let (message, hint, detail) = (message.into(), Cow::Borrowed(""), Cow::Borrowed(""));
        Self { sqlstate, message, hint, detail, about: None, position: 0, routine: "" }
    }

    /// Makes the error for a prepared statement whose shape is not the one that the client knows.
    /// Drivers and poolers prepare again on it; they recognise it by the routine where PostgreSQL
    /// raises it.
    pub(crate) fn stale_plan() -> Self {
        let routine = "RevalidateCachedQuery";
        Self { routine, ..Self::unsupported("cached plan must not change result type") }
    }

    /// Sets the hint.
    pub(crate) fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Sets the detail.
    pub(crate) fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Sets the position: `offset` bytes into `text`.
    pub(crate) fn at(mut self, text: &[u8], offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        // Bytes of the form 10xxxxxx continue a character of UTF-8.
        self.position = 1 + before.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        self
    }

    /// Returns the error as a text that SQLite carries from a function to its caller.
    pub(crate) fn carried(&self) -> String {
        format!("{CARRIED}{}{CARRIED}{}{CARRIED}{}", self.sqlstate, self.message, self.hint)
    }

    /// Returns the error that one of Refrain's functions raised, if SQLite's error carries one.
    fn raised(message: &str) -> Option<Self> {
        let mut parts = message.split(CARRIED).skip(1);
        let (sqlstate, message, hint) = (parts.next()?, parts.next()?, parts.next()?);
        let sqlstate = RAISED.iter().find(|known| **known == sqlstate).copied().unwrap_or("XX000");
        Some(Self::new(sqlstate, message.to_owned()).hint(hint.to_owned()))
    }

    /// Turns SQLite's error for `text` into a client's. `text` is as long as the client's, so
    /// positions are the same.
    pub(crate) fn of_sqlite(error: &Error, text: &[u8]) -> Self {
        if error.message.ends_with(TIMEOUT) {
            return Self::new(state::CANCELLED, TIMEOUT);
        }
        if let Some(raised) = Self::raised(&error.message) {
            return raised;
        }
        let message = match error.interruption {
            Some(Interruption::Deadline) => TIMEOUT.into(),
            Some(_) => "canceling statement due to user request".into(),
            None => Cow::Owned(error.message.clone()),
        };
        let says = |(words, _): &&(&str, &str)| error.message.contains(words);
        let hint = SQLITE_HINTS.iter().find(says);
        let hint = hint.or_else(|| Some(&TAKEN).filter(says).filter(|_| updates(text)));
        // SQLite has found a row that violates what ALTER TABLE adds.
        if error.message == "CHECK constraint failed" {
            return Self::new("23514", "the check constraint is violated by some row");
        }
        let mut failure = Self::new(error.sqlstate(), message);
        if failure.sqlstate == state::CORRUPT {
            failure = failure.hint(
                "a page is damaged, or another program changed the file: restore it from a backup",
            );
        } else if let Some((_, hint)) = hint {
            failure = failure.hint(*hint);
        }
        error.offset.map_or(failure.clone(), |offset| failure.at(text, offset))
    }

    /// Makes error 0A000: PostgreSQL has this, a session on SQLite does not.
    pub(crate) fn unsupported(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(state::NOT_SUPPORTED, what)
    }

    /// Makes the error for a message that breaks the protocol.
    pub(crate) fn protocol(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(state::PROTOCOL_VIOLATION, what)
    }

    /// Appends an ErrorResponse.
    pub(crate) fn write(&self, out: &mut Vec<u8>, severity: &str) {
        self.write_as(out, back::ERROR_RESPONSE, severity);
    }

    /// Appends a NoticeResponse: a warning.
    pub(crate) fn warn(&self, out: &mut Vec<u8>) {
        self.write_as(out, back::NOTICE_RESPONSE, "WARNING");
    }

    fn write_as(&self, out: &mut Vec<u8>, tag: u8, severity: &str) {
        let position = if self.position > 0 { self.position.to_string() } else { String::new() };
        let none = About::default();
        let about = self.about.as_deref().unwrap_or(&none);
        let schema = if about.table.is_empty() { "" } else { "public" };
        let fields = [
            (field::SEVERITY, severity),
            (field::SEVERITY_PLAIN, severity),
            (field::SQLSTATE, self.sqlstate),
            (field::MESSAGE, &*self.message),
            (field::DETAIL, &*self.detail),
            (field::HINT, &*self.hint),
            (field::POSITION, &position),
            (field::SCHEMA, schema),
            (field::TABLE, &about.table),
            (field::COLUMN, &about.column),
            (field::CONSTRAINT, &about.constraint),
            (field::ROUTINE, self.routine),
        ];
        write::message(out, tag, |out| {
            for (code, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
                out.push(*code);
                // A zero byte would end the field too early.
                out.extend(value.bytes().filter(|byte| *byte != 0));
                out.push(0);
            }
            out.push(0);
        });
    }
}

/// True if a text has an UPDATE.
fn updates(text: &[u8]) -> bool {
    let mut lexer = Lexer::new(text, false);
    std::iter::from_fn(|| lexer.significant()).any(|token| {
        token.kind == TokenKind::Word && token.of(text).eq_ignore_ascii_case(b"update")
    })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::of_sqlite(&error, b"")
    }
}

#[cfg(test)]
mod tests {
    use refrain_pg_wire::back::Fields;

    use super::*;

    #[test]
    fn a_failure_reads_back_with_its_place_in_characters() {
        let text = "select 'ä' frm".as_bytes();
        let failure = Failure::new(state::SYNTAX, "near \"frm\"").hint("look").at(text, 12);
        let mut out = Vec::new();
        failure.write(&mut out, "ERROR");
        let fields = Fields(&out[5..]);
        assert_eq!(fields.sqlstate(), b"42601");
        assert_eq!(fields.get(field::POSITION), Some(&b"12"[..]));
        assert_eq!(fields.get(field::HINT), Some(&b"look"[..]));
        assert_eq!(fields.get(field::ROUTINE), None);
        assert!(!fields.is_fatal());
        out.clear();
        Failure::stale_plan().write(&mut out, "ERROR");
        let fields = Fields(&out[5..]);
        assert_eq!(fields.get(field::ROUTINE), Some(&b"RevalidateCachedQuery"[..]));
    }

    #[test]
    fn of_keys_that_move_an_update_is_told_only() {
        let words = Some("UNIQUE constraint failed: t.a".to_owned());
        let error = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(2067), words);
        let error = Error::from(error);
        let hint = |text: &str| Failure::of_sqlite(&error, text.as_bytes()).hint;
        assert!(hint("UPDATE t SET a = a + 1").contains("free"));
        assert!(
            hint("INSERT INTO t VALUES (1) ON CONFLICT (b) DO UPDATE SET a = 2").contains("free")
        );
        assert_eq!(hint("INSERT INTO t VALUES (1, 'update') -- update"), "");
    }
}
