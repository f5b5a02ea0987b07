//! One message of a client's, as far as it has arrived, and how much of it has to.
//!
//! A message may be a gigabyte and streams through: it is looked at where it arrived and only as
//! far as somebody must know what it says. Those that name a statement are waited for whole, up to
//! a bound of their own; of a query the beginning will do.

use refrain_pool::disconnect::DisconnectReason;
use refrain_wire::{Header, Malformed};

use crate::relay::link::Stop;

/// Bytes of a query that are looked at; the rest of a longer one streams through unseen.
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
    /// The message that `input` begins with; none if its header is not all there.
    pub(crate) fn read(input: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let Some(header) = Header::parse(input)? else { return Ok(None) };
        let bytes = input.get(..header.message_bytes());
        Ok(Some(Self { header, bytes: bytes.unwrap_or(input), complete: bytes.is_some() }))
    }

    /// What follows the header, as far as it has arrived.
    pub(crate) fn body(&self) -> &'a [u8] {
        &self.bytes[refrain_wire::frame::HEADER_BYTES..]
    }

    /// The body of a message that is only dealt with whole, and may have `max` bytes.
    pub(crate) fn whole(&self, max: usize) -> Result<&'a [u8], Stop> {
        match self.complete {
            true => Ok(self.body()),
            false if self.header.body as usize > max => {
                Err(Stop::End(DisconnectReason::ClientProtocol))
            }
            false => Err(Stop::More),
        }
    }

    /// Bytes that have not arrived.
    pub(crate) fn missing(&self) -> usize {
        self.header.message_bytes() - self.bytes.len()
    }

    /// Whether to wait until a query's text has come, or as much of it as is looked at.
    pub(crate) fn awaits_text(&self) -> bool {
        !self.complete && self.bytes.len() < QUERY_BYTES_READ
    }
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Self {
        Self::End(DisconnectReason::ClientProtocol)
    }
}
