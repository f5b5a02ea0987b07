//! A connection, with the functions of SQLite that rusqlite does not have.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Once};

use rusqlite::ffi as sqlite;

use super::index::Index;
use super::live::Idle;
use super::memory::{Counting, Lease};
use super::raw::{Raw, error_of, index_of};
use super::{fault, files, memory};
use crate::error::Error;
use crate::limits::Meter;

/// The second name of the database `main`: PostgreSQL's clients expect this schema.
const MAIN_NAME: &CStr = c"public";

/// Sets the process-wide configuration, before the first connection is opened.
///
/// By default SQLite counts the memory of all connections together, under one lock, which every
/// allocation of every core would take, for a figure without a reader.
pub(crate) fn configure() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        memory::install();
        // SAFETY: the option takes one integer. If other code of the process uses SQLite already,
        // the call does nothing, and allocations stay slower.
        unsafe { sqlite::sqlite3_config(sqlite::SQLITE_CONFIG_MEMSTATUS, 0) };
        fault::install();
        files::register();
    });
}

/// An open connection.
pub(crate) struct Handle {
    connection: rusqlite::Connection,
    /// Decides how long to wait when another process has a lock. The connection has a pointer to
    /// it, so it is dropped after the connection.
    meter: Arc<Meter>,
    /// The account of its memory. The connection frees its memory before.
    account: Lease,
    /// The index of the database's WAL; none for a database in memory.
    index: Option<&'static Index>,
}

/// Handles a lock of another process: SQLite's busy handler.
unsafe extern "C" fn wait_for_lock(meter: *mut c_void, asked: c_int) -> c_int {
    // SAFETY: the pointer is that of `Handle::new`. The meter lives as long as the connection.
    let meter = unsafe { &*meter.cast::<Meter>() };
    c_int::from(meter.wait_for_lock(usize::try_from(asked).unwrap_or(0)))
}

/// The result of compiling a text.
pub(crate) struct Compiled {
    /// The statement; none if the text holds nothing but white space and comments.
    pub(crate) idle: Option<Idle>,
    /// The length of the statement in the text, in bytes.
    pub(crate) length: usize,
}

impl Handle {
    /// Takes over a connection, which may be opened with or without mutexes. It may have `most`
    /// bytes of memory.
    pub(crate) fn new(
        connection: rusqlite::Connection,
        meter: Arc<Meter>,
        most: usize,
    ) -> Result<Handle, Error> {
        // SAFETY: the connection is open.
        let index = unsafe { index_of(connection.handle()) };
        let handle = Handle { connection, meter, account: Lease::new(most), index };
        let meter = Arc::as_ptr(&handle.meter).cast_mut().cast();
        // SAFETY: the callback gets this pointer, and writes nothing through it but atomics.
        let code =
            unsafe { sqlite::sqlite3_busy_handler(handle.raw(), Some(wait_for_lock), meter) };
        handle.check(code)?;
        Ok(handle)
    }

    /// Returns the connection, for functions that rusqlite makes safe.
    pub(crate) fn connection(&self) -> &rusqlite::Connection {
        &self.connection
    }

    /// Returns the connection, to set hooks.
    pub(crate) fn connection_mut(&mut self) -> &mut rusqlite::Connection {
        &mut self.connection
    }

    /// Counts this thread's allocations as the connection's, until the result is dropped.
    pub(crate) fn counting(&self) -> Counting {
        self.account.count()
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
        let _counting = self.counting();
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
        // SQLite always sets the tail on success: it points into the text or to its end.
        let used = (tail as usize).wrapping_sub(start as usize).min(sql.len());
        // SAFETY: just compiled; it is dropped before the connection (the head of `ffi`).
        let raw = unsafe { Raw::new(statement, used) };
        if sql.as_bytes().get(used) == Some(&0) {
            let message = "a text cannot hold the character NUL";
            return Err(Error::new(sqlite::SQLITE_ERROR, message).with_state("22021"));
        }
        // The schema that SQLite compiled it for may have been read from a broken index.
        Index::check(self.index)?;
        Ok(Compiled { idle: raw.map(Idle), length: used })
    }

    /// True if a statement of this connection is in the middle of its rows.
    pub(crate) fn is_busy(&self) -> bool {
        self.connection.is_busy()
    }

    /// Copies pages from the WAL to the file. Returns how many frames the WAL has, and how many are
    /// copied.
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

    /// Sets the number of WAL pages from which on a commit copies the WAL into the file; 0 for
    /// never.
    pub(crate) fn checkpoint_from(&self, pages: c_int) {
        // SAFETY: the connection is open. It has no other WAL hook, which this would replace.
        unsafe { sqlite::sqlite3_wal_autocheckpoint(self.raw(), pages) };
    }

    /// True if the path of the file leads to another file by now, or to none.
    pub(crate) fn has_moved(&self) -> bool {
        let mut moved: c_int = 0;
        // SAFETY: a null name means the main database; the operation writes one integer. A database
        // in memory has no file and refuses, and leaves the integer as it is.
        unsafe {
            sqlite::sqlite3_file_control(
                self.raw(),
                ptr::null(),
                sqlite::SQLITE_FCNTL_HAS_MOVED,
                (&raw mut moved).cast(),
            )
        };
        moved != 0
    }

    /// Returns the index of the database's WAL; none for a database in memory.
    pub(crate) fn index(&self) -> Option<&'static Index> {
        self.index
    }

    /// Closes the file. All statements are gone before.
    pub(crate) fn close(self) -> Result<(), Error> {
        self.connection.close().map_err(|(_, error)| error.into())
    }

    /// Counts the statements, including those that virtual tables made for themselves.
    #[cfg(test)]
    pub(crate) fn statements(&self) -> usize {
        // SAFETY: walks the statements of an open connection, and changes none.
        let next = |last| unsafe { sqlite::sqlite3_next_stmt(self.raw(), last) };
        let found =
            |statement: *mut sqlite::sqlite3_stmt| (!statement.is_null()).then_some(statement);
        std::iter::successors(found(next(ptr::null_mut())), |last| found(next(*last))).count()
    }

    fn check(&self, code: c_int) -> Result<(), Error> {
        if code == sqlite::SQLITE_OK {
            return Index::check(self.index);
        }
        // SAFETY: the connection is open, and this was the last call on it.
        Err(unsafe { error_of(self.raw(), code) })
    }
}
