//! Replies a server still owes, oldest first, and what becomes of each.
//!
//! PostgreSQL answers in the order in which it was asked, so a queue is enough to know whose a reply is. The
//! proxy asks for things on its own account as well (a statement this server has not seen, a setting to put
//! right), and those answers must not reach the client; others it makes up itself (a Close for a statement it
//! keeps). Each entry therefore says what is to come and what becomes of it: forwarded, skipped, made up.
//!
//! After an error in an extended message the server answers nothing more until Sync: [`Outstanding::fail`]
//! strikes all entries up to the next Sync off the queue, and only those. A client may have sent two
//! batches, and the second is still owed in full. An error in a simple Query ends that Query only.
//!
//! Three things hold at every return:
//!
//! - an entry is struck off by the reply it names, or by an error before its Sync, and in no other way;
//! - a reply that no entry names is a [`UnexpectedMessage`], and the server is dropped: a guess here is another
//!   client's row;
//! - the oldest entry is never one that is made up: those are handed out as soon as they become it.
//!
//! COPY FROM STDIN takes Syncs that were sent before its end as noise (E42). A mark says where the client ended its
//! stream. If the COPY succeeds, it skipped the Syncs before that. If it fails once begun, nobody knows how far it
//! had read: the server is asked to count ([`RequestKind::Syncs`]).
//!
//! Not here: whether the client may send the message (`client`), and which server gets it (`pool`).

mod syncs;

use std::collections::VecDeque;

use crate::ground::ids::Segment;
pub(crate) use crate::pipeline::request_kinds::{
    Failed, FakeReply, OutstandingRequest, Past, Purpose, Refusal, ReplyAction, RequestKind, Seq,
    Syncs,
};

use refrain_sql::Traits;
use refrain_wire::back::Status;
use refrain_wire::tag::back;

/// Segments in which something changed, from the first that was not over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    first: Segment,
    last: Segment,
}

/// What a reply did to the oldest entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    /// The entry.
    pub(crate) entry: OutstandingRequest,
    /// Its number.
    pub(crate) seq: Seq,
    /// Whether it is struck off.
    pub(crate) done: bool,
}

/// A reply that no entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnexpectedMessage {
    /// The reply's tag.
    pub(crate) tag: u8,
    /// What was owed instead.
    pub(crate) kind: Option<RequestKind>,
}

/// A server that owes nothing and is outside a transaction. Only [`Outstanding::quiescent`] makes one, and only
/// putting the server back consumes one.
#[derive(Debug)]
#[must_use]
pub(crate) struct Quiescent(());

/// Whether a COPY stream is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Copying {
    /// None.
    #[default]
    No,
    /// From the client.
    In,
    /// To the client.
    Out,
    /// Both ways (replication).
    Both,
    /// None, but how many Syncs one from the client has skipped is not known yet.
    Counting,
}

/// What one server owes.
#[derive(Debug)]
pub(crate) struct Outstanding {
    entries: VecDeque<OutstandingRequest>,
    /// Number of the oldest entry.
    head: Seq,
    /// The last entry that ends the data of a COPY.
    copy_end: Seq,
    copying: Copying,
    status: Status,
    /// Whether extended messages were sent behind the last Sync: their transaction is open.
    open: bool,
    /// Segments begun and ended: a Sync, Query or FunctionCall ends one.
    sent: Segment,
    ended: Segment,
    /// The last segment in which a transaction block may begin.
    begins: Segment,
    /// ReadyForQuery that came since they are counted.
    readies: u32,
    /// What was struck off last.
    past: Past,
    /// The reply that nobody expected, once there was one.
    unexpected: Option<UnexpectedMessage>,
}

impl Default for Outstanding {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            head: 0,
            copy_end: 0,
            copying: Copying::No,
            status: Status::Idle,
            open: false,
            sent: 1,
            ended: 0,
            begins: 0,
            readies: 0,
            past: Past::default(),
            unexpected: None,
        }
    }
}

/// What a reply does to the entry it comes for.
enum Rule {
    /// Strikes it off.
    Ends,
    /// More is to come.
    Goes,
    /// Never comes for it.
    Never,
}

/// The table of replies: what each does to what is owed. From the manual's "Message Flow".
fn rule(kind: RequestKind, tag: u8) -> Rule {
    use RequestKind::*;
    let (goes, ends): (&[u8], &[u8]) = match kind {
        Parse => (&[], &[back::PARSE_COMPLETE]),
        Bind => (&[], &[back::BIND_COMPLETE]),
        Close => (&[], &[back::CLOSE_COMPLETE]),
        DescribeStatement => {
            (&[back::PARAMETER_DESCRIPTION], &[back::ROW_DESCRIPTION, back::NO_DATA])
        }
        DescribePortal => (&[], &[back::ROW_DESCRIPTION, back::NO_DATA]),
        Execute => {
            (STREAM, &[back::COMMAND_COMPLETE, back::EMPTY_QUERY_RESPONSE, back::PORTAL_SUSPENDED])
        }
        Query => (QUERY, &[back::READY_FOR_QUERY]),
        Sync => (&[], &[back::READY_FOR_QUERY]),
        FunctionCall => (&[back::FUNCTION_CALL_RESPONSE], &[back::READY_FOR_QUERY]),
        Syncs => (&[back::READY_FOR_QUERY], &[back::CLOSE_COMPLETE]),
        Readies => (&[back::READY_FOR_QUERY], &[]),
        Nothing | CopyEnd => (&[], &[]),
    };
    if ends.contains(&tag) {
        Rule::Ends
    } else if goes.contains(&tag) {
        Rule::Goes
    } else {
        Rule::Never
    }
}

const STREAM: &[u8] = &[
    back::DATA_ROW,
    back::COPY_DATA,
    back::COPY_OUT_RESPONSE,
    back::COPY_IN_RESPONSE,
    back::COPY_DONE,
    back::COPY_BOTH_RESPONSE,
];
const QUERY: &[u8] = &[
    back::DATA_ROW,
    back::COMMAND_COMPLETE,
    back::ROW_DESCRIPTION,
    back::EMPTY_QUERY_RESPONSE,
    back::COPY_DATA,
    back::COPY_OUT_RESPONSE,
    back::COPY_IN_RESPONSE,
    back::COPY_DONE,
    back::COPY_BOTH_RESPONSE,
];

impl Outstanding {
    /// Adds what a message just sent makes the server owe. Gives back a reply of our making whose turn is now.
    #[inline]
    pub(crate) fn push(&mut self, entry: OutstandingRequest) -> (Seq, Option<FakeReply>) {
        let seq = self.head + self.entries.len() as u64;
        self.open = match entry.kind {
            mark if mark.is_mark() => self.open,
            kind => !kind.ends_segment(),
        };
        if entry.traits.contains(Traits::BEGINS) {
            self.begins = self.sent;
        }
        self.sent = self.sent.wrapping_add(u64::from(entry.kind.ends_segment()));
        if self.entries.is_empty() {
            if let ReplyAction::Fake(made) = entry.action {
                self.head += 1;
                return (seq, Some(made));
            }
            if entry.kind.is_mark() {
                self.head += 1;
                return (seq, None);
            }
        }
        self.entries.push_back(entry);
        (seq, None)
    }

    /// What a reply other than an error does.
    ///
    /// # Errors
    /// A reply that the oldest entry does not name.
    #[inline]
    pub(crate) fn settle(&mut self, tag: u8) -> Result<Settled, UnexpectedMessage> {
        let Some(&entry) = self.entries.front() else { return Err(self.unexpected(tag)) };
        let done = match rule(entry.kind, tag) {
            Rule::Ends => true,
            Rule::Goes => false,
            Rule::Never if entry.kind == RequestKind::Readies => {
                self.pop();
                return self.settle(tag);
            }
            Rule::Never => return Err(self.unexpected(tag)),
        };
        let seq = self.head;
        self.follow_copy(tag, entry.kind);
        if done {
            self.pop();
        }
        Ok(Settled { entry, seq, done })
    }

    /// The next reply of our making, if its turn has come.
    #[inline]
    pub(crate) fn made(&mut self) -> Option<(Seq, FakeReply)> {
        while let Some(entry) = self.entries.front() {
            let seq = self.head;
            match (entry.action, entry.kind) {
                (ReplyAction::Fake(made), _) => {
                    self.pop();
                    return Some((seq, made));
                }
                (_, mark) if mark.is_mark() => self.pop(),
                _ => return None,
            }
        }
        None
    }

    /// What an error does: in an extended message, everything up to the next Sync is not answered any
    /// more. Gives the entry it came for, and the number of the first entry still owed.
    ///
    /// # Errors
    /// An error while nothing is owed: it ends the connection or answers nobody.
    pub(crate) fn fail(&mut self) -> Result<Failed, UnexpectedMessage> {
        let Some(&entry) = self.entries.front() else {
            return Err(self.unexpected(back::ERROR_RESPONSE));
        };
        if entry.kind == RequestKind::Readies {
            self.pop();
            return self.fail();
        }
        self.past.fails();
        let first = self.head;
        let first_segment = self.ended.wrapping_add(1);
        if self.status == Status::Transaction {
            self.status = Status::Failed; // as the ReadyForQuery to come will say
        }
        let syncs = if self.copying == Copying::In { self.doubtful_syncs() } else { Syncs::Sure };
        let waits = matches!(syncs, Syncs::Countable | Syncs::Lost);
        self.copying = if waits { Copying::Counting } else { Copying::No };
        let skips = !entry.kind.ends_segment();
        if syncs != Syncs::Sure {
            self.strike_doubtful(syncs);
        } else if skips {
            while self.entries.front().is_some_and(|entry| entry.kind != RequestKind::Sync) {
                self.pop();
            }
        }
        let open = skips && !waits && self.entries.is_empty();
        // A Query that was skipped did not end the segment.
        self.open |= open;
        let segments = (first_segment, self.ended.wrapping_add(1));
        let failed = Failed { entry, seq: first, until: self.head, segments, open, syncs };
        if failed.covers(self.begins) {
            self.begins = segments.1;
        }
        Ok(failed)
    }

    fn pop(&mut self) {
        let Some(entry) = self.entries.pop_front() else { return };
        self.head += 1;
        self.ended = self.ended.wrapping_add(u64::from(entry.kind.ends_segment()));
        self.past.add(entry.kind);
    }

    /// Notes a reply that nobody expected.
    #[cold]
    fn unexpected(&mut self, tag: u8) -> UnexpectedMessage {
        let unexpected =
            UnexpectedMessage { tag, kind: self.entries.front().map(|entry| entry.kind) };
        self.unexpected = Some(unexpected);
        unexpected
    }

    /// What led to a surprise, in words.
    #[cold]
    pub(crate) fn story(&self) -> String {
        let kind: Vec<RequestKind> = self.entries.iter().map(|entry| entry.kind).collect();
        self.past.story(self.unexpected.map(|unexpected| unexpected.tag), &kind)
    }

    /// Whether the transaction has failed for certain: nothing is under way that may end it.
    pub(crate) fn has_failed(&self) -> bool {
        self.status == Status::Failed && self.entries.is_empty()
    }

    /// Notes what a ReadyForQuery said.
    #[inline]
    pub(crate) fn ready(&mut self, status: Status) {
        self.status = status;
    }

    /// Where the session stood at the last ReadyForQuery.
    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// Whether a COPY stream is under way.
    pub(crate) fn copying(&self) -> Copying {
        self.copying
    }

    /// Whether a text that may do this is owed for.
    pub(crate) fn intersects(&self, traits: Traits) -> bool {
        self.entries.iter().any(|entry| entry.traits.intersects(traits))
    }

    /// Whether nothing is owed.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether nothing is owed but that settings are put right.
    pub(crate) fn syncs_settings(&self) -> bool {
        self.entries.iter().all(|entry| entry.action == ReplyAction::Skip(Purpose::SyncSettings))
    }

    /// How many entries are owed.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether extended messages were sent behind the last Sync: their transaction is open.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// The number of the segment that is being sent.
    pub(crate) fn segment(&self) -> Segment {
        self.sent
    }

    /// Whether a segment other than the current one may still fail: what was done in it must not be relied on.
    pub(crate) fn is_unsettled(&self, segment: Segment) -> bool {
        let settled = self.ended.wrapping_add(1);
        segment.wrapping_sub(settled) < self.sent.wrapping_sub(settled)
    }

    /// Whether this segment has ended.
    pub(crate) fn is_over(&self, segment: Segment) -> bool {
        segment <= self.ended
    }

    /// Whether the segment that is being answered is this one, or came after it.
    pub(crate) fn answers(&self, segment: Segment) -> bool {
        segment <= self.ended + 1
    }

    /// What the oldest entry answers, the client is not told.
    pub(crate) fn skip_first(&mut self, purpose: Purpose) {
        if let Some(first) = self.entries.front_mut() {
            first.action = ReplyAction::Skip(purpose);
        }
    }

    /// Whether a transaction block that has begun, or may have, may have failed in a segment that is not over.
    pub(crate) fn may_have_failed(&self) -> bool {
        let begun = self.status == Status::Transaction || self.is_unsettled(self.begins);
        begun && self.ended.wrapping_add(1) != self.sent
    }

    /// Whether it is only known when what is under way has been answered if the transaction has failed.
    pub(crate) fn is_in_doubt(&self) -> bool {
        (self.status == Status::Failed || self.may_have_failed()) && !self.entries.is_empty()
    }

    /// Whether the settings have been asked for.
    pub(crate) fn reads_settings(&self) -> bool {
        self.entries.iter().any(|entry| entry.action == ReplyAction::Skip(Purpose::ReadSettings))
    }

    /// Whether they are asked for in a segment of our own.
    pub(crate) fn reads_settings_apart(&self) -> bool {
        let ours = ReplyAction::Skip(Purpose::ReadSettings);
        self.entries.iter().any(|entry| entry.kind == RequestKind::Sync && entry.action == ours)
    }

    /// Whether the server has this slot for certain.
    #[inline]
    pub(crate) fn is_sure(&self, slot: &crate::statements::of_server::ServerStatement) -> bool {
        !slot.doubtful && !self.is_unsettled(slot.segment)
    }

    /// The entry that was added last.
    pub(crate) fn back(&self) -> Option<&OutstandingRequest> {
        self.entries.back()
    }

    /// The oldest entry.
    pub(crate) fn front(&self) -> Option<&OutstandingRequest> {
        self.entries.front()
    }

    /// Adds the segment that is being sent.
    pub(crate) fn extend(&self, span: &mut Span) {
        if span.last <= self.ended {
            span.first = self.sent;
        }
        span.last = self.sent;
    }

    /// Whether any segment of these but the current one may still fail.
    pub(crate) fn touches(&self, span: &Span) -> bool {
        span.first.max(self.ended + 1) <= span.last.min(self.sent - 1)
    }

    /// Whether a segment before the current one is not over.
    pub(crate) fn has_unsettled(&self) -> bool {
        self.sent != self.ended.wrapping_add(1)
    }

    /// A command ended the failed transaction, or the part of it that failed.
    pub(crate) fn recovers(&mut self) {
        if self.status == Status::Failed {
            self.status = Status::Transaction;
        }
    }

    /// The number of the oldest entry that is still owed.
    pub(crate) fn oldest(&self) -> Seq {
        self.head
    }

    /// Whether this entry is still owed.
    pub(crate) fn owes(&self, seq: Seq) -> bool {
        self.head <= seq
    }

    /// The number of the entry that is pushed next.
    pub(crate) fn next_seq(&self) -> Seq {
        self.head + self.entries.len() as u64
    }

    /// The proof that this server may go to another client, or `None` while it may not.
    #[inline]
    pub(crate) fn quiescent(&self) -> Option<Quiescent> {
        let quiet = self.entries.is_empty()
            && !self.open
            && self.status == Status::Idle
            && self.copying == Copying::No;
        quiet.then_some(Quiescent(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn owing(kind: &[RequestKind]) -> Outstanding {
        let mut outstanding = Outstanding::default();
        for &kind in kind {
            outstanding.push(OutstandingRequest::new(kind, ReplyAction::Forward));
        }
        outstanding
    }

    pub(super) fn kind(outstanding: &Outstanding) -> Vec<RequestKind> {
        outstanding.entries.iter().map(|entry| entry.kind).collect()
    }

    #[test]
    fn replies_strike_off_what_they_name() {
        use RequestKind::*;
        let mut outstanding = owing(&[Parse, Bind, DescribePortal, Execute, Sync]);
        for tag in b"12TDDCZ" {
            assert!(outstanding.quiescent().is_none());
            outstanding.settle(*tag).unwrap();
        }
        assert!(outstanding.quiescent().is_some());
    }

    #[test]
    fn a_reply_that_no_request_names_is_unexpected() {
        let mut outstanding = owing(&[RequestKind::Bind]);
        let unexpected = UnexpectedMessage { tag: b'1', kind: Some(RequestKind::Bind) };
        assert_eq!(outstanding.settle(b'1').unwrap_err(), unexpected);
        assert!(Outstanding::default().settle(b'C').is_err());
    }

    #[test]
    fn an_error_skips_to_the_sync_of_its_own_segment() {
        use RequestKind::*;
        let mut outstanding = owing(&[Parse, Bind, Query, Sync, Bind, Execute, Sync]);
        let failed = outstanding.fail().unwrap();
        assert_eq!((failed.seq, failed.until, failed.open), (0, 3, false));
        assert_eq!(kind(&outstanding), [Sync, Bind, Execute, Sync]);
    }

    #[test]
    fn a_block_that_began_may_have_failed_until_its_segment_is_over() {
        let mut outstanding = Outstanding::default();
        outstanding.push(
            OutstandingRequest::new(RequestKind::Execute, ReplyAction::Forward)
                .with(Traits::BEGINS),
        );
        outstanding.push(OutstandingRequest::new(RequestKind::Parse, ReplyAction::Forward));
        assert!(!outstanding.may_have_failed(), "what follows in the segment is skipped with it");
        outstanding.push(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
        assert!(outstanding.may_have_failed());
        outstanding.settle(back::COMMAND_COMPLETE).unwrap();
        outstanding.fail().unwrap();
        assert!(outstanding.may_have_failed());
        outstanding.settle(back::READY_FOR_QUERY).unwrap();
        assert!(!outstanding.may_have_failed());
    }

    #[test]
    fn a_block_may_have_failed_in_any_segment_that_is_not_over() {
        let mut outstanding = Outstanding::default();
        outstanding.ready(Status::Transaction);
        assert!(!outstanding.may_have_failed());
        outstanding
            .push(OutstandingRequest::new(RequestKind::DescribePortal, ReplyAction::Forward));
        assert!(!outstanding.may_have_failed(), "what follows in the segment is skipped with it");
        outstanding.push(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
        assert!(outstanding.may_have_failed());
    }

    #[test]
    fn a_query_that_is_skipped_does_not_settle_whether_a_block_has_failed() {
        let mut outstanding = Outstanding::default();
        outstanding.push(
            OutstandingRequest::new(RequestKind::Execute, ReplyAction::Forward)
                .with(Traits::BEGINS),
        );
        outstanding.push(OutstandingRequest::new(RequestKind::Bind, ReplyAction::Forward));
        outstanding.push(OutstandingRequest::new(RequestKind::Query, ReplyAction::Forward));
        outstanding.settle(back::COMMAND_COMPLETE).unwrap();
        assert!(outstanding.fail().unwrap().open);
        outstanding.push(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
        assert!(outstanding.may_have_failed());
        outstanding.settle(back::READY_FOR_QUERY).unwrap();
        assert!(!outstanding.may_have_failed());
    }

    #[test]
    fn an_error_in_a_query_or_at_sync_skips_nothing() {
        for whole in [RequestKind::Query, RequestKind::Sync, RequestKind::FunctionCall] {
            let mut outstanding = owing(&[whole, RequestKind::Bind]);
            assert_eq!(outstanding.fail().unwrap().until, 0);
            assert_eq!(kind(&outstanding), [whole, RequestKind::Bind]);
        }
    }

    #[test]
    fn an_open_segment_is_not_quiescent_even_when_nothing_is_owed() {
        let mut outstanding = owing(&[RequestKind::Parse]);
        outstanding.settle(b'1').unwrap();
        assert!(outstanding.is_empty() && outstanding.is_open());
        assert!(outstanding.quiescent().is_none(), "E28: a Flush does not end the transaction");
        outstanding.push(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
        outstanding.settle(b'Z').unwrap();
        assert!(outstanding.quiescent().is_some());
        outstanding.ready(Status::Transaction);
        assert!(outstanding.quiescent().is_none());
    }

    #[test]
    fn fake_replies_wait_for_their_turn() {
        let made = |made| OutstandingRequest::new(RequestKind::Parse, ReplyAction::Fake(made));
        let mut outstanding = Outstanding::default();
        assert!(matches!(outstanding.push(made(FakeReply::Parse)), (0, Some(FakeReply::Parse))));
        outstanding.push(OutstandingRequest::new(RequestKind::Bind, ReplyAction::Forward));
        assert!(outstanding.push(made(FakeReply::Close)).1.is_none());
        assert!(outstanding.made().is_none());
        outstanding.settle(b'2').unwrap();
        assert!(matches!(outstanding.made(), Some((2, FakeReply::Close))));
        assert!(outstanding.made().is_none());
    }

    #[test]
    fn an_unexpected_message_tells_what_led_to_it() {
        let mut outstanding = owing(&[RequestKind::Parse, RequestKind::Sync]);
        outstanding.fail().unwrap();
        outstanding.settle(b'Z').unwrap();
        outstanding.settle(b'C').unwrap_err();
        let story = "the server sent a message of type 'C', for which nothing was owed; \
                     before that: error, Parse, Sync";
        assert_eq!(outstanding.story(), story);
    }

    #[test]
    fn a_segment_is_unsettled_until_its_ready() {
        let mut outstanding = owing(&[RequestKind::Parse]);
        let segment = outstanding.segment();
        assert!(!outstanding.is_unsettled(segment), "the current segment relies on itself");
        outstanding.push(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
        assert!(outstanding.is_unsettled(segment));
        outstanding.settle(b'1').unwrap();
        outstanding.settle(b'Z').unwrap();
        assert!(!outstanding.is_unsettled(segment));
    }

    #[test]
    fn every_reply_in_every_state_is_ruled_on_and_never_panics() {
        use RequestKind::*;
        let all = [
            Parse,
            Bind,
            DescribeStatement,
            DescribePortal,
            Execute,
            Close,
            Sync,
            Query,
            FunctionCall,
            Syncs,
            Readies,
            Nothing,
        ];
        for first in all {
            for second in all {
                for tag in 0..=255 {
                    let mut outstanding = owing(&[first, second]);
                    let _ = outstanding.settle(tag);
                    let _ = outstanding.made();
                    let _ = outstanding.fail();
                    let _ = outstanding.quiescent();
                }
            }
        }
    }
}
