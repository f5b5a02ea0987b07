//! Which Syncs a COPY FROM STDIN swallows, and what is to be done where nobody knows (E42).

use super::{Copying, Ledger};
use crate::owed::{Entry, Fate, Made, Owed, Syncs};

impl Ledger {
    /// The Syncs that COPY FROM STDIN swallowed, those before its end, owe nothing. The end is behind us.
    pub(super) fn strike_syncs(&mut self) {
        for entry in self.entries.iter_mut().skip(1) {
            match std::mem::replace(&mut entry.owed, Owed::Nothing) {
                Owed::Sync => self.ended = self.ended.wrapping_add(1),
                Owed::CopyEnd => break,
                owed => entry.owed = owed,
            }
        }
    }

    /// Whether there are Syncs that a COPY FROM STDIN has or has not swallowed when it failed.
    #[cold]
    pub(super) fn doubtful_syncs(&self) -> Syncs {
        let (mut any, mut over, mut sure) = (false, false, false);
        let Some(first) = self.entries.front() else { return Syncs::Sure };
        for entry in self.entries.iter().skip(1) {
            match entry.owed {
                Owed::Sync if entry.fate == Fate::Forward => {
                    any |= !over;
                    sure |= over;
                }
                Owed::CopyEnd => over = true,
                Owed::Nothing => {}
                // It is answered, unless it is ignored because no Sync before it counts.
                owed if any => {
                    let asked = owed != Owed::Sync && !matches!(entry.fate, Fate::MadeUp(_));
                    let heard = sure || first.owed == Owed::Query;
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
        let last =
            |next: Option<&Entry>| next.is_none_or(|e| !e.owed.is_mark() && e.owed != Owed::Sync);
        while syncs != Syncs::Bounded || !last(self.entries.get(1)) {
            if self.entries.is_empty() {
                return;
            }
            self.pop();
        }
        if let Some(entry) = self.entries.front_mut() {
            self.ended = self.ended.wrapping_add(u64::from(entry.owed.ends_segment()));
            *entry = Entry::new(Owed::Readies, Fate::Forward);
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
        self.copy_end = self.push(Entry::new(Owed::CopyEnd, Fate::Forward)).0;
    }

    /// Whether the data of a COPY has been ended of which it is not known yet what became. If it fails, nothing may stand
    /// behind its Syncs: how many of them count is asked of the server, or told by the replies that come.
    #[inline]
    pub(crate) fn ends_copy(&self) -> bool {
        self.copy_end > self.head
    }

    /// Whether the server waits for the client's data, and the client has not said that it has no more.
    pub(crate) fn awaits_data(&self) -> bool {
        self.copying == Copying::In && !self.entries.iter().any(|e| e.owed == Owed::CopyEnd)
    }

    /// Whether replies are to come though nobody says more.
    pub(crate) fn will_answer(&self) -> bool {
        !self.entries.is_empty() && !self.awaits_data()
    }

    /// The same where the last message was cut, and nothing can be put behind it: what ends a segment is told by itself.
    pub(crate) fn will_answer_before_last(&self) -> bool {
        let before = self.entries.len().saturating_sub(1);
        !self.awaits_data() && self.entries.iter().take(before).any(|e| e.owed.ends_segment())
    }

    /// The message behind the oldest entry that the server would read as part of a COPY, did it see it: it is answered
    /// here.
    pub(crate) fn made_amid_copy(&self) -> Option<Made> {
        let passed = |entry: &&Entry| matches!(entry.owed, Owed::Sync | Owed::Nothing);
        let unread = self.entries.iter().skip(1).find(|entry| !passed(entry))?;
        match unread.fate {
            Fate::MadeUp(made) => Some(made),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::tests::{owed, owing};

    #[test]
    fn copy_swallows_the_syncs_before_its_end() {
        use Owed::*;
        // P B E S d d c S: one ReadyForQuery.
        let mut ledger = owing(&[Execute, Sync, CopyEnd, Sync]);
        ledger.settle(b'G').unwrap();
        ledger.settle(b'C').unwrap();
        assert!(ledger.made().is_none());
        assert_eq!(owed(&ledger), [Sync]);
        // Those behind the end are not.
        let mut ledger = owing(&[Execute, Sync, CopyEnd, Sync, Sync]);
        ledger.settle(b'G').unwrap();
        ledger.settle(b'C').unwrap();
        ledger.made();
        assert_eq!(owed(&ledger), [Sync, Sync]);
        // Failed before it began: two.
        let mut ledger = owing(&[Execute, Sync, CopyEnd, Sync]);
        ledger.fail().unwrap();
        ledger.settle(b'Z').unwrap();
        ledger.made();
        ledger.settle(b'Z').unwrap();
    }

    #[test]
    fn each_copy_of_a_query_has_its_end() {
        use Owed::*;
        let mut ledger = owing(&[Query, CopyEnd, Sync, CopyEnd, Sync]);
        ledger.settle(b'G').unwrap();
        ledger.settle(b'C').unwrap();
        assert_eq!(owed(&ledger), [Query, Nothing, Sync, CopyEnd, Sync]);
        ledger.settle(b'G').unwrap();
        ledger.settle(b'C').unwrap();
        assert_eq!(owed(&ledger), [Query, Nothing, Nothing, Nothing, Sync]);
    }

    #[test]
    fn syncs_that_a_failed_copy_may_have_swallowed_are_counted() {
        use Owed::*;
        for (came, counted) in [(1, 0), (2, 1), (3, 2)] {
            let mut ledger = owing(&[Execute, Sync, Sync]);
            ledger.settle(b'G').unwrap();
            let failed = ledger.fail().unwrap();
            assert_eq!((failed.syncs, failed.open), (crate::owed::Syncs::Countable, false));
            assert!(ledger.quiescent().is_none());
            ledger.push(Entry::new(Syncs, Fate::Forward));
            ledger.push(Entry::new(Sync, Fate::Forward));
            (0..came).for_each(|_| assert!(!ledger.settle(b'Z').unwrap().done));
            ledger.settle(b'3').unwrap();
            assert_eq!(ledger.counted(), counted);
            ledger.settle(b'Z').unwrap();
            assert_eq!(ledger.quiescent().is_some(), counted > 0, "else a Sync is still to come");
        }
    }

    #[test]
    fn another_reply_ends_the_syncs_in_doubt() {
        use Owed::*;
        for readies in 1..3 {
            let mut ledger = owing(&[Execute, Sync, CopyEnd, Sync, Query, Sync]);
            ledger.settle(b'G').unwrap();
            assert_eq!(ledger.fail().unwrap().syncs, crate::owed::Syncs::Bounded);
            (0..readies).for_each(|_| assert!(!ledger.settle(b'Z').unwrap().done));
            assert_eq!(ledger.settle(b'C').unwrap().entry.owed, Query);
            ledger.settle(b'Z').unwrap();
            ledger.settle(b'Z').unwrap();
            assert!(ledger.quiescent().is_some());
            assert!(!ledger.has_unsettled());
        }
        let mut ledger = owing(&[Query, Sync, Parse, Sync]);
        ledger.settle(b'G').unwrap();
        assert_eq!(ledger.fail().unwrap().syncs, crate::owed::Syncs::Bounded);
        ledger.settle(b'Z').unwrap();
        assert_eq!(ledger.fail().unwrap().entry.owed, Parse);
        ledger.settle(b'Z').unwrap();
        assert!(ledger.quiescent().is_some());
    }

    #[test]
    fn syncs_amid_other_messages_cannot_be_counted() {
        use Owed::*;
        let mut ledger = owing(&[Execute, Sync, Parse, Sync]);
        ledger.settle(b'G').unwrap();
        assert_eq!(ledger.fail().unwrap().syncs, crate::owed::Syncs::Lost);
        assert!(ledger.quiescent().is_none());
    }
}
