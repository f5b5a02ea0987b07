//! SQLite databases, served in this process.

use std::path::PathBuf;
use std::time::Duration;

use crate::value::choice;

choice! {
    /// Durability of a commit in SQLite when the client gets its reply.
    Synchronous {
        /// The commit survives a power failure.
        Full = "full",
        /// The commit survives the end of the process; a power failure may undo the latest commits.
        Normal = "normal",
        /// A power failure may corrupt the file.
        Off = "off",
    }
}

choice! {
    /// When a connection to SQLite caches a compiled statement.
    StatementAdmission {
        /// On its second use: a statement that is run once does not evict another.
        SecondUse = "second-use",
        /// On its first use.
        Always = "always",
    }
}

/// An SQLite file and its options.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sqlite {
    /// Path of the file, which is created if it does not exist.
    pub path: PathBuf,
    /// Durability of a commit.
    pub synchronous: Synchronous,
    /// Time to wait for a lock of another process.
    pub busy_timeout: Duration,
    /// Time a transaction waits to write.
    pub lock_timeout: Duration,
    /// Threads kept for long reads.
    pub readers: u16,
    /// Length of the longest text, blob or row.
    pub max_length: usize,
    /// Memory that a connection may use.
    pub max_memory: usize,
    /// Memory for pages of the file, over all cores.
    pub cache_size: usize,
    /// Bytes of the file that are memory-mapped.
    pub mmap_size: usize,
    /// Compiled statements that each connection caches.
    pub stmt_cache_size: u32,
    /// When a connection caches a statement.
    pub stmt_cache_admit: StatementAdmission,
    /// Text length up to which a statement is cached.
    pub stmt_cache_max_sql: usize,
}
