//! Errors, and PostgreSQL's code for each.
//!
//! SQLite gives an extended result code and a message. PostgreSQL's drivers decide by SQLSTATE:
//! they take a duplicate key that is not `23505` for a bug in the program. So each code has a row
//! in [`BY_CODE`]. `SQLITE_ERROR` says nothing by itself; the words of its message tell such errors
//! apart ([`BY_MESSAGE`]).

use std::fmt;

use rusqlite::ffi as sqlite;

/// An error of SQLite, or of this crate in SQLite's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// SQLite's extended result code.
    pub code: i32,
    /// SQLite's message.
    pub message: String,
    /// Its position in the text, in bytes, if SQLite knows.
    pub offset: Option<usize>,
    /// Why the statement was stopped, if it was.
    pub interruption: Option<Interruption>,
    /// A SQLSTATE that counts before the tables, such as for a refused write.
    state: Option<&'static str>,
}

/// Why a statement was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// A cancel: [`crate::Interrupter`].
    Cancel,
    /// It used up its steps: [`crate::Limits::steps`].
    Steps,
    /// It reached its deadline: [`crate::Limits::deadline`].
    Deadline,
}

/// SQLSTATEs by extended code, then by primary code: the first row that fits counts.
const BY_CODE: &[(i32, &str)] = &[
    (sqlite::SQLITE_CONSTRAINT_UNIQUE, "23505"),
    (sqlite::SQLITE_CONSTRAINT_PRIMARYKEY, "23505"),
    (sqlite::SQLITE_CONSTRAINT_ROWID, "23505"),
    (sqlite::SQLITE_CONSTRAINT_NOTNULL, "23502"),
    (sqlite::SQLITE_CONSTRAINT_FOREIGNKEY, "23503"),
    (sqlite::SQLITE_CONSTRAINT_CHECK, "23514"),
    (sqlite::SQLITE_CONSTRAINT_TRIGGER, "P0001"),
    (sqlite::SQLITE_CONSTRAINT_DATATYPE, "42804"),
    (sqlite::SQLITE_BUSY_SNAPSHOT, "40001"),
    (sqlite::SQLITE_CONSTRAINT, "23000"),
    (sqlite::SQLITE_MISMATCH, "42804"),
    (sqlite::SQLITE_BUSY, "55P03"),
    (sqlite::SQLITE_LOCKED, "55006"),
    (sqlite::SQLITE_INTERRUPT, "57014"),
    (sqlite::SQLITE_READONLY, "25006"),
    (sqlite::SQLITE_FULL, "53100"),
    (sqlite::SQLITE_NOMEM, "53200"),
    (sqlite::SQLITE_IOERR, "58030"),
    (sqlite::SQLITE_CANTOPEN, "58030"),
    (sqlite::SQLITE_CORRUPT, "XX001"),
    (sqlite::SQLITE_NOTADB, "XX001"),
    (sqlite::SQLITE_TOOBIG, "54000"),
    (sqlite::SQLITE_AUTH, "42501"),
    (sqlite::SQLITE_SCHEMA, "0A000"),
    (sqlite::SQLITE_RANGE, "08P01"),
];

/// SQLSTATEs of `SQLITE_ERROR`, by words in its message: the first row that fits counts.
const BY_MESSAGE: &[(&str, &str)] = &[
    ("no such table", "42P01"),
    ("no such view", "42P01"),
    ("no such column", "42703"),
    ("has no column named", "42703"),
    ("no such function", "42883"),
    ("wrong number of arguments to function", "42883"),
    ("no such savepoint", "3B001"),
    ("no such index", "42704"),
    ("no such collation", "42704"),
    ("already exists", "42P07"),
    ("there is already", "42P07"),
    ("duplicate column name", "42701"),
    ("ambiguous column name", "42702"),
    ("syntax error", "42601"),
    ("incomplete input", "42601"),
    ("unrecognized token", "42601"),
    ("cannot start a transaction within a transaction", "25001"),
    ("no transaction is active", "25P01"),
    ("subqueries prohibited in", "0A000"),
    ("is not constant", "0A000"),
    ("unknown database", "3F000"),
    ("argument of ntile", "22014"),
    ("argument to nth_value", "22016"),
    ("not authorized", "42501"),
    ("prohibited", "42501"),
    ("may not be modified", "42501"),
    ("integer overflow", "22003"),
    ("Cannot add a", "0A000"),
    ("may not be altered", "0A000"),
    ("columns of view", "0A000"),
    ("from view", "42809"),
    ("use DROP TABLE", "42809"),
    ("use DROP VIEW", "42809"),
    ("misuse of aggregate", "42803"),
    ("misuse of window function", "42P20"),
    ("recursive reference", "42P19"),
];

/// The message for an index that is not whole any more.
const BROKEN_INDEX: &str =
    "the file's \"-shm\" was made shorter, moved, replaced or deleted while it was served";

impl Error {
    /// Makes an error with SQLite's code and a message of this crate.
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Error {
        let message = message.into();
        Error { code, message, offset: None, interruption: None, state: None }
    }

    /// Sets a SQLSTATE that the tables do not give.
    pub(crate) fn with_state(mut self, state: &'static str) -> Error {
        self.state = Some(state);
        self
    }

    /// Marks the error of a statement that was stopped.
    pub(crate) fn stopped_by(mut self, interruption: Interruption) -> Error {
        self.interruption = Some(interruption);
        self.with_state("57014")
    }

    /// Makes the error for a WAL index that is not whole any more. Nothing works on the database
    /// then.
    #[cold]
    pub(crate) fn broken_index() -> Error {
        Error::new(sqlite::SQLITE_IOERR_IN_PAGE, BROKEN_INDEX)
    }

    /// True if a text, blob or row was longer than allowed.
    pub fn is_too_long(&self) -> bool {
        self.primary_code() == sqlite::SQLITE_TOOBIG
    }

    /// Returns the result code without its extension.
    pub fn primary_code(&self) -> i32 {
        self.code & 0xff
    }

    /// Returns PostgreSQL's SQLSTATE, five characters.
    pub fn sqlstate(&self) -> &'static str {
        let by_code = |code: i32| BY_CODE.iter().find(|row| row.0 == code).map(|row| row.1);
        let known = self.state.or_else(|| by_code(self.code));
        known.or_else(|| by_code(self.primary_code())).unwrap_or_else(|| self.state_by_message())
    }

    fn state_by_message(&self) -> &'static str {
        if self.primary_code() != sqlite::SQLITE_ERROR {
            return "XX000";
        }
        let row = BY_MESSAGE.iter().find(|row| self.message.contains(row.0));
        row.map_or("42000", |row| row.1)
    }

    /// True if the statement itself is at fault, and not the file, a lock, a limit or a cancel.
    pub fn is_of_statement(&self) -> bool {
        matches!(
            self.primary_code(),
            sqlite::SQLITE_ERROR
                | sqlite::SQLITE_CONSTRAINT
                | sqlite::SQLITE_MISMATCH
                | sqlite::SQLITE_MISUSE
                | sqlite::SQLITE_RANGE
        )
    }

    /// True if a kept statement that ended with this error must not run again.
    ///
    /// A broken constraint, a lock or a cancel says nothing about the statement.
    pub(crate) fn spoils(&self) -> bool {
        matches!(
            self.primary_code(),
            sqlite::SQLITE_ERROR
                | sqlite::SQLITE_SCHEMA
                | sqlite::SQLITE_CORRUPT
                | sqlite::SQLITE_NOTADB
                | sqlite::SQLITE_NOMEM
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (SQLite {}, SQLSTATE {})", self.message, self.code, self.sqlstate())
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        let code = error.sqlite_error().map_or(sqlite::SQLITE_ERROR, |error| error.extended_code);
        if code == sqlite::SQLITE_IOERR_IN_PAGE {
            return Error::broken_index();
        }
        Error::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_by_code_and_by_words() {
        let cases = [
            (sqlite::SQLITE_CONSTRAINT_UNIQUE, "", "23505"),
            (sqlite::SQLITE_CONSTRAINT_VTAB, "", "23000"),
            (sqlite::SQLITE_BUSY_SNAPSHOT, "", "40001"),
            (sqlite::SQLITE_BUSY_TIMEOUT, "", "55P03"),
            (sqlite::SQLITE_IOERR_READ, "", "58030"),
            (sqlite::SQLITE_ERROR, "no such table: t", "42P01"),
            (sqlite::SQLITE_ERROR, "near \"x\": syntax error", "42601"),
            (sqlite::SQLITE_ERROR, "something new", "42000"),
            (sqlite::SQLITE_MISUSE, "", "XX000"),
        ];
        for (code, message, state) in cases {
            assert_eq!(Error::new(code, message).sqlstate(), state, "{code} {message}");
        }
    }
}
