//! Model clients: each runs its script, compares every message with its oracle, and leaves.
//!
//! The checks: every reply is the one that the client's oracle expects (see [`crate::oracle`]), and
//! no client is disconnected without an error, or with an error that no fault excuses.

use refrain_config::PoolMode;
use refrain_pg::auth::NONCE_BYTES;
use refrain_pg_wire::back::{Fields, field};
use refrain_pg_wire::startup;
use refrain_pg_wire::tag::back;

use crate::client::{Client, Stage};
use crate::lookup_checks::{CheckedLogin, SLACK, choose_password};
use crate::net::{LinkId, Peer, Way};
use crate::oracle::show;
use crate::plant::Plant;
use crate::reads::server_behind_other;
use crate::row_checks::{RowCheck, note_asked};
use crate::say::Say;
use crate::script::Unit;
use crate::trace::brief;
use crate::world::{Happening, World};

/// The longest time that a client takes for its part of a login, in microseconds.
const THINKS_MOST: u64 = 20_000;

impl World {
    /// Connects a client.
    pub(crate) fn client_arrives(&mut self, slot: usize) {
        let number = self.client_in_slot(slot);
        let id = self.accept(Peer::Client(number));
        let client = &mut self.clients[number];
        client.link = Some(id);
        client.exchange.connected = self.now;
        if let Some(plan) = &self.plan.logins {
            self.later(plan.timeout + SLACK, Happening::Late(number));
        }
        let client = &mut self.clients[number];
        if client.rng.chance(100) {
            client.stage = Stage::AsksForTls;
            self.client_says(number, &[0, 0, 0, 8, 4, 210, 22, 47]);
        } else {
            self.client_logs_in(number);
        }
    }

    /// Returns a client's login, to be checked.
    fn login_of(&self, number: usize) -> CheckedLogin<'_> {
        let (now, plan) = (self.now, self.plan.logins.as_ref());
        CheckedLogin { now, plan, lookups: &self.lookups, client: &self.clients[number] }
    }

    /// Checks that a client's login is over when it has to be.
    pub(crate) fn check_late(&mut self, number: usize) {
        self.expect("logins", self.login_of(number).check_late());
    }

    /// Begins a client's login, where clients have passwords.
    fn begin_exchange(&mut self, number: usize) {
        let Some(plan) = &self.plan.logins else { return };
        let client = &mut self.clients[number];
        let password = choose_password(plan, &self.lookups.directory, client);
        let mut random = [0; NONCE_BYTES];
        client.rng.fill(&mut random);
        client.exchange.began = self.now;
        client.exchange.begin(&client.user, password, &random);
    }

    /// Lets a client answer a message of its login. True if the client is let in by the message.
    fn client_proves(&mut self, number: usize, body: &[u8]) -> bool {
        match self.clients[number].exchange.answer(body) {
            Ok(None) => {
                self.clients[number].exchange.is_let_in = true;
                self.lookups.tally.let_in += 1;
                self.expect("logins", self.login_of(number).check_let_in());
                return true;
            }
            Ok(Some(said)) if !said.is_empty() => {
                let hangs = self.plan.logins.as_ref().is_some_and(|plan| plan.hangs);
                let client = &mut self.clients[number];
                if !(hangs && client.rng.chance(100)) {
                    let delay = client.rng.below(THINKS_MOST);
                    self.later(delay, Happening::Says(number, said));
                }
            }
            Ok(Some(_)) => {}
            Err(why) => self.violate("login", || format!("client {number}: {why}")),
        }
        false
    }

    fn client_logs_in(&mut self, number: usize) {
        self.begin_exchange(number);
        let client = &mut self.clients[number];
        client.stage = Stage::LogsIn;
        let startup = client.startup();
        self.client_says(number, &startup);
    }

    fn client_in_slot(&self, slot: usize) -> usize {
        let last = self.clients.iter().rposition(|client| client.slot == slot);
        last.unwrap_or(slot)
    }

    pub(crate) fn client_says(&mut self, number: usize, bytes: &[u8]) {
        let Some(link) = self.clients[number].link else { return };
        self.trace.line(self.now, "says", format_args!("client {number}"), || brief(bytes));
        self.links[link.0].up.send(bytes);
        self.pump(link, Way::Up);
    }

    /// Gives bytes to a client.
    pub(crate) fn client_reads(&mut self, number: usize, link: LinkId, bytes: &[u8]) {
        let client = &mut self.clients[number];
        if client.link != Some(link) {
            return;
        }
        self.trace.line(self.now, "reads", format_args!("client {number}"), || brief(bytes));
        client.input.push(bytes);
        if client.stage == Stage::AsksForTls {
            let answer = client.input.rest().first().copied();
            client.input.skip(1);
            let refused = answer == Some(b'E') && self.faults.drained;
            if refused {
                client.stage = Stage::Leaves;
                return;
            }
            if answer != Some(b'N') {
                return self.violate("login", || format!("SSLRequest is answered with {answer:?}"));
            }
            return self.client_logs_in(number);
        }
        while let Some((tag, body)) = self.clients[number].input.take() {
            self.client_gets(number, tag, &body);
        }
        let client = &mut self.clients[number];
        let goes_on = client.stage == Stage::Works && client.oracle.is_settled();
        if goes_on && !client.armed {
            let think = client.rng.below(self.plan.think);
            self.appoint_client(number, think);
        }
    }

    fn appoint_client(&mut self, number: usize, delay: u64) {
        let client = &mut self.clients[number];
        client.armed = true;
        client.number += 1;
        let appointment = client.number;
        self.later(delay, Happening::Act(number, appointment));
    }

    fn client_gets(&mut self, number: usize, tag: u8, body: &[u8]) {
        if self.clients[number].got_fatal {
            let what = show(tag, body);
            return self.violate("endings", || format!("client {number} got {what} after FATAL"));
        }
        let fatal = tag == back::ERROR_RESPONSE && Fields(body).is_fatal();
        if fatal {
            return self.client_gets_fatal(number, tag, body);
        }
        let proves = self.plan.logins.is_some() && tag == back::AUTHENTICATION;
        if proves && !self.client_proves(number, body) {
            return;
        }
        let client = &mut self.clients[number];
        if client.stage == Stage::LogsIn {
            match tag {
                back::BACKEND_KEY_DATA => {
                    let key = refrain_pg_wire::back::backend_key(body).ok();
                    client.key = key.map(|(pid, key)| (pid, key.to_vec()));
                    let bytes = if client.minor == 2 { 32 } else { 4 };
                    if client.key.as_ref().is_none_or(|(_, key)| key.len() != bytes) {
                        self.violate("login", || "a cancel key of the wrong length".to_owned());
                    }
                }
                back::READY_FOR_QUERY => client.stage = Stage::Works,
                _ => {}
            }
        }
        if let Err(what) = self.clients[number].oracle.check(tag, body) {
            let awaits = self.clients[number].oracle.awaits();
            return self.violate("oracle", || format!("client {number} {what}; then {awaits}"));
        }
        let mut check = RowCheck {
            number,
            client: &mut self.clients[number],
            rows: &self.rows,
            versions: &mut self.versions,
            allowed: self.plan.staleness(),
            now: self.now,
        };
        if let Err(what) = check.check(tag, body) {
            self.violate("versions", || what);
        }
    }

    /// Checks that a FATAL error to a client has an excuse or is expected.
    fn client_gets_fatal(&mut self, number: usize, tag: u8, body: &[u8]) {
        let fields = Fields(body);
        let words = String::from_utf8_lossy(fields.get(field::MESSAGE).unwrap_or(b"")).into_owned();
        let sqlstate = String::from_utf8_lossy(fields.sqlstate()).into_owned();
        let excused = self.excuses(number, &sqlstate, &words);
        let client = &mut self.clients[number];
        client.got_fatal = true;
        if !excused && let Err(what) = client.oracle.check(tag, body) {
            self.violate("endings", || format!("client {number} {what}"));
        }
    }

    /// Whether a fault or an option explains an ending.
    fn excuses(&mut self, number: usize, sqlstate: &str, words: &str) -> bool {
        let has_passwords = self.plan.logins.is_some();
        let (servers, logins) = (self.faults.servers > 0, self.faults.logins > 0);
        let refuses = !self.plan.waits_for_servers();
        match sqlstate {
            "08006" | "57P03" if words == "could not connect to server" => {
                refuses && (servers || logins)
            }
            "28P01" if has_passwords => {
                self.lookups.tally.refused += 1;
                self.expect("logins", self.login_of(number).check_refused());
                true
            }
            "57P03" if words == "could not look up the user" => {
                self.lookups.tally.unavailable += 1;
                self.login_of(number).may_be_unavailable() || self.faults.drained
            }
            "57014" if words.starts_with("canceling authentication") => {
                self.lookups.tally.late += 1;
                self.login_of(number).may_be_late()
            }
            "08006" => servers || logins,
            "57P01" => self.faults.kills > 0 || self.faults.drained,
            "53300" if words.starts_with("injected") => refuses && logins,
            "57P03" => self.faults.drained,
            "53300" => self.plan.max_waiting,
            "08P01" if words.starts_with("transaction blocks") => {
                self.plan.mode == PoolMode::Statement && self.clients[number].script.opened_block
            }
            _ => false,
        }
    }

    /// Checks that the engine may close a client's connection, and ends the client.
    pub(crate) fn client_ends(&mut self, number: usize, link: LinkId) {
        let client = &self.clients[number];
        if client.link != Some(link) {
            return;
        }
        let leaves = client.stage == Stage::Leaves;
        // In the middle of a message the engine cannot send an error.
        let faults = &self.faults;
        let failed = faults.servers > 0 || faults.kills > 0 || faults.drained || faults.logins > 0;
        let cut = !client.input.is_empty() && failed;
        if client.goodbye && !failed && !client.got_fatal && !client.oracle.is_settled() {
            let awaits = client.oracle.awaits();
            return self.violate("endings", || {
                format!(
                    "client {number} has sent Terminate and lacks replies from before: it {awaits}"
                )
            });
        }
        if !leaves && !cut && !client.got_fatal && !client.oracle.has_ended() {
            let awaits = client.oracle.awaits();
            return self.violate("endings", || {
                format!("client {number} was disconnected without an error; it {awaits}")
            });
        }
        self.client_goes(number);
    }

    /// Ends a client whose connection has broken.
    pub(crate) fn client_loses(&mut self, number: usize, link: LinkId) {
        if self.clients[number].link == Some(link) {
            self.client_goes(number);
        }
    }

    /// Ends a client's session. Another client may come in its slot.
    fn client_goes(&mut self, number: usize) {
        let client = &mut self.clients[number];
        let link = client.link.take();
        let again = client.sessions > 0;
        client.stage = Stage::Done;
        if let Some(link) = link {
            self.links[link.0].up.closing = true;
            self.pump(link, Way::Up);
        }
        if again {
            let (slot, sessions) = (self.clients[number].slot, self.clients[number].sessions);
            let mut rng = self.clients[number].rng.fork(9);
            let mut next = Client::new(self.clients.len(), slot, &self.plan, &mut rng);
            next.sessions = sessions - 1;
            self.clients.push(next);
            // What is known of users grows old meanwhile.
            let most = if self.plan.logins.is_some() { 300_000 } else { 20_000 };
            let delay = self.rng.below(most);
            self.later(delay, Happening::Arrive(slot));
        }
    }

    /// Lets a client act: send, cancel or leave.
    pub(crate) fn client_acts(&mut self, number: usize, appointment: u32) {
        let rates = &self.plan.rates;
        let (abrupt, cancel, halves) = (rates.abrupt, rates.cancel, rates.halves);
        let calm = self.is_calm;
        let client = &mut self.clients[number];
        if client.stage != Stage::Works || client.number != appointment {
            return;
        }
        client.armed = false;
        if !calm && client.rng.chance(abrupt) {
            return self.client_leaves_abruptly(number);
        }
        let settled = client.oracle.is_settled();
        if client.outbox.is_empty() && client.waits && !settled {
            if client.script.habits.patient && !calm && client.rng.chance(cancel) {
                self.client_cancels(number);
            }
            return self.watch_for_cancel(number);
        }
        if client.outbox.is_empty() && !self.next_unit(number) {
            return;
        }
        let client = &mut self.clients[number];
        let all = client.outbox.len();
        let part = if client.rng.chance(halves) { client.rng.index(all) + 1 } else { all };
        let said: Vec<u8> = client.outbox.drain(..part).collect();
        client.oracle.hear(&said);
        let rest = !client.outbox.is_empty();
        let goes_on = rest || !client.waits || client.oracle.is_settled();
        let think = client.rng.below(self.plan.think);
        self.client_says(number, &said);
        if goes_on {
            self.appoint_client(number, think);
        } else {
            self.watch_for_cancel(number);
        }
    }

    /// Makes an appointment at which a waiting client may cancel.
    fn watch_for_cancel(&mut self, number: usize) {
        let client = &mut self.clients[number];
        if client.script.habits.patient && !self.is_calm {
            let delay = client.rng.range(50, 5_000);
            self.appoint_client(number, delay);
            // A reply may make another appointment before.
            self.clients[number].armed = false;
        }
    }

    /// Takes the next unit of a client's script. Returns false if the client leaves.
    fn next_unit(&mut self, number: usize) -> bool {
        let client = &mut self.clients[number];
        if client.oracle.has_ended() {
            return false;
        }
        if client.units == 0 {
            let ends = client.script.in_block && client.rng.chance(700);
            if !ends {
                self.client_leaves(number);
                return false;
            }
            let unit = client.script.end_block(&mut client.rng);
            self.begin_unit(number, unit);
            return true;
        }
        client.units -= 1;
        let unit = client.script.unit(&mut client.rng);
        self.begin_unit(number, unit);
        true
    }

    fn begin_unit(&mut self, number: usize, unit: Unit) {
        let client = &mut self.clients[number];
        client.outbox = unit.bytes;
        client.waits = unit.waits;
        note_asked(client, unit.asked, self.now);
    }

    fn client_leaves(&mut self, number: usize) {
        self.clients[number].stage = Stage::Leaves;
        let goodbye = self.clients[number].rng.chance(700);
        if goodbye {
            let goodbye = Say::default().terminate().0.clone();
            self.clients[number].oracle.hear(&goodbye);
            self.clients[number].goodbye = true;
            self.client_says(number, &goodbye);
        } else {
            self.client_goes(number);
        }
    }

    fn client_leaves_abruptly(&mut self, number: usize) {
        let client = &mut self.clients[number];
        let part = client.rng.index(client.outbox.len() + 1);
        let said: Vec<u8> = client.outbox.drain(..part).collect();
        self.client_says(number, &said);
        self.client_goes(number);
    }

    /// Sends a cancel request for a client's statement, sometimes with a wrong key.
    fn client_cancels(&mut self, number: usize) {
        let wrong = self.rng.chance(self.plan.rates.wrong_key);
        let client = &mut self.clients[number];
        let Some((pid, mut key)) = client.key.clone() else { return };
        if wrong {
            key[0] ^= 1;
        } else {
            client.oracle.cancels += 1;
        }
        let mut out = Vec::new();
        startup::write_cancel(&mut out, pid, &key);
        let id = self.accept(Peer::Canceller);
        self.links[id.0].up.send(&out);
        self.pump(id, Way::Up);
        if self.plant == Some(Plant::EarlyCancel)
            && let Some((pid, key)) = server_behind_other(&self.backends, number)
        {
            self.signal(pid, &key, id);
        }
    }
}
