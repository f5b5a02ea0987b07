//! One message of a client, as far as it has arrived.
//!
//! A message may have a gigabyte and streams through: Refrain reads it in the input buffer, and
//! only the part that it has to understand. It waits for the whole of a message that names a
//! statement, up to a limit for each kind of message. Of a query it reads at most
//! [`QUERY_BYTES_READ`].

use refrain_pool::disconnect::DisconnectReason;
use refrain_wire::{Header, Malformed};

use crate::relay::link::Stop;

/// Most bytes of a query that Refrain reads; the rest of a longer one streams through unread.
pub(crate) const QUERY_BYTES_READ: usize = 64 * 1024;

/// One message, as far as it has arrived.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) header: Header,
    /// The message from its header on, or its beginning.
    pub(crate) bytes: &'a [u8],
    /// Whether all of it is there.
    pub(crate) complete: bool,
}

impl<'a> Message<'a> {
    /// Reads the message at the beginning of `input`; `None` if its header is incomplete.
    pub(crate) fn read(input: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let Some(header) = Header::parse(input)? else { return Ok(None) };
        let bytes = input.get(..header.message_bytes());
        Ok(Some(Self { header, bytes: bytes.unwrap_or(input), complete: bytes.is_some() }))
    }

    /// Returns the body, as far as it has arrived.
    pub(crate) fn body(&self) -> &'a [u8] {
        &self.bytes[refrain_wire::frame::HEADER_BYTES..]
    }

    /// Returns the body of a message that must be complete, and may have at most `max` bytes.
    pub(crate) fn whole(&self, max: usize) -> Result<&'a [u8], Stop> {
        match self.complete {
            true => Ok(self.body()),
            false if self.header.body as usize > max => {
                Err(Stop::End(DisconnectReason::ClientProtocol))
            }
            false => Err(Stop::More),
        }
    }

    /// Returns the number of bytes that have not arrived.
    pub(crate) fn missing(&self) -> usize {
        self.header.message_bytes() - self.bytes.len()
    }

    /// Whether more of a query's text has to arrive before Refrain reads it.
    pub(crate) fn awaits_text(&self) -> bool {
        !self.complete && self.bytes.len() < QUERY_BYTES_READ
    }
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Self {
        Self::End(DisconnectReason::ClientProtocol)
    }
}
