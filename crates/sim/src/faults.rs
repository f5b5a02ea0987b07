//! The operator's commands, changes of users, restarts of the server, servers that fall silent,
//! writers past the engine, and the calm at the end.
//!
//! A failover: the primary dies or stops, comes back as a standby, and a host is promoted after a
//! while. Where reads run on standbys, these replay, each late on its own, stall and die.

use refrain_pg::{ClientView, Event, Flush};
use refrain_pool::event::Command;
use refrain_pool::ids::Core;

use crate::lagging::StandbyReads;
use crate::logins::{LoginPlan, Rule};
use crate::net::LinkId;
use crate::plant::Plant;
use crate::rates::Rates;
use crate::row_checks::tell_news;
use crate::rows::{Need, TABLES};
use crate::world::{Happening, World};

/// The session of writers past the engine, which is none of a server's.
const PAST: usize = usize::MAX;
/// Time between two steps of a standby that has nothing to be late for, in microseconds.
const CALM_STEP: u64 = 100_000;
/// The most units that a client has left when faults have stopped.
const UNITS_LEFT: u64 = 25;
/// The most bytes of the records with which a timeline begins.
const RECORDS_MAX: u64 = 300;
/// The longest time from a promotion until a client is served, in microseconds.
const SERVED_WITHIN: u64 = 1_000_000;
/// The longest time until a host is promoted, in microseconds.
const PROMOTION_MAX: u64 = 600_000;

impl World {
    /// Lets the operator act: restart the server, give a command, or neither.
    pub(crate) fn operator(&mut self) {
        if self.is_calm {
            return;
        }
        let again = self.rng.range(1_000, 60_000);
        self.later(again, Happening::Supervisor);
        if self.rng.chance(self.plan.rates.restart) {
            match self.plan.hosts {
                1 => self.restart(),
                _ => self.fail_over(),
            }
        }
        self.trouble_standbys();
        if self.plan.rates.silence > 0 && self.rng.chance(self.plan.rates.silence) {
            self.fall_silent();
        }
        if let Some(command) = self.change_users() {
            self.order(&command);
        }
        if self.plan.cached.is_some() && self.rng.chance(20) {
            let what = *self.rng.pick(&[Flush::All, Flush::Rule("all"), Flush::Tag("some")]);
            self.shared.protocol.flush_results(what);
        }
        if !self.rng.chance(self.plan.rates.command) {
            return;
        }
        match self.rng.below(6) {
            0 | 1 => {
                self.order(&Command::Pause(None));
                let delay = self.rng.range(100, 50_000);
                self.later(delay, Happening::Order(Command::Resume(None)));
            }
            2 | 3 => self.order(&Command::Reconnect(Some("d".into()))),
            4 => self.kill_one(),
            _ => {
                self.faults.kills += 1;
                self.order(&Command::Kill(None));
                let delay = self.rng.range(100, 50_000);
                self.later(delay, Happening::Order(Command::Resume(None)));
            }
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

    /// Has a core give some of its clients to another, as the program does to balance their load.
    pub(crate) fn balance(&mut self) {
        if self.is_calm {
            return;
        }
        let again = self.rng.range(100, 5_000);
        self.later(again, Happening::Balance);
        let cores = self.workers.len() as u64;
        let from = self.rng.below(cores) as usize;
        let to = (from as u64 + self.rng.range(1, cores - 1)) % cores;
        let to = Core(u16::try_from(to).unwrap_or(0));
        let most = self.rng.range(1, 4) as usize;
        self.step(from, Event::GiveClients { to, most });
    }

    /// Gives a command to every core, one after the other.
    pub(crate) fn order(&mut self, command: &Command) {
        self.trace.fold([self.now, 0, 8], &[]);
        self.trace.line(self.now, "order", "", || format!("{command:?}"));
        match command {
            Command::Kill(database) => self.shared.kill(database.as_ref()),
            Command::Resume(database) => self.shared.set_paused(database.as_ref(), false),
            _ => {}
        }
        for core in 0..self.workers.len() {
            self.step(core, Event::Command(command.clone()));
        }
    }

    fn kill_one(&mut self) {
        let now = self.clock();
        let views = self.workers.iter().flat_map(|worker| worker.engine.snapshot(now).clients);
        let mut serials: Vec<_> = views.map(|client| client.serial).collect();
        serials.sort();
        if !serials.is_empty() {
            let serial = *self.rng.pick(&serials);
            self.faults.kills += 1;
            self.order(&Command::KillClient(serial));
        }
    }

    /// Restarts the server: ends all its sessions and refuses connections for a while.
    fn restart(&mut self) {
        self.trace.line(self.now, "restart", "", String::new);
        let until = self.now + self.rng.range(100, 500_000);
        self.hosts.stop(0, until);
        self.faults.servers += 1;
        for number in 0..self.backends.len() {
            self.shut_down(number);
        }
    }

    /// Has a session of the server fall silent, as if its machine were gone: what is in flight is
    /// lost, and the engine hears nothing of the end.
    fn fall_silent(&mut self) {
        let is_there = |number: &usize| {
            let link = &self.links[self.backends[*number].link.0];
            self.backends[*number].is_serving() && link.conn.is_some() && link.leaving.is_none()
        };
        let there: Vec<usize> = (0..self.backends.len()).filter(is_there).collect();
        if there.is_empty() {
            return;
        }
        let number = *self.rng.pick(&there);
        let id = self.backends[number].link;
        self.trace.fold([self.now, id.0 as u64, 9], &[]);
        self.trace.line(self.now, "silence", format_args!("server {number}"), String::new);
        self.faults.servers += 1;
        let link = &mut self.links[id.0];
        link.is_silent = true;
        link.down.kill();
        self.backend_ends(number);
        self.later(self.plan.silence, Happening::Silent(id));
    }

    /// Tells an engine of the end of a server that has fallen silent at work, as the program does.
    /// An idle one is found by the engine itself.
    pub(crate) fn end_silent(&mut self, id: LinkId) {
        let link = &self.links[id.0];
        let Some(conn) = link.conn else { return };
        let connections = &self.workers[link.core].engine.connections;
        let is_busy = connections.busy_servers().any(|server| server.conn() == conn);
        if is_busy && self.plant != Some(Plant::EndlessSilence) {
            let (core, why) = (link.core, Some("it has acknowledged nothing"));
            return self.step(core, Event::Closed { conn, why });
        }
        self.later(self.plan.silence, Happening::Silent(id));
    }

    /// Ends the primary's sessions: it is a standby once it takes connections again. The other host
    /// is promoted after a while. Nothing happens while no host is the primary.
    pub(crate) fn fail_over(&mut self) {
        let Some(primary) = self.hosts.primary() else { return };
        self.trace.line(self.now, "fail over", format_args!("host {primary}"), String::new);
        let until = self.now + self.rng.range(100, 500_000);
        self.hosts.demote(self.rows.log_end(), &mut self.rng);
        self.hosts.stop(primary, until);
        let hosts = self.plan.hosts;
        let other = (primary + 1 + self.rng.index(hosts - 1)) % hosts;
        if self.rng.chance(200) {
            self.hosts.stop(other, until);
        }
        self.faults.servers += 1;
        let dies = self.rng.chance(500);
        self.end_sessions_at(primary, dies);
        // After a restart the same host may be the primary again.
        let next = if self.rng.chance(300) { primary } else { other };
        let delay = self.rng.below(PROMOTION_MAX);
        self.later(delay, Happening::Promote(next));
    }

    /// Promotes a host.
    pub(crate) fn promote(&mut self, host: usize) {
        if self.hosts.promote(host, self.rows.log_end()) {
            // What a server writes when it begins a timeline.
            self.rows.log(self.rng.below(RECORDS_MAX));
            self.promotions += 1;
            self.promoted = self.hosts.up_from(host, self.now);
            let delay = self.promoted - self.now + SERVED_WITHIN;
            self.later(delay, Happening::Served(self.promoted));
            self.trace.line(self.now, "promote", format_args!("host {host}"), String::new);
        }
    }

    /// Checks that a client was served since a promotion, if clients wait since then. It does not
    /// count where hosts refuse connections or servers fall silent, where the engine had asked the
    /// host in vain just before, or if another failover has followed. A pool of one server asks one
    /// host at a time.
    pub(crate) fn check_served(&mut self, since: u64) {
        let Rates { refuse, login_failure, silence, .. } = self.plan.rates;
        let refuses = refuse + login_failure + silence > 0;
        let Some(primary) = self.hosts.primary() else { return };
        let asked = Some(primary).filter(|_| !self.plan.has_one_server());
        let is_last = self.promoted == since && !self.hosts.is_silent(asked, since);
        if refuses || !is_last || self.served >= since || self.faults.drained {
            return;
        }
        let now = self.clock();
        for core in 0..self.workers.len() {
            let view = self.workers[core].engine.snapshot(now);
            let waits = |client: &ClientView| client.waiting.is_some_and(|from| from.0 <= since);
            let is_paused = view.pools.iter().any(|pool| pool.paused);
            if let Some(client) = view.clients.iter().find(|client| waits(client) && !is_paused) {
                let serial = client.serial;
                self.violate("failover", || {
                    format!("{serial:?} waits, and nobody was served since a promotion at {since}")
                });
            }
        }
    }

    /// Stops all faults.
    pub(crate) fn calm(&mut self) {
        self.trace.line(self.now, "calm", "", String::new);
        self.is_calm = true;
        self.hosts.calm(self.rows.log_end());
        self.order(&Command::Resume(None));
        // A client that has pinned a server has the others wait, so what is left has to be short.
        for client in &mut self.clients {
            client.units = client.units.min(UNITS_LEFT);
            client.sessions = 0;
        }
        if self.plan.drains {
            self.faults.drained = true;
            self.order(&Command::Drain);
        }
    }
}

impl World {
    /// Has a standby replay some of the log, or all of it.
    pub(crate) fn replay(&mut self, host: usize) {
        let Some(plan) = &self.plan.standbys else { return };
        let step = if self.is_calm { CALM_STEP } else { plan.step(&mut self.rng) };
        self.later(step, Happening::Replay(host));
        let all = self.is_calm || self.rng.chance(500);
        if self.hosts.replay(host, self.rows.log_end(), all, &mut self.rng) {
            self.trace.line(self.now, "set up anew", format_args!("host {host}"), String::new);
            self.end_sessions_at(host, false);
        }
        let stand = self.hosts.stand(host, self.rows.log_end());
        self.trace.line(self.now, "replays", format_args!("host {host}"), || format!("{stand:?}"));
    }

    /// Lets a standby die, and others write past the engine, if chance decides so.
    pub(crate) fn trouble_standbys(&mut self) {
        let Some(StandbyReads { deaths, past, .. }) = self.plan.standbys else { return };
        if self.rng.chance(past) {
            self.write_past();
        }
        if self.rng.chance(deaths) {
            let host = self.rng.index(self.plan.hosts);
            if self.hosts.primary() != Some(host) {
                let until = self.now + self.rng.range(100, 500_000);
                self.hosts.restart_standby(host, until, &mut self.rng);
                self.faults.servers += 1;
                let breaks = self.rng.chance(500);
                self.end_sessions_at(host, breaks);
            }
        }
    }

    /// Writes a row as others do who do not come through the engine.
    fn write_past(&mut self) {
        let row = (self.rng.pick(&TABLES).to_string(), self.rng.index(3).to_string());
        // Nobody waits here.
        if self.hosts.primary().is_none() || self.rows.must_wait(PAST, &Need::Write(row.clone())) {
            return;
        }
        self.trace.line(self.now, "past", format_args!("{row:?}"), String::new);
        self.rows.write(PAST, row, &format!("past-{}", self.events));
        self.rows.commit(PAST);
        tell_news(&self.rows, &mut self.versions, self.now);
        self.look_at_locks();
    }

    /// Ends all sessions of a host, or breaks their connections.
    pub(crate) fn end_sessions_at(&mut self, host: usize, breaks: bool) {
        for number in 0..self.backends.len() {
            if self.backends[number].host != host {
                continue;
            }
            // A connection between two cores breaks for neither.
            let link = self.backends[number].link;
            let breaks = breaks && self.links[link.0].leaving.is_none();
            match self.backends[number].is_over() {
                true => {}
                false if breaks => self.reset(link),
                false => self.shut_down(number),
            }
        }
    }
}
