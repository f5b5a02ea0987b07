//! The model server's end of connections: one [`Session`] each, and checks of its messages.
//!
//! The checks happen when a session reads a message:
//!
//! - *The engine lends a server to one client at a time, and takes it back only when it is
//!   quiescent* (pgdog #876, #887): when a message of another client comes, the session is outside
//!   of transactions and COPY, and has no state of the client before.
//! - *No Bind reaches a server without its statement*: no reply is a 26000 that names an internal
//!   statement.
//! - *All bytes are messages of the protocol.*

use std::collections::BTreeSet;

use refrain_pg::Event;
use refrain_pg::auth::Proving;
use refrain_pg_wire::startup::{self, Opening};
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write::{self, Report};

use crate::backend::{Backend, Stage};
use crate::frames::Frames;
use crate::lang;
use crate::lookup_checks::{check_due, check_flight};
use crate::net::{LinkId, Peer, Way};
use crate::plant::Plant;
use crate::proofs::Proof;
use crate::reads::{check_patience, check_read, client_in};
use crate::row_checks::tell_news;
use crate::session::{Catalog, Session};
use crate::standbys;
use crate::trace::brief;
use crate::world::{Happening, World};

/// The longest time for which an engine waits for a host, in microseconds: `server_connect_timeout`
/// of all worlds, and the time until it tries again.
const CONNECT_TIMEOUT: u64 = 1_300_000;
/// The longest time that the answer to a lookup stays at the server, in microseconds.
const ANSWER_DELAY: u64 = 500_000;

impl World {
    /// Accepts a connection to the server, refuses it, or does not answer.
    pub(crate) fn connect(&mut self, id: LinkId) {
        let link = &self.links[id.0];
        let (core, host) = (link.core, link.host);
        let Some(conn) = link.conn.filter(|_| !link.up.dead) else { return };
        let unlucky = !self.is_calm && self.rng.chance(self.plan.rates.refuse);
        if unlucky || self.hosts.is_down(host, self.now) {
            self.faults.servers += 1;
            if self.rng.chance(100) {
                // It never answers.
                return self.hosts.fall_silent(host, self.now + CONNECT_TIMEOUT);
            }
            return self.step(core, Event::Failed { conn, why: "refused" });
        }
        let number = self.backends.len();
        let mut key = vec![0; 4];
        self.rng.fill(&mut key);
        self.links[id.0].connected = true;
        self.links[id.0].peer = Peer::Backend(Some(number));
        let mut session = Session::default();
        session.rows = self.rows.clone();
        session.directory = self.lookups.directory.clone();
        session.number = number + 1;
        session.pretends = self.plant.is_some();
        session.catalog = match self.plant {
            Some(Plant::BlindReads | Plant::RunTwice | Plant::BlindStandbys) => Catalog::Blind,
            Some(Plant::NoTargets) => Catalog::NoTargets,
            _ => Catalog::Honest,
        };
        self.backends.push(Backend {
            link: id,
            host,
            stage: Stage::Opening,
            input: Frames::default(),
            session,
            pid: 1000 + u32::try_from(number).unwrap_or(0) % self.plan.pids,
            key,
            user: String::new(),
            settings: Vec::new(),
            proving: None,
            current: None,
            cancelled: false,
            number: 0,
            waits: false,
            waits_for_lock: false,
            owner: None,
            segment: None,
            behind: BTreeSet::new(),
            is_late: false,
            left: String::new(),
        });
        self.step(core, Event::Connected { conn });
        self.pump(id, Way::Down);
    }

    /// Gives bytes to a session.
    pub(crate) fn backend_reads(&mut self, number: usize, bytes: &[u8]) {
        let backend = &mut self.backends[number];
        backend.input.push(bytes);
        match backend.stage {
            Stage::Opening => match backend.proving.take() {
                Some(proving) => self.backend_proves(number, proving),
                None => self.open_session(number),
            },
            Stage::Serving if !backend.waits => {
                let delay = self.rng.below(20);
                self.appoint(number, delay);
            }
            Stage::Serving | Stage::Refused | Stage::Over => {}
        }
    }

    fn open_session(&mut self, number: usize) {
        let backend = &mut self.backends[number];
        let link = backend.link;
        let input = backend.input.rest().to_vec();
        match startup::parse(&input) {
            Ok(Some((Opening::Cancel { pid, key }, _))) => {
                self.backends[number].stage = Stage::Over;
                let delay = self.rng.below(300);
                self.later(delay, Happening::Signal(pid, key.to_vec(), link));
            }
            Ok(Some((Opening::Startup(startup), used))) => {
                let backend = &mut self.backends[number];
                backend.input.skip(used);
                let mut settings = Vec::new();
                for (name, value) in startup.parameters() {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    match name {
                        b"user" => backend.user = text(value),
                        b"database" => backend.session.database = text(value),
                        name => settings.push((text(name), text(value))),
                    }
                }
                backend.settings = settings;
                self.let_in(number);
            }
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => {
                self.violate("protocol", || format!("bad first packet {input:?}"))
            }
        }
    }

    /// Lets a server take what has come of a login.
    fn backend_proves(&mut self, number: usize, proving: Proving) {
        let proof = match self.backends[number].input.take() {
            None => {
                self.backends[number].proving = Some(proving);
                Proof::Open
            }
            Some((tag, body)) => {
                if tag != front::PASSWORD {
                    self.violate("protocol", || format!("{} in a login", tag as char));
                }
                self.backends[number].judge_proof(proving.receive(&body))
            }
        };
        self.goes_on(number, proof);
    }

    fn let_in(&mut self, number: usize) {
        let refused = !self.is_calm && self.rng.chance(self.plan.rates.login_failure);
        if refused {
            self.faults.logins += 1;
            let (sqlstate, message) = ("53300", "injected: too many connections");
            let mut out = Vec::new();
            write::error(&mut out, &Report { severity: "FATAL", sqlstate, message, hint: "" });
            return self.say_and_close(number, &out);
        }
        let (plan, directory) = (self.plan.logins.as_ref(), &self.lookups.directory);
        let proof = self.backends[number].ask_proof(plan, directory, &mut self.rng);
        self.goes_on(number, proof);
    }

    /// Goes on with a login: begins the session, once the login is over.
    fn goes_on(&mut self, number: usize, proof: Proof) {
        match proof {
            Proof::Open => self.backend_answers(number),
            Proof::Done => self.begin_session(number),
            Proof::Refused => {
                self.faults.logins += 1;
                let out = self.backends[number].session.take_all();
                self.say_and_close(number, &out);
                self.backends[number].stage = Stage::Refused;
            }
        }
    }

    fn begin_session(&mut self, number: usize) {
        let backend = &mut self.backends[number];
        let (pid, key) = (backend.pid, backend.key.clone());
        if backend.session.begin(&backend.settings, pid, &key).is_err() {
            return self.violate("protocol", || "a login with settings that cannot be".to_owned());
        }
        backend.stage = Stage::Serving;
        self.backend_answers(number);
        let delay = self.rng.below(100);
        self.appoint(number, delay);
    }

    /// Sends the last bytes of a session and closes its connection.
    fn say_and_close(&mut self, number: usize, bytes: &[u8]) {
        let backend = &mut self.backends[number];
        backend.stage = Stage::Over;
        let link = backend.link;
        self.links[link.0].up.send(bytes);
        self.links[link.0].up.closing = true;
        self.pump(link, Way::Up);
        self.give_locks_up(number);
    }

    /// Ends a session with a FATAL error.
    pub(crate) fn shut_down(&mut self, number: usize) {
        if self.backends[number].stage != Stage::Serving {
            return;
        }
        self.faults.kills += 1;
        self.faults.servers += 1;
        let mut out = self.backends[number].session.take_all();
        let message = "terminating connection due to administrator command";
        write::error(&mut out, &Report { severity: "FATAL", sqlstate: "57P01", message, hint: "" });
        self.say_and_close(number, &out);
    }

    /// Ends a session after the engine has closed the connection or the connection has broken.
    pub(crate) fn backend_ends(&mut self, number: usize) {
        self.faults.logins += u32::from(self.backends[number].is_given_up());
        self.backends[number].stage = Stage::Over;
        let link = self.backends[number].link;
        self.links[link.0].up.kill();
        self.give_locks_up(number);
    }

    fn backend_answers(&mut self, number: usize) {
        let backend = &mut self.backends[number];
        let out = backend.session.take_output();
        let link = backend.link;
        if !out.is_empty() {
            // A cancel request may prevent a Parse, and the Bind after it then fails.
            if lacks_internal(&out) && !backend.cancelled {
                let text = brief(&out);
                self.violate("statements", || {
                    format!("a server lacks an internal statement: {text}")
                });
            }
            self.links[link.0].up.send(&out);
        }
        if self.backends[number].session.has_ended() {
            self.backends[number].stage = Stage::Over;
            self.links[link.0].up.closing = true;
            self.give_locks_up(number);
        }
        self.pump(link, Way::Up);
    }

    /// Lets a session work on its messages.
    pub(crate) fn backend_works(&mut self, number: usize, appointment: u32) {
        let backend = &mut self.backends[number];
        if backend.stage != Stage::Serving || backend.number != appointment {
            return;
        }
        backend.waits = false;
        if let Some((tag, body, hit)) = backend.current.take() {
            self.backend_tries(number, tag, body, hit);
        }
        while self.backends[number].stage == Stage::Serving && !self.backends[number].waits {
            if self.backends[number].input.is_malformed() {
                let rest = brief(self.backends[number].input.rest());
                return self.violate("protocol", || format!("a server was sent {rest}"));
            }
            let Some((tag, body)) = self.backends[number].input.take() else { break };
            if !self.is_calm && tag == front::QUERY && self.rng.chance(self.plan.rates.shutdown) {
                return self.shut_down(number);
            }
            let delay = self.delay_of(number, tag, &body);
            if delay > 0 {
                self.backends[number].current = Some((tag, body, false));
                self.appoint(number, delay);
                self.watch_patience(number, delay);
            } else {
                self.backend_tries(number, tag, body, false);
            }
        }
        self.backend_answers(number);
    }

    /// Lets a session handle a message, unless it has to wait for a lock.
    fn backend_tries(&mut self, number: usize, tag: u8, body: Vec<u8>, hit: bool) {
        let backend = &mut self.backends[number];
        backend.session.stand = self.hosts.stand(backend.host, self.rows.log_end());
        let since =
            if self.promotions > 0 { self.now.saturating_sub(self.promoted) } else { u64::MAX };
        if standbys::tells_state(backend, (tag, &body), since, self.plant) {
            return;
        }
        if !hit && self.backends[number].session.must_wait(tag, &body) {
            return self.wait_for_lock(number, tag, body);
        }
        self.backend_handles(number, tag, &body, hit);
        self.look_at_locks();
    }

    /// Returns the time that a message takes, in microseconds.
    fn delay_of(&mut self, number: usize, tag: u8, body: &[u8]) -> u64 {
        let sleeps = match tag {
            front::QUERY | front::PARSE if find(body, b"pg_sleep") => {
                let end = body.len() - usize::from(tag == front::QUERY);
                let text = String::from_utf8_lossy(&body[..end]).into_owned();
                let text = text.trim_start_matches('\0');
                lang::parse(text).iter().map(lang::Statement::sleeps).sum()
            }
            front::EXECUTE if self.backends[number].session.looks_up().is_some() => {
                self.plan.draw_delay_of_lookup(&mut self.rng, self.is_calm)
            }
            front::CLOSE if self.backends[number].session.has_looked_up() => {
                self.plan.draw_delay_of_lookup(&mut self.rng, self.is_calm).min(ANSWER_DELAY)
            }
            front::EXECUTE => self.backends[number].session.sleeps_late(body),
            _ => 0,
        };
        let slow = self.rng.chance(self.plan.rates.slow);
        sleeps + if slow { self.rng.range(1, 2_000) } else { 0 }
    }

    /// Checks that no client waits behind a message on which a server has worked for long.
    pub(crate) fn check_patience(&mut self, number: usize, appointment: u32) {
        let backend = &self.backends[number];
        if backend.number == appointment && backend.is_busy() && backend.is_serving() {
            let core = self.links[backend.link.0].core;
            let view = self.workers[core].engine.snapshot(self.clock());
            self.expect("patience", check_patience(&self.backends, number, &view));
        }
    }

    fn backend_handles(&mut self, number: usize, tag: u8, body: &[u8], hit: bool) {
        self.trace
            .line(self.now, "server", format_args!("{number} {}", tag as char), || brief(body));
        if let Some(client) = client_in(tag, body) {
            self.check_owner(number, client);
            let (backend, reads) = (&self.backends[number], self.plan.standbys.is_some());
            if !backend.session.stand.is_standby {
                self.served = self.now;
            }
            let found = standbys::check_host(backend, client, (tag, body), reads);
            self.expect("hosts", found);
        }
        if self.plan.shares {
            let backend = &mut self.backends[number];
            let found = check_read(backend, &mut self.ran, (tag, body, hit), self.plant);
            self.expect("reads", found);
        }
        self.backend_does(number, tag, body, hit);
        tell_news(&self.rows, &mut self.versions, self.now);
        if self.plant_late_replies(number, tag) {
            self.backend_answers(number);
        }
        let backend = &mut self.backends[number];
        let ends = matches!(tag, front::QUERY | front::SYNC | front::FUNCTION_CALL);
        if ends || backend.session.is_quiet() {
            if let Some(client) = backend.segment {
                backend.behind.remove(&client);
            }
            let left = backend.session.leftovers();
            // If no message of the segment names its client, the state may be the next client's
            // own.
            if backend.segment.take().is_some() || left.is_empty() {
                backend.left = left;
            }
        }
    }

    /// Lets a session handle a message, and checks lookups.
    fn backend_does(&mut self, number: usize, tag: u8, body: &[u8], hit: bool) {
        let answers = self.lookups.directory.answers();
        let failures = self.lookups.directory.failures();
        let looks_up = self.backends[number].session.looks_up().is_some();
        if looks_up && tag == front::EXECUTE {
            let plan = self.plan.logins.as_ref();
            if let Some(mood) = plan.map(|plan| plan.draw_mood(&mut self.rng, self.is_calm)) {
                self.lookups.directory.prepare(self.now, mood);
            }
        }
        self.backends[number].session.stand.conflicts = self.conflicts(number, tag);
        self.backends[number].session.handle(tag, body, hit);
        if tag == front::BIND {
            let found = check_flight(&self.backends, &self.links, number);
            self.expect("logins", found);
        }
        if self.lookups.directory.failures() > failures || looks_up && hit {
            self.lookups.note_trouble(self.now);
        }
        if self.lookups.directory.answers() > answers
            && let Some(plan) = &self.plan.logins
        {
            self.expect("logins", check_due(plan, &self.lookups));
        }
    }

    /// Whether a read that a standby begins is in the way of what the standby replays.
    fn conflicts(&mut self, number: usize, tag: u8) -> bool {
        let rate = self.plan.standbys.as_ref().map_or(0, |plan| plan.conflicts);
        let backend = &self.backends[number];
        let reads = backend.session.stand.is_standby
            && matches!(tag, front::QUERY | front::EXECUTE)
            && backend.segment.is_some();
        reads && !self.is_calm && self.rng.chance(rate)
    }

    /// Checks that a server may get a message of this client.
    fn check_owner(&mut self, number: usize, client: usize) {
        let backend = &mut self.backends[number];
        let within = backend.segment.replace(client).filter(|before| *before != client);
        let before = backend.owner.replace(client).filter(|before| *before != client);
        if let Some(within) = within {
            self.violate("lending", || {
                format!("clients {within} and {client} share a segment on server {number}")
            });
        } else if let Some(before) = before.filter(|_| !self.backends[number].left.is_empty()) {
            let left = self.backends[number].left.clone();
            self.violate("lending", || {
                format!("client {client} got server {number} with {left} of client {before}")
            });
        }
    }

    /// Lets a cancel request take effect, and closes its connection.
    pub(crate) fn signal(&mut self, pid: u32, key: &[u8], link: LinkId) {
        self.trace.line(self.now, "signal", format_args!("pid {pid}"), String::new);
        let late = self.plant == Some(Plant::LateCancel);
        if late && !self.links[link.0].up.closing {
            // The bug: the connection closes long before the request takes effect.
            self.links[link.0].up.closing = true;
            self.pump(link, Way::Up);
            return self.later(3_000, Happening::Signal(pid, key.to_vec(), link));
        }
        let found = self.backends.iter().position(|b| b.pid == pid && b.key == key);
        if let Some(number) = found.filter(|n| self.backends[*n].stage == Stage::Serving) {
            let backend = &mut self.backends[number];
            backend.cancelled = true;
            if let Some((tag, _, hit)) = &mut backend.current {
                *hit = backend.session.is_interruptible(*tag);
                self.appoint(number, 0);
            } else if backend.session.is_copying() {
                backend.session.interrupt_copy();
                backend.segment = None;
                backend.left = backend.session.leftovers();
                self.backend_answers(number);
            }
        }
        self.links[link.0].up.closing = true;
        self.pump(link, Way::Up);
    }
}

/// Whether an error says that a server lacks an internal statement. The engine never prepares the
/// statement whose name ends with `_none`.
fn lacks_internal(out: &[u8]) -> bool {
    let mut replies = Frames::default();
    replies.push(out);
    std::iter::from_fn(|| replies.take()).any(|(tag, body)| {
        tag == back::ERROR_RESPONSE
            && find(&body, b"C26000\0")
            && find(&body, b"statement \"_r")
            && !find(&body, b"_none\"")
    })
}

fn find(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}
