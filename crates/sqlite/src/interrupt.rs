//! Interrupts a statement from another thread, and never the next one.
//!
//! SQLite's interrupt ends the statement that runs on the connection when it arrives. A cancel
//! request that comes a moment too late would hit another client's statement. So a session sets the
//! job of the connection ([`Interrupter::begin`]), and an interrupt names the job that it means.
//! Both happen under one lock, so that the job cannot end between the check and the call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::Meter;

/// Interrupts a connection's current job, from any thread. Clones stop the same connection.
#[derive(Clone)]
pub struct Interrupter {
    shared: Arc<InterruptTarget>,
}

struct InterruptTarget {
    /// The session whose statements the connection runs.
    job: Mutex<Option<u64>>,
    handle: rusqlite::InterruptHandle,
    /// A statement that waits for a lock asks this.
    meter: Arc<Meter>,
}

/// A session's work, from [`crate::Connection::job`] until this is dropped.
#[must_use = "the job ends when this is dropped"]
pub struct Job<'c> {
    interrupter: &'c Interrupter,
}

impl Interrupter {
    pub(crate) fn new(handle: rusqlite::InterruptHandle, meter: Arc<Meter>) -> Interrupter {
        Interrupter { shared: Arc::new(InterruptTarget { job: Mutex::new(None), handle, meter }) }
    }

    /// Sets that the connection works for `token` from now on.
    pub(crate) fn begin(&self, token: u64) -> Job<'_> {
        let mut job = self.lock();
        *job = Some(token);
        self.shared.meter.set_cancelled(false);
        drop(job);
        Job { interrupter: self }
    }

    /// Stops the job of `token`. Returns true if that is the connection's current job.
    ///
    /// The statement ends with [`crate::Interruption::Cancel`]. A request that comes between two
    /// statements of the job may miss both, as a cancel request may always come too late.
    pub fn interrupt(&self, token: u64) -> bool {
        let job = self.lock();
        let is_current = *job == Some(token);
        if is_current {
            self.shared.meter.set_cancelled(true);
            self.shared.handle.interrupt();
        }
        is_current
    }

    fn lock(&self) -> MutexGuard<'_, Option<u64>> {
        self.shared.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        *self.interrupter.lock() = None;
    }
}
