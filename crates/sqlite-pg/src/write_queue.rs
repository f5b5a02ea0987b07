//! The queue of the sessions that want to write.
//!
//! SQLite lets one connection write at a time. Other connections poll for the lock until their
//! timeout ends. Within this process the sessions wait in a queue instead: first come, first
//! served, and each is woken when it may write.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::control::Waker;

/// The queue of one database file.
#[derive(Default)]
pub(crate) struct WriteQueue {
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    taken: bool,
    waiting: VecDeque<Arc<QueueEntry>>,
}

/// A session in the queue.
struct QueueEntry {
    /// True if this session may write now.
    granted: AtomicBool,
    waker: Waker,
}

/// The right to write. When it is dropped, the next session in the queue gets it.
pub(crate) struct Permit {
    queue: Arc<WriteQueue>,
}

/// A session's ticket for the queue. Dropping it leaves the queue.
pub(crate) struct Ticket {
    queue: Arc<WriteQueue>,
    entry: Arc<QueueEntry>,
}

impl WriteQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the queue. `waker` is called when the session may write; [`Ticket::redeem`] may
    /// succeed at once.
    pub(crate) fn join(self: &Arc<Self>, waker: Waker) -> Ticket {
        let mut state = self.state();
        let granted = AtomicBool::new(!state.taken);
        state.taken = true;
        let entry = Arc::new(QueueEntry { granted, waker });
        if !entry.granted.load(Ordering::Relaxed) {
            state.waiting.push_back(entry.clone());
        }
        Ticket { queue: self.clone(), entry }
    }

    /// Takes the right to write if no session has it or waits for it.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Permit> {
        let mut state = self.state();
        let was_taken = std::mem::replace(&mut state.taken, true);
        (!was_taken).then(|| Permit { queue: self.clone() })
    }

    /// Returns how many sessions wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// Gives the right to write to the next session in the queue.
    fn pass_on(&self) {
        let next = {
            let mut state = self.state();
            let next = state.waiting.pop_front();
            state.taken = next.is_some();
            if let Some(next) = &next {
                next.granted.store(true, Ordering::Relaxed);
            }
            next
        };
        if let Some(next) = next {
            (next.waker)();
        }
    }
}

impl Ticket {
    /// Returns the right to write if the session may write now, else the ticket.
    pub(crate) fn redeem(self) -> Result<Permit, Self> {
        let _line = self.queue.state();
        // The flag is swapped, so that dropping the ticket does not give away the permit's right.
        if self.entry.granted.swap(false, Ordering::Relaxed) {
            Ok(Permit { queue: self.queue.clone() })
        } else {
            drop(_line);
            Err(self)
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let granted = {
            let mut state = self.queue.state();
            state.waiting.retain(|entry| !Arc::ptr_eq(entry, &self.entry));
            self.entry.granted.load(Ordering::Relaxed)
        };
        if granted {
            self.queue.pass_on();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.pass_on();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn turns_come_in_order_and_who_leaves_is_passed_over() {
        let queue = Arc::new(WriteQueue::default());
        let woken = Arc::new(AtomicUsize::new(0));
        let waker = |number: usize| -> Waker {
            let woken = woken.clone();
            Arc::new(move || woken.store(number, Ordering::Relaxed))
        };
        let first = queue.join(waker(1)).redeem().ok().unwrap();
        let second = queue.join(waker(2));
        let third = queue.join(waker(3));
        assert_eq!(queue.waiting(), 2);
        let second = second.redeem().err().unwrap();
        drop(second);
        drop(first);
        assert_eq!(woken.load(Ordering::Relaxed), 3);
        let fourth = queue.join(waker(4));
        drop(third); // granted, and never redeemed
        assert_eq!(woken.load(Ordering::Relaxed), 4);
        drop(fourth.redeem().ok().unwrap());
        assert!(queue.join(waker(5)).redeem().is_ok());
    }
}
