//! The checker of logins, where users are looked up by `auth_query`.
//!
//! The model server notes what each lookup has found, and when. A client that is let in has given a
//! password that an answer had which was young enough for its login. A client that is refused has
//! given another one than such an answer had. How old an answer may be is what the options say:
//! `auth_cache_ttl`, and `auth_cache_stale` if the database gave no answer since. No answer from
//! before a `FLUSH AUTH` counts for a login behind it.
//!
//! A user is looked up once at a time, and not again while the answer is young, unless it may have
//! been lost. And no login takes longer than `client_login_timeout`.

use crate::backend::Backend;
use crate::client::{Client, Stage};
use crate::directory::{Directory, Found};
use crate::logins::{ASKER_PASSWORD, LoginPlan, Rule};
use crate::lookups::{Lookups, TROUBLE};
use crate::net::Link;

/// The time in which an answer reaches the engine, and an ending its client, in microseconds.
pub(crate) const SLACK: u64 = 1_000_000;
/// The longest time for which a lookup may be under way, in microseconds.
const UNDER_WAY: u64 = 10_000_000;
/// The time in which no wrong password has the engine ask again, and that a login waits if there is
/// an answer from before, in microseconds.
const SECOND: u64 = 1_000_000;

/// Chooses the password that a client gives.
pub(crate) fn choose_password(
    plan: &LoginPlan,
    directory: &Directory,
    client: &mut Client,
) -> String {
    let user = plan.user(&client.database, &client.user);
    let right = directory.password(&user);
    let before = directory.passwords(&user);
    let others = if client.rng.chance(500) {
        let at = client.rng.index(plan.databases.len());
        plan.user(plan.databases[at], &client.user)
    } else {
        plan.user(&client.database, "u1")
    };
    let chosen = match client.rng.below(20) {
        0..=12 => right,
        13 | 14 => before.len().checked_sub(2).and_then(|at| before[at].1.clone()),
        15 => before.first().and_then(|first| first.1.clone()),
        16 | 17 => directory.password(&others),
        _ => None,
    };
    chosen.unwrap_or_else(|| "wrong".to_owned())
}

/// A client's login, and what may decide how the login ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedLogin<'a> {
    pub(crate) now: u64,
    /// The plan, where clients have passwords.
    pub(crate) plan: Option<&'a LoginPlan>,
    pub(crate) lookups: &'a Lookups,
    pub(crate) client: &'a Client,
}

impl CheckedLogin<'_> {
    /// Returns the passwords by which the engine may have judged the client: `None` for a user who
    /// may not log in.
    fn answers(&self) -> Vec<Option<String>> {
        let Some(plan) = self.plan else { return Vec::new() };
        let mut answers = Vec::new();
        for (_, rule) in self.lookups.rules_since(self.client.exchange.began) {
            match rule {
                _ if self.client.user == plan.asker => {
                    answers.push(Some(ASKER_PASSWORD.to_owned()));
                }
                Rule::Configures(password) if self.client.user == "u1" => {
                    answers.push(Some(password.clone()));
                }
                Rule::Nothing => answers.push(None),
                Rule::Configures(_) => answers.extend(self.looked_up(plan, Rule::FIRST)),
                Rule::Asks(function) => answers.extend(self.looked_up(plan, function)),
            }
        }
        answers
    }

    /// Returns the passwords that this function has found, for the login of the client.
    fn looked_up(&self, plan: &LoginPlan, function: &str) -> Vec<Option<String>> {
        let user = plan.user(&self.client.database, &self.client.user);
        let fits = |found: &Found| {
            let is_of = found.user == user && found.function == function;
            is_of && self.may_count(plan, found)
        };
        let found = self.lookups.directory.found(fits);
        found.into_iter().map(|found| found.password).collect()
    }

    /// Whether an answer may count for the login.
    fn may_count(&self, plan: &LoginPlan, found: &Found) -> bool {
        let began = self.client.exchange.began;
        let is_stale = self.now >= began + SECOND || self.lookups.had_trouble(found.at);
        let ttl = if found.password.is_some() { plan.ttl } else { plan.negative_ttl };
        let age = if is_stale { ttl.max(plan.stale) } else { ttl };
        let is_flushed =
            self.lookups.flushes.iter().any(|flush| (found.at + 1..began).contains(flush));
        found.at + age + SLACK >= began && !is_flushed
    }

    /// Checks that the client may be let in.
    ///
    /// # Errors
    /// The violation, in words.
    pub(crate) fn check_let_in(&self) -> Result<(), String> {
        let answers = self.answers();
        match answers.contains(&Some(self.client.exchange.password.clone())) {
            true => Ok(()),
            false => Err(self.violation(&format!("was let in; answers: {answers:?}"))),
        }
    }

    /// Checks that the client may be refused.
    ///
    /// # Errors
    /// The violation, in words.
    pub(crate) fn check_refused(&self) -> Result<(), String> {
        let exchange = &self.client.exchange;
        let rules = self.lookups.rules_since(exchange.began);
        // A reload may remove a user who has just proved who it is.
        let is_removed = rules.iter().any(|(_, rule)| *rule == Rule::Nothing);
        // Servers may know another password than the one that is configured.
        let is_configured = rules.iter().any(|(_, rule)| matches!(rule, Rule::Configures(_)));
        let has_other = is_configured || self.has_old_secret();
        if exchange.is_let_in && (is_removed || has_other) {
            return Ok(());
        }
        let given = Some(exchange.password.clone());
        let answers = self.answers();
        let is_wrong = answers.iter().any(|answer| *answer != given);
        match is_wrong && !exchange.is_let_in {
            true => Ok(()),
            false => Err(self.violation(&format!("was refused; answers: {answers:?}"))),
        }
    }

    /// Whether the servers of the client's pool may be given the user's password from before, which
    /// the last client has proved that was let in.
    fn has_old_secret(&self) -> bool {
        let Some(plan) = self.plan.filter(|plan| plan.servers_ask) else { return false };
        let began = self.client.exchange.began;
        let user = plan.user(&self.client.database, &self.client.user);
        let age = if self.lookups.had_trouble(began) { plan.stale } else { plan.ttl };
        let changes = self.lookups.directory.passwords(&user);
        changes.iter().any(|(at, _)| *at > 0 && at + age.max(plan.ttl) + TROUBLE >= began)
    }

    fn violation(&self, what: &str) -> String {
        let Client { id, user, database, exchange, .. } = self.client;
        format!(
            "client {id}, {user} of {database} with {:?} since {}, {what}",
            exchange.password, exchange.began
        )
    }

    /// Whether the engine may say that it cannot look up the client's user.
    pub(crate) fn may_be_unavailable(&self) -> bool {
        let refuses = self.plan.is_some_and(|plan| !plan.waits);
        refuses && self.lookups.had_trouble(self.client.exchange.began.saturating_sub(SECOND))
    }

    /// Whether the login may have taken too long.
    pub(crate) fn may_be_late(&self) -> bool {
        let timeout = self.plan.map_or(u64::MAX, |plan| plan.timeout);
        self.now >= self.client.exchange.connected.saturating_add(timeout)
    }

    /// Checks that the login is over when it has to be.
    ///
    /// # Errors
    /// The violation, in words.
    pub(crate) fn check_late(&self) -> Result<(), String> {
        let logs_in = matches!(self.client.stage, Stage::AsksForTls | Stage::LogsIn);
        match logs_in && !self.client.exchange.is_let_in && !self.client.got_fatal {
            true => Err(self.violation("is not told that the time for its login is over")),
            false => Ok(()),
        }
    }
}

/// Checks that no other server looks up the user whom this server begins to look up.
///
/// # Errors
/// The violation, in words.
pub(crate) fn check_flight(
    backends: &[Backend],
    links: &[Link],
    number: usize,
) -> Result<(), String> {
    let backend = &backends[number];
    let Some(own) = backend.session.looks_up() else { return Ok(()) };
    let other = backends.iter().enumerate().position(|(other, it)| {
        let is_open = it.is_serving() && links[it.link.0].conn.is_some();
        let is_of = it.session.database == backend.session.database;
        other != number && is_open && is_of && it.session.looks_up() == Some(own)
    });
    let user = own.1;
    other.map_or(Ok(()), |other| {
        Err(format!("servers {other} and {number} look up {user} at the same time"))
    })
}

/// Checks that the last lookup was due: the answer before was too old, or may have been lost.
///
/// # Errors
/// The violation, in words.
pub(crate) fn check_due(plan: &LoginPlan, lookups: &Lookups) -> Result<(), String> {
    let last = (!plan.forgets).then(|| lookups.directory.found(|_| true).pop()).flatten();
    let Some(last) = last else { return Ok(()) };
    let same = |found: &Found| (&found.user, &found.function) == (&last.user, &last.function);
    let mut all = lookups.directory.found(same);
    all.pop();
    let Some(before) = all.pop() else { return Ok(()) };
    let ttl = if before.password.is_some() { plan.ttl } else { plan.negative_ttl };
    let since = before.at;
    let events = lookups.flushes.iter().chain(lookups.rules.iter().skip(1).map(|(at, _)| at));
    // What is forgotten while a lookup is under way overtakes its answer.
    let is_excused =
        lookups.trouble >= since || events.into_iter().any(|at| at + UNDER_WAY >= since);
    let gap = last.at - since;
    match gap < ttl.min(SECOND) && !is_excused {
        true => Err(format!("{} is looked up again after {gap} us", last.user.1)),
        false => Ok(()),
    }
}
