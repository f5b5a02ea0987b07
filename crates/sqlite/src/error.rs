//! What went wrong, and PostgreSQL's code for it.
//!
//! SQLite says it with an extended result code and a message. Drivers of PostgreSQL decide by
//! SQLSTATE: a duplicate key that is not `23505` is to them a bug in the program. So each code has
//! a row in [`BY_CODE`], and `SQLITE_ERROR`, which says nothing by itself, is told apart by the
//! words of its message in [`BY_MESSAGE`].

use std::fmt;

use rusqlite::ffi as sqlite;

/// An error of SQLite, or of this crate in SQLite's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// SQLite's extended result code.
    pub code: i32,
    /// What SQLite says of it.
    pub message: String,
    /// Where in the text it is, in bytes from its beginning, if SQLite knows.
    pub offset: Option<usize>,
    /// Who stopped the statement, if somebody did.
    pub interruption: Option<Interruption>,
    /// A code that this crate knows better than the tables, such as for a refused write.
    state: Option<&'static str>,
}

/// Why a statement was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Somebody asked for it: [`crate::Interrupter`].
    Cancel,
    /// It used up its steps: [`crate::Limits::steps`].
    Steps,
    /// Its time was over: [`crate::Limits::deadline`].
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

/// What is said of an index that is not whole any more.
const BROKEN_INDEX: &str =
    "the file's \"-shm\" was made shorter, moved, replaced or deleted while it was served";

impl Error {
    /// An error with SQLite's code and words of our own.
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Error {
        let message = message.into();
        Error { code, message, offset: None, interruption: None, state: None }
    }

    /// The same with a SQLSTATE that the tables do not give.
    pub(crate) fn with_state(mut self, state: &'static str) -> Error {
        self.state = Some(state);
        self
    }

    /// The same of a statement that was stopped.
    pub(crate) fn stopped_by(mut self, interruption: Interruption) -> Error {
        self.interruption = Some(interruption);
        self.with_state("57014")
    }

    /// The index of the database's log is not whole any more; nothing is done with the database then.
    pub(crate) fn broken_index() -> Error {
        Error::new(sqlite::SQLITE_IOERR_IN_PAGE, BROKEN_INDEX)
    }

    /// Whether a text, blob or row was longer than allowed.
    pub fn is_too_long(&self) -> bool {
        self.primary_code() == sqlite::SQLITE_TOOBIG
    }

    /// The result code without its extension.
    pub fn primary_code(&self) -> i32 {
        self.code & 0xff
    }

    /// PostgreSQL's code for it, five characters.
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

    /// Whether a kept statement that ended like this is not to be trusted again.
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
