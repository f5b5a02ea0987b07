//! Input of a connection that has not been handled yet.
//!
//! The protocol reads messages where they arrived. The inbox gets a copy of only the bytes that the
//! protocol has not handled: the beginning of a message that is not all there, or messages that a
//! client sent while it waits for a server. Of a message that streams through, the inbox just
//! counts the bytes still to come.

/// The unfinished part of a connection's input.
#[derive(Debug, Default)]
pub struct Inbox {
    /// Bytes not handled yet. An empty inbox owns no memory.
    held: Vec<u8>,
    /// Bytes still to come of a message whose beginning has been handled.
    pub rest: u32,
    /// The destination of those bytes.
    pub rest_goes: Rest,
}

/// The destination of the rest of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// The rest is passed on, as the message's beginning was.
    #[default]
    On,
    /// The rest is dropped.
    Nowhere,
}

impl Inbox {
    /// Returns the number of bytes not handled yet.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes out the held bytes, with `bytes` behind them.
    pub fn join(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        all
    }

    /// Keeps bytes that were not handled.
    pub fn hold(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// Puts back the bytes from [`Self::join`], without the first `used` of them.
    pub fn put_back(&mut self, mut all: Vec<u8>, used: usize) {
        if used < all.len() {
            all.drain(..used);
            self.held = all;
        }
    }

    /// Puts bytes back that have been handled, in front of the held ones.
    pub fn unread(&mut self, mut bytes: Vec<u8>) {
        bytes.append(&mut self.held);
        self.held = bytes;
    }

    /// Notes that `count` bytes of a message are still to come.
    pub fn expect(&mut self, count: usize, goes: Rest) {
        self.rest = u32::try_from(count).unwrap_or(u32::MAX);
        self.rest_goes = goes;
    }

    /// Drops a message of `length` bytes, of which at most the first `here` have come, and the rest
    /// as it comes. Returns the number of bytes of it that are here.
    pub fn drop_message(&mut self, length: usize, here: usize) -> usize {
        let there = length.min(here);
        self.expect(length - there, Rest::Nowhere);
        there
    }

    /// Takes as much of the rest as `bytes` holds. Returns the number of bytes taken.
    pub fn take_rest(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.rest as usize);
        self.rest -= u32::try_from(count).unwrap_or(0);
        count
    }
}
