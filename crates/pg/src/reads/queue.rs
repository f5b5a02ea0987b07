//! ReadQueue: the statements of a pool that wait until a server can be asked whether they are
//! reads, and what they may change.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_pool::Now;
use refrain_sql::effect::Target;
use refrain_sql::hidden::Words;
use refrain_sql::reads::{Mentioned, Objection};

use crate::ground::ids::{DatabaseIdentity, EnvId};
use crate::reads::findings::Findings;
use crate::reads::hidden::are_too_many;
use crate::reads::pace::HostTurn;
use crate::reads::question::{self, Remark, Subject};
use crate::settings::session::Settings;
use crate::statements::statement::Statement;

/// Most statements that wait. Those beyond are looked at another time.
const DUE_MAX: usize = 256;
/// Most statements of one question.
const BATCH_MAX: usize = 16;

/// A statement that may be a read or change rows, as far as its text shows.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) statement: Statement,
    /// Settings of the statement's parse environment.
    pub(crate) settings: Arc<Settings>,
    /// Why it is no read, if its text shows that.
    pub(crate) objection: Option<Objection>,
    pub(crate) mentioned: Mentioned,
    /// The relations that it names as changed, if the question is also what it may change.
    pub(crate) targets: Option<Vec<Target>>,
    /// Whether a question about it and others has failed: nothing says which one was the reason.
    pub(crate) alone: bool,
}

/// The statements that wait.
#[derive(Debug, Default)]
pub(crate) struct ReadQueue {
    due: VecDeque<Candidate>,
    /// Whether a server is being asked.
    pub(crate) asking: bool,
    /// The time before which no server is asked: the host is asked by others, or was asked enough.
    rests: Now,
}

impl ReadQueue {
    /// Adds a statement.
    pub(crate) fn push(&mut self, candidate: Candidate) {
        if self.due.len() < DUE_MAX {
            self.due.push_back(candidate);
        }
    }

    /// True if a server is to be asked about a statement.
    #[inline]
    pub(crate) fn has_due(&self, now: Now) -> bool {
        !self.due.is_empty() && !self.asking && self.rests <= now
    }

    /// Returns the number of statements that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.due.len()
    }

    /// Has no server asked before this time.
    pub(crate) fn rest(&mut self, until: Now) {
        self.rests = until;
    }

    /// Takes out the statements of which `is_known` holds.
    pub(crate) fn settle(&mut self, mut is_known: impl FnMut(&Candidate) -> bool) {
        self.due.retain(|it| !is_known(it));
    }

    /// Begins the next question, unless there is one under way. If `keeps` is given, it is about
    /// statements of that parse environment; with `hidden`, about words that hide functions as
    /// well.
    pub(crate) fn ask(
        &mut self,
        keeps: Option<EnvId>,
        schema_changes: u64,
        turn: HostTurn,
        hidden: bool,
    ) -> Option<Asked> {
        let candidates = self.take(keeps);
        self.asking = !candidates.is_empty();
        let hidden = hidden.then(Words::default);
        self.asking.then(|| Asked::new(candidates, schema_changes, turn, hidden))
    }

    /// Takes out the statements for the next question: those that have waited longest, all of one
    /// parse environment, which is `env` if that is given.
    fn take(&mut self, env: Option<EnvId>) -> Vec<Candidate> {
        let fits = |it: &Candidate| env.is_none_or(|env| it.settings.env == env);
        let Some(first) = self.due.iter().position(fits).and_then(|index| self.due.remove(index))
        else {
            return Vec::new();
        };
        let (env, most) = (first.settings.env, if first.alone { 1 } else { BATCH_MAX });
        let mut taken = vec![first];
        let mut rest = VecDeque::with_capacity(self.due.len());
        for next in self.due.drain(..) {
            if taken.len() < most && next.settings.env == env && !next.alone {
                taken.push(next);
            } else {
                rest.push_back(next);
            }
        }
        self.due = rest;
        taken
    }
}

/// A question under way.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) candidates: Vec<Candidate>,
    /// The count of schema changes when the server was asked.
    pub(crate) schema_changes: u64,
    /// The database of the server that was asked, once it has said that.
    pub(crate) identity: Option<DatabaseIdentity>,
    /// The answers about each.
    found: Vec<Findings>,
    /// The words behind which the database hides functions, if they were asked for.
    pub(crate) hidden: Option<Words>,
    /// The host's turn to be asked.
    pub(crate) turn: HostTurn,
}

impl Asked {
    /// Begins a question about these statements.
    fn new(
        candidates: Vec<Candidate>,
        schema_changes: u64,
        turn: HostTurn,
        hidden: Option<Words>,
    ) -> Self {
        let begin = |it: &Candidate| Findings::new(it.objection, it.mentioned.unkept);
        let found = candidates.iter().map(begin).collect();
        Self { candidates, schema_changes, identity: None, found, hidden, turn }
    }

    /// Returns settings of the statements' parse environment.
    pub(crate) fn settings(&self) -> Option<&Arc<Settings>> {
        self.candidates.first().map(|candidate| &candidate.settings)
    }

    /// Returns the text of the question.
    pub(crate) fn question(&self) -> Vec<u8> {
        let subjects = self.candidates.iter().map(|it| Subject {
            mentioned: &it.mentioned,
            targets: it.targets.as_deref(),
            parameters: it.statement.parameters(),
        });
        question::question(subjects, self.hidden.is_some())
    }

    /// Takes a row of the answer.
    pub(crate) fn hears(&mut self, row: &[u8]) {
        let (number, remark) = question::remark(row);
        match (remark, &mut self.hidden) {
            (Remark::Database(identity), _) => return self.identity = Some(identity),
            // A server may say more than it was asked for, and without an end.
            (Remark::Hidden(..), Some(words)) if are_too_many(words) => return,
            (Remark::Hidden(hides, Some(name)), Some(words)) => return words.add(name, hides),
            (Remark::Hidden(hides, None), Some(words)) => return words.add_parameters(hides),
            _ => {}
        }
        let all = 0..self.found.len();
        let one = number.filter(|number| all.contains(number));
        let range = one.map_or(all, |number| number..number + 1);
        for found in &mut self.found[range] {
            found.hears(remark, one.is_none());
        }
    }

    /// Returns the statements, each with what was found.
    pub(crate) fn found(self) -> impl Iterator<Item = (Candidate, Findings)> {
        self.candidates.into_iter().zip(self.found)
    }
}
