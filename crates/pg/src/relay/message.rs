//! One message of a client, as far as it has arrived.
//!
//! A message may have a gigabyte and streams through: Refrain reads it in the input buffer, and
//! only the part that it has to understand. It waits for the whole of a message that names a
//! statement, up to a limit for each kind of message. Of a query it reads at most
//! [`QUERY_BYTES_READ`].

use refrain_pg_wire::front::{self, NAME_BYTES_MAX, Target};
use refrain_pg_wire::tag::front as tag;
use refrain_pg_wire::{Header, Malformed};
use refrain_pool::disconnect::DisconnectReason;

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
        &self.bytes[refrain_pg_wire::frame::HEADER_BYTES..]
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

    /// Whether it is of this type, a Describe or a Close, and about this statement or portal.
    pub(crate) fn is_about(&self, tag: u8, target: Target<'_>) -> bool {
        self.header.tag == tag && Target::read(self.body()) == Ok(target)
    }

    /// Whether more of a query's text has to arrive before Refrain reads it.
    pub(crate) fn awaits_text(&self) -> bool {
        !self.complete && self.bytes.len() < QUERY_BYTES_READ
    }
}

/// Messages of a client that have arrived behind another, unread.
#[derive(Clone, Copy)]
pub(crate) struct Next<'a>(pub(crate) &'a [u8]);

impl<'a> Next<'a> {
    /// Takes the first of them, if it has arrived in full.
    pub(crate) fn take(&mut self) -> Option<Message<'a>> {
        let message = Message::read(self.0).ok().flatten().filter(|message| message.complete)?;
        self.0 = &self.0[message.bytes.len()..];
        Some(message)
    }

    /// Whether they run a portal that was bound just before, end the segment, and do nothing else.
    pub(crate) fn runs_at_once(mut self, portal: &[u8]) -> bool {
        self.run(portal).is_some_and(|sync| self.are_ended_by(&sync))
    }

    /// Takes the messages that run this portal, and returns the one behind them.
    fn run(&mut self, portal: &[u8]) -> Option<Message<'a>> {
        let mut message = self.take()?;
        if message.is_about(tag::DESCRIBE, Target::Portal(portal)) {
            message = self.take()?;
        }
        let executes = message.header.tag == tag::EXECUTE
            && message.body().len() <= NAME_BYTES_MAX + 5
            && front::execute_portal(message.body()) == Ok(portal);
        if !executes {
            return None;
        }
        message = self.take()?;
        if message.is_about(tag::CLOSE, Target::Portal(portal)) {
            message = self.take()?;
        }
        Some(message)
    }

    /// Whether this is a Sync that PostgreSQL takes, and nothing is behind it.
    pub(crate) fn are_ended_by(&self, sync: &Message<'_>) -> bool {
        sync.header.tag == tag::SYNC && sync.header.body == 0 && self.0.is_empty()
    }
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Self {
        Self::End(DisconnectReason::ClientProtocol)
    }
}
