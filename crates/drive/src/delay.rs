//! Things to come back to after a fixed time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A queue of things that are all due the same time after they were put in: the first in is due first.
/// The clock is not looked at while it is empty, which is nearly always.
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

    /// The next thing that is due.
    pub(crate) fn take(&mut self) -> Option<T> {
        let (due, _) = self.queue.front()?;
        if *due > Instant::now() {
            return None;
        }
        self.queue.pop_front().map(|(_, thing)| thing)
    }

    /// `wait`, or less if something is due earlier.
    pub(crate) fn limit(&self, wait: Option<Duration>) -> Option<Duration> {
        let Some((due, _)) = self.queue.front() else { return wait };
        let left = due.saturating_duration_since(Instant::now());
        Some(wait.map_or(left, |wait| wait.min(left)))
    }
}
