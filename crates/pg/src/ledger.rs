//! Replies a server still owes, oldest first, and what becomes of each.
//!
//! PostgreSQL answers in the order in which it was asked, so a queue is enough to know whose a reply is. The
//! proxy asks for things on its own account as well (a statement this server has not seen, a setting to put
//! right), and those answers must not reach the client; others it makes up itself (a Close for a statement it
//! keeps). Each entry therefore says what is to come and what becomes of it: forwarded, swallowed, made up.
//!
//! After an error in an extended message the server answers nothing more until Sync: [`Ledger::fail`]
//! strikes all entries up to the next Sync off the queue, and only those. A client may have sent two
//! batches, and the second is still owed in full. An error in a simple Query ends that Query only.
//!
//! Three things hold at every return:
//!
//! - an entry is struck off by the reply it names, or by an error before its Sync, and in no other way;
//! - a reply that no entry names is a [`Surprise`], and the server is dropped: a guess here is another
//!   client's row;
//! - the oldest entry is never one that is made up: those are handed out as soon as they become it.
//!
//! COPY FROM STDIN takes Syncs that were sent before its end as noise (E42). A mark says where the client ended its
//! stream. If the COPY succeeds, it swallowed the Syncs before that. If it fails once begun, nobody knows how far it
//! had read: the server is asked to count ([`Owed::Syncs`]).
//!
//! Not here: whether the client may send the message (`client`), and which server gets it (`pool`).

mod syncs;

use std::collections::VecDeque;

use crate::ids::Segment;
pub(crate) use crate::owed::{Entry, Failed, Fate, Made, Owed, Past, Purpose, Refusal, Seq, Syncs};

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
    pub(crate) entry: Entry,
    /// Its number.
    pub(crate) seq: Seq,
    /// Whether it is struck off.
    pub(crate) done: bool,
}

/// A reply that no entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Surprise {
    /// The reply's tag.
    pub(crate) tag: u8,
    /// What was owed instead.
    pub(crate) owed: Option<Owed>,
}

/// A server that owes nothing and is outside a transaction. Only [`Ledger::quiescent`] makes one, and only
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
    /// None, but how many Syncs one from the client has swallowed is not known yet.
    Counting,
}

/// What one server owes.
#[derive(Debug)]
pub(crate) struct Ledger {
    entries: VecDeque<Entry>,
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
    surprise: Option<Surprise>,
}

impl Default for Ledger {
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
            surprise: None,
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
fn rule(owed: Owed, tag: u8) -> Rule {
    use Owed::*;
    let (goes, ends): (&[u8], &[u8]) = match owed {
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

impl Ledger {
    /// Adds what a message just sent makes the server owe. Gives back a reply of our making whose turn is now.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) -> (Seq, Option<Made>) {
        let seq = self.head + self.entries.len() as u64;
        self.open = match entry.owed {
            mark if mark.is_mark() => self.open,
            owed => !owed.ends_segment(),
        };
        if entry.traits.contains(Traits::BEGINS) {
            self.begins = self.sent;
        }
        self.sent = self.sent.wrapping_add(u64::from(entry.owed.ends_segment()));
        if self.entries.is_empty() {
            if let Fate::MadeUp(made) = entry.fate {
                self.head += 1;
                return (seq, Some(made));
            }
            if entry.owed.is_mark() {
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
    pub(crate) fn settle(&mut self, tag: u8) -> Result<Settled, Surprise> {
        let Some(&entry) = self.entries.front() else { return Err(self.surprised(tag)) };
        let done = match rule(entry.owed, tag) {
            Rule::Ends => true,
            Rule::Goes => false,
            Rule::Never if entry.owed == Owed::Readies => {
                self.pop();
                return self.settle(tag);
            }
            Rule::Never => return Err(self.surprised(tag)),
        };
        let seq = self.head;
        self.follow_copy(tag, entry.owed);
        if done {
            self.pop();
        }
        Ok(Settled { entry, seq, done })
    }

    /// The next reply of our making, if its turn has come.
    #[inline]
    pub(crate) fn made(&mut self) -> Option<(Seq, Made)> {
        while let Some(entry) = self.entries.front() {
            let seq = self.head;
            match (entry.fate, entry.owed) {
                (Fate::MadeUp(made), _) => {
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
    pub(crate) fn fail(&mut self) -> Result<Failed, Surprise> {
        let Some(&entry) = self.entries.front() else {
            return Err(self.surprised(back::ERROR_RESPONSE));
        };
        if entry.owed == Owed::Readies {
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
        let skips = !entry.owed.ends_segment();
        if syncs != Syncs::Sure {
            self.strike_doubtful(syncs);
        } else if skips {
            while self.entries.front().is_some_and(|entry| entry.owed != Owed::Sync) {
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
        self.ended = self.ended.wrapping_add(u64::from(entry.owed.ends_segment()));
        self.past.add(entry.owed);
    }

    fn follow_copy(&mut self, tag: u8, owed: Owed) {
        match tag {
            back::COPY_IN_RESPONSE => self.copying = Copying::In,
            back::COPY_OUT_RESPONSE => self.copying = Copying::Out,
            back::COPY_BOTH_RESPONSE => self.copying = Copying::Both,
            back::COMMAND_COMPLETE => {
                if self.copying == Copying::In {
                    self.strike_syncs();
                }
                self.copying = Copying::No;
            }
            back::READY_FOR_QUERY if owed == Owed::Query => self.copying = Copying::No,
            back::READY_FOR_QUERY if owed == Owed::Syncs => self.readies += 1,
            back::CLOSE_COMPLETE if owed == Owed::Syncs => self.copying = Copying::No,
            _ => {}
        }
    }

    /// Notes a reply that nobody expected.
    #[cold]
    fn surprised(&mut self, tag: u8) -> Surprise {
        let surprise = Surprise { tag, owed: self.entries.front().map(|entry| entry.owed) };
        self.surprise = Some(surprise);
        surprise
    }

    /// What led to a surprise, in words.
    #[cold]
    pub(crate) fn story(&self) -> String {
        let owed: Vec<Owed> = self.entries.iter().map(|entry| entry.owed).collect();
        self.past.story(self.surprise.map(|surprise| surprise.tag), &owed)
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
    pub(crate) fn is_put_right(&self) -> bool {
        self.entries.iter().all(|entry| entry.fate == Fate::Swallow(Purpose::PutRight))
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
    pub(crate) fn swallow_first(&mut self, purpose: Purpose) {
        if let Some(first) = self.entries.front_mut() {
            first.fate = Fate::Swallow(purpose);
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
    pub(crate) fn is_probed(&self) -> bool {
        self.entries.iter().any(|entry| entry.fate == Fate::Swallow(Purpose::Probe))
    }

    /// Whether they are asked for in a segment of our own.
    pub(crate) fn probes_apart(&self) -> bool {
        let ours = Fate::Swallow(Purpose::Probe);
        self.entries.iter().any(|entry| entry.owed == Owed::Sync && entry.fate == ours)
    }

    /// Whether the server has this slot for certain.
    #[inline]
    pub(crate) fn is_sure(&self, slot: &crate::slots::Slot) -> bool {
        !slot.doubtful && !self.is_unsettled(slot.segment)
    }

    /// The entry that was added last.
    pub(crate) fn back(&self) -> Option<&Entry> {
        self.entries.back()
    }

    /// The oldest entry.
    pub(crate) fn front(&self) -> Option<&Entry> {
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

    pub(super) fn owing(owed: &[Owed]) -> Ledger {
        let mut ledger = Ledger::default();
        for &owed in owed {
            ledger.push(Entry::new(owed, Fate::Forward));
        }
        ledger
    }

    pub(super) fn owed(ledger: &Ledger) -> Vec<Owed> {
        ledger.entries.iter().map(|entry| entry.owed).collect()
    }

    #[test]
    fn replies_strike_off_what_they_name() {
        use Owed::*;
        let mut ledger = owing(&[Parse, Bind, DescribePortal, Execute, Sync]);
        for tag in b"12TDDCZ" {
            assert!(ledger.quiescent().is_none());
            ledger.settle(*tag).unwrap();
        }
        assert!(ledger.quiescent().is_some());
    }

    #[test]
    fn a_reply_that_no_entry_names_is_a_surprise() {
        let mut ledger = owing(&[Owed::Bind]);
        let surprise = Surprise { tag: b'1', owed: Some(Owed::Bind) };
        assert_eq!(ledger.settle(b'1').unwrap_err(), surprise);
        assert!(Ledger::default().settle(b'C').is_err());
    }

    #[test]
    fn an_error_skips_to_the_sync_of_its_own_segment() {
        use Owed::*;
        let mut ledger = owing(&[Parse, Bind, Query, Sync, Bind, Execute, Sync]);
        let failed = ledger.fail().unwrap();
        assert_eq!((failed.seq, failed.until, failed.open), (0, 3, false));
        assert_eq!(owed(&ledger), [Sync, Bind, Execute, Sync]);
    }

    #[test]
    fn a_block_that_began_may_have_failed_until_its_segment_is_over() {
        let mut ledger = Ledger::default();
        ledger.push(Entry::new(Owed::Execute, Fate::Forward).with(Traits::BEGINS));
        ledger.push(Entry::new(Owed::Parse, Fate::Forward));
        assert!(!ledger.may_have_failed(), "what follows in the segment is skipped with it");
        ledger.push(Entry::new(Owed::Sync, Fate::Forward));
        assert!(ledger.may_have_failed());
        ledger.settle(back::COMMAND_COMPLETE).unwrap();
        ledger.fail().unwrap();
        assert!(ledger.may_have_failed());
        ledger.settle(back::READY_FOR_QUERY).unwrap();
        assert!(!ledger.may_have_failed());
    }

    #[test]
    fn a_block_may_have_failed_in_any_segment_that_is_not_over() {
        let mut ledger = Ledger::default();
        ledger.ready(Status::Transaction);
        assert!(!ledger.may_have_failed());
        ledger.push(Entry::new(Owed::DescribePortal, Fate::Forward));
        assert!(!ledger.may_have_failed(), "what follows in the segment is skipped with it");
        ledger.push(Entry::new(Owed::Sync, Fate::Forward));
        assert!(ledger.may_have_failed());
    }

    #[test]
    fn a_query_that_is_skipped_does_not_settle_whether_a_block_has_failed() {
        let mut ledger = Ledger::default();
        ledger.push(Entry::new(Owed::Execute, Fate::Forward).with(Traits::BEGINS));
        ledger.push(Entry::new(Owed::Bind, Fate::Forward));
        ledger.push(Entry::new(Owed::Query, Fate::Forward));
        ledger.settle(back::COMMAND_COMPLETE).unwrap();
        assert!(ledger.fail().unwrap().open);
        ledger.push(Entry::new(Owed::Sync, Fate::Forward));
        assert!(ledger.may_have_failed());
        ledger.settle(back::READY_FOR_QUERY).unwrap();
        assert!(!ledger.may_have_failed());
    }

    #[test]
    fn an_error_in_a_query_or_at_sync_skips_nothing() {
        for whole in [Owed::Query, Owed::Sync, Owed::FunctionCall] {
            let mut ledger = owing(&[whole, Owed::Bind]);
            assert_eq!(ledger.fail().unwrap().until, 0);
            assert_eq!(owed(&ledger), [whole, Owed::Bind]);
        }
    }

    #[test]
    fn an_open_segment_is_not_quiescent_even_when_nothing_is_owed() {
        let mut ledger = owing(&[Owed::Parse]);
        ledger.settle(b'1').unwrap();
        assert!(ledger.is_empty() && ledger.is_open());
        assert!(ledger.quiescent().is_none(), "E28: a Flush does not end the transaction");
        ledger.push(Entry::new(Owed::Sync, Fate::Forward));
        ledger.settle(b'Z').unwrap();
        assert!(ledger.quiescent().is_some());
        ledger.ready(Status::Transaction);
        assert!(ledger.quiescent().is_none());
    }

    #[test]
    fn made_up_replies_wait_for_their_turn() {
        let made = |made| Entry::new(Owed::Parse, Fate::MadeUp(made));
        let mut ledger = Ledger::default();
        assert!(matches!(ledger.push(made(Made::Parse)), (0, Some(Made::Parse))));
        ledger.push(Entry::new(Owed::Bind, Fate::Forward));
        assert!(ledger.push(made(Made::Close)).1.is_none());
        assert!(ledger.made().is_none());
        ledger.settle(b'2').unwrap();
        assert!(matches!(ledger.made(), Some((2, Made::Close))));
        assert!(ledger.made().is_none());
    }

    #[test]
    fn a_surprise_tells_what_led_to_it() {
        let mut ledger = owing(&[Owed::Parse, Owed::Sync]);
        ledger.fail().unwrap();
        ledger.settle(b'Z').unwrap();
        ledger.settle(b'C').unwrap_err();
        let story = "the server sent a message of type 'C', for which nothing was owed; \
                     before that: error, Parse, Sync";
        assert_eq!(ledger.story(), story);
    }

    #[test]
    fn a_segment_is_unsettled_until_its_ready() {
        let mut ledger = owing(&[Owed::Parse]);
        let segment = ledger.segment();
        assert!(!ledger.is_unsettled(segment), "the current segment relies on itself");
        ledger.push(Entry::new(Owed::Sync, Fate::Forward));
        assert!(ledger.is_unsettled(segment));
        ledger.settle(b'1').unwrap();
        ledger.settle(b'Z').unwrap();
        assert!(!ledger.is_unsettled(segment));
    }

    #[test]
    fn every_reply_in_every_state_is_ruled_on_and_never_panics() {
        use Owed::*;
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
                    let mut ledger = owing(&[first, second]);
                    let _ = ledger.settle(tag);
                    let _ = ledger.made();
                    let _ = ledger.fail();
                    let _ = ledger.quiescent();
                }
            }
        }
    }
}
