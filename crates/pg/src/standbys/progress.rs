//! Progress: how far the primary of a database was, and what a standby needs to have for a read.
//!
//! *The promise.* A read on a standby shows all that its client has written, and all that was
//! committed `max_lag` before.
//!
//! *The proof.* Marks are numbers that only grow. A client's writes are before the mark that is
//! read when they have been answered. A question to the primary gets a new mark, and is sent after
//! that. So the answer to a question with a later mark than that of the client's writes is a
//! position behind them. A standby has them if it has said that it has replayed so far, on the
//! connection on which the read runs, and before that: it loses nothing while the connection lasts.
//!
//! The primary is asked when a read needs it, at most once in [`PAUSE_US`], for all pools of the
//! database. After a question without an answer it is asked seldom.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use refrain_cache::Planted;
use refrain_pool::Now;

use crate::standbys::bug::StandbyBug;
use crate::standbys::patience::{PATIENCE_US, pause_after};
use crate::standbys::position::{History, Position};

/// Least time between two questions to a primary, in microseconds.
const PAUSE_US: u64 = 10_000;
/// Answers that are kept within `max_lag`, at most, beside the first and the last.
const KEPT: u32 = 16;
/// The part of `max_lag` after which the primary is asked again while reads need it.
const ANEW: u32 = 4;

/// How far the primary of a database was.
#[derive(Debug, Default)]
pub(crate) struct PrimaryProgress {
    mark: AtomicU64,
    known: Mutex<KnownProgress>,
    bug: Planted<StandbyBug>,
}

#[derive(Debug, Default)]
struct KnownProgress {
    /// When the last question began, and whether it is under way.
    asked: Option<Now>,
    is_asking: bool,
    /// Questions since the last answer that were over without one.
    unanswered: u32,
    /// The history of the answers.
    history: Option<History>,
    /// The answers, the oldest first.
    answers: VecDeque<PrimaryAnswer>,
    /// The first client's writes, for a bug.
    of_first: Option<Written>,
}

#[derive(Clone, Copy, Debug)]
struct PrimaryAnswer {
    mark: u64,
    asked: Now,
    lsn: u64,
}

/// A question to a primary.
#[derive(Debug)]
pub(crate) struct PrimaryQuestion {
    mark: u64,
    asked: Now,
    /// The answer.
    pub(crate) answer: Option<Position>,
}

/// The point up to which a client needs the primary's changes: those of its own writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// The client's count of writes, and the database's of schema changes, as of which this holds.
    pub(crate) as_of: (u64, u64),
    /// A mark that its writes are not behind.
    mark: u64,
    /// A position behind them, once one is known.
    position: Option<Position>,
}

/// The need of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// The primary has to say first how far it is.
    Answer,
    /// A standby that is at this position.
    Position(Position),
}

impl PrimaryProgress {
    /// Knows nothing yet, with this bug.
    pub(crate) fn with(bug: Planted<StandbyBug>) -> Self {
        Self { bug, ..Self::default() }
    }

    /// Returns the point behind all that was answered up to now.
    pub(crate) fn written(&self, as_of: (u64, u64)) -> Written {
        Written { as_of, mark: self.mark.load(SeqCst), position: None }
    }

    /// Returns what a standby has to have for a read of a client, and whether the primary is to be
    /// asked.
    pub(crate) fn needs(
        &self,
        written: &mut Written,
        now: Now,
        max_lag: Duration,
    ) -> (Needs, bool) {
        let mut known = self.known();
        if self.bug.is(StandbyBug::OtherClient) {
            *written = *known.of_first.get_or_insert(*written);
        }
        let Some(history) = known.history else { return (Needs::Answer, true) };
        if written.position.is_some_and(|position| position.history != history) {
            // Another primary: all that it has of the client's is in front of what it says next.
            *written = self.written(written.as_of);
        }
        let early = self.bug.is(StandbyBug::EarlyPosition);
        let behind = |answer: &&PrimaryAnswer| answer.mark > written.mark || early;
        let answer = known.answers.iter().find(behind);
        let found = answer.map(|answer| Position { history, lsn: answer.lsn });
        written.position = written.position.or(found);
        let is_young = |answer: &&PrimaryAnswer| answer.asked.after(max_lag) > now;
        let mut young = known.answers.iter().find(is_young).map(|answer| answer.lsn);
        if self.bug.is(StandbyBug::EndlessLag) {
            young = Some(0);
        }
        let Some((own, young)) = written.position.zip(young) else { return (Needs::Answer, true) };
        let asks = known.answers.back().is_some_and(|last| last.asked.after(max_lag / ANEW) <= now);
        (Needs::Position(Position { history, lsn: own.lsn.max(young) }), asks)
    }

    /// Whether the primary may be asked now.
    pub(crate) fn may_ask(&self, now: Now) -> bool {
        self.known().may_ask(now)
    }

    /// Begins a question to the primary, which is sent after this. `None` if one is under way, or
    /// was so just now.
    pub(crate) fn ask(&self, now: Now) -> Option<PrimaryQuestion> {
        let mut known = self.known();
        if !known.may_ask(now) {
            return None;
        }
        (known.asked, known.is_asking) = (Some(now), true);
        let mark = self.mark.fetch_add(1, SeqCst) + 1;
        Some(PrimaryQuestion { mark, asked: now, answer: None })
    }

    /// Takes in a question that is over, be it answered or not.
    pub(crate) fn learn(&self, question: &PrimaryQuestion, max_lag: Duration) {
        let mut known = self.known();
        if known.asked == Some(question.asked) {
            known.is_asking = false;
        }
        let Some(Position { history, lsn }) = question.answer else {
            known.unanswered += 1;
            return;
        };
        known.unanswered = 0;
        if known.history != Some(history) {
            known.answers.clear();
            known.history = Some(history);
        }
        let PrimaryQuestion { mark, asked, .. } = *question;
        known.add(PrimaryAnswer { mark, asked, lsn }, max_lag);
    }

    /// Returns a standby's answer as it counts: as it is, without a bug.
    pub(crate) fn heard(&self, answer: Position) -> Position {
        let history = || self.known().history.unwrap_or(answer.history);
        if self.bug.is(StandbyBug::NoComparison) {
            Position { history: history(), lsn: u64::MAX }
        } else if self.bug.is(StandbyBug::AnyTimeline) {
            Position { history: history(), ..answer }
        } else {
            answer
        }
    }

    /// Returns by how much a standby is behind that has replayed so far, at most, in microseconds.
    pub(crate) fn lag(&self, replayed: &Position, now: Now) -> Option<u64> {
        let known = self.known();
        let history = known.history?;
        let has = |answer: &&PrimaryAnswer| replayed.has(&Position { history, lsn: answer.lsn });
        known.answers.iter().rev().find(has).map(|answer| now.since(answer.asked))
    }

    fn known(&self) -> MutexGuard<'_, KnownProgress> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownProgress {
    fn may_ask(&self, now: Now) -> bool {
        let Some(asked) = self.asked else { return true };
        let pause = match self.unanswered {
            0 if self.is_asking => PATIENCE_US,
            0 => PAUSE_US,
            several => pause_after(several),
        };
        asked.0 + pause <= now.0
    }

    /// Adds an answer. Of those that came shortly one after the other the last stays, so there are
    /// few; those that are too old go.
    fn add(&mut self, answer: PrimaryAnswer, max_lag: Duration) {
        let Some(last) = self.answers.back() else { return self.answers.push_back(answer) };
        if last.mark >= answer.mark {
            return;
        }
        let before = self.answers.len().checked_sub(2).map(|at| self.answers[at]);
        if before.is_some_and(|before| before.asked.after(max_lag / KEPT) > last.asked) {
            self.answers.pop_back();
        }
        self.answers.push_back(answer);
        while self.answers.len() > 1 && self.answers[0].asked.after(max_lag) <= answer.asked {
            self.answers.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standbys::position::tests::position;

    const LAG: Duration = Duration::from_secs(16);

    fn answers(progress: &PrimaryProgress, at: u64, position: Position) {
        let mut question = progress.ask(Now(at)).expect("it is time to ask");
        question.answer = Some(position);
        progress.learn(&question, LAG);
    }

    #[test]
    fn a_position_counts_that_was_asked_for_behind_the_write() {
        let progress = PrimaryProgress::default();
        let mut early = progress.written((0, 0));
        assert_eq!(progress.needs(&mut early, Now(1), LAG), (Needs::Answer, true));
        let question = progress.ask(Now(1)).unwrap();
        let mut late = progress.written((0, 0));
        progress.learn(&PrimaryQuestion { answer: Some(position(1, 50)), ..question }, LAG);
        let at = |lsn| (Needs::Position(position(1, lsn)), false);
        assert_eq!(progress.needs(&mut early, Now(2), LAG), at(50));
        assert_eq!(progress.needs(&mut late, Now(2), LAG), (Needs::Answer, true));
        answers(&progress, 20_000, position(1, 70));
        assert_eq!(progress.needs(&mut late, Now(20_001), LAG), at(70));
        assert_eq!(
            progress.needs(&mut early, Now(20_001), LAG),
            at(50),
            "it has not written since"
        );
    }

    #[test]
    fn what_was_committed_long_before_is_seen() {
        let progress = PrimaryProgress::default();
        let mut written = progress.written((0, 0));
        answers(&progress, 1, position(1, 50));
        let later = Now(1).after(LAG);
        let asks = (Needs::Position(position(1, 50)), true);
        assert_eq!(progress.needs(&mut written, Now(later.0 - 1), LAG), asks);
        assert_eq!(progress.needs(&mut written, later, LAG), (Needs::Answer, true));
        answers(&progress, later.0, position(1, 90));
        let at = (Needs::Position(position(1, 90)), false);
        assert_eq!(progress.needs(&mut written, Now(later.0 + 1), LAG), at);
    }

    #[test]
    fn another_primary_is_asked_anew() {
        let progress = PrimaryProgress::default();
        let mut written = progress.written((0, 0));
        answers(&progress, 1, position(1, 500));
        progress.needs(&mut written, Now(2), LAG);
        answers(&progress, 20_000, position(2, 400));
        assert_eq!(progress.needs(&mut written, Now(20_001), LAG), (Needs::Answer, true));
        answers(&progress, 40_000, position(2, 410));
        let at = (Needs::Position(position(2, 410)), false);
        assert_eq!(progress.needs(&mut written, Now(40_001), LAG), at);
    }

    #[test]
    fn a_question_under_way_or_just_over_is_the_last() {
        let progress = PrimaryProgress::default();
        let question = progress.ask(Now(1)).unwrap();
        assert!(progress.ask(Now(PATIENCE_US)).is_none());
        assert!(progress.may_ask(Now(1 + PATIENCE_US)), "the question may be lost");
        progress.learn(&PrimaryQuestion { answer: Some(position(1, 50)), ..question }, LAG);
        assert!(!progress.may_ask(Now(PAUSE_US)) && progress.may_ask(Now(1 + PAUSE_US)));
    }

    #[test]
    fn a_primary_that_does_not_answer_is_asked_seldom() {
        let progress = PrimaryProgress::default();
        let mut now = 1;
        for pause in [1, 2, 4, 8, 16, 32, 32].map(|times| times * PATIENCE_US) {
            let question = progress.ask(Now(now)).expect("it is time to ask");
            progress.learn(&question, LAG);
            assert!(!progress.may_ask(Now(now + pause - 1)));
            now += pause;
        }
        answers(&progress, now, position(1, 50));
        assert!(progress.may_ask(Now(now + PAUSE_US)));
    }

    #[test]
    fn few_answers_are_kept() {
        let progress = PrimaryProgress::default();
        for number in 1..5_000 {
            answers(&progress, number * 20_000, position(1, number));
        }
        let known = progress.known();
        let (first, last) = (known.answers[0], known.answers[known.answers.len() - 1]);
        assert!(known.answers.len() <= KEPT as usize + 2, "{}", known.answers.len());
        assert_eq!(last.lsn, 4_999);
        assert!(first.asked.after(LAG) > last.asked && first.asked.after(LAG / 2) < last.asked);
        drop(known);
        assert_eq!(progress.lag(&position(1, 5_000), Now(last.asked.0 + 7)), Some(7));
        assert_eq!(progress.lag(&position(2, 5_000), last.asked), None);
    }
}
