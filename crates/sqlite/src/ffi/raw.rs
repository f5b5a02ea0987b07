//! A statement in any state, and what can be asked of it without running it.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::{self, NonNull};
use std::slice;

use rusqlite::ffi as sqlite;

use super::files;
use super::index::Index;
use crate::error::Error;

/// The error that the last call on a connection ended with.
///
/// # Safety
///
/// The connection is open, and `code` is what the last call on it returned.
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
        // Whatever came of reading it.
        return Error::broken_index();
    }
    let mut error = Error::new(code, message);
    error.offset = usize::try_from(offset).ok();
    error
}

/// The index of a connection's database; none of one in memory.
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

/// A compiled statement in any state: what can be asked without running it.
pub(crate) struct Raw {
    pointer: NonNull<sqlite::sqlite3_stmt>,
    /// The length of its text, which SQLite keeps.
    sql_length: usize,
}

// SAFETY: SQLite's statements are bound to no thread; that one thread at a time uses a statement
// and its connection is what the owners of `Raw` see to (the head of this module).
unsafe impl Send for Raw {}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: the only owner. What is returned is the error of the last step, told before.
        unsafe { sqlite::sqlite3_finalize(self.pointer.as_ptr()) };
    }
}

impl Raw {
    /// Takes over what SQLite compiled a text of `sql_length` bytes into; none if it is nothing.
    ///
    /// # Safety
    ///
    /// The statement is null, or valid and nobody else's, and its connection outlives it.
    pub(super) unsafe fn new(
        statement: *mut sqlite::sqlite3_stmt,
        sql_length: usize,
    ) -> Option<Raw> {
        NonNull::new(statement).map(|pointer| Raw { pointer, sql_length })
    }

    pub(super) fn raw(&self) -> *mut sqlite::sqlite3_stmt {
        self.pointer.as_ptr()
    }

    /// The text as SQLite split it off.
    pub(crate) fn sql(&self) -> &str {
        // SAFETY: SQLite keeps a copy of the text it compiled, of this length, as long as the
        // statement lives, also when it compiles it anew. It was cut from a `str` behind a
        // semicolon or at its end, so it is one.
        unsafe {
            let start = sqlite::sqlite3_sql(self.raw()).cast::<u8>();
            std::str::from_utf8_unchecked(slice::from_raw_parts(start, self.sql_length))
        }
    }

    /// How many parameters there are: the largest number.
    pub(crate) fn parameter_count(&self) -> usize {
        // SAFETY: a valid statement; so it is in all calls below.
        count(unsafe { sqlite::sqlite3_bind_parameter_count(self.raw()) })
    }

    /// The name of a parameter, from 1, with its `?`, `:`, `@` or `$`.
    pub(crate) fn parameter_name(&self, index: usize) -> Option<&str> {
        // SAFETY: any number may be asked for; the name lives as long as the statement.
        unsafe { text(sqlite::sqlite3_bind_parameter_name(self.raw(), number(index))) }
    }

    /// Whether running it changes no file.
    pub(crate) fn readonly(&self) -> bool {
        // SAFETY: as above.
        unsafe { sqlite::sqlite3_stmt_readonly(self.raw()) != 0 }
    }

    /// Whether it is an EXPLAIN of either kind.
    pub(crate) fn is_explain(&self) -> bool {
        // SAFETY: as above.
        unsafe { sqlite::sqlite3_stmt_isexplain(self.raw()) != 0 }
    }

    /// How many columns its rows have.
    pub(crate) fn column_count(&self) -> usize {
        // SAFETY: as above.
        count(unsafe { sqlite::sqlite3_column_count(self.raw()) })
    }

    /// The name of a column, from 0.
    pub(crate) fn column_name(&self, column: usize) -> Option<&str> {
        self.column_text(column, sqlite::sqlite3_column_name)
    }

    /// The declared type of the table's column that a column of the result is.
    pub(crate) fn column_decltype(&self, column: usize) -> Option<&str> {
        self.column_text(column, sqlite::sqlite3_column_decltype)
    }

    /// Database, table and column that a column of the result is.
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
        // SAFETY: one of the four functions above; all give null for a column that is not there.
        // What they give lives until the statement is compiled anew, which takes `&mut self`.
        unsafe { text(ask(self.raw(), number(column))) }
    }

    /// How often SQLite compiled it anew.
    pub(crate) fn reprepares(&self) -> u32 {
        self.status(sqlite::SQLITE_STMTSTATUS_REPREPARE)
    }

    /// How much memory it has, in bytes. Walks over the whole statement.
    pub(crate) fn bytes(&self) -> u32 {
        self.status(sqlite::SQLITE_STMTSTATUS_MEMUSED)
    }

    fn status(&self, which: c_int) -> u32 {
        // SAFETY: a counter is read and not set back.
        let value = unsafe { sqlite::sqlite3_stmt_status(self.raw(), which, 0) };
        u32::try_from(value).unwrap_or(0)
    }

    pub(super) fn error(&self, code: c_int) -> Error {
        // SAFETY: its connection is open while it lives; callers come here with what the last
        // call returned.
        unsafe { error_of(sqlite::sqlite3_db_handle(self.raw()), code) }
    }

    /// A parameter is NULL from now on.
    pub(super) fn set_null(&mut self, index: usize) {
        // SAFETY: a statement that is not running, and one of its parameters: this cannot fail.
        unsafe { sqlite::sqlite3_bind_null(self.raw(), number(index)) };
    }
}

/// SQLite's numbers of parameters and columns; one that is too large is none that exists.
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
    // Names come from texts that were `str`, or from a file that somebody else wrote.
    text.to_str().ok()
}
