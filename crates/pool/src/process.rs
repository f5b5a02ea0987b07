//! The things that a process has once, whatever protocols it serves: numbers of clients and
//! servers, and the count of clients.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The things that a process has once. The shared state of each protocol holds them.
#[derive(Debug)]
pub struct Process {
    serials: AtomicU64,
    /// Number of clients that are logged in.
    pub(crate) clients: AtomicU32,
}

impl Default for Process {
    fn default() -> Self {
        Self { serials: AtomicU64::new(1), clients: AtomicU32::new(0) }
    }
}

impl Process {
    /// Returns a number that was never given before.
    pub(crate) fn serial(&self) -> u64 {
        self.serials.fetch_add(1, Relaxed)
    }
}
