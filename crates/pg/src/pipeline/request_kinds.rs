//! The kinds of outstanding requests, and what can happen to their replies; the queue of them is
//! [`crate::pipeline::outstanding`].

use refrain_pg_wire::tag::front;
use refrain_sql::Traits;

use crate::ground::ids::Segment;
use crate::pipeline::purposes::{Purpose, Treatment};

/// The number of an outstanding request, counted from the first request of a server.
pub(crate) type Seq = u64;

/// The replies that a server owes for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// ParseComplete.
    Parse,
    /// BindComplete.
    Bind,
    /// ParameterDescription, then RowDescription or NoData.
    DescribeStatement,
    /// RowDescription or NoData.
    DescribePortal,
    /// Rows or a COPY stream, then CommandComplete, EmptyQueryResponse or PortalSuspended.
    Execute,
    /// CloseComplete.
    Close,
    /// ReadyForQuery.
    Sync,
    /// Anything that a query string returns, then ReadyForQuery.
    Query,
    /// FunctionCallResponse, then ReadyForQuery.
    FunctionCall,
    /// Refrain's count of the Syncs that a failed COPY has not skipped: a ReadyForQuery for each of
    /// those of the client's, one for a Sync of Refrain's own, then CloseComplete.
    Syncs,
    /// A ReadyForQuery for each Sync of the client's that a failed COPY has not skipped. Any other
    /// reply belongs to the request behind.
    Readies,
    /// Nothing: a Sync that COPY skipped.
    Nothing,
    /// Nothing: the client ended the data of a COPY here.
    CopyEnd,
}

impl RequestKind {
    /// True if ReadyForQuery ends the request, and its segment with it.
    #[inline]
    pub(crate) fn ends_segment(self) -> bool {
        matches!(self, Self::Sync | Self::Query | Self::FunctionCall)
    }

    /// True if the server owes nothing for it, and it only marks a place among the requests.
    #[inline]
    pub(crate) fn is_mark(self) -> bool {
        matches!(self, Self::Nothing | Self::CopyEnd)
    }
}

/// The treatment of a reply when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyAction {
    /// The client gets the reply.
    Forward,
    /// The client gets the reply except for ReadyForQuery: that one comes from the message that
    /// Refrain sends behind this one if it succeeds.
    Held,
    /// The client gets the reply if it describes rows. NoData it does not get: a simple query has
    /// no such reply.
    Rows,
    /// The server was asked something else in place of the client's request. The client gets a fake
    /// completion, and neither columns nor rows.
    Instead(FakeReply),
    /// The reply answers a request of Refrain's own; the client must not see it.
    Skip(Purpose),
    /// The server was not asked; the client gets a fake reply as soon as this request is the
    /// oldest.
    Fake(FakeReply),
    /// Refrain sent what the server must refuse, so that the transaction fails there; the client
    /// gets the error in Refrain's words.
    Refuse(Refusal),
}

impl ReplyAction {
    /// True if the client gets the reply, or another in its place.
    pub(crate) fn is_for_client(self) -> bool {
        match self {
            Self::Forward | Self::Held | Self::Rows | Self::Instead(_) | Self::Refuse(_) => true,
            Self::Skip(_) | Self::Fake(_) => false,
        }
    }

    /// Returns the treatment of the server's messages while it answers the request, if the request
    /// is Refrain's own.
    #[inline]
    pub(crate) fn own(self) -> Option<&'static Treatment> {
        match self {
            Self::Skip(purpose) => Some(purpose.treatment()),
            _ => None,
        }
    }
}

/// Why Refrain has the server refuse a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The statement no longer has the columns or parameters that the client was told (0A000).
    Stale,
    /// The client has as many statements as it may have (54000).
    Quota,
    /// The client has as many portals as it may have (53200).
    Portals,
    /// PREPARE as SQL is switched off (0A000).
    Prepare,
}

/// A reply that Refrain writes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FakeReply {
    /// ParseComplete.
    Parse,
    /// CloseComplete.
    Close,
    /// CommandComplete `DEALLOCATE`.
    Deallocate,
    /// CommandComplete `DEALLOCATE ALL`.
    DeallocateAll,
    /// NoData.
    NoRows,
}

impl FakeReply {
    /// Returns the tag of the message that it answers.
    pub(crate) fn answers(self) -> u8 {
        match self {
            Self::Parse => front::PARSE,
            Self::Close => front::CLOSE,
            Self::Deallocate | Self::DeallocateAll => front::QUERY,
            Self::NoRows => front::DESCRIBE,
        }
    }
}

/// One reply, or one run of replies, that a server owes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutstandingRequest {
    /// The replies that are to come.
    pub(crate) kind: RequestKind,
    /// Their treatment.
    pub(crate) action: ReplyAction,
    /// The effects that the text of the request may have on the session.
    pub(crate) traits: Traits,
    /// ID of the statement that the request is about; zero for none.
    pub(crate) statement: u64,
    /// A hash of the name that the client gave the statement, see
    /// [`crate::statements::of_client::mark`].
    pub(crate) name: u32,
    /// Of a Describe: how many requests before it stands the Parse of the copy that it describes;
    /// zero if no Parse is to learn from it.
    pub(crate) behind: u32,
}

impl OutstandingRequest {
    /// Makes a request about no statement.
    pub(crate) fn new(kind: RequestKind, action: ReplyAction) -> Self {
        Self { kind, action, traits: Traits::default(), statement: 0, name: 0, behind: 0 }
    }

    /// Sets the statement that the request is about.
    #[must_use]
    pub(crate) fn about(self, statement: u64) -> Self {
        Self { statement, ..self }
    }

    /// Sets the name that the client gave the statement.
    #[must_use]
    #[inline]
    pub(crate) fn called(self, name: &[u8]) -> Self {
        Self { name: crate::statements::of_client::mark(name), ..self }
    }

    /// Sets what the text may do to the session.
    #[must_use]
    pub(crate) fn with(self, traits: Traits) -> Self {
        Self { traits, ..self }
    }
}

/// The effect of an error on the outstanding requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    /// The request that failed.
    pub(crate) entry: OutstandingRequest,
    /// Its number.
    pub(crate) seq: Seq,
    /// The server skipped the requests from `seq` up to this number, exclusive.
    pub(crate) until: Seq,
    /// The first and the last segment of those requests. They differ where a Query was skipped:
    /// here a Query ends a segment, but a server that skips it does not answer.
    pub(crate) segments: (Segment, Segment),
    /// Whether the Sync that ends the skipping has not been sent yet.
    pub(crate) open: bool,
    /// Whether it is known which Syncs a failed COPY has skipped.
    pub(crate) syncs: Syncs,
}

/// The knowledge about the Syncs that the client sent before the end of a COPY that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syncs {
    /// It is known which of them the server answers.
    Sure,
    /// It is not known, but nothing other than replies to Syncs is outstanding: Refrain has the
    /// server count them.
    Countable,
    /// It is not known, but a reply of another kind comes behind them in any case.
    Bounded,
    /// It is not known, and the server may or may not ignore the requests behind them.
    Lost,
}

/// The kinds of the requests that were struck off last: four bits each, the last one lowest; zero
/// is none. The log tells them, and they tell whether the open segment has run anything.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Past(u64);

impl Past {
    /// Stands for the end of a transaction by a command.
    const ENDS: u64 = 14;
    /// Stands for an error.
    const FAILS: u64 = 15;
    const WORDS: [&str; 15] = [
        "Parse",
        "Bind",
        "Describe of a statement",
        "Describe of a portal",
        "Execute",
        "Close",
        "Sync",
        "Query",
        "FunctionCall",
        "Syncs to be counted",
        "Syncs in doubt",
        "a Sync that COPY swallowed",
        "the end of a COPY",
        "the end of a transaction",
        "error",
    ];

    /// Notes a request that was struck off.
    #[inline]
    pub(crate) fn add(&mut self, kind: RequestKind) {
        self.0 = self.0 << 4 | (kind as u64 + 1);
    }

    /// Notes an error, which stands before the requests that it strikes off.
    pub(crate) fn fails(&mut self) {
        self.0 = self.0 << 4 | Self::FAILS;
    }

    /// Notes that the request that was struck off last has ended its transaction.
    pub(crate) fn ends_transaction(&mut self) {
        self.0 = self.0 << 4 | Self::ENDS;
    }

    /// Whether nothing ran, and no portal was made, since the last transaction or segment ended.
    pub(crate) fn has_run_nothing(self) -> bool {
        use RequestKind::{Close, DescribeStatement, FunctionCall, Parse, Query, Sync};
        let codes = |kinds: [RequestKind; 3]| kinds.map(|kind| kind as u64 + 1);
        let (idle, ends) =
            (codes([Parse, DescribeStatement, Close]), codes([Sync, Query, FunctionCall]));
        let mut all = (0..16).map(|at| self.0 >> (4 * at) & 15);
        all.find(|code| !idle.contains(code))
            .is_some_and(|code| code == 0 || code == Self::ENDS || ends.contains(&code))
    }

    /// Describes an unexpected message in words: the message, the replies that were due, and the
    /// requests before, oldest first.
    pub(crate) fn story(self, tag: Option<u8>, kind: &[RequestKind]) -> String {
        let word = |kind: usize| Self::WORDS[kind.min(Self::WORDS.len() - 1)];
        let list = |words: Vec<&str>| words.join(", ");
        let reply = match tag {
            Some(tag) => format!("the server sent a message of type {:?}", char::from(tag)),
            None => "the server sent what cannot be read".to_owned(),
        };
        let kind = match kind {
            [] => "for which nothing was owed".to_owned(),
            kind => {
                let words = kind.iter().take(16).map(|kind| word(*kind as usize)).collect();
                format!("but it owed {}", list(words))
            }
        };
        let past = (0..16).rev().map(|at| self.0 >> (4 * at) & 15).filter(|kind| *kind > 0);
        let past: Vec<&str> = past.map(|kind| word(kind as usize - 1)).collect();
        let before = if past.is_empty() { "nothing".to_owned() } else { list(past) };
        format!("{reply}, {kind}; before that: {before}")
    }
}

impl Failed {
    /// True if this request failed or was skipped.
    pub(crate) fn struck(&self, seq: Seq) -> bool {
        seq == self.seq || (self.seq..self.until).contains(&seq)
    }

    /// True if this segment is among those that failed.
    pub(crate) fn covers(&self, segment: Segment) -> bool {
        let (first, last) = self.segments;
        segment.wrapping_sub(first) <= last.wrapping_sub(first)
    }
}
