//! A queue of items that become due after a fixed time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A queue of items that all become due the same time after they were put in, so the first in is
/// due first. It does not read the clock while it is empty, which is nearly always.
pub(crate) struct Delay<T> {
    after: Duration,
    queue: VecDeque<(Instant, T)>,
}

impl<T> Delay<T> {
    pub(crate) fn new(after: Duration) -> Delay<T> {
        Delay { after, queue: VecDeque::new() }
    }

    pub(crate) fn put(&mut self, thing: T) {
        self.queue.push_back((Instant::now() + self.after, thing));
    }

    /// Takes the next item that is due.
    pub(crate) fn take(&mut self) -> Option<T> {
        let (due, _) = self.queue.front()?;
        if *due > Instant::now() {
            return None;
        }
        self.queue.pop_front().map(|(_, thing)| thing)
    }

    /// Returns `wait`, or less if an item is due earlier.
    pub(crate) fn limit(&self, wait: Option<Duration>) -> Option<Duration> {
        let Some((due, _)) = self.queue.front() else { return wait };
        let left = due.saturating_duration_since(Instant::now());
        Some(wait.map_or(left, |wait| wait.min(left)))
    }
}
