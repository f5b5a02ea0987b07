//! COPY: where it begins and ends, which Syncs a COPY FROM STDIN skips, and how Refrain finds out
//! where that cannot be known (E42).
//!
//! While a server reads the data of a COPY, it ignores Sync. A client that sends Syncs before it
//! has seen the COPY begin cannot know whether the server answers them, and neither can Refrain
//! where the COPY fails: PostgreSQL does not say how much of the data it had read.

use refrain_pg_wire::tag::back;
use refrain_sql::Traits;

use super::{Copying, Outstanding, Seq};
use crate::pipeline::request_kinds::{
    FakeReply, OutstandingRequest, ReplyAction, RequestKind, Syncs,
};

impl Outstanding {
    /// Whether this request, or one that is outstanding before it, may begin a COPY.
    pub(crate) fn may_copy_up_to(&self, seq: Seq) -> bool {
        let mut requests = (self.head..=seq).zip(&self.entries);
        requests.any(|(_, entry)| entry.traits.contains(Traits::COPY))
    }

    /// Follows a COPY from its beginning to its end by the replies of its statement.
    #[inline]
    pub(super) fn follow_copy(&mut self, tag: u8, kind: RequestKind) {
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
            back::READY_FOR_QUERY if kind == RequestKind::Query => self.copying = Copying::No,
            back::READY_FOR_QUERY if kind == RequestKind::Syncs => self.readies += 1,
            back::CLOSE_COMPLETE if kind == RequestKind::Syncs => self.copying = Copying::No,
            _ => {}
        }
    }

    /// Marks the Syncs before the end of the data as skipped: the server owes nothing for them. To
    /// be called when the COPY has succeeded.
    pub(super) fn strike_syncs(&mut self) {
        for entry in self.entries.iter_mut().skip(1) {
            match std::mem::replace(&mut entry.kind, RequestKind::Nothing) {
                RequestKind::Sync => self.ended = self.ended.wrapping_add(1),
                RequestKind::CopyEnd => break,
                kind => entry.kind = kind,
            }
        }
    }

    /// Returns the knowledge about the Syncs that a failed COPY FROM STDIN may have skipped.
    #[cold]
    pub(super) fn doubtful_syncs(&self) -> Syncs {
        let (mut any, mut over, mut sure) = (false, false, false);
        let Some(first) = self.entries.front() else { return Syncs::Sure };
        for entry in self.entries.iter().skip(1) {
            match entry.kind {
                RequestKind::Sync if entry.action == ReplyAction::Forward => {
                    any |= !over;
                    sure |= over;
                }
                RequestKind::CopyEnd => over = true,
                RequestKind::Nothing => {}
                // The server answers this request, unless it skips it because none of the Syncs
                // before it counts.
                kind if any => {
                    let asked =
                        kind != RequestKind::Sync && !matches!(entry.action, ReplyAction::Fake(_));
                    let heard = sure || first.kind == RequestKind::Query;
                    return if asked && heard { Syncs::Bounded } else { Syncs::Lost };
                }
                _ => return Syncs::Sure,
            }
        }
        if any { Syncs::Countable } else { Syncs::Sure }
    }

    /// Strikes off the failed request and the Syncs behind it. Their ReadyForQuery messages are
    /// counted by the server, or are those that come before another reply.
    #[cold]
    pub(super) fn strike_doubtful(&mut self, syncs: Syncs) {
        let last = |next: Option<&OutstandingRequest>| {
            next.is_none_or(|e| !e.kind.is_mark() && e.kind != RequestKind::Sync)
        };
        while syncs != Syncs::Bounded || !last(self.entries.get(1)) {
            if self.entries.is_empty() {
                return;
            }
            self.pop();
        }
        if let Some(entry) = self.entries.front_mut() {
            self.ended = self.ended.wrapping_add(u64::from(entry.kind.ends_segment()));
            *entry = OutstandingRequest::new(RequestKind::Readies, ReplyAction::Forward);
        }
    }

    /// Returns how many of the client's Syncs counted, once the server has answered the Sync of
    /// Refrain's own behind them. If none counted, the server would have skipped everything up to
    /// that one: the client's segment stays open.
    pub(crate) fn counted(&mut self) -> u32 {
        let counted = std::mem::take(&mut self.readies).saturating_sub(1);
        self.open |= counted == 0;
        counted
    }

    /// Marks where the client ended the data of a COPY: it decides what happens to the Syncs around
    /// it. The server owes nothing for it.
    pub(crate) fn push_copy_end(&mut self) {
        self.copy_end =
            self.push(OutstandingRequest::new(RequestKind::CopyEnd, ReplyAction::Forward)).0;
    }

    /// True if the client has ended the data of a COPY and the outcome of the COPY is not known
    /// yet. Until it is, Refrain sends nothing behind the Syncs: if the COPY fails, the server must
    /// count them, or the replies must tell.
    #[inline]
    pub(crate) fn ends_copy(&self) -> bool {
        self.copy_end > self.head
    }

    /// True if the server waits for data of a COPY that the client has not ended.
    pub(crate) fn awaits_data(&self) -> bool {
        self.copying == Copying::In && !self.entries.iter().any(|e| e.kind == RequestKind::CopyEnd)
    }

    /// True if replies are to come even if the client sends nothing more.
    pub(crate) fn will_answer(&self) -> bool {
        !self.entries.is_empty() && !self.awaits_data()
    }

    /// True if replies are to come to the requests before the last one, where the last message was
    /// cut and Refrain cannot send anything behind it: the server answers by itself where a segment
    /// ends.
    pub(crate) fn will_answer_before_last(&self) -> bool {
        let before = || self.entries.iter().take(self.entries.len().saturating_sub(1));
        // A COPY has no end if that is the message that was cut.
        let reads =
            self.copying == Copying::In && !before().any(|e| e.kind == RequestKind::CopyEnd);
        !reads && before().any(|e| e.kind.ends_segment())
    }

    /// Returns the fake reply of the next request behind the oldest one, Syncs aside, if that has
    /// one. Refrain answered that message itself; a server in a COPY would have read it as a part
    /// of the COPY, and ended the session.
    pub(crate) fn fake_reply_amid_copy(&self) -> Option<FakeReply> {
        let passed = |entry: &&OutstandingRequest| {
            matches!(entry.kind, RequestKind::Sync | RequestKind::Nothing)
        };
        let unread = self.entries.iter().skip(1).find(|entry| !passed(entry))?;
        match unread.action {
            ReplyAction::Fake(made) => Some(made),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::outstanding::tests::{kind, owing};

    #[test]
    fn copy_skips_the_syncs_before_its_end() {
        use RequestKind::*;
        // P B E S d d c S: one ReadyForQuery.
        let mut outstanding = owing(&[Execute, Sync, CopyEnd, Sync]);
        outstanding.settle(b'G').unwrap();
        outstanding.settle(b'C').unwrap();
        assert!(outstanding.take_fake_reply().is_none());
        assert_eq!(kind(&outstanding), [Sync]);
        // Those behind the end are not.
        let mut outstanding = owing(&[Execute, Sync, CopyEnd, Sync, Sync]);
        outstanding.settle(b'G').unwrap();
        outstanding.settle(b'C').unwrap();
        outstanding.take_fake_reply();
        assert_eq!(kind(&outstanding), [Sync, Sync]);
        // Failed before it began: two.
        let mut outstanding = owing(&[Execute, Sync, CopyEnd, Sync]);
        outstanding.fail().unwrap();
        outstanding.settle(b'Z').unwrap();
        outstanding.take_fake_reply();
        outstanding.settle(b'Z').unwrap();
    }

    #[test]
    fn each_copy_of_a_query_has_its_end() {
        use RequestKind::*;
        let mut outstanding = owing(&[Query, CopyEnd, Sync, CopyEnd, Sync]);
        outstanding.settle(b'G').unwrap();
        outstanding.settle(b'C').unwrap();
        assert_eq!(kind(&outstanding), [Query, Nothing, Sync, CopyEnd, Sync]);
        outstanding.settle(b'G').unwrap();
        outstanding.settle(b'C').unwrap();
        assert_eq!(kind(&outstanding), [Query, Nothing, Nothing, Nothing, Sync]);
    }

    #[test]
    fn syncs_that_a_failed_copy_may_have_skipped_are_counted() {
        use RequestKind::*;
        for (came, counted) in [(1, 0), (2, 1), (3, 2)] {
            let mut outstanding = owing(&[Execute, Sync, Sync]);
            outstanding.settle(b'G').unwrap();
            let failed = outstanding.fail().unwrap();
            assert_eq!(
                (failed.syncs, failed.open),
                (crate::pipeline::request_kinds::Syncs::Countable, false)
            );
            assert!(outstanding.quiescent().is_none());
            outstanding.push(OutstandingRequest::new(Syncs, ReplyAction::Forward));
            outstanding.push(OutstandingRequest::new(Sync, ReplyAction::Forward));
            (0..came).for_each(|_| assert!(!outstanding.settle(b'Z').unwrap().done));
            outstanding.settle(b'3').unwrap();
            assert_eq!(outstanding.counted(), counted);
            outstanding.settle(b'Z').unwrap();
            assert_eq!(
                outstanding.quiescent().is_some(),
                counted > 0,
                "else a Sync is still to come"
            );
        }
    }

    #[test]
    fn another_reply_ends_the_syncs_in_doubt() {
        use RequestKind::*;
        for readies in 1..3 {
            let mut outstanding = owing(&[Execute, Sync, CopyEnd, Sync, Query, Sync]);
            outstanding.settle(b'G').unwrap();
            assert_eq!(
                outstanding.fail().unwrap().syncs,
                crate::pipeline::request_kinds::Syncs::Bounded
            );
            (0..readies).for_each(|_| assert!(!outstanding.settle(b'Z').unwrap().done));
            assert_eq!(outstanding.settle(b'C').unwrap().entry.kind, Query);
            outstanding.settle(b'Z').unwrap();
            outstanding.settle(b'Z').unwrap();
            assert!(outstanding.quiescent().is_some());
            assert!(!outstanding.has_unsettled());
        }
        let mut outstanding = owing(&[Query, Sync, Parse, Sync]);
        outstanding.settle(b'G').unwrap();
        assert_eq!(
            outstanding.fail().unwrap().syncs,
            crate::pipeline::request_kinds::Syncs::Bounded
        );
        outstanding.settle(b'Z').unwrap();
        assert_eq!(outstanding.fail().unwrap().entry.kind, Parse);
        outstanding.settle(b'Z').unwrap();
        assert!(outstanding.quiescent().is_some());
    }

    #[test]
    fn syncs_amid_other_messages_cannot_be_counted() {
        use RequestKind::*;
        let mut outstanding = owing(&[Execute, Sync, Parse, Sync]);
        outstanding.settle(b'G').unwrap();
        assert_eq!(outstanding.fail().unwrap().syncs, crate::pipeline::request_kinds::Syncs::Lost);
        assert!(outstanding.quiescent().is_none());
    }
}
