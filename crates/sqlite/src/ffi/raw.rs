//! A statement in any state, and its properties, which it has without running.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::{self, NonNull};
use std::slice;

use rusqlite::ffi as sqlite;

use super::files;
use super::index::Index;
use crate::error::Error;

/// Returns the error of the last call on a connection.
///
/// # Safety
///
/// The connection is open, and `code` is the result of the last call on it.
pub(super) unsafe fn error_of(connection: *mut sqlite::sqlite3, code: c_int) -> Error {
    // SAFETY: see above; the message is valid until the next call, and copied here.
    let (extended, message, offset) = unsafe {
        let message = CStr::from_ptr(sqlite::sqlite3_errmsg(connection));
        let extended = sqlite::sqlite3_extended_errcode(connection);
        let offset = sqlite::sqlite3_error_offset(connection);
        (extended, message.to_string_lossy().into_owned(), offset)
    };
    // Some calls return a code and leave the connection without one.
    let code = if extended & 0xff == code & 0xff { extended } else { code };
    // SAFETY: as above.
    if unsafe { index_of(connection) }.is_some_and(Index::is_broken) {
        // The index explains the error, whatever SQLite says of it.
        return Error::broken_index();
    }
    let mut error = Error::new(code, message);
    error.offset = usize::try_from(offset).ok();
    error
}

/// Returns the index of a connection's database; none for a database in memory.
///
/// # Safety
///
/// The connection is open.
pub(super) unsafe fn index_of(connection: *mut sqlite::sqlite3) -> Option<&'static Index> {
    let mut file: *mut sqlite::sqlite3_file = ptr::null_mut();
    // SAFETY: a null name means the main database; the operation writes a pointer to its file,
    // which is open as long as the connection is.
    unsafe {
        sqlite::sqlite3_file_control(
            connection,
            ptr::null(),
            sqlite::SQLITE_FCNTL_FILE_POINTER,
            (&raw mut file).cast(),
        );
        files::index_of(file)
    }
}

/// A compiled statement in any state, and its properties.
pub(crate) struct Raw {
    pointer: NonNull<sqlite::sqlite3_stmt>,
    /// The length of its text, of which SQLite keeps a copy.
    sql_length: usize,
}

// SAFETY: SQLite's statements belong to no thread. The owners of `Raw` make sure that one thread at
// a time uses a statement and its connection (the head of `ffi`).
unsafe impl Send for Raw {}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: the only owner. The call returns the error of the last step, which the caller has
        // got already.
        unsafe { sqlite::sqlite3_finalize(self.pointer.as_ptr()) };
    }
}

impl Raw {
    /// Takes over the statement that SQLite compiled from a text of `sql_length` bytes; none if the
    /// text has no statement.
    ///
    /// # Safety
    ///
    /// `statement` is null, or a valid statement without another owner, and its connection outlives
    /// it.
    pub(super) unsafe fn new(
        statement: *mut sqlite::sqlite3_stmt,
        sql_length: usize,
    ) -> Option<Raw> {
        NonNull::new(statement).map(|pointer| Raw { pointer, sql_length })
    }

    pub(super) fn raw(&self) -> *mut sqlite::sqlite3_stmt {
        self.pointer.as_ptr()
    }

    /// Returns the text of the statement, as SQLite split it off.
    pub(crate) fn sql(&self) -> &str {
        // SAFETY: SQLite keeps a copy of the text that it compiled, of this length, for as long as
        // the statement lives, also when it compiles the statement again. The text was cut from a
        // `str` behind a semicolon or at its end, so it is valid UTF-8.
        unsafe {
            let start = sqlite::sqlite3_sql(self.raw()).cast::<u8>();
            std::str::from_utf8_unchecked(slice::from_raw_parts(start, self.sql_length))
        }
    }

    /// Returns the number of parameters: the largest number among them.
    pub(crate) fn parameter_count(&self) -> usize {
        // SAFETY: a valid statement, here and in all calls below.
        count(unsafe { sqlite::sqlite3_bind_parameter_count(self.raw()) })
    }

    /// Returns the name of a parameter, from 1, with its `?`, `:`, `@` or `$`.
    pub(crate) fn parameter_name(&self, index: usize) -> Option<&str> {
        // SAFETY: any index is allowed; the name lives as long as the statement.
        unsafe { text(sqlite::sqlite3_bind_parameter_name(self.raw(), number(index))) }
    }

    /// True if running it changes no file.
    pub(crate) fn readonly(&self) -> bool {
        // SAFETY: as above.
        unsafe { sqlite::sqlite3_stmt_readonly(self.raw()) != 0 }
    }

    /// True for an EXPLAIN or an EXPLAIN QUERY PLAN.
    pub(crate) fn is_explain(&self) -> bool {
        // SAFETY: as above.
        unsafe { sqlite::sqlite3_stmt_isexplain(self.raw()) != 0 }
    }

    /// Returns the number of columns of its rows.
    pub(crate) fn column_count(&self) -> usize {
        // SAFETY: as above.
        count(unsafe { sqlite::sqlite3_column_count(self.raw()) })
    }

    /// Returns the name of a column, from 0.
    pub(crate) fn column_name(&self, column: usize) -> Option<&str> {
        self.column_text(column, sqlite::sqlite3_column_name)
    }

    /// Returns the type that the table declares, if the column is a table's.
    pub(crate) fn column_decltype(&self, column: usize) -> Option<&str> {
        self.column_text(column, sqlite::sqlite3_column_decltype)
    }

    /// Returns database, table and column, if the column is a table's.
    pub(crate) fn column_origin(&self, column: usize) -> Option<(&str, &str, &str)> {
        let database = self.column_text(column, sqlite::sqlite3_column_database_name)?;
        let table = self.column_text(column, sqlite::sqlite3_column_table_name)?;
        let name = self.column_text(column, sqlite::sqlite3_column_origin_name)?;
        Some((database, table, name))
    }

    fn column_text(
        &self,
        column: usize,
        ask: unsafe extern "C" fn(*mut sqlite::sqlite3_stmt, c_int) -> *const c_char,
    ) -> Option<&str> {
        // SAFETY: `ask` is one of the functions that this type names; all return null for a column
        // that does not exist. A name lives until the statement is compiled again, by a step, which
        // takes `&mut self`.
        unsafe { text(ask(self.raw(), number(column))) }
    }

    /// Returns how often SQLite compiled it again.
    pub(crate) fn reprepares(&self) -> u32 {
        self.status(sqlite::SQLITE_STMTSTATUS_REPREPARE)
    }

    /// Returns the size of its memory in bytes. Walks over the whole statement.
    pub(crate) fn bytes(&self) -> u32 {
        self.status(sqlite::SQLITE_STMTSTATUS_MEMUSED)
    }

    fn status(&self, which: c_int) -> u32 {
        // SAFETY: reads a counter, and does not reset it.
        let value = unsafe { sqlite::sqlite3_stmt_status(self.raw(), which, 0) };
        u32::try_from(value).unwrap_or(0)
    }

    pub(super) fn error(&self, code: c_int) -> Error {
        // SAFETY: its connection is open while it lives, and callers pass the result of the last
        // call.
        unsafe { error_of(sqlite::sqlite3_db_handle(self.raw()), code) }
    }

    /// Binds a parameter to NULL.
    pub(super) fn set_null(&mut self, index: usize) {
        // SAFETY: the statement is not running and has this parameter, so the call cannot fail.
        unsafe { sqlite::sqlite3_bind_null(self.raw(), number(index)) };
    }
}

/// Converts an index to SQLite's type. One that is too large becomes one that does not exist.
pub(super) fn number(index: usize) -> c_int {
    c_int::try_from(index).unwrap_or(c_int::MAX)
}

pub(super) fn count(number: c_int) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// # Safety
///
/// `start` is null or a string that ends with a zero and lives for `'a`.
unsafe fn text<'a>(start: *const c_char) -> Option<&'a str> {
    // SAFETY: promised by the caller.
    let text = (!start.is_null()).then(|| unsafe { CStr::from_ptr(start) })?;
    // Names come from texts that were `str`, or from a file that another program wrote.
    text.to_str().ok()
}
