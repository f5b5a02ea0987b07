//! Passing a client's messages on to its server: unchanged, or under a rewritten header; and the
//! barriers behind which the next messages wait.
//!
//! Refrain parses a message only up to its names. The bytes behind the names are copied, and bytes
//! that have not arrived yet are streamed later: a message may be a gigabyte, but the buffers stay
//! small.

use refrain_pg_wire::write::{self, Report};
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::inbox::Rest;
use refrain_sql::Traits;

use crate::pipeline::outstanding::{FakeReply, RequestKind, Seq};
use crate::relay::link::{Link, Stop};
use crate::relay::message::Message;
use crate::relay::pipe::Pipeline;
use crate::relay::restore::restore_apart;
use crate::relay::unread::see_rest;
use crate::settings::queries::Restores;
use crate::state::client::reading::{Barred, Reading};
use crate::state::client::statements::ClientStatements;

impl Link<'_> {
    /// Passes on the rest of a message whose beginning has been handled. Returns the number of
    /// bytes taken.
    #[inline]
    pub(crate) fn pass_rest(&mut self, input: &[u8]) -> usize {
        let inbox = &mut self.client.inbox;
        if inbox.rest == 0 {
            return 0;
        }
        let count = inbox.take_rest(input);
        if inbox.rest_goes == Rest::On {
            self.pipe.out().extend_from_slice(&input[..count]);
            if self.client.session.unread.is_some() {
                see_rest(
                    &mut self.pipe,
                    &mut self.client.session,
                    &input[..count],
                    self.client.inbox.rest == 0,
                );
            }
        }
        count
    }

    /// Ends the session of a client that sent another message amid COPY data, with PostgreSQL's
    /// error for it. The server does not get the message: a cancel request may have ended the COPY
    /// meanwhile, and then the server would run the message.
    pub(crate) fn intruded(&mut self, tag: u8) -> Stop {
        let message = format!("unexpected message type 0x{tag:02X} during COPY from stdin");
        let report = Report { severity: "ERROR", sqlstate: "08P01", message: &message, hint: "" };
        write::error(self.pipe.ports.out(self.client.conn()), &report);
        Stop::End(DisconnectReason::Synchronization)
    }

    /// Whether the client's next message has to wait for a message that may drop all statements, or
    /// make one (E46).
    #[inline]
    pub(crate) fn is_barred(&mut self) -> bool {
        let reading = &mut self.client.session.reading;
        if !reading.has_barrier() {
            return false;
        }
        match reading.lift_barrier(&self.pipe.server.session.outstanding) {
            Barred::Yes => true,
            Barred::Lifted(Some(first)) => {
                restore_apart(&mut self.pipe, &mut self.client.session.reading, first);
                true
            }
            Barred::Lifted(None) => false,
        }
    }

    /// Whether the client's next message has to wait for a request of Refrain's own. Autoprepare
    /// may run a statement in place of a query string and then have to run the string itself; the
    /// same holds for an unnamed statement, once its Sync is sent. While Refrain asks the server
    /// what the client's code left in the session ([`crate::relay::look`]), the session may have
    /// other settings than the client's.
    #[inline]
    pub(crate) fn is_to_wait(&self) -> bool {
        let session = &self.pipe.server.session;
        let last = session.last();
        self.client.session.suspicion.is_asked()
            || last.is_watched()
                && (last.run.holds() || last.unnamed.holds() && !session.outstanding.is_open())
    }
}

/// Makes the client's next message wait for the reply to request `seq`, if that request may drop
/// all statements or make one, or if the settings `restores` are to be restored once it has
/// succeeded.
#[inline]
pub(crate) fn bar(
    reading: &mut Reading,
    seq: Seq,
    traits: Traits,
    commands: u8,
    restores: Option<Box<Restores>>,
) {
    // PREPARE is among them: a Parse behind it may give the same name, which fails if the PREPARE
    // succeeds.
    let all = Traits::DISCARD_ALL | Traits::DEALLOCATE_ALL | Traits::PREPARE;
    if traits.intersects(all) || restores.is_some() {
        reading.bar(seq, u32::from(commands), restores);
    }
}

impl Link<'_> {
    /// Passes a message on unchanged. Returns the number of bytes of input that it took.
    #[inline]
    pub(crate) fn pass(&mut self, message: &Message<'_>) -> usize {
        self.pipe.out().extend_from_slice(message.bytes);
        self.pass_missing(message)
    }

    /// Streams the part of a message that has not arrived yet to the server, once it comes.
    #[inline]
    pub(crate) fn pass_missing(&mut self, message: &Message<'_>) -> usize {
        if !message.complete {
            self.client.inbox.expect(message.missing(), Rest::On);
        }
        message.bytes.len()
    }
}

/// Forgets the client's and the server's unnamed statement: PostgreSQL drops it at any query
/// string, even one that fails (E17). An error before the query may skip that.
pub(crate) fn forget_unnamed(pipe: &mut Pipeline<'_>, statements: &mut ClientStatements) {
    let outstanding = &pipe.server.session.outstanding;
    let (seq, skippable) = (outstanding.next_seq(), outstanding.is_open());
    let segment = outstanding.segment();
    statements.query_drops_unnamed(outstanding);
    let statements = &mut pipe.server.session.statements;
    statements.drop_unnamed(segment, skippable.then_some(seq));
}

impl Link<'_> {
    /// Answers a Close without the server. Returns the number of bytes of input that it took.
    pub(crate) fn closed(&mut self, message: &Message<'_>) -> usize {
        self.pipe.pool().counters.protocol.closes_answered += 1;
        self.pipe.fake(self.client.conn(), RequestKind::Close, FakeReply::Close);
        message.bytes.len()
    }
}

/// Appends the header of a message whose first `old` bytes of body become `new` bytes.
pub(crate) fn rewritten_header(
    pipe: &mut Pipeline<'_>,
    message: &Message<'_>,
    old: usize,
    new: usize,
) {
    let body = message.header.body as usize - old + new;
    let body = u32::try_from(body).unwrap_or(u32::MAX - 4);
    write::header(pipe.out(), message.header.tag, body);
}
