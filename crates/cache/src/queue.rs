//! Queue: the order in which entries are evicted, by S3-FIFO.
//!
//! A new entry stands in a small queue, a tenth of the room. If it is used there it moves to the
//! main queue, and else it goes, and its hash is remembered for a while: if it comes back, it
//! enters the main queue. So a scan over many keys passes through the small queue and leaves what
//! is used often where it is.

use crate::entry::{Entry, Index, NONE, Place, Slab};

/// One part of the bytes stands in the small queue.
const SMALL_PART: usize = 10;
/// Uses in the small queue from which on an entry moves to the main one.
const USES_MIN: u8 = 1;

/// First in, first out: linked through the entries.
#[derive(Debug)]
struct Line {
    first: Index,
    last: Index,
    bytes: usize,
}

impl Line {
    const EMPTY: Self = Self { first: NONE, last: NONE, bytes: 0 };
}

/// The entries that share a limit, in two lines.
#[derive(Debug)]
pub(crate) struct Queue {
    small: Line,
    main: Line,
    /// The bytes of its entries, at most.
    pub(crate) most: usize,
}

impl Queue {
    /// Makes an empty one with a limit.
    pub(crate) fn new(most: usize) -> Self {
        Self { small: Line::EMPTY, main: Line::EMPTY, most }
    }

    /// Returns the bytes of its entries.
    pub(crate) fn bytes(&self) -> usize {
        self.small.bytes + self.main.bytes
    }

    fn line(&mut self, place: Place) -> &mut Line {
        if place == Place::Main { &mut self.main } else { &mut self.small }
    }

    /// Adds an entry at the end of a line.
    pub(crate) fn push(&mut self, slab: &mut Slab, index: Index, place: Place, bytes: usize) {
        let line = self.line(place);
        let last = std::mem::replace(&mut line.last, index);
        line.bytes += bytes;
        if line.first == NONE {
            line.first = index;
        }
        if let Some(before) = slab.get_mut(last) {
            before.next = index;
        }
        if let Some(entry) = slab.get_mut(index) {
            (entry.previous, entry.next, entry.place) = (last, NONE, place);
        }
    }

    /// Takes an entry out of its line.
    pub(crate) fn unlink(&mut self, slab: &mut Slab, index: Index, bytes: usize) {
        let Some(entry) = slab.get_mut(index) else { return };
        let place = std::mem::replace(&mut entry.place, Place::Free);
        let (previous, next) = (entry.previous, entry.next);
        let line = self.line(place);
        line.bytes = line.bytes.checked_sub(bytes).expect("what leaves was counted");
        if line.first == index {
            line.first = next;
        }
        if line.last == index {
            line.last = previous;
        }
        if let Some(before) = slab.get_mut(previous) {
            before.next = next;
        }
        if let Some(behind) = slab.get_mut(next) {
            behind.previous = previous;
        }
    }

    /// Returns the entry that is to go next, which leaves its line; `bytes` gives the bytes of an
    /// entry. Entries that were used move on.
    pub(crate) fn evict(
        &mut self,
        slab: &mut Slab,
        bytes: impl Fn(&Entry) -> usize,
    ) -> Option<Index> {
        loop {
            let small = self.small.bytes * SMALL_PART > self.bytes() || self.main.first == NONE;
            let index = if small { self.small.first } else { self.main.first };
            let entry = slab.get_mut(index)?;
            let (own, used) = (bytes(entry), entry.uses);
            let stays = entry.is_current() && used >= if small { USES_MIN } else { 1 };
            entry.uses = if small { 0 } else { used.saturating_sub(1) };
            self.unlink(slab, index, own);
            if !stays {
                return Some(index);
            }
            self.push(slab, index, Place::Main, own);
        }
    }
}

/// The hashes of entries that have left the small queue, most of the last ones.
#[derive(Debug)]
pub(crate) struct Ghosts {
    marks: Box<[u32]>,
}

impl Ghosts {
    /// Makes one without hashes.
    pub(crate) fn new() -> Self {
        Self { marks: Box::default() }
    }

    /// Makes room for the hashes of as many entries. What was there is forgotten.
    pub(crate) fn fit(&mut self, entries: usize) {
        let wanted = entries.next_power_of_two();
        if wanted > self.marks.len() {
            self.marks = vec![0; wanted].into();
        }
    }

    fn slot(&mut self, hash: u64) -> Option<(&mut u32, u32)> {
        let at = hash as usize & self.marks.len().checked_sub(1)?;
        Some((&mut self.marks[at], (hash >> 32) as u32 | 1))
    }

    /// Remembers a hash.
    pub(crate) fn add(&mut self, hash: u64) {
        if let Some((slot, mark)) = self.slot(hash) {
            *slot = mark;
        }
    }

    /// Whether a hash is remembered. Forgets it.
    pub(crate) fn take(&mut self, hash: u64) -> bool {
        let Some((slot, mark)) = self.slot(hash) else { return false };
        let known = *slot == mark;
        if known {
            *slot = 0;
        }
        known
    }

    /// Returns the bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.marks)
    }
}
