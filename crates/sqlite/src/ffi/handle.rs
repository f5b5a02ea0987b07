//! A connection, as far as rusqlite does not have it.

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

/// The name of the database beside `main`, as PostgreSQL's clients expect it.
const MAIN_NAME: &CStr = c"public";

/// Sets what counts for the whole process, before the first connection is opened.
///
/// SQLite counts the memory of all connections together, under one lock: every allocation of every
/// core takes it, for a figure that nobody reads.
pub(crate) fn configure() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        memory::install();
        // SAFETY: the option takes one integer. Where somebody else in the process has SQLite at
        // work already this does nothing, and what is lost is speed only.
        unsafe { sqlite::sqlite3_config(sqlite::SQLITE_CONFIG_MEMSTATUS, 0) };
        fault::install();
        files::register();
    });
}

/// An open connection.
pub(crate) struct Handle {
    connection: rusqlite::Connection,
    /// What the connection asks when another process has a lock: it points there. Dropped behind
    /// it.
    meter: Arc<Meter>,
    /// The memory that it has; memory of the connection is given back before.
    account: Lease,
}

/// What SQLite calls when another process has a lock.
unsafe extern "C" fn wait_for_lock(meter: *mut c_void, asked: c_int) -> c_int {
    // SAFETY: the pointer is that of `Handle::new`, whose meter is there as long as the connection.
    let meter = unsafe { &*meter.cast::<Meter>() };
    c_int::from(meter.wait_for_lock(usize::try_from(asked).unwrap_or(0)))
}

/// What a text was compiled into.
pub(crate) struct Compiled {
    /// The statement; none if the text holds nothing but white space and comments.
    pub(crate) idle: Option<Idle>,
    /// How much of the text it took, in bytes.
    pub(crate) length: usize,
}

impl Handle {
    /// Takes over a connection, which must have been opened without mutexes or with. It may have
    /// `most` bytes of memory.
    pub(crate) fn new(
        connection: rusqlite::Connection,
        meter: Arc<Meter>,
        most: usize,
    ) -> Result<Handle, Error> {
        let handle = Handle { connection, meter, account: Lease::new(most) };
        let meter = Arc::as_ptr(&handle.meter).cast_mut().cast();
        // SAFETY: the callback takes this pointer, and nothing is written through it but atomics.
        let code =
            unsafe { sqlite::sqlite3_busy_handler(handle.raw(), Some(wait_for_lock), meter) };
        handle.check(code)?;
        Ok(handle)
    }

    /// The connection, for what rusqlite does safely.
    pub(crate) fn connection(&self) -> &rusqlite::Connection {
        &self.connection
    }

    /// The connection, for hooks.
    pub(crate) fn connection_mut(&mut self) -> &mut rusqlite::Connection {
        &mut self.connection
    }

    /// Has what this thread takes counted as the connection's, until the result is dropped.
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
        // A tail is always set on success; it points into the text or to its end.
        let used = (tail as usize).wrapping_sub(start as usize).min(sql.len());
        if sql.as_bytes().get(used) == Some(&0) {
            let message = "a text cannot hold the character NUL";
            // SAFETY: a statement that nobody else has seen, or null, which is a no-op.
            unsafe { sqlite::sqlite3_finalize(statement) };
            return Err(Error::new(sqlite::SQLITE_ERROR, message).with_state("22021"));
        }
        // SAFETY: just compiled; it is dropped before the connection (the head of `ffi`).
        let raw = unsafe { Raw::new(statement, used) };
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

    /// Has each commit copy the WAL into the file that finds so many pages there; 0 is never.
    pub(crate) fn checkpoint_from(&self, pages: c_int) {
        // SAFETY: the connection is open. There is no other hook that this would replace.
        unsafe { sqlite::sqlite3_wal_autocheckpoint(self.raw(), pages) };
    }

    /// Whether the name of the file leads elsewhere by now, or nowhere.
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

    /// The index of the database's log; none of a database in memory.
    pub(crate) fn index(&self) -> Option<&'static Index> {
        // SAFETY: the connection is open.
        unsafe { index_of(self.raw()) }
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
