//! Wakes a driver from another thread.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

/// Makes a driver's turn end with [`crate::Event::Woken`].
///
/// Only the first of several wakes before a turn is a system call. What the waking thread wrote before
/// [`Waker::wake`] is visible to the driver's thread once `Woken` is delivered.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    eventfd: File,
    /// Whether a wake is on its way.
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

    /// Takes the wake off the counter. Blocks if there is none.
    pub(crate) fn consume(&self) {
        let mut count = [0; 8];
        let _ = (&self.0.eventfd).read(&mut count);
    }

    /// Called when the counter has been read, before `Woken` is delivered: a wake from now on is a new
    /// one. A swap rather than a store, to see all that a thread wrote whose wake was swallowed.
    pub(crate) fn acknowledge(&self) {
        self.0.woken.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.eventfd.as_fd()
    }
}
