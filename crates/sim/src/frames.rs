//! The messages of a stream of bytes, for the model clients and servers.

use refrain_pg_wire::Header;
use refrain_pg_wire::frame::HEADER_BYTES;

/// Bytes that have arrived and are not read yet.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    at: usize,
}

impl Frames {
    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at > 0 && self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the bytes that are not read yet.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Skips bytes.
    pub fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// Whether all bytes are read.
    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Returns the next message's tag, if its header has arrived.
    pub fn tag(&self) -> Option<u8> {
        Some(Header::parse(self.rest()).ok().flatten()?.tag)
    }

    /// Returns the next message's tag and length, if the whole message has arrived.
    pub fn peek(&self) -> Option<(u8, usize)> {
        let header = Header::parse(self.rest()).ok().flatten()?;
        let length = header.message_bytes();
        (self.rest().len() >= length).then_some((header.tag, length))
    }

    /// Takes the next message: tag and body.
    pub fn take(&mut self) -> Option<(u8, Vec<u8>)> {
        let (tag, length) = self.peek()?;
        let body = self.rest()[HEADER_BYTES..length].to_vec();
        self.skip(length);
        Some((tag, body))
    }

    /// Whether the next bytes cannot be a message.
    pub fn is_malformed(&self) -> bool {
        Header::parse(self.rest()).is_err()
    }
}
