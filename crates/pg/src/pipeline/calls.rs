//! Calls of users' code: whether they are known to leave something in a session.
//!
//! A text says which functions it calls and which tables it writes ([`refrain_sql::Scan::calls`]).
//! Behind the first few texts that say the same, Refrain looks at the session (`look`). If a look
//! found nothing [`ENOUGH`] times, Refrain takes the calls for harmless and looks no more: from
//! then on they cost one search in this table. A change of functions or triggers that passes
//! through Refrain clears the table. For changes made in other ways, and for functions that leave
//! something only rarely, Refrain looks once more every [`MEMORY_US`].

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use refrain_pool::Now;

use crate::ground::name::Name;
use crate::pipeline::evidence::CallsOutcome;

/// Looks that find nothing, after which calls are taken for harmless.
const ENOUGH: u8 = 3;
/// Stands for calls that leave something.
const LOUD: u8 = u8::MAX;
/// Most sets of calls that are kept; one more clears the table.
const KEPT_MAX: usize = 16 * 1024;
/// Time after which harmless calls are looked at once more, in microseconds.
const MEMORY_US: u64 = 600_000_000;

/// The reputation of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repute {
    /// They leave nothing.
    Harmless,
    /// Refrain has not looked often enough.
    Unknown,
    /// They have left something.
    Loud,
}

/// The calls of a pool, as far as one core knows them.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    known: HashMap<u64, u8, BuildHasherDefault<AsItIs>>,
    /// Settings that users' functions set, as far as the names are in their texts.
    parameters: Option<Vec<Name>>,
    /// The pool's count of changes of code for which the above is true.
    code: u64,
    since: Now,
}

impl Calls {
    /// Returns what is known of these calls.
    #[inline]
    pub(crate) fn repute(&mut self, calls: u64, code: u64, now: Now) -> Repute {
        if code != self.code || now.0 > self.since.0 + MEMORY_US {
            self.doubt(code, now);
        }
        match self.known.get(&calls) {
            Some(&LOUD) => Repute::Loud,
            Some(known) if *known >= ENOUGH => Repute::Harmless,
            _ => Repute::Unknown,
        }
    }

    #[cold]
    fn doubt(&mut self, code: u64, now: Now) {
        if code == self.code {
            self.known.retain(|_, known| *known != LOUD);
            let trusted = self.known.values_mut().filter(|known| **known == ENOUGH);
            trusted.for_each(|known| *known = ENOUGH - 1);
        } else {
            self.known.clear();
        }
        self.parameters = None;
        (self.code, self.since) = (code, now);
    }

    /// Learns from a look at the session behind these calls, each with its outcome. If something
    /// was found behind several calls, it is unknown which of them left it. If nothing was found, a
    /// call that did not run proves nothing. `code` says whether the database has any functions of
    /// users'.
    pub(crate) fn found(&mut self, calls: &[(u64, CallsOutcome)], code: bool, anything: bool) {
        let loud = anything && calls.len() == 1;
        let most = if code { CallsOutcome::Ran } else { CallsOutcome::Empty };
        for (calls, _) in calls.iter().filter(|(_, outcome)| anything || *outcome <= most) {
            if self.known.len() >= KEPT_MAX {
                self.known.clear();
            }
            let known = self.known.entry(*calls).or_default();
            *known = match anything {
                true if loud => LOUD,
                true => 0,
                false if *known == LOUD => LOUD,
                false => (*known + 1).min(ENOUGH),
            };
        }
    }

    /// Returns the settings that users' functions set, if a server was asked under this count of
    /// changes of code.
    pub(crate) fn parameters(&self, code: u64) -> Option<&[Name]> {
        self.parameters.as_deref().filter(|_| self.code == code)
    }

    /// Notes those settings, as told by a server that was asked after `code` changes of code.
    pub(crate) fn learn_parameters(&mut self, names: Vec<Name>, code: u64, now: Now) {
        if self.code != code {
            self.doubt(code, now);
        }
        self.parameters = Some(names);
    }
}

/// Hashes nothing: its keys are hashes.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CallsOutcome::{Empty, Ran, Vain};

    #[test]
    fn what_leaves_nothing_is_asked_about_three_times() {
        let mut calls = Calls::default();
        for _ in 0..3 {
            assert_eq!(calls.repute(7, 0, Now(1)), Repute::Unknown);
            calls.found(&[(7, Ran)], true, false);
        }
        assert_eq!(calls.repute(7, 0, Now(1)), Repute::Harmless);
        assert_eq!(calls.repute(8, 0, Now(1)), Repute::Unknown);
        // Now and then once more.
        assert_eq!(calls.repute(7, 0, Now(MEMORY_US + 2)), Repute::Unknown);
        calls.found(&[(7, Ran)], true, false);
        assert_eq!(calls.repute(7, 0, Now(MEMORY_US + 3)), Repute::Harmless);
        // Other code under the same name.
        assert_eq!(calls.repute(7, 1, Now(MEMORY_US + 4)), Repute::Unknown);
    }

    #[test]
    fn what_leaves_something_is_never_harmless() {
        let mut calls = Calls::default();
        calls.found(&[(7, Ran)], true, true);
        assert_eq!(calls.repute(7, 0, Now(1)), Repute::Loud);
        calls.found(&[(7, Ran)], true, false);
        assert_eq!(calls.repute(7, 0, Now(1)), Repute::Loud, "it may do so again");
    }

    #[test]
    fn names_are_of_the_code_that_was_searched_for_them() {
        let mut calls = Calls::default();
        calls.learn_parameters(vec![Name::from_slice(b"my.tenant")], 0, Now(1));
        assert_eq!(calls.parameters(0).map(<[Name]>::len), Some(1));
        assert_eq!(calls.parameters(1), None, "other code may have others");
        calls.learn_parameters(Vec::new(), 1, Now(2));
        assert_eq!(calls.parameters(1).map(<[Name]>::len), Some(0));
    }

    #[test]
    fn of_several_nobody_knows_which_it_was() {
        let mut calls = Calls::default();
        calls.found(&[(7, Ran), (8, Ran)], true, true);
        assert_eq!(calls.repute(7, 0, Now(1)), Repute::Unknown);
    }

    #[test]
    fn of_what_did_not_run_nothing_is_learned() {
        let mut calls = Calls::default();
        (0..9).for_each(|_| calls.found(&[(7, Vain)], false, false));
        (0..9).for_each(|_| calls.found(&[(7, Empty)], true, false));
        assert_eq!(calls.repute(7, 0, Now(1)), Repute::Unknown);
        (0..3).for_each(|_| calls.found(&[(8, Empty)], false, false));
        assert_eq!(calls.repute(8, 0, Now(1)), Repute::Harmless, "there is nothing to call");
        calls.found(&[(7, Vain)], true, true);
        assert_eq!(
            calls.repute(7, 0, Now(1)),
            Repute::Loud,
            "it may have failed, and have left a lock"
        );
    }
}
