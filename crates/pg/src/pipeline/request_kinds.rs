//! What a server can owe, and what can become of it: the entries of the [`crate::pipeline::outstanding`].

use refrain_sql::Traits;
use refrain_wire::tag::front;

use crate::ground::ids::Segment;

/// Numbers the entries of one server, from its first to its last.
pub(crate) type Seq = u64;

/// What a server owes.
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
    /// Anything a query string answers, then ReadyForQuery.
    Query,
    /// FunctionCallResponse, then ReadyForQuery.
    FunctionCall,
    /// A ReadyForQuery for each Sync of the client's that a COPY has not skipped, one for a Sync of ours, then
    /// CloseComplete.
    Syncs,
    /// A ReadyForQuery for each Sync of the client's that a COPY has not skipped. Another reply is for the entry behind.
    Readies,
    /// Nothing: a Sync that COPY skipped, or the end of its stream.
    Nothing,
    /// Nothing: the client ended a COPY stream here.
    CopyEnd,
}

impl RequestKind {
    /// Whether ReadyForQuery is what ends it, and its segment with it.
    #[inline]
    pub(crate) fn ends_segment(self) -> bool {
        matches!(self, Self::Sync | Self::Query | Self::FunctionCall)
    }

    /// Whether it only marks a place.
    #[inline]
    pub(crate) fn is_mark(self) -> bool {
        matches!(self, Self::Nothing | Self::CopyEnd)
    }
}

/// What becomes of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyAction {
    /// The client gets it.
    Forward,
    /// The client gets it, but for ReadyForQuery: that comes with what is put behind it if it succeeds.
    Held,
    /// The client gets it where it describes rows; that there are none, a query string does not say.
    Rows,
    /// The server was asked something else in its place; the client gets a completion of our making, and neither
    /// columns nor rows.
    Instead(FakeReply),
    /// It answers the proxy; the client must not see it.
    Skip(Purpose),
    /// The server was not asked; the client gets a reply of our making when its turn comes.
    Fake(FakeReply),
    /// The server was made to fail; the client gets the error in words of our own.
    Refuse(Refusal),
}

impl ReplyAction {
    /// Whether the client gets it, in whatever words.
    pub(crate) fn is_for_client(self) -> bool {
        match self {
            Self::Forward | Self::Held | Self::Rows | Self::Instead(_) | Self::Refuse(_) => true,
            Self::Skip(_) | Self::Fake(_) => false,
        }
    }
}

/// Why the proxy asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To have a statement on this server, or to make room for one.
    Prepare,
    /// To prepare a statement under the settings of its Parse.
    Environment,
    /// To go back from those to the client's.
    Return,
    /// To see whether a statement still has the shape that the client was told.
    Shape,
    /// To make the server's settings those of its client.
    SyncSettings,
    /// To learn the settings that the client left.
    ReadSettings,
    /// To put the client's first settings in the place of those that RESET went back to.
    Restore,
    /// To see how many Syncs a COPY has skipped.
    Count,
    /// To remove what a client left behind.
    Reset,
    /// To end a transaction that a client left open.
    Rollback,
    /// To see whether a normalized query may be prepared.
    Verify,
    /// To run a statement in the place of a query string.
    Autoprepare,
}

/// Why the server was made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The client was told a shape that the statement has no more (0A000).
    Stale,
    /// The client has as many statements as it may have (54000).
    Quota,
    /// The client has as many portals as it may have (53200).
    Portals,
    /// PREPARE as SQL is switched off (0A000).
    Prepare,
}

/// A reply of our making.
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
    /// The tag of the message that it answers.
    pub(crate) fn answers(self) -> u8 {
        match self {
            Self::Parse => front::PARSE,
            Self::Close => front::CLOSE,
            Self::Deallocate | Self::DeallocateAll => front::QUERY,
            Self::NoRows => front::DESCRIBE,
        }
    }
}

/// One reply, or one run of replies, that is owed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutstandingRequest {
    /// What is to come.
    pub(crate) kind: RequestKind,
    /// What becomes of it.
    pub(crate) action: ReplyAction,
    /// What the text behind it may do to the session.
    pub(crate) traits: Traits,
    /// The statement it is about; zero for none.
    pub(crate) statement: u64,
    /// What the client called it, see [`crate::statements::of_client::mark`].
    pub(crate) name: u32,
    /// Of a Describe: how many entries before it stands the Parse whose copy it describes; zero where that is not told.
    pub(crate) behind: u32,
}

impl OutstandingRequest {
    /// An entry about no statement.
    pub(crate) fn new(kind: RequestKind, action: ReplyAction) -> Self {
        Self { kind, action, traits: Traits::default(), statement: 0, name: 0, behind: 0 }
    }

    /// The same, about a statement.
    #[must_use]
    pub(crate) fn about(self, statement: u64) -> Self {
        Self { statement, ..self }
    }

    /// The same, under the name that the client gave.
    #[must_use]
    #[inline]
    pub(crate) fn called(self, name: &[u8]) -> Self {
        Self { name: crate::statements::of_client::mark(name), ..self }
    }

    /// The same, with what the text may do.
    #[must_use]
    pub(crate) fn with(self, traits: Traits) -> Self {
        Self { traits, ..self }
    }
}

/// What an error did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failed {
    /// The entry it came for.
    pub(crate) entry: OutstandingRequest,
    /// Its number: this one failed.
    pub(crate) seq: Seq,
    /// Entries from `seq` up to this number, exclusive, were skipped.
    pub(crate) until: Seq,
    /// The first and the last segment of those: a Query that is skipped ends one here, but not there.
    pub(crate) segments: (Segment, Segment),
    /// Whether the Sync that ends the skipping has not been sent yet.
    pub(crate) open: bool,
    /// What is known of Syncs that a COPY may or may not have skipped.
    pub(crate) syncs: Syncs,
}

/// What is known of the Syncs that were sent before the end of a COPY that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syncs {
    /// Which of them count.
    Sure,
    /// Nothing, but all that is owed is replies to Syncs: the server is asked to count them.
    Countable,
    /// Nothing, but a reply of another kind comes behind them in any case.
    Bounded,
    /// Nothing, and what stands behind them may be ignored or not.
    Lost,
}

/// The kinds of what was struck off last, for the log: four bits each, the last one lowest; zero is none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Past(u64);

impl Past {
    /// For an error.
    const FAILS: u64 = 15;
    const WORDS: [&str; 14] = [
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
        "error",
    ];

    /// Notes what was struck off.
    #[inline]
    pub(crate) fn add(&mut self, kind: RequestKind) {
        self.0 = self.0 << 4 | (kind as u64 + 1);
    }

    /// Notes an error, which comes before what it strikes off.
    pub(crate) fn fails(&mut self) {
        self.0 = self.0 << 4 | Self::FAILS;
    }

    /// A surprise in words: the reply, what was owed instead, and what came before, oldest first.
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
    /// Whether this entry failed or was skipped.
    pub(crate) fn struck(&self, seq: Seq) -> bool {
        seq == self.seq || (self.seq..self.until).contains(&seq)
    }

    /// Whether this segment is among those that failed.
    pub(crate) fn covers(&self, segment: Segment) -> bool {
        let (first, last) = self.segments;
        segment.wrapping_sub(first) <= last.wrapping_sub(first)
    }
}
