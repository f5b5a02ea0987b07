//! The index of a WAL, which SQLite shares between programs: the `-shm` file beside a database,
//! mapped into memory.
//!
//! Another program may make it shorter, delete it or replace it. Then SQLite does not find pages of
//! the WAL, or the other program does not see the locks of this process: reads return old data, and
//! writes overwrite each other. So an index that is not whole is marked, for the whole process, and
//! `files` refuses every access until the last connection is closed. No committed data is lost: it
//! is in the WAL, from which SQLite makes a new index.

use std::ffi::{OsString, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fault;
use crate::error::Error;
use crate::file_id::FileId;

/// The index of one database file, under whatever names the file is opened.
pub(crate) struct Index {
    /// Identifies the database file.
    is: FileId,
    broken: AtomicBool,
    mapped: Mutex<Mapped>,
}

/// The mapped index.
#[derive(Default)]
struct Mapped {
    /// The number of connections that have mapped it.
    users: usize,
    path: PathBuf,
    /// None before the first connection, or if the file was gone at once.
    is: Option<FileId>,
    /// The length that the file must have.
    length: u64,
}

/// The indexes of all files that were opened. They are never freed, because regions point to their
/// marks.
static ALL: Mutex<Vec<&'static Index>> = Mutex::new(Vec::new());

impl Index {
    /// Returns the index of a database file; none if there is no such file.
    pub(super) fn of(database: &Path) -> Option<&'static Index> {
        let is = FileId::of(database)?;
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|known| known.is == is).copied();
        let index: &'static Index = known.unwrap_or_else(|| {
            let index = Index { is, broken: AtomicBool::new(false), mapped: Mutex::default() };
            let index = Box::leak(Box::new(index));
            all.push(index);
            index
        });
        // The number of a file that is gone may belong to another file now, with another path.
        let mut mapped = index.mapped();
        if mapped.users == 0 {
            let mut path = OsString::from(database);
            path.push("-shm");
            mapped.path = path.into();
        }
        Some(index)
    }

    fn mapped(&self) -> MutexGuard<'_, Mapped> {
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if it is marked as broken.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }

    /// Returns the error of a database whose index is marked as broken; `index` is none for a
    /// database in memory.
    #[inline]
    pub(super) fn check(index: Option<&'static Index>) -> Result<(), Error> {
        if index.is_some_and(Index::is_broken) { Err(Error::broken_index()) } else { Ok(()) }
    }

    /// True if it is whole, as far as the file shows. Marks it otherwise. Needs a system call.
    pub(crate) fn is_whole(&self) -> bool {
        if self.is_broken() {
            return false;
        }
        let mapped = self.mapped();
        let whole = mapped.length == 0 || mapped.is_there();
        if !whole {
            self.broken.store(true, Ordering::SeqCst);
        }
        whole
    }

    /// Maps a region of it and guards the region. `new` is true for the first region of a
    /// connection.
    pub(super) fn map<T>(
        &'static self,
        new: bool,
        (number, length): (usize, usize),
        map: impl FnOnce() -> (*mut c_void, T),
    ) -> T {
        let mut mapped = self.mapped();
        mapped.users += usize::from(new);
        let (start, done) = map();
        if !start.is_null() {
            fault::protect(start, length, &self.broken);
            mapped.length = mapped.length.max(((number + 1) * length) as u64);
            mapped.is = mapped.is.or_else(|| FileId::of(&mapped.path));
        }
        done
    }

    /// Unmaps it for a connection. After the last one the mark is cleared.
    pub(super) fn unmap<T>(&'static self, unmap: impl FnOnce() -> T) -> T {
        let mut mapped = self.mapped();
        mapped.users = mapped.users.saturating_sub(1);
        if mapped.users == 0 {
            (mapped.is, mapped.length) = (None, 0);
            fault::forget(&self.broken);
            self.broken.store(false, Ordering::SeqCst);
        }
        unmap()
    }
}

impl Mapped {
    /// True if the file is still the mapped one, and is long enough.
    fn is_there(&self) -> bool {
        let found = std::fs::metadata(&self.path);
        found.is_ok_and(|found| self.is == Some((&found).into()) && found.len() >= self.length)
    }
}
