//! Stopping a statement from another thread, and never the next one.
//!
//! SQLite's interrupt goes to whatever runs on the connection when it arrives. A cancel request
//! that is late by a moment would hit another client's statement. So whoever runs statements says
//! whose they are ([`Interrupter::begin`]), and an interrupt names whom it is for: both under one
//! lock, so that the job cannot end between the look and the call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::Meter;

/// Interrupts a connection's current job, from any thread. Clones stop the same connection.
#[derive(Clone)]
pub struct Interrupter {
    shared: Arc<InterruptTarget>,
}

struct InterruptTarget {
    /// For whom the connection works.
    job: Mutex<Option<u64>>,
    handle: rusqlite::InterruptHandle,
    /// What a statement asks that waits for a lock.
    meter: Arc<Meter>,
}

/// Work for somebody, from [`crate::Connection::job`] on until this is dropped.
#[must_use = "the job ends when this is dropped"]
pub struct Job<'c> {
    interrupter: &'c Interrupter,
}

impl Interrupter {
    pub(crate) fn new(handle: rusqlite::InterruptHandle, meter: Arc<Meter>) -> Interrupter {
        Interrupter { shared: Arc::new(InterruptTarget { job: Mutex::new(None), handle, meter }) }
    }

    /// Says that what the connection does from now on is for `token`.
    pub(crate) fn begin(&self, token: u64) -> Job<'_> {
        let mut job = self.lock();
        *job = Some(token);
        self.shared.meter.set_cancelled(false);
        drop(job);
        Job { interrupter: self }
    }

    /// Stops what the connection does for `token`; whether it was doing anything for it.
    ///
    /// The statement ends with [`crate::Interruption::Cancel`]. One that is just between two
    /// statements of the job may miss it, as a cancel request may always come too late.
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
