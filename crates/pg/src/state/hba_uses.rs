//! How often each rule of `pg_hba.conf` was the one that counted, for all cores: logins are rare
//! enough for a lock.

use std::sync::{Arc, Mutex, PoisonError};

use refrain_config::{Hba, Rule};

use crate::auth::hba::Applicant;
use crate::state::snapshot::HbaRow;

/// The uses of each rule. They begin again when the rules change.
#[derive(Debug)]
pub(crate) struct HbaUses {
    hba: Arc<Hba>,
    /// One for each rule, and one for the clients that no rule was for.
    uses: Mutex<Vec<RuleUse>>,
}

#[derive(Clone, Debug, Default)]
struct RuleUse {
    matched: u64,
    refused: u64,
    last: Option<Last>,
}

/// The client that a rule was for last.
#[derive(Clone, Debug)]
struct Last {
    user: String,
    database: String,
    host: String,
}

/// The rule that is for a client, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct MatchedRule {
    uses: Arc<HbaUses>,
    /// The rule's place; that behind the last rule if no rule is for the client.
    index: usize,
}

impl HbaUses {
    pub(crate) fn new(hba: Arc<Hba>) -> Self {
        let uses = vec![RuleUse::default(); hba.rules().len() + 1];
        Self { hba, uses: Mutex::new(uses) }
    }

    /// Returns the rules.
    pub(crate) fn hba(&self) -> &Arc<Hba> {
        &self.hba
    }

    /// Finds the rule that is for a client, and counts that.
    pub(crate) fn find(self: Arc<Self>, applicant: &Applicant<'_>) -> MatchedRule {
        let rules = self.hba.rules().len();
        let index = applicant.rule(&self.hba).map_or(rules, |(index, _)| index);
        self.count(index, |uses| {
            uses.matched += 1;
            uses.last = Some(Last {
                user: applicant.user.to_owned(),
                database: applicant.database.to_owned(),
                host: applicant.host(),
            });
        });
        MatchedRule { uses: self, index }
    }

    fn count(&self, index: usize, count: impl FnOnce(&mut RuleUse)) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(uses) = uses.get_mut(index) {
            count(uses);
        }
    }

    /// Returns a row for each rule, and one without a rule.
    pub(crate) fn rows(&self) -> Vec<HbaRow> {
        let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let rules = self.hba.rules().iter().map(Some).chain([None]);
        let row = |(number, (rule, uses)): (u64, (Option<&Rule>, &RuleUse))| HbaRow {
            number,
            file: rule.map(Rule::file).unwrap_or_default(),
            line: rule.map_or(0, |rule| rule.line() as u64),
            text: rule.map(|rule| rule.text().to_owned()).unwrap_or_default(),
            matched: uses.matched,
            refused: uses.refused,
            user: uses.last.as_ref().map(|last| last.user.clone()),
            database: uses.last.as_ref().map(|last| last.database.clone()),
            host: uses.last.as_ref().map(|last| last.host.clone()),
        };
        (1..).zip(rules.zip(uses.iter())).map(row).collect()
    }
}

impl MatchedRule {
    /// Returns all rules.
    pub(crate) fn hba(&self) -> &Hba {
        &self.uses.hba
    }

    /// Returns the rule, or `None` if no rule is for the client.
    pub(crate) fn rule(&self) -> Option<&Rule> {
        self.uses.hba.rules().get(self.index)
    }

    /// Counts that the client was refused.
    pub(crate) fn count_refusal(&self) {
        self.uses.count(self.index, |uses| uses.refused += 1);
    }
}
