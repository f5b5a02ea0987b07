//! The bytes of a client that its session has not handled yet.
//!
//! A short message is handled where it arrived, without a copy. The bytes of a longer one are
//! copied behind those that came before, each once and moved at most once more, however small the
//! pieces are: the time for a message grows with its length and no faster. A message may have a
//! gigabyte, and memory that is touched for the first time is slow. So a thread copies what is long
//! ([`Input::is_long`]), and the loop moves only the buffer.

use refrain_pg_wire::frame::{HEADER_BYTES, Header};

/// Bytes that wait on the loop, copied by it, and bytes of capacity that stay allocated while no
/// input waits.
const KEPT_MAX: usize = 64 * 1024;

/// Bytes that the loop copies behind any number of others, if there is room.
const FEW: usize = 4 * 1024;

/// The waiting bytes, from the start of a message on.
#[derive(Default)]
pub(crate) struct Input {
    kept: Vec<u8>,
    /// The buffer that arrived last, until its bytes are handled or kept.
    arrived: Vec<u8>,
    /// The number of bytes at the beginning that were handled: of `kept`, or of `arrived` if none
    /// are kept.
    used: usize,
}

impl Input {
    /// Takes bytes that follow those that wait.
    pub(crate) fn receive(&mut self, bytes: Vec<u8>) {
        self.keep();
        self.arrived = bytes;
    }

    /// Copies the bytes that arrived last behind the earlier ones.
    pub(crate) fn keep(&mut self) {
        if self.arrived.is_empty() {
            return;
        }
        if self.kept.is_empty() {
            self.kept.extend_from_slice(self.arrived.get(self.used..).unwrap_or_default());
            self.used = 0;
        } else {
            if self.used > self.kept.len() / 2 {
                self.kept.drain(..self.used);
                self.used = 0;
            }
            self.kept.extend_from_slice(&self.arrived);
        }
        self.arrived.clear();
    }

    /// Takes the empty buffer of the bytes that arrived last.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        self.keep();
        std::mem::take(&mut self.arrived)
    }

    /// Returns the waiting bytes.
    pub(crate) fn bytes(&mut self) -> &[u8] {
        if !self.kept.is_empty() {
            self.keep();
        }
        let bytes = if self.kept.is_empty() { &self.arrived } else { &self.kept };
        bytes.get(self.used..).unwrap_or_default()
    }

    /// Removes the first `count` of [`Input::bytes`], which were handled.
    pub(crate) fn consume(&mut self, count: usize) {
        self.used += count;
        if self.used >= self.kept.len() + self.arrived.len() {
            self.kept.clear();
            self.kept.shrink_to(KEPT_MAX);
            self.arrived.clear();
            self.used = 0;
        }
    }

    /// True if no bytes wait.
    pub(crate) fn is_empty(&self) -> bool {
        self.length() == 0
    }

    /// True if bytes have arrived that a thread should copy: there are many of them, or they need
    /// more memory behind many others.
    pub(crate) fn is_long(&self) -> bool {
        let have_room = self.kept.capacity() - self.kept.len() >= self.arrived.len();
        let are_few = self.arrived.len() <= FEW && have_room;
        !self.arrived.is_empty() && self.length() > KEPT_MAX && !are_few
    }

    /// True if the first message is complete, is longer than `longest`, or has an impossible
    /// length. Before that no thread can do anything with it but copy it.
    pub(crate) fn may_go_on(&self, longest: usize) -> bool {
        let mut head = [0; HEADER_BYTES];
        let waiting = self.kept.iter().chain(&self.arrived).skip(self.used);
        head.iter_mut().zip(waiting).for_each(|(to, byte)| *to = *byte);
        match Header::parse(head.get(..self.length()).unwrap_or(&head)) {
            Ok(Some(header)) => self.length() >= header.message_bytes().min(longest),
            Ok(None) => false,
            Err(_) => true,
        }
    }

    fn length(&self) -> usize {
        self.kept.len() + self.arrived.len() - self.used
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
            input.receive(vec![*byte]);
        }
        assert!(input.may_go_on(usize::MAX));
        assert_eq!(input.bytes(), message);
        input.consume(message.len());
        assert!(input.is_empty() && !input.may_go_on(usize::MAX));
    }

    #[test]
    fn a_message_that_is_too_long_is_not_waited_for() {
        let mut input = Input::default();
        input.receive(b"d\x10\0\0\0".to_vec());
        assert!(!input.may_go_on(1000));
        input.receive(vec![0; 1000]);
        assert!(input.may_go_on(1000));
    }

    #[test]
    fn what_was_handled_is_gone_and_what_was_not_stays() {
        let mut input = Input::default();
        input.receive(b"abcdef".to_vec());
        assert_eq!(input.bytes(), b"abcdef");
        input.consume(4);
        input.receive(b"gh".to_vec());
        input.receive(b"i".to_vec());
        assert_eq!(input.bytes(), b"efghi");
        input.consume(1);
        input.receive(b"j".to_vec());
        assert_eq!(input.bytes(), b"fghij");
        input.consume(5);
        assert_eq!(input.bytes(), b"");
    }

    #[test]
    fn a_length_that_cannot_be_is_told_at_once() {
        let mut input = Input::default();
        input.receive(b"d\xff\xff\xff\xff".to_vec());
        assert!(input.may_go_on(usize::MAX));
    }

    #[test]
    fn a_whole_message_is_read_where_it_arrived() {
        let mut input = Input::default();
        input.receive(b"d\0\0\0\x04".to_vec());
        let place = input.arrived.as_ptr();
        assert_eq!(input.bytes().as_ptr(), place);
        input.consume(HEADER_BYTES);
        let buffer = input.take_buffer();
        assert_eq!(buffer.as_ptr(), place, "the buffer goes back to its owner");
    }

    #[test]
    fn long_bytes_wait_for_a_thread_and_once() {
        let mut input = Input::default();
        input.receive(vec![0; KEPT_MAX]);
        assert!(!input.is_long());
        input.receive(vec![0; 1]);
        assert!(input.is_long(), "the memory has to grow");
        input.keep();
        assert!(!input.is_long(), "they were copied");
        input.receive(vec![0; 1]);
        assert!(!input.is_long(), "there is room for a few more");
        input.receive(vec![0; FEW + 1]);
        assert!(input.is_long());
    }
}
