//! Often: facts about a statement that is used often.
//!
//! A large program has statements by the hundred thousand, and uses a few of them all the time.
//! Refrain asks about these alone, so that the others need no memory for the answers.

use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::statements::relations::Relations;

/// Facts about a statement that is used often.
#[derive(Debug, Default)]
pub(crate) struct Often {
    /// The count of schema changes as of which autoprepare has servers prepare it.
    pub(crate) schema_changes: AtomicU64,
    /// The tables that it reads, and those that it may change.
    pub(crate) relations: Relations,
    /// Memory of a server that a plan takes for partitions, in bytes, as far as it is known.
    pub(crate) partitions: AtomicUsize,
    /// Requests that shared a server.
    pub(crate) shared: AtomicU64,
    /// Time of requests that said the same as one shortly before, in microseconds.
    pub(crate) repeated_us: AtomicU64,
}
