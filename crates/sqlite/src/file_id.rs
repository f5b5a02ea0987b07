//! Whether a file that is open is still the one under its name.
//!
//! A file may be moved, deleted or replaced while it is open: SQLite goes on with what it has, which nobody finds again.
//! So do commits whose log was deleted. Each is known by its number on its disk.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Identifies a file by its disk and its number there (inode), whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    disk: u64,
    number: u64,
}

impl FileId {
    /// The file under a name; none if there is none.
    pub fn of(path: &Path) -> Option<FileId> {
        fs::metadata(path).ok().as_ref().map(FileId::from)
    }
}

impl From<&fs::Metadata> for FileId {
    fn from(found: &fs::Metadata) -> FileId {
        FileId { disk: found.dev(), number: found.ino() }
    }
}

/// The log beside a database that a connection writes to.
pub(crate) struct WalFile {
    path: PathBuf,
    /// None until it was seen: SQLite makes it when it is needed.
    is: Cell<Option<FileId>>,
}

impl WalFile {
    /// The log of a connection that was opened just now.
    pub(crate) fn of(database: &Path) -> WalFile {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        let path = PathBuf::from(path);
        let is = Cell::new(FileId::of(&path));
        WalFile { path, is }
    }

    /// Whether it is still there. One that was never seen is not missed.
    pub(crate) fn is_in_place(&self) -> bool {
        let found = FileId::of(&self.path);
        match self.is.get() {
            None => self.is.set(found),
            known => return found == known,
        }
        true
    }
}
