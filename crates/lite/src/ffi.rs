//! SQLite's C interface, as far as statements need it. The only unsafe code of the crate.
//!
//! A statement is either [`Idle`] or [`Live`]. An idle one is reset and points at no memory but
//! its own. A live one may have been given pointers to memory of the caller, which SQLite reads
//! when it steps: the lifetime `'b` holds that memory in place until the statement is idle again.
//! Forgetting a live one leaks it, and nobody steps it any more.
//!
//! Two things are up to the callers inside this crate, and kept by `core` and `statement`:
//!
//! - a statement is used only by the thread that has its connection. A connection is opened
//!   without SQLite's own mutexes, so two threads at once would be a race;
//! - statements are gone before their [`Handle`] is, or SQLite does not close the file.
#![allow(unsafe_code, reason = "the C interface; nothing outside of this module may be unsafe")]

use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::slice;

use rusqlite::ffi as sqlite;

use crate::error::Error;
use crate::marks::Marks;
use crate::value::{Type, Value};

/// The name of the database beside `main`, as PostgreSQL's clients expect it.
const MAIN_NAME: &CStr = c"public";

/// An open connection.
pub(crate) struct Handle {
    connection: rusqlite::Connection,
}

/// What a text was compiled into.
pub(crate) struct Compiled {
    /// The statement; none if the text holds nothing but white space and comments.
    pub(crate) idle: Option<Idle>,
    /// How much of the text it took, in bytes.
    pub(crate) length: usize,
}

impl Handle {
    /// Takes over a connection, which must have been opened without mutexes or with.
    pub(crate) fn new(connection: rusqlite::Connection) -> Handle {
        Handle { connection }
    }

    /// The connection, for what rusqlite does safely.
    pub(crate) fn connection(&self) -> &rusqlite::Connection {
        &self.connection
    }

    /// The connection, for hooks.
    pub(crate) fn connection_mut(&mut self) -> &mut rusqlite::Connection {
        &mut self.connection
    }

    fn raw(&self) -> *mut sqlite::sqlite3 {
        // SAFETY: the pointer stays in this module and is used while `self` is borrowed.
        unsafe { self.connection.handle() }
    }

    /// Makes `public` the name of the database; `main` works as well.
    pub(crate) fn name_main(&self) -> Result<(), Error> {
        // SAFETY: the name is static, which SQLite asks for; the option takes one pointer.
        let code = unsafe {
            sqlite::sqlite3_db_config(
                self.raw(),
                sqlite::SQLITE_DBCONFIG_MAINDBNAME,
                MAIN_NAME.as_ptr(),
            )
        };
        self.check(code)
    }

    /// Compiles the first statement of a text. `kept` says that it will be used for long.
    pub(crate) fn prepare(&self, sql: &str, kept: bool) -> Result<Compiled, Error> {
        let Ok(length) = c_int::try_from(sql.len()) else {
            return Err(Error::new(sqlite::SQLITE_TOOBIG, "statement too long"));
        };
        let flags = if kept { sqlite::SQLITE_PREPARE_PERSISTENT } else { 0 };
        let start = sql.as_ptr().cast::<c_char>();
        let (mut statement, mut tail) = (ptr::null_mut(), ptr::null());
        // SAFETY: the text is readable for `length` bytes, both results are written before the
        // call returns, and the connection is open.
        let code = unsafe {
            sqlite::sqlite3_prepare_v3(self.raw(), start, length, flags, &mut statement, &mut tail)
        };
        if code != sqlite::SQLITE_OK {
            // SAFETY: the connection is open, and this was the last call on it.
            return Err(unsafe { error_of(self.raw(), code) });
        }
        // A tail is always set on success; it points into the text or to its end.
        let used = (tail as usize).wrapping_sub(start as usize).min(sql.len());
        if sql.as_bytes().get(used) == Some(&0) {
            let message = "a text cannot hold the character NUL";
            // SAFETY: a statement that nobody else has seen, or null, which is a no-op.
            unsafe { sqlite::sqlite3_finalize(statement) };
            return Err(Error::new(sqlite::SQLITE_ERROR, message).with_state("22021"));
        }
        let raw = NonNull::new(statement).map(|pointer| Raw { pointer, sql_length: used });
        Ok(Compiled { idle: raw.map(Idle), length: used })
    }

    /// Whether a statement of this connection is in the middle of its rows.
    pub(crate) fn is_busy(&self) -> bool {
        self.connection.is_busy()
    }

    /// Copies what it can from the WAL to the file: frames in the WAL, and frames copied.
    pub(crate) fn checkpoint(&self, mode: c_int) -> Result<(i32, i32), Error> {
        let (mut frames, mut copied) = (0, 0);
        // SAFETY: a null name means all databases; both results are written.
        let code = unsafe {
            sqlite::sqlite3_wal_checkpoint_v2(
                self.raw(),
                ptr::null(),
                mode,
                &mut frames,
                &mut copied,
            )
        };
        self.check(code).map(|()| (frames, copied))
    }

    /// Closes the file, after all statements.
    pub(crate) fn close(self) -> Result<(), Error> {
        self.connection.close().map_err(|(_, error)| error.into())
    }

    /// How many statements there are, those included that virtual tables made for themselves.
    #[cfg(test)]
    pub(crate) fn statements(&self) -> usize {
        // SAFETY: walks the statements of an open connection, and touches none.
        let next = |last| unsafe { sqlite::sqlite3_next_stmt(self.raw(), last) };
        let found =
            |statement: *mut sqlite::sqlite3_stmt| (!statement.is_null()).then_some(statement);
        std::iter::successors(found(next(ptr::null_mut())), |last| found(next(*last))).count()
    }

    fn check(&self, code: c_int) -> Result<(), Error> {
        if code == sqlite::SQLITE_OK {
            return Ok(());
        }
        // SAFETY: the connection is open, and this was the last call on it.
        Err(unsafe { error_of(self.raw(), code) })
    }
}

/// The error that the last call on a connection ended with.
///
/// # Safety
///
/// The connection is open, and `code` is what the last call on it returned.
unsafe fn error_of(connection: *mut sqlite::sqlite3, code: c_int) -> Error {
    // SAFETY: see above; the message is valid until the next call, and copied here.
    let (extended, message, offset) = unsafe {
        let message = CStr::from_ptr(sqlite::sqlite3_errmsg(connection));
        let extended = sqlite::sqlite3_extended_errcode(connection);
        let offset = sqlite::sqlite3_error_offset(connection);
        (extended, message.to_string_lossy().into_owned(), offset)
    };
    // Some calls return a code and leave the connection without one.
    let code = if extended & 0xff == code & 0xff { extended } else { code };
    let mut error = Error::new(code, message);
    error.offset = usize::try_from(offset).ok();
    error
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
    fn raw(&self) -> *mut sqlite::sqlite3_stmt {
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

    fn error(&self, code: c_int) -> Error {
        // SAFETY: its connection is open while it lives; callers come here with what the last
        // call returned.
        unsafe { error_of(sqlite::sqlite3_db_handle(self.raw()), code) }
    }
}

/// A statement that is reset and points at no memory of a caller.
pub(crate) struct Idle(Raw);

impl Deref for Idle {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.0
    }
}

impl Idle {
    /// Begins a run: parameters are bound, then it is stepped.
    pub(crate) fn start<'b>(self) -> Live<'b> {
        let parameters = self.parameter_count();
        let (missing, lent) = (Marks::first(parameters), Marks::default());
        Live { raw: self.0, missing, lent, has_row: false, _parameters: PhantomData }
    }
}

/// A statement under way. Memory that it was given lives for `'b`.
pub(crate) struct Live<'b> {
    raw: Raw,
    /// Parameters that nobody bound in this run: they hold values of the last.
    missing: Marks,
    /// Parameters that point at memory of the caller.
    lent: Marks,
    /// Whether the last step gave a row.
    has_row: bool,
    _parameters: PhantomData<&'b [u8]>,
}

impl Deref for Live<'_> {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.raw
    }
}

impl<'b> Live<'b> {
    /// Gives a parameter a value without copying it.
    pub(crate) fn bind(&mut self, index: usize, value: Value<'b>) -> Result<(), Error> {
        // SAFETY: the memory lives for `'b`. A `Live` reads it in `step` only, which needs the
        // `Live`, which cannot outlive `'b`; `finish` takes the pointer away.
        unsafe { self.bind_with(index, value, sqlite::SQLITE_STATIC()) }?;
        if matches!(value, Value::Text(_) | Value::Blob(_)) {
            self.lent.set(index);
        }
        Ok(())
    }

    /// Gives a parameter a value that SQLite copies.
    pub(crate) fn bind_copied(&mut self, index: usize, value: Value<'_>) -> Result<(), Error> {
        // SAFETY: SQLite copies the memory before the call returns.
        unsafe { self.bind_with(index, value, sqlite::SQLITE_TRANSIENT()) }?;
        self.lent.clear(index);
        Ok(())
    }

    /// # Safety
    ///
    /// If `memory` says that SQLite does not copy, the value's memory must stay where it is until
    /// the parameter is bound again.
    unsafe fn bind_with(
        &mut self,
        index: usize,
        value: Value<'_>,
        memory: sqlite::sqlite3_destructor_type,
    ) -> Result<(), Error> {
        let (statement, place) = (self.raw.raw(), number(index));
        // SAFETY: pointer and length are of one slice; the rest is promised by the caller.
        let code = unsafe {
            match value {
                Value::Null => sqlite::sqlite3_bind_null(statement, place),
                Value::Integer(value) => sqlite::sqlite3_bind_int64(statement, place, value),
                Value::Real(value) => sqlite::sqlite3_bind_double(statement, place, value),
                Value::Text(value) => sqlite::sqlite3_bind_text64(
                    statement,
                    place,
                    value.as_ptr().cast(),
                    value.len() as u64,
                    memory,
                    sqlite::SQLITE_UTF8 as u8,
                ),
                // An empty slice points somewhere, so this is an empty blob and not NULL.
                Value::Blob(value) => sqlite::sqlite3_bind_blob64(
                    statement,
                    place,
                    value.as_ptr().cast(),
                    value.len() as u64,
                    memory,
                ),
            }
        };
        if code != sqlite::SQLITE_OK {
            return Err(self.raw.error(code));
        }
        self.missing.clear(index);
        Ok(())
    }

    /// Runs to the next row. Parameters that nobody bound are NULL.
    pub(crate) fn step(&mut self) -> Result<bool, Error> {
        if !self.missing.is_empty() {
            self.bind_missing();
        }
        // SAFETY: a valid statement whose parameters point at memory that is there.
        let code = unsafe { sqlite::sqlite3_step(self.raw.raw()) };
        self.has_row = code == sqlite::SQLITE_ROW;
        match code {
            sqlite::SQLITE_ROW => Ok(true),
            sqlite::SQLITE_DONE => Ok(false),
            code => Err(self.raw.error(code)),
        }
    }

    /// Nobody may see what somebody else bound in an earlier run.
    #[cold]
    fn bind_missing(&mut self) {
        for index in self.missing.drain() {
            self.raw.set_null(index);
        }
    }

    /// The storage class of a column of the row; NULL if there is no row or no such column.
    pub(crate) fn column_type(&self, column: usize) -> Type {
        // SAFETY: a value of this row; it is only asked what it is.
        self.value(column).map_or(Type::Null, |value| unsafe { type_of(value) })
    }

    /// A column of the row as it is stored. Nothing is converted, so what was handed out before
    /// stays where it is until the next step.
    pub(crate) fn column(&self, column: usize) -> Value<'_> {
        let Some(value) = self.value(column) else { return Value::Null };
        // SAFETY: the value is asked for as what it is; the bytes are there until the statement is
        // stepped or finished, and both take the `Live` out of the borrow.
        unsafe {
            match type_of(value) {
                Type::Null => Value::Null,
                Type::Integer => Value::Integer(sqlite::sqlite3_value_int64(value)),
                Type::Real => Value::Real(sqlite::sqlite3_value_double(value)),
                Type::Text => {
                    let start = sqlite::sqlite3_value_text(value);
                    Value::Text(bytes(start, sqlite::sqlite3_value_bytes(value)))
                }
                Type::Blob => {
                    let start = sqlite::sqlite3_value_blob(value).cast();
                    Value::Blob(bytes(start, sqlite::sqlite3_value_bytes(value)))
                }
            }
        }
    }

    /// The value of a column. SQLite calls it unprotected, as no mutex is held over it; a
    /// connection opened without mutexes has none to hold, and its thread is the only one.
    fn value(&self, column: usize) -> Option<*mut sqlite::sqlite3_value> {
        // SAFETY: a statement with a row; any number may be asked for.
        self.has_row
            .then(|| unsafe { sqlite::sqlite3_column_value(self.raw.raw(), number(column)) })
    }

    /// Ends the run. What is left of the rows is given up; no memory is pointed at any more.
    pub(crate) fn finish(mut self) -> Idle {
        // SAFETY: a valid statement. What is returned is the error of the last step, told before.
        unsafe { sqlite::sqlite3_reset(self.raw.raw()) };
        if !self.lent.is_empty() {
            self.take_back();
        }
        Idle(self.raw)
    }

    fn take_back(&mut self) {
        for index in self.lent.drain() {
            self.raw.set_null(index);
        }
    }
}

impl Raw {
    fn set_null(&mut self, index: usize) {
        // SAFETY: a statement that is not running, and one of its parameters: this cannot fail.
        unsafe { sqlite::sqlite3_bind_null(self.raw(), number(index)) };
    }
}

/// SQLite's numbers of parameters and columns; one that is too large is none that exists.
fn number(index: usize) -> c_int {
    c_int::try_from(index).unwrap_or(c_int::MAX)
}

fn count(number: c_int) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// # Safety
///
/// A value of a statement's row.
unsafe fn type_of(value: *mut sqlite::sqlite3_value) -> Type {
    // SAFETY: promised by the caller.
    match unsafe { sqlite::sqlite3_value_type(value) } {
        sqlite::SQLITE_INTEGER => Type::Integer,
        sqlite::SQLITE_FLOAT => Type::Real,
        sqlite::SQLITE_TEXT => Type::Text,
        sqlite::SQLITE_BLOB => Type::Blob,
        _ => Type::Null,
    }
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

/// # Safety
///
/// `start` is null or readable for `length` bytes that live for `'a`.
unsafe fn bytes<'a>(start: *const u8, length: c_int) -> &'a [u8] {
    if start.is_null() || length <= 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { slice::from_raw_parts(start, count(length)) }
}
