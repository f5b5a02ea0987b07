//! Entry: one reply with its key, and the slab that holds the entries of a shard.
//!
//! Key and reply are one allocation. All else of an entry has a fixed size and stands in chunks, so
//! that growing moves nothing and the memory is what the count says.

use std::sync::Arc;

use crate::topics::TopicSet;

/// The number of an entry in its shard.
pub(crate) type Index = u32;

/// Stands for no entry.
pub(crate) const NONE: Index = u32::MAX;

/// Entries in a chunk.
const CHUNK: usize = 128;

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Free,
    Small,
    Main,
}

/// A reply and its key.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) hash: u64,
    /// The key, and the reply behind it.
    pub(crate) data: Arc<[u8]>,
    pub(crate) topics: Arc<TopicSet>,
    /// The generations of the topics before the request was sent.
    pub(crate) stamp: u64,
    /// When it was asked for.
    pub(crate) asked: u64,
    /// The time from which on it is given to nobody, by the terms under which it was kept.
    pub(crate) dies: u64,
    /// The microseconds that it took.
    pub(crate) took: u32,
    pub(crate) key_bytes: u32,
    pub(crate) next: Index,
    pub(crate) previous: Index,
    pub(crate) queue: u16,
    pub(crate) place: Place,
    /// How often it was used of late, up to [`USES_MAX`].
    pub(crate) uses: u8,
    /// Whether the reply has no rows.
    pub(crate) empty: bool,
    /// Whether there is no reply: it could not be kept.
    pub(crate) refused: bool,
    /// Whether the last attempt to fetch another has failed.
    pub(crate) failed: bool,
}

/// Uses that count, at most.
pub(crate) const USES_MAX: u8 = 3;

impl Entry {
    /// Returns the key.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.data[..self.key_bytes as usize]
    }

    /// Returns the reply.
    #[inline(always)]
    pub(crate) fn reply(&self) -> &[u8] {
        &self.data[self.key_bytes as usize..]
    }

    /// Whether nothing that the reply depends on has changed since it was asked for.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        self.topics.stamp() == self.stamp
    }
}

/// Returns the bytes that an allocation of key and reply takes: the two counts of the `Arc`, and
/// the allocator's header and rounding.
pub(crate) fn data_bytes(length: usize) -> usize {
    const HEADER: usize = 8;
    const UNIT: usize = 16;
    const LEAST: usize = 32;
    (2 * size_of::<usize>() + length + HEADER).next_multiple_of(UNIT).max(LEAST)
}

/// The entries of a shard.
#[derive(Debug)]
pub(crate) struct Slab {
    chunks: Vec<Box<[Option<Entry>; CHUNK]>>,
    free: Vec<Index>,
}

impl Slab {
    /// Makes one without entries.
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new() }
    }

    /// Returns the entry of this number.
    #[inline]
    pub(crate) fn get(&self, index: Index) -> Option<&Entry> {
        let index = index as usize;
        self.chunks.get(index / CHUNK)?[index % CHUNK].as_ref()
    }

    /// Returns the entry of this number.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: Index) -> Option<&mut Entry> {
        let index = index as usize;
        self.chunks.get_mut(index / CHUNK)?[index % CHUNK].as_mut()
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, entry: Entry) -> Index {
        if self.free.is_empty() {
            let first = self.chunks.len() * CHUNK;
            self.chunks.push(Box::new([const { None }; CHUNK]));
            let all = first..first + CHUNK;
            self.free.extend(all.rev().map(|index| index as Index));
        }
        let index = self.free.pop().unwrap_or(NONE);
        if let Some(slot) = self.chunks.get_mut(index as usize / CHUNK) {
            slot[index as usize % CHUNK] = Some(entry);
        }
        index
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, index: Index) -> Option<Entry> {
        let entry = self.chunks.get_mut(index as usize / CHUNK)?[index as usize % CHUNK].take();
        if entry.is_some() {
            self.free.push(index);
        }
        entry
    }

    /// Returns the number of entries for which there is room.
    pub(crate) fn room(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// Returns the bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let chunk = size_of::<[Option<Entry>; CHUNK]>() + size_of::<usize>();
        self.chunks.len() * chunk + self.free.capacity() * size_of::<Index>()
    }
}
