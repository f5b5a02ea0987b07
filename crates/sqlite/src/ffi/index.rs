//! The index of a log, which SQLite shares between programs: the `-shm` beside a database, mapped
//! into memory.
//!
//! Another program may make it shorter, delete it or put another in its place. Then pages of the
//! log are not found any more, or another program does not see our locks: what is read is old, and
//! what is written over is lost. So an index that is not whole any more is marked, for all of the
//! process, and `files` refuses all that follows until the last connection is closed. Nothing that
//! was committed is lost: the log has it, and SQLite makes its index anew from the log.

use std::ffi::{OsString, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fault;
use crate::file_id::FileId;

/// The index of one database file, whatever names it is opened by.
pub(crate) struct Index {
    /// Of the database file.
    is: FileId,
    broken: AtomicBool,
    mapped: Mutex<Mapped>,
}

/// What is mapped of it.
#[derive(Default)]
struct Mapped {
    /// Connections that have it.
    users: usize,
    path: PathBuf,
    /// None before the first connection, and if it is gone at once.
    is: Option<FileId>,
    /// How long it must be.
    length: u64,
}

/// Those of all files that were opened. They stay, as regions name them.
static ALL: Mutex<Vec<&'static Index>> = Mutex::new(Vec::new());

impl Index {
    /// That of a database file; none if there is no such file.
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
        // A number of a file that is gone may be another's by now.
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

    /// Whether it was found not to be whole.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }

    /// Whether it is whole, as far as the file says. A system call.
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

    /// Maps a region of it, for a connection that is new here or not, and guards it.
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

    /// Unmaps it for a connection. Behind the last one the next begins anew.
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
    /// Whether the file is the one that is mapped, and as long as it was.
    fn is_there(&self) -> bool {
        let found = std::fs::metadata(&self.path);
        found.is_ok_and(|found| self.is == Some((&found).into()) && found.len() >= self.length)
    }
}
