//! COPY: where it begins and ends, which Syncs a COPY FROM STDIN skips, and what is to be done where nobody knows (E42).

use refrain_wire::tag::back;

use super::{Copying, Outstanding};
use crate::pipeline::request_kinds::{
    FakeReply, OutstandingRequest, ReplyAction, RequestKind, Syncs,
};

impl Outstanding {
    /// Follows a COPY from its beginning to its end by the replies of its statement.
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

    /// The Syncs that COPY FROM STDIN skipped, those before its end, owe nothing. The end is behind us.
    pub(super) fn strike_syncs(&mut self) {
        for entry in self.entries.iter_mut().skip(1) {
            match std::mem::replace(&mut entry.kind, RequestKind::Nothing) {
                RequestKind::Sync => self.ended = self.ended.wrapping_add(1),
                RequestKind::CopyEnd => break,
                kind => entry.kind = kind,
            }
        }
    }

    /// Whether there are Syncs that a COPY FROM STDIN has or has not skipped when it failed.
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
                // It is answered, unless it is ignored because no Sync before it counts.
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

    /// Strikes off what failed and the Syncs behind it: what comes of these is counted, or is whatever comes before
    /// another reply.
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

    /// How many Syncs of the client's counted, now that the server has passed one of ours behind them. If it was none,
    /// the server would still ignore everything: its segment stays open.
    pub(crate) fn counted(&mut self) -> u32 {
        let counted = std::mem::take(&mut self.readies).saturating_sub(1);
        self.open |= counted == 0;
        counted
    }

    /// The client says that it has no more data. That owes nothing, but marks the end of the stream for the Syncs around it.
    pub(crate) fn push_copy_end(&mut self) {
        self.copy_end =
            self.push(OutstandingRequest::new(RequestKind::CopyEnd, ReplyAction::Forward)).0;
    }

    /// Whether the data of a COPY has been ended of which it is not known yet what became. If it fails, nothing may stand
    /// behind its Syncs: how many of them count is asked of the server, or told by the replies that come.
    #[inline]
    pub(crate) fn ends_copy(&self) -> bool {
        self.copy_end > self.head
    }

    /// Whether the server waits for the client's data, and the client has not said that it has no more.
    pub(crate) fn awaits_data(&self) -> bool {
        self.copying == Copying::In && !self.entries.iter().any(|e| e.kind == RequestKind::CopyEnd)
    }

    /// Whether replies are to come though nobody says more.
    pub(crate) fn will_answer(&self) -> bool {
        !self.entries.is_empty() && !self.awaits_data()
    }

    /// The same where the last message was cut, and nothing can be put behind it: what ends a segment is told by itself.
    pub(crate) fn will_answer_before_last(&self) -> bool {
        let before = self.entries.len().saturating_sub(1);
        !self.awaits_data() && self.entries.iter().take(before).any(|e| e.kind.ends_segment())
    }

    /// The message behind the oldest entry that the server would read as part of a COPY, did it see it: it is answered
    /// here.
    pub(crate) fn made_amid_copy(&self) -> Option<FakeReply> {
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
        assert!(outstanding.made().is_none());
        assert_eq!(kind(&outstanding), [Sync]);
        // Those behind the end are not.
        let mut outstanding = owing(&[Execute, Sync, CopyEnd, Sync, Sync]);
        outstanding.settle(b'G').unwrap();
        outstanding.settle(b'C').unwrap();
        outstanding.made();
        assert_eq!(kind(&outstanding), [Sync, Sync]);
        // Failed before it began: two.
        let mut outstanding = owing(&[Execute, Sync, CopyEnd, Sync]);
        outstanding.fail().unwrap();
        outstanding.settle(b'Z').unwrap();
        outstanding.made();
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
