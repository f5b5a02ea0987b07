//! Databases that are files, served by SQLite in this process.

use std::path::PathBuf;
use std::time::Duration;

use crate::value::choice;

choice! {
    /// How far a commit is on disk when SQLite's client is told of it.
    Synchronous {
        /// On disk: it survives a loss of power.
        Full = "full",
        /// It survives the end of the process; a loss of power may undo the last ones.
        Normal = "normal",
        /// A loss of power may leave a corrupt file.
        Off = "off",
    }
}

choice! {
    /// From which use on a connection to SQLite keeps a compiled statement.
    StatementAdmission {
        /// From the second: a text that comes once pushes out nothing.
        SecondUse = "second-use",
        /// From the first.
        Always = "always",
    }
}

/// A file, and how SQLite is to serve it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sqlite {
    /// Where it is. It is made if it is not there.
    pub path: PathBuf,
    /// How far a commit is on disk when it is acknowledged.
    pub synchronous: Synchronous,
    /// Wait for a lock of another process.
    pub busy_timeout: Duration,
    /// Wait in line to write.
    pub lock_timeout: Duration,
    /// Threads for reads that take long.
    pub readers: u16,
    /// The longest text, blob or row.
    pub max_length: usize,
    /// Memory that a connection may have.
    pub max_memory: usize,
    /// Memory for pages of the file, of all cores together.
    pub cache_size: usize,
    /// Bytes of the file that are read as memory.
    pub mmap_size: usize,
    /// Statements kept by each connection.
    pub stmt_cache_size: u32,
    /// From which use on.
    pub stmt_cache_admit: StatementAdmission,
    /// Length of text up to which a statement is kept.
    pub stmt_cache_max_sql: usize,
}
