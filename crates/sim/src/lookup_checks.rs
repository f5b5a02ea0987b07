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

use refrain_pool::event::Command;

use crate::client::Stage;
use crate::directory::{Found, Mood};
use crate::logins::{ASKER_PASSWORD, LoginPlan, Rule};
use crate::lookups::TROUBLE;
use crate::world::{Happening, World};

/// The time in which an answer reaches the engine, and an ending its client, in microseconds.
const SLACK: u64 = 1_000_000;
/// The longest time for which a lookup may be under way, in microseconds.
const UNDER_WAY: u64 = 10_000_000;
/// The time in which no wrong password has the engine ask again, and that a login waits if there is
/// an answer from before, in microseconds.
const SECOND: u64 = 1_000_000;

impl World {
    /// Notes that a lookup may fail.
    pub(crate) fn note_trouble(&mut self) {
        self.lookups.trouble = self.now;
    }

    /// Chooses the password that a client gives.
    pub(crate) fn choose_password(&mut self, number: usize) -> String {
        let Some(plan) = &self.plan.logins else { return String::new() };
        let directory = &self.lookups.directory;
        let client = &mut self.clients[number];
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

    /// Returns the passwords by which the engine may have judged a client: `None` for a user who
    /// may not log in.
    fn answers_for(&self, number: usize) -> Vec<Option<String>> {
        let Some(plan) = &self.plan.logins else { return Vec::new() };
        let client = &self.clients[number];
        let mut answers = Vec::new();
        for (_, rule) in self.lookups.rules_since(client.exchange.began) {
            match rule {
                _ if client.user == plan.asker => answers.push(Some(ASKER_PASSWORD.to_owned())),
                Rule::Configures(password) if client.user == "u1" => {
                    answers.push(Some(password.clone()));
                }
                Rule::Nothing => answers.push(None),
                Rule::Configures(_) => answers.extend(self.looked_up(plan, number, Rule::FIRST)),
                Rule::Asks(function) => answers.extend(self.looked_up(plan, number, function)),
            }
        }
        answers
    }

    /// Returns the passwords that this function has found, for the login of a client.
    fn looked_up(&self, plan: &LoginPlan, number: usize, function: &str) -> Vec<Option<String>> {
        let client = &self.clients[number];
        let user = plan.user(&client.database, &client.user);
        let fits = |found: &Found| {
            let is_of = found.user == user && found.function == function;
            is_of && self.may_count(plan, found, client.exchange.began)
        };
        let found = self.lookups.directory.found(fits);
        found.into_iter().map(|found| found.password).collect()
    }

    /// Whether an answer may count for a login that began then.
    fn may_count(&self, plan: &LoginPlan, found: &Found, began: u64) -> bool {
        let is_stale = self.now >= began + SECOND || self.lookups.had_trouble(found.at);
        let ttl = if found.password.is_some() { plan.ttl } else { plan.negative_ttl };
        let age = if is_stale { ttl.max(plan.stale) } else { ttl };
        let is_flushed =
            self.lookups.flushes.iter().any(|flush| (found.at + 1..began).contains(flush));
        found.at + age + SLACK >= began && !is_flushed
    }

    /// Checks that a client may be let in.
    pub(crate) fn check_let_in(&mut self, number: usize) {
        self.lookups.tally.let_in += 1;
        let client = &self.clients[number];
        let is_right = self.answers_for(number).contains(&Some(client.exchange.password.clone()));
        if !is_right {
            let answers = self.answers_for(number);
            self.violate_login(number, &format!("was let in; answers: {answers:?}"));
        }
    }

    /// Checks that a client may be refused.
    pub(crate) fn check_refused(&mut self, number: usize) {
        self.lookups.tally.refused += 1;
        let client = &self.clients[number];
        let rules = self.lookups.rules_since(client.exchange.began);
        // A reload may remove a user who has just proved who it is.
        let is_removed = rules.iter().any(|(_, rule)| *rule == Rule::Nothing);
        // Servers may know another password than the one that is configured.
        let is_configured = rules.iter().any(|(_, rule)| matches!(rule, Rule::Configures(_)));
        let has_other = is_configured || self.has_old_secret(number);
        if client.exchange.is_let_in && (is_removed || has_other) {
            return;
        }
        let given = Some(client.exchange.password.clone());
        let is_wrong = self.answers_for(number).iter().any(|answer| *answer != given);
        if !is_wrong || client.exchange.is_let_in {
            let answers = self.answers_for(number);
            self.violate_login(number, &format!("was refused; answers: {answers:?}"));
        }
    }

    /// Whether the servers of a client's pool may be given the user's password from before, which
    /// the last client has proved that was let in.
    fn has_old_secret(&self, number: usize) -> bool {
        let Some(plan) = self.plan.logins.as_ref().filter(|plan| plan.servers_ask) else {
            return false;
        };
        let client = &self.clients[number];
        let user = plan.user(&client.database, &client.user);
        let age =
            if self.lookups.had_trouble(client.exchange.began) { plan.stale } else { plan.ttl };
        let changes = self.lookups.directory.passwords(&user);
        changes
            .iter()
            .any(|(at, _)| *at > 0 && at + age.max(plan.ttl) + TROUBLE >= client.exchange.began)
    }

    fn violate_login(&mut self, number: usize, what: &str) {
        let client = &self.clients[number];
        let (user, database) = (&client.user, &client.database);
        let told = format!(
            "client {number}, {user} of {database} with {:?} since {}, {what}",
            client.exchange.password, client.exchange.began
        );
        self.violate("logins", || told);
    }

    /// Whether the engine may say that it cannot look up a client's user.
    pub(crate) fn may_be_unavailable(&mut self, number: usize) -> bool {
        self.lookups.tally.unavailable += 1;
        let began = self.clients[number].exchange.began;
        let refuses = self.plan.logins.as_ref().is_some_and(|plan| !plan.waits);
        refuses && self.lookups.had_trouble(began.saturating_sub(SECOND))
    }

    /// Whether a login may have taken too long.
    pub(crate) fn may_be_late(&mut self, number: usize) -> bool {
        self.lookups.tally.late += 1;
        let timeout = self.plan.logins.as_ref().map_or(u64::MAX, |plan| plan.timeout);
        self.now >= self.clients[number].exchange.connected.saturating_add(timeout)
    }

    /// Checks that a client's login is over when it has to be.
    pub(crate) fn check_late(&mut self, number: usize) {
        let client = &self.clients[number];
        let logs_in = matches!(client.stage, Stage::AsksForTls | Stage::LogsIn);
        if logs_in && !client.exchange.is_let_in && !client.got_fatal {
            self.violate_login(number, "is not told that the time for its login is over");
        }
    }

    /// Has a client's login looked at when it has to be over.
    pub(crate) fn watch_login(&mut self, number: usize) {
        if let Some(plan) = &self.plan.logins {
            self.later(plan.timeout + SLACK, Happening::Late(number));
        }
    }

    /// Prepares the answer to a lookup.
    pub(crate) fn prepare_lookup(&mut self) {
        let Some(plan) = &self.plan.logins else { return };
        let fails = !self.is_calm && self.rng.chance(plan.troubles[1]);
        let mood = match fails {
            false => Mood::Honest,
            true => *self.rng.pick(&[Mood::Fails, Mood::Twice, Mood::Others]),
        };
        self.lookups.directory.prepare(self.now, mood);
    }

    /// Returns the time that a lookup takes, in microseconds.
    pub(crate) fn delay_of_lookup(&mut self) -> u64 {
        let Some(plan) = &self.plan.logins else { return 0 };
        let is_slow = !self.is_calm && self.rng.chance(plan.troubles[0]);
        if is_slow { self.rng.range(1_000, 3_000_000) } else { 0 }
    }

    /// Checks that no other server looks up the user whom this server begins to look up.
    pub(crate) fn check_flight(&mut self, number: usize) {
        let backend = &self.backends[number];
        let Some(own) = backend.session.looks_up() else { return };
        let other = self.backends.iter().enumerate().position(|(other, it)| {
            let is_open = it.is_serving() && self.links[it.link.0].conn.is_some();
            let is_of = it.session.database == backend.session.database;
            other != number && is_open && is_of && it.session.looks_up() == Some(own)
        });
        if let Some(other) = other {
            let user = own.1.to_owned();
            self.violate("logins", || {
                format!("servers {other} and {number} look up {user} at the same time")
            });
        }
    }

    /// Checks that the last lookup was due: the answer before was too old, or may have been lost.
    pub(crate) fn check_due(&mut self) {
        let Some(plan) = self.plan.logins.as_ref().filter(|plan| !plan.forgets) else { return };
        let Some(last) = self.lookups.directory.found(|_| true).pop() else { return };
        let same = |found: &Found| (&found.user, &found.function) == (&last.user, &last.function);
        let mut all = self.lookups.directory.found(same);
        all.pop();
        let Some(before) = all.pop() else { return };
        let ttl = if before.password.is_some() { plan.ttl } else { plan.negative_ttl };
        let since = before.at;
        let lookups = &self.lookups;
        let events = lookups.flushes.iter().chain(lookups.rules.iter().skip(1).map(|(at, _)| at));
        // What is forgotten while a lookup is under way overtakes its answer.
        let is_excused =
            lookups.trouble >= since || events.into_iter().any(|at| at + UNDER_WAY >= since);
        let gap = last.at - since;
        if gap < ttl.min(SECOND) && !is_excused {
            let user = last.user.1;
            self.violate("logins", || format!("{user} is looked up again after {gap} us"));
        }
    }

    /// Lets the operator and the database change what is known of users, if chance decides so.
    /// Returns the command with which the operator ends that.
    pub(crate) fn change_users(&mut self) -> Option<Command> {
        let plan = self.plan.logins.clone()?;
        let [changes, flushes, reloads] = plan.rates;
        if self.rng.chance(changes) {
            self.change_password(&plan);
        }
        if self.rng.chance(flushes) {
            self.trace.line(self.now, "flush", "users", String::new);
            self.shared.protocol.flush_users(self.clock());
            self.lookups.flushes.push(self.now);
        }
        self.rng.chance(reloads).then(|| self.reload_users(&plan))
    }

    fn change_password(&mut self, plan: &LoginPlan) {
        let users = plan.users();
        let user = *self.rng.pick(&users);
        if user == plan.asker {
            return;
        }
        let database = *self.rng.pick(plan.databases);
        let user = plan.user(database, user);
        let directory = self.lookups.directory.clone();
        let password = match self.rng.below(10) {
            0 => None,
            1 => directory.passwords(&user).first().and_then(|first| first.1.clone()),
            _ => Some(directory.new_password()),
        };
        self.trace.line(self.now, "password", &user.1, || format!("{}: {password:?}", user.0));
        directory.set(user, self.now, password);
    }

    fn reload_users(&mut self, plan: &LoginPlan) -> Command {
        let user = plan.user("d", "u1");
        let password = self.lookups.directory.password(&user).unwrap_or("configured".to_owned());
        let rules = [
            Rule::Asks(Rule::FIRST),
            Rule::Asks(Rule::SECOND),
            Rule::Configures(password),
            Rule::Nothing,
        ];
        let rule = self.rng.pick(&rules).clone();
        // Clients and servers of users who are unknown from now on are closed.
        self.faults.kills += 1;
        self.trace.line(self.now, "reload", "", || format!("{rule:?}"));
        let options = self.plan.options_under(&rule);
        self.lookups.rules.push((self.now, rule));
        self.shared.reload(options.clone());
        Command::Reload(options)
    }
}
