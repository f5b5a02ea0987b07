//! Work that a session gives to a thread, and the result that comes back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::failure::Failure;
use crate::input::Input;
use crate::machine::{Machine, Need};
use crate::pieces::Pieces;

/// Work for a thread. The thread takes it, or the session takes it back when it waits no longer.
#[derive(Clone)]
pub(crate) struct ThreadJob(Arc<Mutex<Option<Work>>>);

pub(crate) type Work = (Box<Machine>, Input);

impl ThreadJob {
    /// Makes a job of a machine and the input it goes on with.
    pub(crate) fn new(machine: Box<Machine>, input: Input) -> Self {
        Self(Arc::new(Mutex::new(Some((machine, input)))))
    }

    /// Takes the work, if it is still there.
    pub(crate) fn take(&self) -> Option<Work> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes the work back if no thread has begun it and `ends` returns a reason to end it. The
    /// lock is held while `ends` decides: a thread that finds no work leaves for good.
    pub(crate) fn take_back(
        &self,
        ends: impl FnOnce(&Machine) -> Option<Failure>,
    ) -> Option<(Work, Failure)> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = ends(&place.as_ref()?.0)?;
        place.take().map(|work| (work, failure))
    }
}

/// The place where a thread leaves its result for the session.
pub(crate) type ResultSlot = Mutex<Option<Box<ThreadResult>>>;

/// The result of a thread's work.
pub(crate) struct ThreadResult {
    pub(crate) machine: Box<Machine>,
    /// Input that the thread did not handle.
    pub(crate) rest: Input,
    pub(crate) out: Pieces,
    pub(crate) need: Need,
}

/// Locks a slot.
pub(crate) fn slot(slot: &ResultSlot) -> MutexGuard<'_, Option<Box<ThreadResult>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
