//! How a connection is opened.

use std::time::Duration;

/// How a connection is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// How long SQLite waits for a lock that another process holds.
    pub busy_timeout: Duration,
    /// The longest text, blob or row, in bytes. A statement may hold several.
    pub max_length: usize,
    /// How much memory the connection may have, in bytes: values that are under way, and what it keeps.
    pub max_memory: usize,
    /// How far a commit is on disk when it is acknowledged.
    pub synchronous: Synchronous,
    /// Whether the file can be read only.
    pub read_only: bool,
    /// Bytes of pages that a pool's connection keeps on which short reads run. Others keep 2 MiB.
    pub reader_pages: usize,
    /// How many bytes of the file are read as memory, without a system call; 0 for none. A disk that fails while such a
    /// byte is read ends the process, and so does another program that makes the file shorter.
    pub mmap_size: usize,
    /// Which statements are kept.
    pub cache: CacheOptions,
}

/// How far a commit is on disk when it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// It is on disk, and survives a loss of power.
    #[default]
    Full,
    /// It survives the end of the process; a loss of power may undo the last ones.
    Normal,
    /// A loss of power may leave a corrupt file.
    Off,
}

/// Which statements are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// How many at most; 0 keeps none.
    pub size: usize,
    /// From which use on.
    pub admit: Admit,
    /// The longest text that is kept, in bytes.
    pub max_sql: usize,
}

/// From which use on a statement is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admit {
    /// From the second: a text that comes once pushes out nothing and costs nothing.
    #[default]
    SecondUse,
    /// From the first.
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
    /// SQLite's word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Synchronous::Full => "FULL",
            Synchronous::Normal => "NORMAL",
            Synchronous::Off => "OFF",
        }
    }
}
