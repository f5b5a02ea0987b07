//! Cancels the running statement of a session from any thread, and never one of another session.
//!
//! A connection to SQLite goes from session to session. A cancel request therefore goes to the
//! session, and from there to its connection, under a lock that the session takes as well when its
//! work ends: a request that comes a moment too late finds nothing to cancel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use refrain_sqlite::Interrupter;

/// Called when it is time to resume a session that waits.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// The current work of a session, as a cancel request sees it.
pub(crate) struct Control {
    /// The session's number, by which its connection knows whose statement it runs.
    pub(crate) token: u64,
    job: Mutex<CurrentWork>,
    /// True if a cancel request has come that the session has not noticed.
    cancelled: AtomicBool,
    waker: Waker,
}

#[derive(Default)]
struct CurrentWork {
    /// True if the session runs a statement, or waits in the middle of one.
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

    /// Notes that the session begins to work, or goes on with it.
    pub(crate) fn begin(&self) {
        self.job().busy = true;
    }

    /// Notes that the session's work is done: a cancel request that comes now comes too late.
    pub(crate) fn end(&self) {
        let mut job = self.job();
        job.busy = false;
        self.cancelled.store(false, Ordering::Relaxed);
    }

    /// Sets the connection that works for the session from now on.
    pub(crate) fn works_on(&self, interrupter: Option<Interrupter>) {
        self.job().interrupter = interrupter;
    }

    /// True if a cancel request has come.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// True if a cancel request has come; forgets it, as it counts once.
    pub(crate) fn take_cancelled(&self) -> bool {
        self.cancelled.swap(false, Ordering::Relaxed)
    }

    /// Asks the session's owner to resume it.
    pub(crate) fn wake(&self) {
        (self.waker)();
    }

    /// Returns the function that asks the session's owner to resume it.
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

/// Cancels the running statement of a session. Does nothing once the session is gone.
#[derive(Clone)]
pub struct CancelHandle {
    pub(crate) control: Weak<Control>,
}

impl CancelHandle {
    /// Ends the running statement with 57014. Does nothing between statements.
    pub fn cancel(&self) {
        if let Some(control) = self.control.upgrade() {
            control.cancel();
        }
    }
}
