//! Wakes a driver from another thread.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

/// Makes a driver's turn end with [`crate::Event::Woken`].
///
/// Of several wakes before a turn, only the first is a system call. Memory that the waking thread
/// wrote before [`Waker::wake`] is visible to the driver's thread once `Woken` is delivered.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    eventfd: File,
    /// True if a wake is pending.
    woken: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        let eventfd = File::from(sys::eventfd()?);
        Ok(Waker(Arc::new(Shared { eventfd, woken: AtomicBool::new(false) })))
    }

    /// Wakes the driver, now or at its next turn.
    pub fn wake(&self) {
        if !self.0.woken.swap(true, Ordering::AcqRel) {
            // Adding one fails only if the counter is full, and then the driver is awake anyway.
            let _ = (&self.0.eventfd).write(&1_u64.to_ne_bytes());
        }
    }

    /// Resets the counter. Blocks if there was no wake.
    pub(crate) fn consume(&self) {
        let mut count = [0; 8];
        let _ = (&self.0.eventfd).read(&mut count);
    }

    /// Marks the wake as handled. Called when the counter has been read, before `Woken` is
    /// delivered: a wake from now on is a new one. A swap rather than a store, so that the driver
    /// sees the writes of a thread whose wake needed no system call.
    pub(crate) fn acknowledge(&self) {
        self.0.woken.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.eventfd.as_fd()
    }
}
