//! Verdict: whether a statement is a read, as far as that is known.
//!
//! What always holds: a verdict counts for one state of the schema, and for a limited time, since
//! schema changes may bypass Refrain. What the text alone rules out stays ruled out. All cores
//! share the verdict, and one core at a time looks for it: the time from which on another may do so
//! is all that tells them apart, so that a question that gets lost holds nothing up for good.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use refrain_pool::Now;
use refrain_sql::reads::{OBJECTIONS, Objection, UNKEPT, Unkept};

/// Bits of a verdict's word that say what was found; the rest is the count of schema changes.
const TAG_BITS: u32 = 8;
/// The tag of a read whose result may be kept; zero stands for nothing.
const TIMELESS: u64 = 1;
/// The tag of the first reason why the result of a read is not to be kept.
const FIRST_UNKEPT: u64 = 2;
/// The tag of the first objection.
const OBJECTION: u64 = FIRST_UNKEPT + UNKEPT.len() as u64;

/// Time for which a verdict counts, in microseconds.
const AGE_US: u64 = 60_000_000;
/// Time after which a question without an answer is asked again, in microseconds.
const PATIENCE_US: u64 = 5_000_000;

/// A kind of read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Nothing is known by which its result could depend on the time or on the session, but for
    /// settings.
    Timeless,
    /// Its result is not to be kept.
    Unkept(Unkept),
}

/// Whether a statement is a read.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// The tag of what was found, and the count of schema changes.
    found: AtomicU64,
    /// The time from which on a core may look for a verdict, in microseconds.
    due: AtomicU64,
}

impl Verdict {
    /// True if the statement is known to be a read as of this count of schema changes.
    #[inline]
    pub(crate) fn is_read(&self, schema_changes: u64) -> bool {
        let found = self.found.load(Relaxed);
        let tags = word(schema_changes, TIMELESS)..word(schema_changes, OBJECTION);
        tags.contains(&found)
    }

    /// True if the statement is known to be a read of which the catalog says that it is timeless.
    #[inline]
    pub(crate) fn is_timeless(&self, schema_changes: u64) -> bool {
        self.found.load(Relaxed) == word(schema_changes, TIMELESS)
    }

    /// Returns what is known as of this count of schema changes.
    pub(crate) fn known(&self, schema_changes: u64) -> Option<Result<Read, Objection>> {
        let found = self.found.load(Relaxed);
        let tag = found % (1 << TAG_BITS);
        let current = found == word(schema_changes, tag);
        let behind = |first| tag.checked_sub(first).and_then(|it| usize::try_from(it).ok());
        if tag == TIMELESS {
            return current.then_some(Ok(Read::Timeless));
        }
        if let Some((unkept, _)) = behind(FIRST_UNKEPT).and_then(|index| UNKEPT.get(index)) {
            return current.then_some(Ok(Read::Unkept(*unkept)));
        }
        let (objection, _) = behind(OBJECTION).and_then(|index| OBJECTIONS.get(index))?;
        (current || objection.is_of_text()).then_some(Err(*objection))
    }

    /// True if no core looks for a verdict: the caller does so from now on. A verdict that a schema
    /// change has voided is looked for at once, and so is one with which something `else_voided`
    /// was found.
    pub(crate) fn begin(&self, schema_changes: u64, now: Now, else_voided: bool) -> bool {
        let due = self.due.load(Relaxed);
        let next = now.0 + PATIENCE_US;
        let may = else_voided || due <= now.0 || self.take_voided(schema_changes);
        may && self.due.compare_exchange(due, next, Relaxed, Relaxed).is_ok()
    }

    /// Forgets a verdict that no longer counts. True if there was one, which one core alone sees:
    /// the others would ask as well.
    fn take_voided(&self, schema_changes: u64) -> bool {
        let found = self.found.load(Relaxed);
        let voided = found != 0 && self.known(schema_changes).is_none();
        voided && self.found.compare_exchange(found, 0, Relaxed, Relaxed).is_ok()
    }

    /// True if a core has looked for a verdict.
    pub(crate) fn was_asked(&self) -> bool {
        self.due.load(Relaxed) > 0
    }

    /// True if a core may look for a verdict.
    pub(crate) fn is_due(&self, now: Now) -> bool {
        self.due.load(Relaxed) <= now.0
    }

    /// Records a verdict that was found as of this count of schema changes.
    pub(crate) fn learn(&self, found: Result<Read, Objection>, schema_changes: u64, now: Now) {
        let tag = match found {
            Ok(Read::Timeless) => TIMELESS,
            Ok(Read::Unkept(unkept)) => FIRST_UNKEPT + unkept as u64,
            Err(objection) => OBJECTION + objection as u64,
        };
        let age = age(found.is_err_and(Objection::may_pass));
        self.found.store(word(schema_changes, tag), Relaxed);
        self.due.store(now.0 + age, Relaxed);
    }

    /// Has a core look for a verdict again soon: what a server has yet to say, or could not say,
    /// counts for less than the verdict.
    pub(crate) fn ask_soon(&self, now: Now) {
        self.due.fetch_min(now.0 + PATIENCE_US, Relaxed);
    }

    /// Forgets the verdict, unless it still counts or another core may be looking for one.
    pub(crate) fn forget_if_due(&self, now: Now) {
        if self.is_due(now) {
            self.found.store(0, Relaxed);
        }
    }
}

/// Returns the time for which what was found counts, in microseconds.
pub(crate) fn age(may_pass: bool) -> u64 {
    if may_pass { PATIENCE_US } else { AGE_US }
}

/// Returns the word of a verdict.
fn word(schema_changes: u64, tag: u64) -> u64 {
    (schema_changes << TAG_BITS) | tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_counts_for_one_state_of_the_schema() {
        let verdict = Verdict::default();
        assert_eq!((verdict.known(0), verdict.is_read(0)), (None, false));
        verdict.learn(Ok(Read::Timeless), 7, Now(1));
        assert!(verdict.is_timeless(7) && !verdict.is_timeless(8));
        assert_eq!((verdict.known(7), verdict.is_read(7)), (Some(Ok(Read::Timeless)), true));
        for (unkept, _) in UNKEPT {
            let read = Ok(Read::Unkept(*unkept));
            verdict.learn(read, 7, Now(1));
            assert!(!verdict.is_timeless(7));
            assert_eq!((verdict.known(7), verdict.is_read(7)), (Some(read), true));
            assert_eq!((verdict.known(8), verdict.is_read(8)), (None, false));
        }
        assert_eq!((verdict.known(8), verdict.is_read(8)), (None, false));
        for (objection, _) in OBJECTIONS {
            verdict.learn(Err(*objection), 7, Now(1));
            assert_eq!((verdict.known(7), verdict.is_read(7)), (Some(Err(*objection)), false));
            assert_eq!(verdict.known(8).is_some(), objection.is_of_text());
        }
    }

    #[test]
    fn a_verdict_that_was_forgotten_is_looked_for_when_the_statement_is_used_again() {
        let verdict = Verdict::default();
        verdict.learn(Ok(Read::Timeless), 7, Now(1));
        verdict.forget_if_due(Now(AGE_US));
        assert!(verdict.is_read(7), "it still counts");
        verdict.forget_if_due(Now(1 + AGE_US));
        assert_eq!(verdict.known(7), None);
        assert!(verdict.was_asked() && verdict.begin(7, Now(2 + AGE_US), false));
        verdict.forget_if_due(Now(3 + AGE_US));
        assert!(!verdict.begin(7, Now(4 + AGE_US), false), "the question is under way");
    }

    #[test]
    fn one_core_asks_at_a_time_and_again_if_the_question_is_lost() {
        let verdict = Verdict::default();
        assert!(verdict.begin(0, Now(1), false) && !verdict.begin(0, Now(2), false));
        assert!(verdict.begin(0, Now(1 + PATIENCE_US), false));
        verdict.learn(Ok(Read::Timeless), 0, Now(10 + PATIENCE_US));
        assert!(!verdict.begin(0, Now(9 + PATIENCE_US + AGE_US), false));
        assert!(verdict.begin(0, Now(10 + PATIENCE_US + AGE_US), false));
        assert!(verdict.is_read(0), "the old verdict counts until there is a new one");
    }

    #[test]
    fn what_may_be_of_the_moment_is_asked_again_soon() {
        let verdict = Verdict::default();
        for passing in [Objection::Missing, Objection::Server] {
            verdict.learn(Err(passing), 0, Now(1));
            assert!(!verdict.is_due(Now(PATIENCE_US)) && verdict.is_due(Now(1 + PATIENCE_US)));
        }
        verdict.learn(Err(Objection::Relation), 0, Now(1));
        assert!(!verdict.is_due(Now(1 + PATIENCE_US)));
    }

    #[test]
    fn one_core_asks_at_once_about_a_verdict_that_is_void() {
        let verdict = Verdict::default();
        verdict.learn(Ok(Read::Timeless), 3, Now(1));
        assert!(!verdict.begin(3, Now(2), false));
        assert!(verdict.begin(4, Now(2), false) && !verdict.begin(4, Now(3), false));
        verdict.learn(Err(Objection::Locks), 4, Now(4));
        assert!(!verdict.begin(5, Now(5), false), "the text has not changed");
    }
}
