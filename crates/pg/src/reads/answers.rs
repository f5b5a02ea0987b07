//! Answers: what servers have said of statements, for all pools and cores of the process.
//!
//! The answer about a text is the same for all pools that log in to one database as one user and
//! have the same settings there: names mean the same, and so do rights. So one of them asks, and
//! the others take what it has found. An answer counts for one state of the schema, and no longer
//! than a verdict does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_pool::Now;

use crate::ground::ids::EnvId;
use crate::reads::findings::Findings;
use crate::reads::pace::Paces;
use crate::statements::verdict;

/// Most bytes of answers. Beyond it those that are old go, and then all.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// The longest statement whose answer is kept, in bytes.
const STATEMENT_BYTES_MAX: usize = 16 * 1024;
/// Bytes that an answer takes beside its statement, roughly.
const ANSWER_COST: usize = 256;

/// The statement and the session that an answer is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AnswerSubject {
    /// Where the servers are: see [`Answers`].
    pub(crate) login: Arc<str>,
    pub(crate) env: EnvId,
    /// The text with its zero byte and the parameter types.
    pub(crate) tail: Box<[u8]>,
    /// Whether the answer says what the statement may change.
    pub(crate) changes: bool,
}

/// The answer of a server about a statement.
#[derive(Clone, Debug)]
pub(crate) struct ReadAnswer {
    pub(crate) found: Findings,
    /// The count of schema changes when the server was asked.
    pub(crate) schema_changes: u64,
    pub(crate) at: Now,
}

/// The answers, by host, database, user and startup parameters of the server's session, parse
/// environment and statement.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    known: Mutex<KnownAnswers>,
    /// When the hosts may be asked.
    pub(crate) paces: Arc<Paces>,
}

#[derive(Debug, Default)]
struct KnownAnswers {
    answers: HashMap<AnswerSubject, ReadAnswer>,
    bytes: usize,
}

impl ReadAnswer {
    /// Whether it still counts, but for changes of the schema.
    fn is_fresh(&self, now: Now) -> bool {
        now.0 < self.at.0 + verdict::age(self.found.may_pass())
    }
}

impl Answers {
    /// Returns the answer about a statement, if it counts as of this count of schema changes.
    pub(crate) fn find(
        &self,
        subject: &AnswerSubject,
        schema_changes: u64,
        now: Now,
    ) -> Option<ReadAnswer> {
        let known = self.known();
        let answer = known.answers.get(subject)?;
        (answer.schema_changes == schema_changes && answer.is_fresh(now)).then(|| answer.clone())
    }

    /// Keeps an answer.
    pub(crate) fn learn(&self, subject: AnswerSubject, answer: ReadAnswer) {
        if subject.tail.len() > STATEMENT_BYTES_MAX {
            return;
        }
        let mut known = self.known();
        if known.bytes > BYTES_MAX {
            known.forget(|it| !it.is_fresh(answer.at));
        }
        if known.bytes > BYTES_MAX {
            known.forget(|_| true);
        }
        let bytes = cost(&subject);
        if known.answers.insert(subject, answer).is_none() {
            known.bytes += bytes;
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownAnswers> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownAnswers {
    fn forget(&mut self, is_over: impl Fn(&ReadAnswer) -> bool) {
        self.answers.retain(|_, answer| !is_over(answer));
        self.answers.shrink_to(2 * self.answers.len());
        self.bytes = self.answers.keys().map(cost).sum();
    }
}

fn cost(subject: &AnswerSubject) -> usize {
    subject.tail.len() + ANSWER_COST
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000_000;

    fn subject(tail: &[u8]) -> AnswerSubject {
        AnswerSubject {
            login: "h/d u".into(),
            env: EnvId::of(1),
            tail: tail.into(),
            changes: false,
        }
    }

    fn answer(at: u64) -> ReadAnswer {
        ReadAnswer { found: Findings::default(), schema_changes: 3, at: Now(at) }
    }

    #[test]
    fn an_answer_counts_for_one_state_of_the_schema_and_a_minute() {
        let answers = Answers::default();
        answers.learn(subject(b"x"), answer(1));
        assert!(answers.find(&subject(b"x"), 3, Now(MINUTE)).is_some());
        assert!(answers.find(&subject(b"x"), 3, Now(MINUTE + 1)).is_none());
        assert!(answers.find(&subject(b"x"), 4, Now(2)).is_none());
        assert!(answers.find(&subject(b"y"), 3, Now(2)).is_none());
        let another = AnswerSubject { login: "h/d v".into(), ..subject(b"x") };
        assert!(answers.find(&another, 3, Now(2)).is_none(), "another user");
        let another = AnswerSubject { env: EnvId::of(2), ..subject(b"x") };
        assert!(answers.find(&another, 3, Now(2)).is_none(), "another search path");
        let another = AnswerSubject { changes: true, ..subject(b"x") };
        assert!(answers.find(&another, 3, Now(2)).is_none(), "another question");
    }

    #[test]
    fn answers_take_no_more_bytes_than_they_may() {
        let answers = Answers::default();
        for number in 0..100_000_u32 {
            answers.learn(subject(&number.to_be_bytes().repeat(250)), answer(u64::from(number)));
            assert!(answers.known().bytes < BYTES_MAX + STATEMENT_BYTES_MAX + ANSWER_COST);
        }
        answers.learn(subject(&[1; STATEMENT_BYTES_MAX + 1]), answer(1));
        assert!(answers.find(&subject(&[1; STATEMENT_BYTES_MAX + 1]), 3, Now(2)).is_none());
    }
}
