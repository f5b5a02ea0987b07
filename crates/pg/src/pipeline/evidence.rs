//! Evidence that calls of users' code have run to their end. Refrain reads the session behind them
//! ([`crate::relay::look`]): if it finds nothing, the calls are harmless, but only if they have
//! run.
//!
//! A text that was sent need not have run the functions that it names. A portal may be bound and
//! not executed, or executed for its first rows only; a command may find no row to call anything
//! for; a rollback takes back what ran, and what it left. So the calls of a text are noted with the
//! outstanding requests that it made, and count once its commands have completed with rows, or with
//! tags that have no count. An error or a rollback takes that from all of them. In a database
//! without any code of users', a command without rows proves as much as one with rows.
//!
//! A tag does not say whether a function was called for each row: CASE, AND, OR and COALESCE may
//! have left it out, and PostgreSQL does not call a strict function for a null.

use std::ops::Range;

use crate::ground::name::Name;
use crate::pipeline::request_kinds::Seq;

/// Calls, and portals, of one transaction that are told apart, at most.
const CALLS_MAX: usize = 64;

/// The outcome of the calls of a text, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallsOutcome {
    /// All its commands have run.
    Ran,
    /// One has found no rows.
    Empty,
    /// No command has completed, one was merely explained, or they were taken back.
    Vain,
}

/// The calls of a text, by their number.
#[derive(Debug)]
struct TextCalls {
    calls: u64,
    /// The outstanding requests of the text.
    entries: Range<Seq>,
    outcome: Option<CallsOutcome>,
}

/// The calls that one client has made in its transaction.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    called: Vec<TextCalls>,
    /// Portals that will make calls when they are executed.
    bound: Vec<(Name, u64)>,
}

impl Evidence {
    /// Notes that a portal is bound, and the calls that its execution would make.
    #[inline]
    pub(crate) fn bind(&mut self, portal: &[u8], calls: Option<u64>) {
        if calls.is_some() || !self.bound.is_empty() {
            self.rebind(portal, calls);
        }
    }

    #[cold]
    fn rebind(&mut self, portal: &[u8], calls: Option<u64>) {
        self.bound.retain(|(name, _)| name.as_slice() != portal);
        if let Some(calls) = calls.filter(|_| self.bound.len() < CALLS_MAX) {
            self.bound.push((Name::from_slice(portal), calls));
        }
    }

    /// Notes that outstanding request `seq` is the Execute of a portal.
    #[inline]
    pub(crate) fn execute(&mut self, portal: &[u8], seq: Seq) {
        if !self.bound.is_empty() {
            let bound = self.bound.iter().find(|(name, _)| name.as_slice() == portal);
            let calls = bound.map(|(_, calls)| *calls);
            self.send(calls, seq..seq + 1);
        }
    }

    /// Notes that a text with these calls was sent as these outstanding requests.
    pub(crate) fn send(&mut self, calls: Option<u64>, entries: Range<Seq>) {
        let Some(calls) = calls.filter(|_| self.called.len() < CALLS_MAX) else { return };
        let known =
            |called: &TextCalls| called.calls == calls && called.outcome == Some(CallsOutcome::Ran);
        if !self.called.iter().any(known) {
            self.called.push(TextCalls { calls, entries, outcome: None });
        }
    }

    /// Notes that the last text was sent again, as the outstanding request behind its first one.
    pub(crate) fn send_again(&mut self) {
        if let Some(last) = self.called.last_mut() {
            last.entries.end += 1;
        }
    }

    /// Notes that a command of this outstanding request has completed.
    #[inline]
    pub(crate) fn completed(&mut self, seq: Seq, outcome: impl Fn() -> CallsOutcome) {
        for called in &mut self.called {
            if called.entries.contains(&seq) {
                called.outcome = called.outcome.max(Some(outcome()));
            }
        }
    }

    /// Notes that all that ran was taken back, or failed.
    #[inline]
    pub(crate) fn undo(&mut self) {
        self.called.iter_mut().for_each(|called| called.outcome = Some(CallsOutcome::Vain));
    }

    /// Takes out all calls that may have left something, each once, with the best of its outcomes.
    pub(crate) fn take(&mut self) -> Vec<(u64, CallsOutcome)> {
        self.bound.clear();
        let mut calls: Vec<(u64, CallsOutcome)> = Vec::new();
        for called in self.called.drain(..) {
            let outcome = called.outcome.unwrap_or(CallsOutcome::Vain);
            match calls.iter_mut().find(|(calls, _)| *calls == called.calls) {
                Some((_, known)) => *known = outcome.min(*known),
                None => calls.push((called.calls, outcome)),
            }
        }
        calls
    }
}

/// Reads from the tag of a command whether it has called what its text names: it was not merely
/// explained, and there were rows to call it for.
pub(crate) fn outcome(tag: &[u8]) -> CallsOutcome {
    match tag.rsplit(|byte| *byte == b' ').next() {
        Some(b"EXPLAIN") => CallsOutcome::Vain,
        Some(b"0") => CallsOutcome::Empty,
        _ => CallsOutcome::Ran,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use CallsOutcome::{Empty, Ran, Vain};

    #[test]
    fn what_has_run_has_rows() {
        for tag in ["SELECT 1", "INSERT 0 10", "CALL", "DO", "BEGIN", "COPY 3", "TRUNCATE TABLE"] {
            assert_eq!(outcome(tag.as_bytes()), Ran, "{tag}");
        }
        for tag in ["SELECT 0", "INSERT 0 0", "UPDATE 0"] {
            assert_eq!(outcome(tag.as_bytes()), Empty, "{tag}");
        }
        assert_eq!(outcome(b"EXPLAIN"), Vain);
    }

    #[test]
    fn a_portal_counts_once_it_is_executed() {
        let mut evidence = Evidence::default();
        evidence.bind(b"a", Some(7));
        evidence.bind(b"b", Some(8));
        evidence.execute(b"a", 4);
        evidence.bind(b"b", None);
        evidence.execute(b"b", 5);
        evidence.completed(4, || Ran);
        evidence.completed(5, || Ran);
        assert_eq!(evidence.take(), [(7, Ran)]);
        evidence.execute(b"a", 6);
        assert_eq!(evidence.take(), [], "its transaction is over");
    }

    #[test]
    fn every_command_of_a_text_has_to_run() {
        let mut evidence = Evidence::default();
        evidence.send(Some(7), 1..2);
        evidence.send(Some(8), 2..3);
        evidence.send(Some(9), 3..4);
        evidence.completed(1, || Ran);
        evidence.completed(1, || Empty);
        evidence.completed(1, || Ran);
        evidence.completed(2, || Ran);
        assert_eq!(evidence.take(), [(7, Empty), (8, Ran), (9, Vain)]);
    }

    #[test]
    fn what_is_taken_back_did_not_run() {
        let mut evidence = Evidence::default();
        evidence.send(Some(7), 1..2);
        evidence.completed(1, || Ran);
        evidence.undo();
        evidence.completed(1, || Ran);
        assert_eq!(evidence.take(), [(7, Vain)]);
    }
}
