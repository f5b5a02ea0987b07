//! Reading files, so that it can be stopped.
//!
//! SQLite hears of a cancel between two steps of its machine. A single step may read a whole table to count it, or a value of
//! hundreds of megabytes to find the column behind it; but each page of them is read by a call, and there it asks.
//!
//! And writing to the log, so that it gets no holes: a log that another program has made shorter would be filled with zeros up
//! to the next commit, which then is in no valid log.
//!
//! SQLite's own VFS does all the work. The one that is registered here is a copy of it whose files have another `xRead`, and
//! logs another `xWrite`.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use rusqlite::ffi as sqlite;

use crate::limits::Meter;

/// What connections are opened with.
pub(crate) const VFS: &str = "refrain";

thread_local! {
    /// Whom reads of this thread ask.
    static ASKED: Cell<*const Meter> = const { Cell::new(ptr::null()) };
}

/// Has reads of this thread ask a meter, until it is dropped.
pub(crate) struct Asking<'m> {
    before: *const Meter,
    _meter: PhantomData<&'m Meter>,
}

impl<'m> Asking<'m> {
    pub(crate) fn begin(meter: &'m Meter) -> Self {
        Self { before: ASKED.replace(meter), _meter: PhantomData }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        ASKED.set(self.before);
    }
}

/// A kind of file of SQLite's: its methods with our `xRead`, and as they were.
#[repr(C)]
struct Methods {
    ours: sqlite::sqlite3_io_methods,
    original: *const sqlite::sqlite3_io_methods,
    is_log: bool,
}

// SAFETY: functions, and a pointer to a constant of SQLite's; nothing is written.
unsafe impl Sync for Methods {}

/// SQLite's own VFS.
struct Original(*mut sqlite::sqlite3_vfs);

// SAFETY: it is registered for as long as the process runs, and SQLite uses it from all threads.
unsafe impl Send for Original {}
// SAFETY: as above.
unsafe impl Sync for Original {}

static ORIGINAL: OnceLock<Original> = OnceLock::new();
/// All kinds of files that were met: two or three.
static KINDS: Mutex<Vec<&'static Methods>> = Mutex::new(Vec::new());

/// Registers the VFS, once.
pub(super) fn register() {
    ORIGINAL.get_or_init(|| {
        // SAFETY: SQLite's default is there once it was initialised, which finding it does, and stays.
        let original = unsafe { sqlite::sqlite3_vfs_find(ptr::null()) };
        assert!(!original.is_null(), "SQLite was built with a VFS");
        // SAFETY: a valid VFS, which is only read. The copy stays for as long as the process runs.
        unsafe {
            let copy = Box::leak(Box::new(*original));
            copy.zName = c"refrain".as_ptr();
            copy.pNext = ptr::null_mut();
            copy.xOpen = Some(open);
            sqlite::sqlite3_vfs_register(copy, 0);
        }
        Original(original)
    });
}

/// Opens a file as SQLite does, and gives it our way to read.
unsafe extern "C" fn open(
    _: *mut sqlite::sqlite3_vfs,
    name: sqlite::sqlite3_filename,
    file: *mut sqlite::sqlite3_file,
    flags: c_int,
    opened: *mut c_int,
) -> c_int {
    let Some(Original(original)) = ORIGINAL.get() else { return sqlite::SQLITE_CANTOPEN };
    // SAFETY: what SQLite has given is handed on as it is, to the VFS whose place this one took.
    unsafe {
        let Some(open) = (**original).xOpen else { return sqlite::SQLITE_CANTOPEN };
        let code = open(*original, name, file, flags, opened);
        if !(*file).pMethods.is_null() {
            let is_log = flags & sqlite::SQLITE_OPEN_WAL != 0;
            (*file).pMethods = &raw const kind((*file).pMethods, is_log).ours;
        }
        code
    }
}

/// # Safety
///
/// Methods of SQLite's, which are constants.
unsafe fn kind(original: *const sqlite::sqlite3_io_methods, is_log: bool) -> &'static Methods {
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut known = kinds.iter().filter(|known| known.is_log == is_log);
    if let Some(known) = known.find(|known| ptr::eq(known.original, original)) {
        return known;
    }
    // SAFETY: promised by the caller.
    let mut ours = unsafe { *original };
    ours.xRead = Some(read);
    if is_log {
        ours.xWrite = Some(write_log);
    }
    let methods = Box::leak(Box::new(Methods { ours, original, is_log }));
    kinds.push(methods);
    methods
}

/// Reads as SQLite does, unless whoever is asked says to stop.
unsafe extern "C" fn read(
    file: *mut sqlite::sqlite3_file,
    into: *mut c_void,
    length: c_int,
    offset: sqlite::sqlite3_int64,
) -> c_int {
    // SAFETY: `Asking` borrows the meter for as long as it is there.
    if unsafe { ASKED.get().as_ref() }.is_some_and(Meter::stops_reading) {
        return sqlite::SQLITE_INTERRUPT;
    }
    // SAFETY: only files have this method that `open` gave methods of ours, which are the first field of `Methods`.
    unsafe {
        let methods = (*file).pMethods.cast::<Methods>();
        match (*(*methods).original).xRead {
            Some(read) => read(file, into, length, offset),
            None => sqlite::SQLITE_IOERR_READ,
        }
    }
}

/// Writes to a log as SQLite does, unless that would leave a hole: a log is written from its beginning on.
unsafe extern "C" fn write_log(
    file: *mut sqlite::sqlite3_file,
    from: *const c_void,
    length: c_int,
    offset: sqlite::sqlite3_int64,
) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let original = &*(*(*file).pMethods.cast::<Methods>()).original;
        let (Some(size_of), Some(write)) = (original.xFileSize, original.xWrite) else {
            return sqlite::SQLITE_IOERR_WRITE;
        };
        let mut size = 0;
        let code = size_of(file, &raw mut size);
        match code {
            sqlite::SQLITE_OK if offset > size => sqlite::SQLITE_IOERR_WRITE,
            sqlite::SQLITE_OK => write(file, from, length, offset),
            code => code,
        }
    }
}
