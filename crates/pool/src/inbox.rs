//! What has arrived on a connection and is not dealt with yet.
//!
//! Messages are read where they arrived. Only what is left of a turn is copied here: the beginning
//! of a message whose names are not all there, or what a client sent while it waits for a server. A
//! message that streams through is known by the bytes of it that are still to come.

/// The unfinished part of a connection's input.
#[derive(Debug, Default)]
pub struct Inbox {
    /// Bytes not dealt with; owns no memory while empty.
    held: Vec<u8>,
    /// Bytes still to come of a message whose beginning has been dealt with.
    pub rest: u32,
    /// What becomes of those.
    pub rest_goes: Rest,
}

/// What becomes of the rest of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// It is passed on, as its beginning was.
    #[default]
    On,
    /// It is dropped.
    Nowhere,
}

impl Inbox {
    /// Bytes not dealt with.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes out what is held, with `bytes` behind it.
    pub fn join(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        all
    }

    /// Keeps what was not dealt with.
    pub fn hold(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Puts back what [`Self::join`] took, less its first `used` bytes.
    pub fn put_back(&mut self, mut all: Vec<u8>, used: usize) {
        if used < all.len() {
            all.drain(..used);
            self.held = all;
        }
    }

    /// Notes that `count` bytes of a message are still to come.
    pub fn expect(&mut self, count: usize, goes: Rest) {
        self.rest = u32::try_from(count).unwrap_or(u32::MAX);
        self.rest_goes = goes;
    }

    /// Takes as much of the rest as `bytes` holds; says how much.
    pub fn take_rest(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.rest as usize);
        self.rest -= u32::try_from(count).unwrap_or(0);
        count
    }
}
