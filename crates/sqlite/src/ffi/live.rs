//! Idle and running statements.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ops::Deref;
use std::slice;

use rusqlite::ffi as sqlite;

use super::index::Index;
use super::raw::{Raw, count, number};
use crate::error::Error;
use crate::marks::Marks;
use crate::value::{Type, Value};

/// The longest value that stays bound after a run, in bytes.
const KEPT_MAX: usize = 4096;

/// A statement that is reset and points at no memory of a caller.
pub(crate) struct Idle(pub(super) Raw);

impl Deref for Idle {
    type Target = Raw;

    fn deref(&self) -> &Raw {
        &self.0
    }
}

impl Idle {
    /// Begins a run: the caller binds parameters, then steps.
    pub(crate) fn start<'b>(self) -> Live<'b> {
        let parameters = self.parameter_count();
        let (missing, lent) = (Marks::first(parameters), Marks::default());
        Live { raw: self.0, missing, lent, has_row: false, _parameters: PhantomData }
    }
}

/// A running statement. The memory of its parameters lives for `'b`.
pub(crate) struct Live<'b> {
    raw: Raw,
    /// Parameters that were not bound in this run: they hold values of an earlier one.
    missing: Marks,
    /// Parameters whose values are removed at the end of the run: they point at memory of the
    /// caller, or are long.
    lent: Marks,
    /// True if the last step gave a row.
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
    /// Binds a parameter to a value without copying it.
    pub(crate) fn bind(&mut self, index: usize, value: Value<'b>) -> Result<(), Error> {
        // SAFETY: the memory lives for `'b`. SQLite reads it in `step` alone, which needs the
        // `Live`, and that cannot outlive `'b`; `finish` removes the pointer.
        unsafe { self.bind_with(index, value, sqlite::SQLITE_STATIC()) }?;
        if matches!(value, Value::Text(_) | Value::Blob(_)) {
            self.lent.set(index);
        }
        Ok(())
    }

    /// Binds a parameter to a value that SQLite copies.
    pub(crate) fn bind_copied(&mut self, index: usize, value: Value<'_>) -> Result<(), Error> {
        // SAFETY: SQLite copies the memory before the call returns.
        unsafe { self.bind_with(index, value, sqlite::SQLITE_TRANSIENT()) }?;
        match value {
            Value::Text(bytes) | Value::Blob(bytes) if bytes.len() > KEPT_MAX => {
                self.lent.set(index)
            }
            _ => self.lent.clear(index),
        }
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

    /// Runs to the next row. Parameters that were not bound are NULL. `index` is the index of the
    /// connection's database.
    ///
    /// # Errors
    /// SQLite's; also that of a broken index where SQLite knows of no error: it may have read empty
    /// memory in the place of the index.
    pub(crate) fn step(&mut self, index: Option<&'static Index>) -> Result<bool, Error> {
        if !self.missing.is_empty() {
            self.bind_missing();
        }
        // SAFETY: a valid statement whose parameters point at memory that is there.
        let code = unsafe { sqlite::sqlite3_step(self.raw.raw()) };
        self.has_row = false;
        let has_row = match code {
            sqlite::SQLITE_ROW => true,
            sqlite::SQLITE_DONE => false,
            code => return Err(self.raw.error(code)),
        };
        if index.is_some_and(Index::is_broken) {
            return Err(Error::broken_index());
        }
        self.has_row = has_row;
        Ok(has_row)
    }

    /// Sets parameters to NULL that were not bound: a client must not see values of an earlier run.
    #[cold]
    fn bind_missing(&mut self) {
        for index in self.missing.drain() {
            self.raw.set_null(index);
        }
    }

    /// Returns the storage class of a column of the row; NULL if there is no row or no such column.
    pub(crate) fn column_type(&self, column: usize) -> Type {
        // SAFETY: a value of this row; the call reads its type and nothing else.
        self.value(column).map_or(Type::Null, |value| unsafe { type_of(value) })
    }

    /// Returns a column of the row as it is stored. Nothing is converted, so values that were
    /// returned before stay in place until the next step.
    pub(crate) fn column(&self, column: usize) -> Value<'_> {
        let Some(value) = self.value(column) else { return Value::Null };
        // SAFETY: the value is read as the type that it has. The bytes stay until the statement is
        // stepped or finished, and both need the `Live` that is borrowed here.
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

    /// Returns the value of a column. SQLite calls it unprotected, because no mutex is held over
    /// it. A connection without mutexes has none to hold, and one thread uses it at a time.
    fn value(&self, column: usize) -> Option<*mut sqlite::sqlite3_value> {
        // SAFETY: a statement with a row; any number may be asked for.
        self.has_row
            .then(|| unsafe { sqlite::sqlite3_column_value(self.raw.raw(), number(column)) })
    }

    /// Returns the statement's text with the bound values in the place of its parameters; none if
    /// there is no memory for it.
    pub(crate) fn expanded(&self) -> Option<String> {
        // SAFETY: a valid statement whose parameters point at memory that is there.
        let text = unsafe { sqlite::sqlite3_expanded_sql(self.raw.raw()) };
        if text.is_null() {
            return None;
        }
        // SAFETY: SQLite has made a text that ends with a zero byte, and it is freed here alone.
        unsafe {
            let copied = std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned();
            sqlite::sqlite3_free(text.cast());
            Some(copied)
        }
    }

    /// Ends the run. The rest of the rows is discarded, and the statement points at no memory of a
    /// caller.
    pub(crate) fn finish(mut self) -> Idle {
        // SAFETY: a valid statement. The call returns the error of the last step, which the caller
        // has got already.
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

/// # Safety
///
/// `value` is a value of a statement's row.
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
/// `start` is null or readable for `length` bytes that live for `'a`.
unsafe fn bytes<'a>(start: *const u8, length: c_int) -> &'a [u8] {
    if start.is_null() || length <= 0 {
        return &[];
    }
    // SAFETY: promised by the caller.
    unsafe { slice::from_raw_parts(start, count(length)) }
}
