//! Outstanding requests: the replies that a server still owes, oldest first, and what happens to
//! each.
//!
//! PostgreSQL answers requests in the order in which they were sent, so a queue is enough to know
//! which request a reply belongs to. Refrain also sends requests of its own (the Parse of a
//! statement that this server lacks, a query that syncs settings), and the client must not see the
//! replies to those. Other replies Refrain fakes, without asking the server (a Close of a statement
//! that the server keeps). So each outstanding request says which reply is to come, and what
//! happens to the reply: Refrain forwards it, skips it or fakes it.
//!
//! A *segment* is the messages up to and including a Sync, or one Query or FunctionCall. After an
//! error in an extended message the server answers nothing more until Sync: [`Outstanding::fail`]
//! strikes off the requests up to the next Sync, and no others. If a client has sent two segments,
//! the server still owes the second in full. An error in a simple Query ends that Query only.
//!
//! Three things hold at every return:
//!
//! - a request is struck off by the reply that it names, or by an error before its Sync, and in no
//!   other way;
//! - a reply that no request names is an [`UnexpectedMessage`], and the caller drops the server: to
//!   guess would be to give a client another client's rows;
//! - the oldest request never has a fake reply: Refrain sends that as soon as the request is
//!   oldest.
//!
//! COPY FROM STDIN ignores the Syncs before the end of its data: see `syncs`.
//!
//! Not here: whether the client may send a message (`messages`), and which server gets it (`step`).

mod failing;
mod rules;
mod syncs;

use std::collections::VecDeque;

use crate::ground::ids::Segment;
pub(crate) use crate::pipeline::purposes::Purpose;
pub(crate) use crate::pipeline::request_kinds::{
    Failed, FakeReply, OutstandingRequest, Past, Refusal, ReplyAction, RequestKind, Seq, Syncs,
};

use self::rules::{ReplyRule, rule};
use refrain_pg_wire::back::Status;
use refrain_sql::Traits;

/// Segments in which something changed, from the first one that is not over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    first: Segment,
    last: Segment,
}

/// The effect of a reply on the oldest request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    /// The request.
    pub(crate) entry: OutstandingRequest,
    /// Its number.
    pub(crate) seq: Seq,
    /// Whether it is struck off.
    pub(crate) done: bool,
}

/// A reply that no outstanding request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnexpectedMessage {
    /// The reply's tag.
    pub(crate) tag: u8,
    /// The oldest request, for which another reply was due; `None` if the server owed nothing.
    pub(crate) kind: Option<RequestKind>,
}

/// Proof that a server owes nothing and is outside a transaction. [`Outstanding::quiescent`] alone
/// makes one, and putting the server back consumes it.
#[derive(Debug)]
#[must_use]
pub struct Quiescent(());

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
    /// None, but it is unknown how many Syncs a failed COPY from the client has skipped.
    Counting,
}

/// The requests that one server has not answered yet.
#[derive(Debug)]
pub(crate) struct Outstanding {
    entries: VecDeque<OutstandingRequest>,
    /// Number of the oldest request.
    head: Seq,
    /// Number of the last mark at the end of the data of a COPY.
    copy_end: Seq,
    copying: Copying,
    status: Status,
    /// Whether extended messages were sent behind the last Sync: their transaction is open.
    open: bool,
    /// The segment that is being sent, and the last one that has ended: a Sync, Query or
    /// FunctionCall ends one.
    sent: Segment,
    ended: Segment,
    /// The last segment in which a transaction block may begin.
    begins: Segment,
    /// The last segment in which a transaction block may end, where replies are kept.
    leaves: Segment,
    /// The last Execute of a command that ends its transaction.
    ends: Option<Seq>,
    /// ReadyForQuery messages that came since Refrain began to count them.
    readies: u32,
    /// The kinds of the requests that were struck off last, for the log.
    past: Past,
    /// The reply that no request names, once one has come.
    unexpected: Option<UnexpectedMessage>,
    /// The number of the first request behind the last Flush that Refrain sent.
    flushed: Seq,
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
            leaves: 0,
            ends: None,
            readies: 0,
            past: Past::default(),
            unexpected: None,
            flushed: 0,
        }
    }
}

impl Outstanding {
    /// Adds the request for a message that was just sent. Returns its number, and a fake reply if
    /// the client is to get that now.
    #[inline]
    pub(crate) fn push(&mut self, entry: OutstandingRequest) -> (Seq, Option<FakeReply>) {
        let seq = self.head + self.entries.len() as u64;
        let kind = entry.kind;
        self.open = if kind.is_mark() { self.open } else { !kind.ends_segment() };
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

    /// Applies a reply other than an error to the oldest request.
    ///
    /// # Errors
    /// A reply that the oldest request does not name.
    #[inline(always)]
    pub(crate) fn settle(&mut self, tag: u8) -> Result<Settled, UnexpectedMessage> {
        let Some(&entry) = self.entries.front() else { return Err(self.unexpected(tag)) };
        let done = match rule(entry.kind, tag) {
            ReplyRule::Ends => true,
            ReplyRule::Goes => false,
            ReplyRule::Never => return self.settle_behind(tag),
        };
        let seq = self.head;
        self.follow_copy(tag, entry.kind);
        if done {
            self.pop();
        }
        Ok(Settled { entry, seq, done })
    }

    /// Applies a reply to the request behind the oldest one. It is unknown how many Syncs a failed
    /// COPY has skipped: the first other reply belongs to the request behind them.
    #[cold]
    fn settle_behind(&mut self, tag: u8) -> Result<Settled, UnexpectedMessage> {
        while self.entries.front().is_some_and(|entry| entry.kind == RequestKind::Readies) {
            self.pop();
        }
        match self.entries.front().map(|entry| rule(entry.kind, tag)) {
            Some(ReplyRule::Ends | ReplyRule::Goes) => self.settle(tag),
            Some(ReplyRule::Never) | None => Err(self.unexpected(tag)),
        }
    }

    /// True if the turn of a fake reply, or of a mark, has come.
    #[inline]
    pub(crate) fn is_fake_due(&self) -> bool {
        let Some(entry) = self.entries.front() else { return false };
        matches!(entry.action, ReplyAction::Fake(_)) || entry.kind.is_mark()
    }

    /// Takes the next fake reply, if the client is to get it now.
    #[inline]
    pub(crate) fn take_fake_reply(&mut self) -> Option<(Seq, FakeReply)> {
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

    fn pop(&mut self) {
        let Some(entry) = self.entries.pop_front() else { return };
        self.head += 1;
        self.ended = self.ended.wrapping_add(u64::from(entry.kind.ends_segment()));
        self.past.add(entry.kind);
    }

    /// Notes a reply that no request names.
    #[cold]
    fn unexpected(&mut self, tag: u8) -> UnexpectedMessage {
        let unexpected =
            UnexpectedMessage { tag, kind: self.entries.front().map(|entry| entry.kind) };
        self.unexpected = Some(unexpected);
        unexpected
    }

    /// Notes the status that a ReadyForQuery reported.
    #[inline]
    pub(crate) fn ready(&mut self, status: Status) {
        self.status = status;
    }

    /// Returns the transaction status of the last ReadyForQuery.
    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// Returns whether a COPY stream is under way, and in which direction.
    pub(crate) fn copying(&self) -> Copying {
        self.copying
    }

    /// True if a text whose reply is outstanding may do one of these things.
    pub(crate) fn intersects(&self, traits: Traits) -> bool {
        self.entries.iter().any(|entry| entry.traits.intersects(traits))
    }

    /// Adds traits to request `seq`, of whose text more has become known.
    pub(crate) fn add_traits(&mut self, seq: Seq, traits: Traits) {
        if let Some(entry) = self.request(seq) {
            entry.traits |= traits;
        }
    }

    /// Has the client get the ReadyForQuery of a request later.
    pub(crate) fn hold(&mut self, seq: Seq) {
        if let Some(entry) = self.request(seq) {
            entry.action = ReplyAction::Held;
        }
    }

    fn request(&mut self, seq: Seq) -> Option<&mut OutstandingRequest> {
        let at = usize::try_from(seq.checked_sub(self.head)?).ok()?;
        self.entries.get_mut(at)
    }

    /// True if no request is outstanding.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True if no request is outstanding except those that stand in front of a client's first: to
    /// sync settings, and to see what a standby has replayed.
    pub(crate) fn owes_client_nothing(&self) -> bool {
        let is_ours = |action| {
            use Purpose::{Replayed, SyncSettings};
            matches!(action, ReplyAction::Skip(SyncSettings | Replayed))
        };
        self.entries.iter().all(|entry| is_ours(entry.action))
    }

    /// Returns the number of outstanding requests.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if extended messages were sent behind the last Sync: their transaction is open.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// True if a Sync now would end nothing of the client's: the open segment has run nothing since
    /// its transaction began, and all of it is answered.
    pub(crate) fn is_barely_open(&self) -> bool {
        self.open && self.entries.is_empty() && self.past.has_run_nothing()
    }

    /// Notes that request `seq`, an Execute, ends its transaction if it succeeds.
    pub(crate) fn ends_transaction(&mut self, seq: Seq) {
        self.ends = Some(seq);
    }

    /// Notes that request `seq`, which was struck off last, has succeeded.
    pub(crate) fn may_end_transaction(&mut self, seq: Seq) {
        if self.ends == Some(seq) {
            self.past.ends_transaction();
        }
    }

    /// True if a transaction block is open for certain, and stays open until a command that is yet
    /// to be sent ends it. An error ends no block.
    pub(crate) fn stays_in_block(&self) -> bool {
        let unread = |entry: &OutstandingRequest| {
            matches!(entry.kind, RequestKind::Query | RequestKind::FunctionCall)
        };
        self.status != Status::Idle && self.is_over(self.leaves) && !self.entries.iter().any(unread)
    }

    /// Notes that the segment that is being sent may end a transaction block.
    pub(crate) fn may_leave_block(&mut self) {
        self.leaves = self.sent;
    }

    /// Returns the number of the segment that is being sent.
    pub(crate) fn segment(&self) -> Segment {
        self.sent
    }

    /// True if this segment is not the current one and may still fail: nothing may rely on what was
    /// done in it.
    pub(crate) fn is_unsettled(&self, segment: Segment) -> bool {
        let settled = self.ended.wrapping_add(1);
        segment.wrapping_sub(settled) < self.sent.wrapping_sub(settled)
    }

    /// True if this segment has ended.
    pub(crate) fn is_over(&self, segment: Segment) -> bool {
        segment <= self.ended
    }

    /// True if the server is answering this segment or a later one.
    pub(crate) fn answers(&self, segment: Segment) -> bool {
        segment <= self.ended + 1
    }

    /// True if Refrain has asked the server for its settings.
    pub(crate) fn reads_settings(&self) -> bool {
        self.entries.iter().any(|entry| entry.action == ReplyAction::Skip(Purpose::ReadSettings))
    }

    /// True if Refrain has asked for them in a segment of its own.
    pub(crate) fn reads_settings_apart(&self) -> bool {
        let ours = ReplyAction::Skip(Purpose::ReadSettings);
        self.entries.iter().any(|entry| entry.kind == RequestKind::Sync && entry.action == ours)
    }

    /// True if the server has this statement for certain.
    #[inline]
    pub(crate) fn is_sure(&self, slot: &crate::statements::of_server::ServerStatement) -> bool {
        !slot.doubtful && !self.is_unsettled(slot.segment)
    }

    /// Returns the request that was added last.
    pub(crate) fn back(&self) -> Option<&OutstandingRequest> {
        self.entries.back()
    }

    /// Returns the oldest request.
    pub(crate) fn front(&self) -> Option<&OutstandingRequest> {
        self.entries.front()
    }

    /// Adds the segment that is being sent to the span.
    pub(crate) fn extend(&self, span: &mut Span) {
        if span.last <= self.ended {
            span.first = self.sent;
        }
        span.last = self.sent;
    }

    /// True if a segment of this span, other than the current one, may still fail.
    pub(crate) fn touches(&self, span: &Span) -> bool {
        span.first.max(self.ended + 1) <= span.last.min(self.sent - 1)
    }

    /// True if a segment before the current one is not over.
    pub(crate) fn has_unsettled(&self) -> bool {
        self.sent != self.ended.wrapping_add(1)
    }

    /// Returns the number of the oldest outstanding request.
    pub(crate) fn oldest(&self) -> Seq {
        self.head
    }

    /// True if the server still owes the reply to this request, or it is yet to be sent.
    pub(crate) fn owes(&self, seq: Seq) -> bool {
        self.head <= seq
    }

    /// Returns the number that the next request will get.
    pub(crate) fn next_seq(&self) -> Seq {
        self.head + self.entries.len() as u64
    }

    /// Whether the server may hold replies back until it gets a Flush. If so, notes that it is sent
    /// one now.
    pub(crate) fn flush(&mut self) -> bool {
        // Behind a Sync or Query the server sends all replies by itself, unless a COPY skips that
        // Sync (E42).
        let holds = self.open || self.copying == Copying::In;
        let next = self.next_seq();
        holds && std::mem::replace(&mut self.flushed, next) != next
    }

    /// Returns the proof that this server may go to another client, or `None` while it may not.
    #[inline]
    pub(crate) fn quiescent(&self) -> Option<Quiescent> {
        let owes = !self.entries.is_empty() || self.open;
        let is_amid = self.status != Status::Idle || self.copying != Copying::No;
        (!owes && !is_amid).then_some(Quiescent(()))
    }
}

#[cfg(test)]
mod tests {
    use refrain_pg_wire::tag::back;

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
    fn a_segment_is_barely_open_until_it_has_a_portal() {
        use RequestKind::*;
        let mut outstanding = owing(&[Sync, Parse, Bind, Execute]);
        for tag in b"Z12" {
            assert!(!outstanding.is_barely_open());
            outstanding.settle(*tag).unwrap();
        }
        outstanding.settle(back::COMMAND_COMPLETE).unwrap();
        assert!(!outstanding.is_barely_open());
        outstanding.may_end_transaction(3);
        assert!(!outstanding.is_barely_open());
        outstanding.ends_transaction(3);
        outstanding.may_end_transaction(3);
        assert!(outstanding.is_barely_open());
        for (kind, tag, barely) in [(Close, b'3', true), (Parse, b'1', true), (Bind, b'2', false)] {
            outstanding.push(OutstandingRequest::new(kind, ReplyAction::Forward));
            assert!(!outstanding.is_barely_open(), "an error would skip a Sync's segment");
            outstanding.settle(tag).unwrap();
            assert_eq!(outstanding.is_barely_open(), barely, "{kind:?}");
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
        assert!(outstanding.take_fake_reply().is_none());
        outstanding.settle(b'2').unwrap();
        assert!(matches!(outstanding.take_fake_reply(), Some((2, FakeReply::Close))));
        assert!(outstanding.take_fake_reply().is_none());
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
                    let _ = outstanding.take_fake_reply();
                    let _ = outstanding.fail();
                    let _ = outstanding.quiescent();
                }
            }
        }
    }
}
