//! The one reader of what servers send: whose replies they are, its [`Reader`] decides.
//!
//! The reader takes in the header of every message. The queue of outstanding requests says which
//! request each reply answers. Bytes that the client gets unchanged are copied in runs, up to where
//! a message is skipped, rewritten or inserted. A long row streams through; Refrain never holds it
//! in full.
//!
//! With a client ([`crate::relay::to_client`]) and without one ([`crate::relay::to_nobody`]) the
//! same code reads; which of the two is known when it is compiled.

use refrain_pg_wire::back as read;
use refrain_pg_wire::frame::split_string;
use refrain_pg_wire::tag::back;
use refrain_pg_wire::{Header, Malformed};
use refrain_pool::inbox::Rest;

use crate::pipeline::outstanding::{FakeReply, Seq, UnexpectedMessage};
use crate::relay::pipe::Pipeline;
use crate::relay::words::Words;

/// Most bytes of a message that Refrain reads. PostgreSQL bounds none of these messages. Errors and
/// ParameterStatus may be longer; of those Refrain reads the beginning.
pub(crate) const LOOKED_INTO_MAX: usize = 1024 * 1024;

/// Why Refrain stops reading a server's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// The rest of the input is the beginning of a message.
    More,
    /// ReadyForQuery: the server may be free now. The caller looks at that before it reads on.
    Ready,
    /// The server ends its session by a FATAL error; the client, if there is one, has got it.
    Fatal,
    /// The server ends its session by a FATAL error. The client has got nothing, and its request is
    /// to run on another server.
    Lost,
    /// No outstanding request explains the reply, or it is malformed.
    Broken,
    /// A message is longer than messages may be.
    TooLong,
    /// The server refused the client's settings, with which the session ends. The client has got
    /// the error.
    Refused,
    /// The server has got nothing of the client's request, which is to go to another server.
    Unused,
    /// The server has got nothing of the client's request, which has failed; the client has got the
    /// error.
    Failed,
    /// The client's request has failed before it did anything, and is to run in another way. It
    /// cannot do so here: the server is shared.
    Elsewhere,
    /// The server waits for COPY data, and none comes: the client has sent another message and got
    /// an error, or there is no client.
    Intruded,
}

impl From<UnexpectedMessage> for Halt {
    fn from(_: UnexpectedMessage) -> Self {
        Self::Broken
    }
}

impl From<Malformed> for Halt {
    fn from(_: Malformed) -> Self {
        Self::Broken
    }
}

/// The destination of a message's bytes: on to the client unchanged, or nowhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goes {
    On,
    Nowhere,
}

/// Input from a server. The bytes `from` to `at` go to the client unchanged and are not copied yet.
pub(crate) struct ServerInput<'a> {
    pub(crate) input: &'a [u8],
    /// Everything before this has been copied or dropped.
    pub(crate) from: usize,
    /// Everything before this has been read.
    pub(crate) at: usize,
}

/// A reader of a server's messages: a [`Link`](crate::relay::link::Link), whose client gets the
/// replies, or a [`Pipeline`] alone, whose replies nobody gets. Either way the server's record is
/// kept.
pub(crate) trait Reader<'a> {
    /// Returns the server that is read.
    fn pipe(&mut self) -> &mut Pipeline<'a>;

    /// Appends bytes that the client gets unchanged.
    fn copy(&mut self, bytes: &[u8]);

    /// Appends a fake reply.
    fn fake_reply(&mut self, reply: FakeReply);

    /// Makes the changes by requests up to and including `seq` final.
    fn make_final(&mut self, seq: Seq);

    /// Whether a row of `length` bytes has to arrive in full before it is handled.
    fn awaits_row(&mut self, length: usize) -> bool;

    /// Handles the beginning of a row, or of another message that nobody reads.
    fn begin_stream(&mut self, run: &mut ServerInput<'_>, header: Header) -> Result<(), Halt>;

    /// Handles a row.
    fn row(&mut self, run: &mut ServerInput<'_>, length: usize, body: &[u8]) -> Result<(), Halt>;

    /// Handles a notice or a notification.
    fn unasked(
        &mut self,
        run: &mut ServerInput<'_>,
        tag: u8,
        length: usize,
        body: &[u8],
    ) -> Result<(), Halt>;

    /// Handles the report of a setting. `value` is `None` if it is too long to be held.
    fn reported(&mut self, name: &[u8], value: Option<&[u8]>) -> Result<Goes, Halt>;

    /// Interns the settings that were reported since the last call.
    fn intern_reports(&mut self);

    /// Handles an error. True if the client gets the part of it that has not arrived.
    fn error(&mut self, words: &Words<'_>) -> Result<bool, Halt>;

    /// Handles ReadyForQuery.
    fn ready(&mut self, run: &mut ServerInput<'_>, length: usize, body: &[u8]) -> Result<(), Halt>;

    /// Handles a reply that answers the oldest outstanding request, in full or in part.
    fn settled(
        &mut self,
        run: &mut ServerInput<'_>,
        tag: u8,
        length: usize,
        body: &[u8],
    ) -> Result<(), Halt>;

    /// Handles as much of a server's output as possible, up to the next ReadyForQuery. Returns the
    /// number of bytes handled, and why it stopped.
    fn replies(&mut self, input: &[u8]) -> (usize, Halt) {
        let mut run = ServerInput { input, from: 0, at: 0 };
        let halt = loop {
            if let Err(halt) = self.reply(&mut run) {
                break halt;
            }
        };
        self.flush(&mut run);
        self.intern_reports();
        (run.at, halt)
    }

    /// Handles one message, whole or not.
    #[inline]
    fn reply(&mut self, run: &mut ServerInput<'_>) -> Result<(), Halt> {
        self.take_rest(run);
        let input = &run.input[run.at..];
        let Some(header) = Header::parse(input)? else { return Err(Halt::More) };
        let length = header.message_bytes();
        if input.len() >= length {
            let body = &input[refrain_pg_wire::frame::HEADER_BYTES..length];
            return self.message(run, header, body);
        }
        let awaited = header.tag == back::DATA_ROW && self.awaits_row(length);
        if streams(header.tag) && !awaited {
            self.begin_stream(run, header)
        } else if length <= LOOKED_INTO_MAX {
            Err(Halt::More)
        } else {
            self.large(run, header)
        }
    }

    /// Handles a message that has arrived in full.
    #[inline]
    fn message(
        &mut self,
        run: &mut ServerInput<'_>,
        header: Header,
        body: &[u8],
    ) -> Result<(), Halt> {
        let length = header.message_bytes();
        match header.tag {
            back::DATA_ROW => self.row(run, length, body),
            tag @ (back::NOTICE_RESPONSE | back::NOTIFICATION_RESPONSE) => {
                self.unasked(run, tag, length, body)
            }
            back::PARAMETER_STATUS => {
                let (name, value) = read::parameter_status(body)?;
                let goes = self.reported(name, Some(value))?;
                self.advance(run, length, goes);
                Ok(())
            }
            back::ERROR_RESPONSE => self.failed(run, &Words::read(body, 0), length),
            back::READY_FOR_QUERY => self.ready(run, length, body),
            tag => self.settled(run, tag, length, body),
        }
    }

    /// Handles a message that Refrain has to read and that is too long to be held: reads its
    /// beginning, and streams the rest.
    #[cold]
    fn large(&mut self, run: &mut ServerInput<'_>, header: Header) -> Result<(), Halt> {
        let begun = &run.input[run.at..];
        if !begins_well(header.tag) {
            return Err(Halt::Broken);
        } else if begun.len() < LOOKED_INTO_MAX {
            return Err(Halt::More);
        }
        let body = &begun[refrain_pg_wire::frame::HEADER_BYTES..];
        let missing = header.message_bytes() - begun.len();
        if header.tag == back::PARAMETER_STATUS {
            let Some((name, _)) = split_string(body) else { return Err(Halt::Broken) };
            let goes = self.reported(name, None)?;
            self.pipe().server.inbox.expect(missing, rest_of(goes));
            self.advance(run, begun.len(), goes);
            return Err(Halt::More);
        }
        self.failed(run, &Words::read(body, missing), begun.len())?;
        Err(Halt::More)
    }

    /// Handles an error of which the first `length` bytes have arrived.
    fn failed(
        &mut self,
        run: &mut ServerInput<'_>,
        words: &Words<'_>,
        length: usize,
    ) -> Result<(), Halt> {
        self.intern_reports();
        self.advance(run, length, Goes::Nowhere);
        let result = self.error(words);
        let missing = words.missing;
        let rest = if *result.as_ref().unwrap_or(&false) { Rest::On } else { Rest::Nowhere };
        match missing {
            0 => self.fake_due(run),
            _ => self.pipe().server.inbox.expect(missing, rest),
        }
        result.map(drop)
    }

    /// Copies the bytes that go to the client unchanged.
    fn flush(&mut self, run: &mut ServerInput<'_>) {
        if run.from < run.at {
            self.copy(&run.input[run.from..run.at]);
        }
        run.from = run.at;
    }

    /// Steps over `count` bytes, which go to the client or nowhere.
    #[inline]
    fn advance(&mut self, run: &mut ServerInput<'_>, count: usize, goes: Goes) {
        if goes == Goes::Nowhere {
            self.flush(run);
            run.from += count;
        }
        run.at += count;
    }

    /// Steps over the rest of a message that streams.
    fn take_rest(&mut self, run: &mut ServerInput<'_>) {
        let inbox = &mut self.pipe().server.inbox;
        if inbox.rest == 0 {
            return;
        }
        let count = inbox.take_rest(&run.input[run.at..]);
        let goes = if inbox.rest_goes == Rest::On { Goes::On } else { Goes::Nowhere };
        let ends = inbox.rest == 0;
        self.advance(run, count, goes);
        if ends {
            self.fake_due(run);
        }
    }

    /// Sends the fake replies whose turn has come.
    #[inline]
    fn fake_due(&mut self, run: &mut ServerInput<'_>) {
        if self.pipe().server.session.outstanding.is_fake_due() {
            self.fake_all_due(run);
        }
    }

    #[inline(never)]
    fn fake_all_due(&mut self, run: &mut ServerInput<'_>) {
        while let Some((seq, reply)) = self.pipe().server.session.outstanding.take_fake_reply() {
            self.flush(run);
            self.fake_reply(reply);
            self.make_final(seq);
        }
    }
}

pub(crate) fn rest_of(goes: Goes) -> Rest {
    if goes == Goes::On { Rest::On } else { Rest::Nowhere }
}

/// Whether messages of this type are passed on in pieces, unread.
fn streams(tag: u8) -> bool {
    matches!(
        tag,
        back::DATA_ROW
            | back::COPY_DATA
            | back::FUNCTION_CALL_RESPONSE
            | back::NOTICE_RESPONSE
            | back::NOTIFICATION_RESPONSE
    )
}

/// Whether messages of this type may be longer than [`LOOKED_INTO_MAX`]: their beginning says what
/// matters.
fn begins_well(tag: u8) -> bool {
    matches!(tag, back::ERROR_RESPONSE | back::PARAMETER_STATUS)
}
