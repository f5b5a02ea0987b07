//! The queue of a world's events. Events of the same time happen in the order of their creation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event in the queue, ordered by time and then by number.
#[derive(Debug)]
struct Queued<T> {
    at: u64,
    number: u64,
    what: T,
}

impl<T> PartialEq for Queued<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Queued<T> {}

impl<T> PartialOrd for Queued<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Queued<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// A queue of events.
#[derive(Debug)]
pub struct Queue<T> {
    heap: BinaryHeap<Reverse<Queued<T>>>,
    numbers: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), numbers: 0 }
    }
}

impl<T> Queue<T> {
    /// Adds an event that happens at this time.
    pub fn push(&mut self, at: u64, what: T) {
        self.numbers += 1;
        self.heap.push(Reverse(Queued { at, number: self.numbers, what }));
    }

    /// Returns the time of the next event.
    pub fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|next| next.0.at)
    }

    /// Takes out the next event, with its time.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let Reverse(next) = self.heap.pop()?;
        Some((next.at, next.what))
    }
}
