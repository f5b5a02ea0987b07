//! Forwarding replies in runs: bytes that the client gets unchanged are copied at once, up to where
//! a reply is skipped, rewritten or faked.

use refrain_pool::inbox::Rest;
use refrain_sql::Traits;
use refrain_wire::Malformed;

use crate::pipeline::outstanding::{OutstandingRequest, RequestKind, UnexpectedMessage};
use crate::relay::link::{Link, write_fake};

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
    /// The server ends its session by a FATAL error; the client has got that error.
    Fatal,
    /// No outstanding request explains the reply, or it is malformed.
    Broken,
    /// The server refused settings from the client's startup packet; the client has got the error.
    Refused,
    /// The client has sent another message where the server waits for COPY data; the client has got
    /// an error.
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

impl Link<'_> {
    /// Copies the bytes that go to the client unchanged.
    pub(crate) fn flush(&mut self, run: &mut ServerInput<'_>) {
        if run.from < run.at {
            self.pipe.ports.out(self.client.conn()).extend_from_slice(&run.input[run.from..run.at]);
        }
        run.from = run.at;
    }

    /// Steps over `count` bytes, which go to the client or nowhere.
    #[inline]
    pub(crate) fn advance(&mut self, run: &mut ServerInput<'_>, count: usize, goes: Goes) {
        if goes == Goes::Nowhere {
            self.flush(run);
            run.from += count;
        }
        run.at += count;
    }

    /// Steps over the rest of a message that streams.
    pub(crate) fn take_rest(&mut self, run: &mut ServerInput<'_>) {
        let inbox = &mut self.pipe.server.inbox;
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
    pub(crate) fn fake_due(&mut self, run: &mut ServerInput<'_>) {
        while let Some((seq, reply)) = self.pipe.server.session.outstanding.take_fake_reply() {
            self.flush(run);
            write_fake(self.pipe.ports.out(self.client.conn()), reply);
            self.settle(seq);
        }
    }
}

pub(crate) fn rest_of(goes: Goes) -> Rest {
    if goes == Goes::On { Rest::On } else { Rest::Nowhere }
}

/// Whether the request is the Sync that ends restoring settings behind a RESET.
pub(crate) fn restores(entry: &OutstandingRequest) -> bool {
    entry.kind == RequestKind::Sync && entry.traits.contains(Traits::RESET)
}
