//! Checks whether an open file is still the one under its path.
//!
//! A file may be moved, deleted or replaced while it is open. SQLite goes on with the open file,
//! which no path leads to any more, and the same happens to commits whose WAL was deleted. A file
//! is known by its number (inode) on its disk.

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Identifies a file by its disk and its number there (inode), whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    disk: u64,
    number: u64,
}

impl FileId {
    /// Returns the file under a path; none if there is none.
    pub fn of(path: &Path) -> Option<FileId> {
        fs::metadata(path).ok().as_ref().map(FileId::from)
    }
}

impl From<&fs::Metadata> for FileId {
    fn from(found: &fs::Metadata) -> FileId {
        FileId { disk: found.dev(), number: found.ino() }
    }
}

/// Returns the path of the WAL of a database file.
pub fn wal_path(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    PathBuf::from(path)
}

/// Waits until a WAL is on disk, with all that was written to it before. Where there is no WAL,
/// SQLite has copied it into the database and waited for that.
///
/// # Errors
/// The system's.
pub fn sync_wal(path: &Path) -> io::Result<()> {
    match fs::File::open(path) {
        Ok(file) => file.sync_data(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The WAL beside a database file.
pub(crate) struct WalFile {
    path: PathBuf,
    /// None until it was seen: SQLite creates it when it needs it.
    is: Cell<Option<FileId>>,
}

impl WalFile {
    /// Returns the WAL of a connection that was opened just now.
    pub(crate) fn of(database: &Path) -> WalFile {
        let path = wal_path(database);
        let is = Cell::new(FileId::of(&path));
        WalFile { path, is }
    }

    /// True if the WAL is still in its place. One that was never seen cannot be missing.
    pub(crate) fn is_in_place(&self) -> bool {
        let found = FileId::of(&self.path);
        match self.is.get() {
            None => self.is.set(found),
            known => return found == known,
        }
        true
    }
}
