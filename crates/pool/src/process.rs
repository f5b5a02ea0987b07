//! The things that a process has once, whatever protocols it serves: the numbers of clients and
//! servers, the counts of clients, and the databases that are paused or disabled.
//!
//! Not here, but once for each protocol: counts of servers, and the connections that have not
//! logged in. Both lead to cores of the protocol: to parts of pools that wait for room, and to a
//! connection that has to make way.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::client_counts::ClientCounts;
use crate::pauses::Pauses;

/// The things that a process has once. The shared state of each protocol holds them.
#[derive(Debug)]
pub struct Process {
    serials: AtomicU64,
    /// Number of clients that are logged in.
    pub(crate) clients: AtomicU32,
    /// The clients that are logged in, by database and by user.
    pub(crate) client_counts: ClientCounts,
    pauses: Mutex<Pauses>,
    /// The databases that take no new clients, by the names that clients give.
    disabled: Mutex<HashSet<Arc<str>>>,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            serials: AtomicU64::new(1),
            clients: AtomicU32::new(0),
            client_counts: ClientCounts::default(),
            pauses: Mutex::default(),
            disabled: Mutex::default(),
        }
    }
}

impl Process {
    /// Returns a number that was never given before.
    pub(crate) fn serial(&self) -> u64 {
        self.serials.fetch_add(1, Relaxed)
    }

    /// Returns the databases that are paused.
    pub(crate) fn pauses(&self) -> MutexGuard<'_, Pauses> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the databases that take no new clients.
    pub(crate) fn disabled(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.disabled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
