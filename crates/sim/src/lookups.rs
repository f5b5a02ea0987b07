//! The users of a world in which they are looked up: their rules, what may have failed, and how
//! logins have ended.

use crate::directory::Directory;
use crate::logins::{ASKER_PASSWORD, LoginPlan, Rule};

/// The time after which the engine may notice a trouble, or may have forgotten it, in
/// microseconds.
pub(crate) const TROUBLE: u64 = 3_000_000;

/// The users of a world, and what has happened to them.
#[derive(Debug)]
pub(crate) struct Lookups {
    pub(crate) directory: Directory,
    /// The rules by which users are looked up, and since when each counts.
    pub(crate) rules: Vec<(u64, Rule)>,
    /// When answers were forgotten on demand.
    pub(crate) flushes: Vec<u64>,
    /// When a lookup may have failed, the last time.
    pub(crate) trouble: u64,
    pub(crate) tally: Tally,
}

/// How logins ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Clients that were let in with a password.
    pub let_in: u64,
    /// Clients that were refused.
    pub refused: u64,
    /// Clients whose user could not be looked up.
    pub unavailable: u64,
    /// Clients that took too long.
    pub late: u64,
    /// Lookups that were answered.
    pub lookups: u64,
}

impl Tally {
    /// Adds the numbers of another world.
    pub fn add(&mut self, other: Self) {
        self.let_in += other.let_in;
        self.refused += other.refused;
        self.unavailable += other.unavailable;
        self.late += other.late;
        self.lookups += other.lookups;
    }
}

impl Lookups {
    /// Creates the users of a world.
    pub(crate) fn new(plan: Option<&LoginPlan>) -> Self {
        let directory = Directory::new(plan.map(|plan| plan.form).unwrap_or_default());
        for database in plan.iter().flat_map(|plan| plan.all_databases()) {
            let set = |user: &str, password| {
                directory.set((database.to_owned(), user.to_owned()), 0, Some(password));
            };
            ["u0", "u1"].iter().for_each(|user| set(user, directory.new_password()));
            plan.iter().for_each(|plan| set(plan.asker, ASKER_PASSWORD.to_owned()));
        }
        let rules = vec![(0, Rule::Asks(Rule::FIRST))];
        Self { directory, rules, flushes: Vec::new(), trouble: 0, tally: Tally::default() }
    }

    /// Returns the rules that counted at any time since then.
    pub(crate) fn rules_since(&self, since: u64) -> &[(u64, Rule)] {
        let first = self.rules.iter().rposition(|(from, _)| *from <= since).unwrap_or(0);
        &self.rules[first..]
    }

    /// Notes that a lookup may fail now.
    pub(crate) fn note_trouble(&mut self, now: u64) {
        self.trouble = now;
    }

    /// Whether a lookup may have failed since then.
    pub(crate) fn had_trouble(&self, since: u64) -> bool {
        self.trouble > 0 && self.trouble + TROUBLE >= since
    }
}
