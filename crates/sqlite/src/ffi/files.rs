//! A VFS that makes reads interruptible and protects the WAL and its index.
//!
//! *Reads.* SQLite notices a cancel between two steps of its virtual machine. A single step may
//! read a whole table to count it, or a value of hundreds of megabytes to find the column behind
//! it. But SQLite reads each page by a call, and each such call asks the [`Meter`].
//!
//! *Writes to the WAL.* If another program has made the WAL shorter, the kernel would fill the gap
//! up to the next commit with zeros, and that commit would be in no valid WAL. So a write that
//! leaves a gap is refused.
//!
//! *Index.* A database whose WAL index is not whole ([`Index`]) is left alone: SQLite gets no lock
//! of it, and reads and writes nothing of it.
//!
//! SQLite's own VFS does all the work. The VFS here is a copy of it. Its files have methods of this
//! module, and a [`Behind`] after the part that SQLite keeps of them.

use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use rusqlite::ffi as sqlite;

use super::index::Index;
use crate::limits::Meter;

/// The name of the VFS with which connections are opened.
pub(crate) const VFS: &str = "refrain";

thread_local! {
    /// The meter that reads of this thread ask.
    static ASKED: Cell<*const Meter> = const { Cell::new(ptr::null()) };
}

/// Lets reads of this thread ask a meter, until it is dropped.
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

/// A kind of SQLite's files: the methods of this module, and the original ones.
#[repr(C)]
struct Methods {
    ours: sqlite::sqlite3_io_methods,
    original: *const sqlite::sqlite3_io_methods,
    is_log: bool,
}

// SAFETY: functions, and a pointer to a constant of SQLite's; nothing is written.
unsafe impl Sync for Methods {}

/// Data that stands behind SQLite's own part of a file.
#[derive(Clone, Copy)]
struct Behind {
    /// The index of the database that the file is, or whose WAL it is.
    index: Option<&'static Index>,
    /// True if the file has mapped the index.
    maps: bool,
}

/// SQLite's own VFS, and the offset of [`Behind`] in its files.
struct Original {
    vfs: *mut sqlite::sqlite3_vfs,
    size: usize,
}

// SAFETY: it is registered for as long as the process runs, and SQLite uses it from all threads.
unsafe impl Send for Original {}
// SAFETY: as above.
unsafe impl Sync for Original {}

static ORIGINAL: OnceLock<Original> = OnceLock::new();
/// All kinds of files so far: two or three.
static KINDS: Mutex<Vec<&'static Methods>> = Mutex::new(Vec::new());

/// Registers the VFS, once.
pub(super) fn register() {
    ORIGINAL.get_or_init(|| {
        // SAFETY: finding the default VFS initialises SQLite, and the VFS stays for as long as the
        // process runs.
        let vfs = unsafe { sqlite::sqlite3_vfs_find(ptr::null()) };
        assert!(!vfs.is_null(), "SQLite was built with a VFS");
        // SAFETY: a valid VFS, which is only read. The copy stays for as long as the process runs.
        unsafe {
            let copy = Box::leak(Box::new(*vfs));
            let size = count(copy.szOsFile).next_multiple_of(align_of::<Behind>());
            copy.szOsFile = number(size + size_of::<Behind>());
            copy.zName = c"refrain".as_ptr();
            copy.pNext = ptr::null_mut();
            copy.xOpen = Some(open);
            sqlite::sqlite3_vfs_register(copy, 0);
            Original { vfs, size }
        }
    });
}

/// Opens a file as SQLite does, and sets the methods of this module.
unsafe extern "C" fn open(
    _: *mut sqlite::sqlite3_vfs,
    name: sqlite::sqlite3_filename,
    file: *mut sqlite::sqlite3_file,
    flags: c_int,
    opened: *mut c_int,
) -> c_int {
    let Some(Original { vfs, .. }) = ORIGINAL.get() else { return sqlite::SQLITE_CANTOPEN };
    // SAFETY: the arguments go to the original VFS unchanged. The file has room for a `Behind`
    // after SQLite's part, because `register` set the size.
    unsafe {
        let Some(open) = (**vfs).xOpen else { return sqlite::SQLITE_CANTOPEN };
        behind(file).write(Behind { index: None, maps: false });
        let code = open(*vfs, name, file, flags, opened);
        if !(*file).pMethods.is_null() {
            let is_log = flags & sqlite::SQLITE_OPEN_WAL != 0;
            (*file).pMethods = &raw const kind((*file).pMethods, is_log).ours;
            (*behind(file)).index = index(name, flags);
        }
        code
    }
}

/// Returns the index of the database that a file is, or whose WAL it is.
///
/// # Safety
///
/// The arguments are those that SQLite gives to open a file.
unsafe fn index(name: sqlite::sqlite3_filename, flags: c_int) -> Option<&'static Index> {
    // SAFETY: the name of a database or a WAL is a text. SQLite finds the file of the database by
    // the name of its WAL, and that file is open.
    unsafe {
        if name.is_null() {
            return None;
        }
        if flags & sqlite::SQLITE_OPEN_MAIN_DB != 0 {
            return Index::of(Path::new(OsStr::from_bytes(CStr::from_ptr(name).to_bytes())));
        }
        if flags & sqlite::SQLITE_OPEN_WAL != 0 {
            return index_of(sqlite::sqlite3_database_file_object(name));
        }
        None
    }
}

/// Returns the index of an open file, if the file has methods of this module.
///
/// # Safety
///
/// `file` is an open file of SQLite's, or null.
pub(super) unsafe fn index_of(file: *mut sqlite::sqlite3_file) -> Option<&'static Index> {
    let kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: promised by the caller; `open` has opened every file that has methods of this module.
    unsafe {
        let methods = file.as_ref()?.pMethods;
        kinds.iter().find(|known| ptr::eq(&raw const known.ours, methods))?;
        (*behind(file)).index
    }
}

/// # Safety
///
/// `file` is a file that `open` was given.
unsafe fn behind(file: *mut sqlite::sqlite3_file) -> *mut Behind {
    let size = ORIGINAL.get().map_or(0, |original| original.size);
    // SAFETY: SQLite gives files as much memory as the VFS asks for, aligned for pointers.
    unsafe { file.byte_add(size).cast() }
}

/// # Safety
///
/// `original` are methods of SQLite's, which are constants.
unsafe fn kind(original: *const sqlite::sqlite3_io_methods, is_log: bool) -> &'static Methods {
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut known = kinds.iter().filter(|known| known.is_log == is_log);
    if let Some(known) = known.find(|known| ptr::eq(known.original, original)) {
        return known;
    }
    // SAFETY: promised by the caller.
    let mut ours = unsafe { *original };
    ours.xRead = Some(read);
    ours.xWrite = Some(write);
    ours.xTruncate = Some(truncate);
    ours.xShmMap = ours.xShmMap.and(Some(map));
    ours.xShmLock = ours.xShmLock.and(Some(lock));
    ours.xShmUnmap = ours.xShmUnmap.and(Some(unmap));
    ours.xFetch = ours.xFetch.and(Some(fetch));
    let methods = Box::leak(Box::new(Methods { ours, original, is_log }));
    kinds.push(methods);
    methods
}

/// Returns a file's original methods, its kind, and its [`Behind`].
///
/// # Safety
///
/// The file has methods of this module: they are the first field of [`Methods`].
unsafe fn known(
    file: *mut sqlite::sqlite3_file,
) -> (&'static sqlite::sqlite3_io_methods, &'static Methods, Behind) {
    // SAFETY: promised by the caller; methods are never freed.
    unsafe {
        let methods = &*(*file).pMethods.cast::<Methods>();
        (&*methods.original, methods, *behind(file))
    }
}

impl Behind {
    fn is_broken(&self) -> bool {
        self.index.is_some_and(Index::is_broken)
    }

    fn is_whole(&self) -> bool {
        self.index.is_none_or(Index::is_whole)
    }
}

/// Reads as SQLite does, unless the meter says to stop.
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
    // SAFETY: a file with this method has the methods that `open` set.
    unsafe {
        let (original, _, behind) = known(file);
        match original.xRead {
            Some(read) if !behind.is_broken() => read(file, into, length, offset),
            _ => sqlite::SQLITE_IOERR_IN_PAGE,
        }
    }
}

/// Writes as SQLite does, unless that would leave a hole in a WAL: SQLite writes a WAL from its
/// beginning on.
unsafe extern "C" fn write(
    file: *mut sqlite::sqlite3_file,
    from: *const c_void,
    length: c_int,
    offset: sqlite::sqlite3_int64,
) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let (original, methods, behind) = known(file);
        let (Some(size_of), Some(write)) = (original.xFileSize, original.xWrite) else {
            return sqlite::SQLITE_IOERR_WRITE;
        };
        if behind.is_broken() {
            return sqlite::SQLITE_IOERR_IN_PAGE;
        }
        if methods.is_log {
            let mut size = 0;
            match size_of(file, &raw mut size) {
                sqlite::SQLITE_OK if offset > size => return sqlite::SQLITE_IOERR_WRITE,
                sqlite::SQLITE_OK => {}
                code => return code,
            }
        }
        write(file, from, length, offset)
    }
}

/// Makes a file shorter as SQLite does. SQLite empties a WAL once it is copied, and only a whole
/// index proves that.
unsafe extern "C" fn truncate(
    file: *mut sqlite::sqlite3_file,
    length: sqlite::sqlite3_int64,
) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let (original, _, behind) = known(file);
        match original.xTruncate {
            Some(truncate) if behind.is_whole() => truncate(file, length),
            _ => sqlite::SQLITE_IOERR_IN_PAGE,
        }
    }
}

/// Maps a region of the index as SQLite does. SQLite fills a file that is too short with zeros up
/// to the region, so the index has to be whole.
unsafe extern "C" fn map(
    file: *mut sqlite::sqlite3_file,
    region: c_int,
    length: c_int,
    extend: c_int,
    into: *mut *mut c_void,
) -> c_int {
    // SAFETY: as in `read`; the original method writes `into`.
    unsafe {
        let (original, _, behind) = known(file);
        let Some(map) = original.xShmMap else { return sqlite::SQLITE_IOERR_SHMMAP };
        let map = || map(file, region, length, extend, into);
        let Some(index) = behind.index else { return map() };
        if !index.is_whole() {
            *into = ptr::null_mut();
            return sqlite::SQLITE_IOERR_IN_PAGE;
        }
        (*self::behind(file)).maps = true;
        let place = (count(region), count(length));
        index.map(!behind.maps, place, || {
            let code = map();
            (*into, code)
        })
    }
}

/// Takes and releases locks of the index as SQLite does. The holder of an exclusive lock may change
/// the WAL, so the index is checked before.
unsafe extern "C" fn lock(
    file: *mut sqlite::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let (original, _, behind) = known(file);
        let Some(lock) = original.xShmLock else { return sqlite::SQLITE_IOERR_SHMLOCK };
        let may = match () {
            () if flags & sqlite::SQLITE_SHM_LOCK == 0 => true,
            () if flags & sqlite::SQLITE_SHM_EXCLUSIVE != 0 => behind.is_whole(),
            () => !behind.is_broken(),
        };
        if may { lock(file, first, count, flags) } else { sqlite::SQLITE_IOERR_IN_PAGE }
    }
}

/// Unmaps the index as SQLite does.
unsafe extern "C" fn unmap(file: *mut sqlite::sqlite3_file, delete: c_int) -> c_int {
    // SAFETY: as in `read`.
    unsafe {
        let (original, _, Behind { index, maps }) = known(file);
        let Some(unmap) = original.xShmUnmap else { return sqlite::SQLITE_OK };
        (*behind(file)).maps = false;
        match index.filter(|_| maps) {
            Some(index) => index.unmap(|| unmap(file, delete)),
            None => unmap(file, delete),
        }
    }
}

/// Returns a page of a mapped file as SQLite does, or none if the index is broken: SQLite then
/// reads the page.
unsafe extern "C" fn fetch(
    file: *mut sqlite::sqlite3_file,
    offset: sqlite::sqlite3_int64,
    length: c_int,
    into: *mut *mut c_void,
) -> c_int {
    // SAFETY: as in `read`; `into` is written.
    unsafe {
        let (original, _, behind) = known(file);
        match original.xFetch {
            Some(fetch) if !behind.is_broken() => fetch(file, offset, length, into),
            _ => {
                *into = ptr::null_mut();
                sqlite::SQLITE_OK
            }
        }
    }
}

fn number(size: usize) -> c_int {
    c_int::try_from(size).unwrap_or(c_int::MAX)
}

fn count(number: c_int) -> usize {
    usize::try_from(number).unwrap_or(0)
}
