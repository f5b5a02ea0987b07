//! Suspicion: calls of users' functions, procedures and triggers with unknown effects on the
//! session, and the look by which Refrain learns what they left.
//!
//! A look is due, or under way, or neither ([`LookState`]). It is sent when the transaction is
//! over, and the client's messages wait for its answer, so no call can make another look due
//! meanwhile.
//! [`crate::relay::look`] writes the query, and draws the conclusions from the answer.

use crate::ground::name::Name;
use crate::state::client::pins::Pins;

/// The question about a session.
#[derive(Debug, Default)]
enum LookState {
    /// There is nothing to ask.
    #[default]
    Needless,
    /// It is to be asked once the transaction is over.
    Due(Try),
    /// The server has been asked.
    Asked(Question, Try),
}

/// Whether the question has failed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Try {
    First,
    Second,
}

/// A question under way, and its answer so far.
#[derive(Debug, Default)]
struct Question {
    /// The pool's count of changes of code when the question was sent.
    code: u64,
    /// Whether it searches the texts of functions for names of parameters.
    searches: bool,
    found: Pins,
    /// Whether the database has functions of users'.
    has_code: bool,
    /// Names of parameters that were found in the texts of functions.
    parameters: Vec<Name>,
}

/// The answer to a look.
#[derive(Debug)]
pub(crate) struct LookAnswer {
    /// The state that cannot be moved.
    pub(crate) found: Pins,
    /// Whether the database has functions of users'.
    pub(crate) has_code: bool,
    /// Whether the calls have reset startup settings, which were restored before the look.
    pub(crate) restored: bool,
    /// The names of parameters in the texts of functions, if the look has searched for them and no
    /// function has changed since; and the count of changes of code that they belong to.
    pub(crate) parameters: Option<(Vec<Name>, u64)>,
}

/// A client's calls with unknown effects on the session.
#[derive(Debug, Default)]
pub(crate) struct Suspicion {
    look: LookState,
    /// A hash of the calls in statements that were prepared by SQL; zero for none.
    prepared: u64,
    /// Whether one of them may do what no hash tells.
    prepared_anything: bool,
    /// Whether startup settings had to be restored behind the calls since the last look.
    restored: bool,
}

impl Suspicion {
    /// Whether a look is to follow once the transaction is over.
    pub(crate) fn is_due(&self) -> bool {
        matches!(self.look, LookState::Due(_))
    }

    /// Whether a look is under way.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        matches!(self.look, LookState::Asked(..))
    }

    /// Whether no look is due or under way.
    pub(crate) fn is_clear(&self) -> bool {
        matches!(self.look, LookState::Needless)
    }

    /// Has a look follow once the transaction is over.
    pub(crate) fn look_later(&mut self) {
        debug_assert!(!self.is_asked(), "the client's messages wait for the answer");
        if self.is_clear() {
            self.look = LookState::Due(Try::First);
        }
    }

    /// Notes that startup settings had to be restored behind the calls.
    pub(crate) fn restored(&mut self) {
        self.restored = true;
    }

    /// Notes a PREPARE of SQL with these calls.
    pub(crate) fn prepare(&mut self, calls: u64) {
        self.prepared = self.prepared.rotate_left(9) ^ calls;
    }

    /// Notes a statement of this server's alone that may do anything.
    pub(crate) fn prepare_anything(&mut self) {
        self.prepared_anything = true;
    }

    /// Notes that the statements that were prepared by SQL are gone.
    pub(crate) fn deallocate_all(&mut self) {
        (self.prepared, self.prepared_anything) = (0, false);
    }

    /// Whether a statement of this server's alone may do anything.
    pub(crate) fn has_prepared_anything(&self) -> bool {
        self.prepared_anything
    }

    /// Returns a hash of the calls in statements that were prepared by SQL.
    pub(crate) fn prepared(&self) -> u64 {
        self.prepared
    }

    /// Notes that the server was asked, as of this count of changes of code, and whether the
    /// question `searches` the texts of functions for names of parameters.
    pub(crate) fn ask(&mut self, code: u64, searches: bool) {
        let again = match self.look {
            LookState::Due(again) | LookState::Asked(_, again) => again,
            LookState::Needless => Try::First,
        };
        self.look = LookState::Asked(Question { code, searches, ..Question::default() }, again);
    }

    /// Notes state that the look has found.
    pub(crate) fn found(&mut self, pin: Pins) {
        if let LookState::Asked(question, _) = &mut self.look {
            question.found.add(pin);
        }
    }

    /// Notes whether the database has functions of users'. The pool's count of changes of code was
    /// `before` and is `after` this row of the answer: the search for parameters in the same answer
    /// has covered a change that the row showed.
    pub(crate) fn found_code(&mut self, has_code: bool, before: u64, after: u64) {
        let LookState::Asked(question, _) = &mut self.look else { return };
        question.has_code = has_code;
        if question.searches && question.code == before && after <= before + 1 {
            question.code = after;
        }
    }

    /// Notes the name of a parameter in the text of a function, and no more names than `most`.
    pub(crate) fn found_parameter(&mut self, name: &[u8], most: usize) {
        if let LookState::Asked(question, _) = &mut self.look
            && question.parameters.len() < most
        {
            question.parameters.push(Name::from_slice(name));
        }
    }

    /// Ends a look whose answer is complete; `code` is the pool's count of changes of code now.
    ///
    /// New parameters need another look for their values, which then judges the calls. So does a
    /// change of functions since the look: there may be other names by now.
    pub(crate) fn answered(&mut self, code: u64) -> Option<LookAnswer> {
        let LookState::Asked(question, _) = &mut self.look else { return None };
        let Question { code: asked, searches, found, has_code, parameters } =
            std::mem::take(question);
        let (is_current, learns) = (asked == code, asked == code && searches);
        let again = !is_current || learns && !parameters.is_empty();
        self.look = if again { LookState::Due(Try::First) } else { LookState::Needless };
        let restored = std::mem::take(&mut self.restored);
        let parameters = learns.then_some((parameters, asked));
        Some(LookAnswer { found, has_code, restored, parameters })
    }

    /// Ends a look that has failed. A look that was merely `interrupted` is repeated once: true if
    /// it is.
    pub(crate) fn failed(&mut self, interrupted: bool) -> bool {
        let repeats = interrupted && matches!(self.look, LookState::Asked(_, Try::First));
        self.look = if repeats { LookState::Due(Try::Second) } else { LookState::Needless };
        repeats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_was_interrupted_is_repeated_once() {
        let mut suspicion = Suspicion::default();
        suspicion.look_later();
        suspicion.ask(1, false);
        assert!(suspicion.failed(true) && suspicion.is_due());
        suspicion.ask(1, false);
        assert!(!suspicion.failed(true) && suspicion.is_clear());
    }

    #[test]
    fn new_parameters_need_another_look_for_their_values() {
        let mut suspicion = Suspicion::default();
        suspicion.ask(1, true);
        suspicion.found_parameter(b"my.setting", 1);
        suspicion.found_parameter(b"my.other", 1);
        suspicion.found_code(true, 1, 2);
        let answer = suspicion.answered(2).unwrap();
        let (names, code) = answer.parameters.unwrap();
        assert_eq!((names.len(), code, answer.has_code), (1, 2, true));
        assert!(suspicion.is_due());
        suspicion.ask(2, false);
        assert!(suspicion.answered(2).unwrap().parameters.is_none() && suspicion.is_clear());
    }

    #[test]
    fn a_change_of_functions_during_a_look_needs_another() {
        let mut suspicion = Suspicion::default();
        suspicion.ask(1, true);
        assert!(suspicion.answered(2).unwrap().parameters.is_none() && suspicion.is_due());
    }
}
