//! Options with which a connection is opened.

use std::time::Duration;

/// Options with which a connection is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// How long SQLite waits for a lock that another process holds.
    pub busy_timeout: Duration,
    /// The longest text, blob or row, in bytes. A statement may hold several.
    pub max_length: usize,
    /// How much memory the connection may have, in bytes: values in use, and what it caches.
    pub max_memory: usize,
    /// How safe on disk a commit is when it is acknowledged.
    pub synchronous: Synchronous,
    /// True to open the file for reading alone.
    pub read_only: bool,
    /// The page cache, in bytes, of a pool's connection for short reads. Other connections have 2
    /// MiB.
    pub reader_pages: usize,
    /// How many bytes of the file are mapped into memory and read without a system call; 0 for
    /// none. If the disk fails while such a byte is read, the process ends; so it does if another
    /// program makes the file shorter.
    pub mmap_size: usize,
    /// Which statements are kept.
    pub cache: CacheOptions,
}

/// How safe on disk a commit is when it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// It is on disk, and survives a loss of power.
    #[default]
    Full,
    /// It survives the end of the process; a loss of power may undo the last ones.
    Normal,
    /// A loss of power may leave a corrupt file.
    Off,
    /// It survives the end of the process. The owner of the connections waits for the disk before
    /// it acknowledges the commit: [`sync_wal`](crate::sync_wal). A file that has no WAL is
    /// written as with `Full`.
    Later,
}

/// Which statements are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// The most statements that are kept; 0 keeps none.
    pub size: usize,
    /// The use from which on a statement is kept.
    pub admit: Admit,
    /// The longest text that is kept, in bytes.
    pub max_sql: usize,
}

/// The use from which on a statement is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admit {
    /// The second: a text that comes once evicts nothing and costs nothing.
    #[default]
    SecondUse,
    /// The first.
    Always,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            busy_timeout: Duration::from_secs(5),
            max_length: 300 * 1024 * 1024,
            max_memory: 1024 * 1024 * 1024,
            synchronous: Synchronous::default(),
            read_only: false,
            reader_pages: 0,
            mmap_size: 0,
            cache: CacheOptions::default(),
        }
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        CacheOptions { size: 256, admit: Admit::default(), max_sql: 16 * 1024 }
    }
}

impl Synchronous {
    /// Returns SQLite's word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Synchronous::Full => "FULL",
            Synchronous::Normal | Synchronous::Later => "NORMAL",
            Synchronous::Off => "OFF",
        }
    }
}
