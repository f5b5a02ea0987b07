//! Cancelling what a session does, from anywhere, and never what another does.
//!
//! A connection to SQLite goes from session to session. A cancel therefore goes to the session, and
//! from there to its connection under a lock that the session takes as well when its work ends: late
//! by a moment, it finds nothing to cancel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use refrain_sqlite::Interrupter;

/// Called when a session that waits is to be resumed.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// What a session does just now, as those see it who may cancel it.
pub(crate) struct Control {
    /// The session's number, by which its connection knows for whom it works.
    pub(crate) token: u64,
    job: Mutex<CurrentWork>,
    /// The same as in `job`, for those who look often.
    cancelled: AtomicBool,
    waker: Waker,
}

#[derive(Default)]
struct CurrentWork {
    /// Whether the session is at work, or waits in the midst of it.
    busy: bool,
    interrupter: Option<Interrupter>,
}

impl Control {
    pub(crate) fn new(token: u64, waker: Waker) -> Arc<Self> {
        Arc::new(Self { token, job: Mutex::default(), cancelled: AtomicBool::new(false), waker })
    }

    fn job(&self) -> MutexGuard<'_, CurrentWork> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session begins to work, or goes on with it.
    pub(crate) fn begin(&self) {
        self.job().busy = true;
    }

    /// The session's work is done: a cancel that comes now comes too late.
    pub(crate) fn end(&self) {
        let mut job = self.job();
        job.busy = false;
        self.cancelled.store(false, Ordering::Relaxed);
    }

    /// The connection that works for the session from now on.
    pub(crate) fn works_on(&self, interrupter: Option<Interrupter>) {
        self.job().interrupter = interrupter;
    }

    /// Whether the work is to stop.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Takes notice of a cancel: it counts once.
    pub(crate) fn take_cancelled(&self) -> bool {
        self.cancelled.swap(false, Ordering::Relaxed)
    }

    /// Has the session resumed.
    pub(crate) fn wake(&self) {
        (self.waker)();
    }

    /// What has the session resumed.
    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn cancel(&self) {
        let job = self.job();
        if !job.busy {
            return;
        }
        self.cancelled.store(true, Ordering::Relaxed);
        if let Some(interrupter) = &job.interrupter {
            interrupter.interrupt(self.token);
        }
        drop(job);
        self.wake();
    }
}

/// Cancels what a session does. Does nothing once the session is gone.
#[derive(Clone)]
pub struct CancelHandle {
    pub(crate) control: Weak<Control>,
}

impl CancelHandle {
    /// Ends the statement that the session is at, with 57014. Between statements it does nothing.
    pub fn cancel(&self) {
        if let Some(control) = self.control.upgrade() {
            control.cancel();
        }
    }
}
