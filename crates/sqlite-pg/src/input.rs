//! The bytes of a client that its session has not handled yet.
//!
//! Each byte is copied in once and moved at most once more, however small the pieces of a message
//! are: the time for a message grows with its length and no faster. A message may have a gigabyte.

use refrain_wire::frame::Header;

/// Bytes of capacity that stay allocated while no input waits.
const KEPT_MAX: usize = 64 * 1024;

/// The waiting bytes, from the start of a message on.
#[derive(Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    /// The number of bytes at the beginning that were handled.
    used: usize,
}

impl Input {
    /// Appends bytes to those that wait.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if self.used > self.bytes.len() / 2 {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the waiting bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.used..).unwrap_or_default()
    }

    /// Removes the first `count` bytes, which were handled.
    pub(crate) fn consume(&mut self, count: usize) {
        self.used = (self.used + count).min(self.bytes.len());
        if self.used == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_MAX);
            self.used = 0;
        }
    }

    /// True if no bytes wait.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// True if the first message is complete, is longer than `longest`, or has an impossible
    /// length. Before that no thread can do anything with it.
    pub(crate) fn may_go_on(&self, longest: usize) -> bool {
        match Header::parse(self.bytes()) {
            Ok(Some(header)) => self.bytes().len() >= header.message_bytes().min(longest),
            Ok(None) => false,
            Err(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_may_go_on_when_its_last_byte_is_there() {
        let message = b"d\0\0\0\x06ab";
        let mut input = Input::default();
        for (index, byte) in message.iter().enumerate() {
            assert!(!input.may_go_on(usize::MAX), "after {index} bytes");
            input.append(&[*byte]);
        }
        assert!(input.may_go_on(usize::MAX));
        input.consume(message.len());
        assert!(input.is_empty() && !input.may_go_on(usize::MAX));
    }

    #[test]
    fn a_message_that_is_too_long_is_not_waited_for() {
        let mut input = Input::default();
        input.append(b"d\x10\0\0\0");
        assert!(!input.may_go_on(1000));
        input.append(&[0; 1000]);
        assert!(input.may_go_on(1000));
    }

    #[test]
    fn what_was_handled_is_gone_and_what_was_not_stays() {
        let mut input = Input::default();
        input.append(b"abcdef");
        input.consume(4);
        input.append(b"gh");
        assert_eq!(input.bytes(), b"efgh");
        input.consume(100);
        assert_eq!(input.bytes(), b"");
    }

    #[test]
    fn a_length_that_cannot_be_is_told_at_once() {
        let mut input = Input::default();
        input.append(b"d\xff\xff\xff\xff");
        assert!(input.may_go_on(usize::MAX));
    }
}
