//! Work that a session gives to a thread, and the result that comes back.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::control::Control;
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

impl ThreadResult {
    /// Leaves the result for the session, once the WAL is on disk where that is asked for.
    pub(crate) fn leave_behind(
        mut self: Box<Self>,
        unsynced: Option<Arc<Path>>,
        place: Arc<ResultSlot>,
        control: Arc<Control>,
    ) {
        let backend = self.machine.access.backend().clone();
        let finish = move |failed: Option<Failure>| {
            if let Some(failure) = failed {
                self.fail(&failure);
            }
            *slot(&place) = Some(self);
            control.wake();
        };
        match unsynced {
            None => finish(None),
            // Nobody would share the wait, and another thread takes time to wake up.
            Some(wal) if backend.queue.waiting() == 0 && backend.commits.is_idle() => {
                finish(backend.commits.wait(&wal).err());
            }
            Some(wal) => backend.commits.after(wal, Box::new(finish)),
        }
    }

    /// Puts an error that ends the session in the place of the output.
    fn fail(&mut self, failure: &Failure) {
        self.machine.access.pool().failed(failure);
        let mut out = Vec::new();
        failure.write(&mut out, "FATAL");
        self.out = Pieces::new(out);
        self.need = Need::Close;
    }
}

/// Locks a slot.
pub(crate) fn slot(slot: &ResultSlot) -> MutexGuard<'_, Option<Box<ThreadResult>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
