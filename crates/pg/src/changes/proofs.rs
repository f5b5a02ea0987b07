//! Proofs: up to which moment every commit has been heard of.
//!
//! A question for the position up to which WAL is flushed begins at some moment. All that
//! was acknowledged before that moment is in front of the position that comes back. So once the
//! stream is there, all of it has been heard.

use std::collections::VecDeque;

use refrain_pg_wire::replication::Lsn;
use refrain_pool::Now;

/// Most questions whose positions the stream has not reached.
const WAITING_MAX: usize = 16;

/// The position up to which commits have been heard, and the positions that are waited for.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    /// All commits up to here have been heard.
    mark: Lsn,
    /// When questions began, and the positions that came back, in order.
    waiting: VecDeque<(Now, Lsn)>,
}

impl Proofs {
    /// Notes that all commits up to a position have been heard, and their topics voided. Returns
    /// the moment up to which everything is proven, if that is news.
    pub(super) fn reach(&mut self, mark: Lsn) -> Option<Now> {
        self.mark = self.mark.max(mark);
        self.take()
    }

    /// Takes in the answer to a question that began at this moment.
    pub(super) fn answered(&mut self, began: Now, flushed: Lsn) -> Option<Now> {
        if self.waiting.len() >= WAITING_MAX {
            // The last but one says less than this one, and is as far away.
            self.waiting.pop_back();
        }
        self.waiting.push_back((began, flushed));
        self.take()
    }

    fn take(&mut self) -> Option<Now> {
        let reached = self.waiting.iter().rposition(|(_, flushed)| *flushed <= self.mark)?;
        self.waiting.drain(..=reached).map(|(began, _)| began).max()
    }

    /// Returns the position up to which all commits have been heard.
    pub(super) fn mark(&self) -> Lsn {
        self.mark
    }

    /// Whether a position has not been reached.
    pub(super) fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_acknowledged_before_a_question_is_heard_when_the_stream_is_at_its_answer() {
        let mut proofs = Proofs::default();
        assert_eq!(proofs.reach(100), None);
        assert_eq!(proofs.answered(Now(5), 90), Some(Now(5)));
        assert_eq!(proofs.answered(Now(6), 101), None);
        assert_eq!(proofs.answered(Now(7), 150), None);
        assert!(proofs.wait());
        assert_eq!(proofs.reach(101), Some(Now(6)));
        assert_eq!(proofs.reach(99), None, "it does not go back");
        assert_eq!((proofs.mark(), proofs.reach(149)), (101, None));
        assert_eq!(proofs.answered(Now(8), 151), None);
        assert_eq!(proofs.reach(200), Some(Now(8)));
        assert!(!proofs.wait());
    }

    #[test]
    fn the_earliest_answers_stay_where_the_stream_is_far_behind() {
        let mut proofs = Proofs::default();
        for number in 0..1000 {
            assert_eq!(proofs.answered(Now(number), 10 + number), None);
        }
        assert_eq!(proofs.reach(10), Some(Now(0)));
        assert_eq!(proofs.reach(2000), Some(Now(999)));
    }
}
