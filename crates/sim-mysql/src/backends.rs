//! The model server's sessions: they take commands, work for a while and answer.
//!
//! The checks: no row is written twice, and bytes to a server are whole messages of commands that
//! it knows.

use refrain_pool::Event;
use refrain_sim::net::{LinkId, Peer, Way};

use crate::backend::Backend;
use crate::hostile;
use crate::login;
use crate::plant::Plant;
use crate::reply::{Outcome, Reply};
use crate::session::{News, Session};
use crate::wire::{Frames, Message, com, error_number, message, show};
use crate::world::{Happening, World};

/// Returns the number of the session that a command kills the statement of.
fn killed(payload: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(payload.strip_prefix(&[com::QUERY])?).ok()?;
    text.strip_prefix("KILL QUERY ")?.parse::<usize>().ok()?.checked_sub(1)
}

impl World {
    /// Accepts or refuses a connection to a server.
    pub(crate) fn connect(&mut self, id: LinkId, lies: bool) {
        let link = &self.links[id.0];
        let core = link.core;
        let Some(conn) = link.conn.filter(|_| !link.up.dead) else { return };
        let unlucky = !self.is_calm && self.rng.chance(self.plan.rates.refuse);
        if unlucky || self.now < self.down_until {
            self.faults += 1;
            if self.rng.chance(100) {
                return; // it never answers
            }
            return self.step(core, Event::Failed { conn, why: "refused" });
        }
        let number = self.backends.len();
        let link = &mut self.links[id.0];
        link.connected = true;
        link.peer = Peer::Backend(Some(number));
        let lie = self.plant.map(Plant::lie).unwrap_or_default();
        self.backends.push(Backend {
            link: id,
            session: Session { lie, ..Session::default() },
            input: Frames::default(),
            is_busy: false,
            is_over: false,
            is_killed: false,
            lies,
        });
        self.step(core, Event::Connected { conn });
        self.pump(id, Way::Down);
        let mut greeting = Vec::new();
        message(&mut greeting, 0, &login::greeting(number as u32 + 1));
        self.backend_says(number, &greeting);
    }

    fn backend_says(&mut self, number: usize, bytes: &[u8]) {
        let link = self.backends[number].link;
        let mut bytes = bytes.to_vec();
        if self.backends[number].lies && self.is_hostile() {
            let before = bytes.len();
            hostile::lie(&mut self.rng, &mut bytes);
            self.tally.spoiled += before as u64;
        }
        self.trace.line(self.now, "answers", format_args!("server {number}"), || show(&bytes));
        self.links[link.0].up.send(&bytes);
        self.pump(link, Way::Up);
    }

    /// Gives bytes to a server.
    pub(crate) fn backend_reads(&mut self, number: usize, bytes: &[u8]) {
        let backend = &mut self.backends[number];
        backend.input.push(bytes);
        if !backend.is_busy && !backend.is_over {
            backend.is_busy = true;
            let delay = self.rng.below(20);
            self.later(delay, Happening::Work(number));
        }
    }

    /// Lets a server take what has come for it.
    pub(crate) fn backend_works(&mut self, number: usize) {
        self.backends[number].is_busy = false;
        while !self.backends[number].is_over
            && let Some(message) = self.backends[number].input.take()
        {
            self.backend_takes(number, &message);
            if self.rng.chance(self.plan.rates.slow) {
                self.backends[number].is_busy = true;
                let delay = self.rng.range(10, 30_000);
                return self.later(delay, Happening::Work(number));
            }
        }
        // A session that waits for a command is not hit.
        self.backends[number].is_killed = false;
    }

    fn backend_takes(&mut self, number: usize, message: &Message) {
        self.trace
            .line(self.now, "takes", format_args!("server {number}"), || show(&message.payload));
        self.tally.commands += 1;
        let rates = &self.plan.rates;
        let (shutdown, login_failure, jump) = (rates.shutdown, rates.login_failure, rates.jump);
        let backend = &mut self.backends[number];
        let is_login = backend.session.agreed.is_none();
        let fails = if is_login { login_failure } else { shutdown };
        if !self.is_calm && self.rng.chance(fails) {
            return self.backend_refuses(number, message);
        }
        let backend = &mut self.backends[number];
        if message.payload.first() == Some(&com::PREPARE) && self.rng.chance(jump) {
            backend.session.jump += 1;
        }
        // What goes on with a command, as a file does, is none, whatever its sequence id.
        let is_command = message.first == 0 && backend.session.file.is_none();
        let is_statement = is_command
            && matches!(message.payload.first(), Some(&(com::QUERY | com::PREPARE | com::EXECUTE)));
        if is_statement && std::mem::take(&mut backend.is_killed) {
            let mut reply = Reply::to(message.last, backend.session.agreed.unwrap_or(0));
            reply.err(1317, "70100", "Query execution was interrupted");
            return self.backend_answers(number, &reply);
        }
        if let Some(victim) = killed(&message.payload).filter(|_| is_command) {
            let mut reply = Reply::to(message.last, backend.session.agreed.unwrap_or(0));
            reply.ok(0, Outcome::default(), &[]);
            if let Some(victim) = self.backends.get_mut(victim) {
                victim.is_killed = !victim.input.is_empty();
            }
            return self.backend_answers(number, &reply);
        }
        let reply = backend.session.handle(message);
        let lies = backend.lies;
        let news = std::mem::take(&mut backend.session.news);
        if !lies
            && self.plan.hostile == 0
            && reply.packets.iter().any(|(_, packet)| error_number(packet) == Some(1156))
        {
            self.violate("protocol", || format!("server {number} got {}", show(&message.payload)));
        }
        self.backend_tells(number, news);
        self.backend_answers(number, &reply);
    }

    /// Ends a server's session: with an error, or amid a reply.
    fn backend_refuses(&mut self, number: usize, message: &Message) {
        self.faults += 1;
        let agreed = self.backends[number].session.agreed.unwrap_or(0);
        let mut reply = Reply::to(message.last, agreed);
        if agreed != 0 && self.rng.chance(500) {
            reply = self.backends[number].session.handle(message);
            let news = std::mem::take(&mut self.backends[number].session.news);
            self.backend_tells(number, news);
            let kept = self.rng.index(reply.packets.len() + 1);
            reply.packets.truncate(kept);
        } else if agreed == 0 {
            reply.err(1045, "28000", "injected");
        } else {
            reply.err(1053, "08S01", "Server shutdown in progress");
        }
        reply.closes = true;
        self.backend_answers(number, &reply);
    }

    /// Says a reply.
    fn backend_answers(&mut self, number: usize, reply: &Reply) {
        let mut bytes = Vec::new();
        for (sequence, payload) in &reply.packets {
            message(&mut bytes, *sequence, payload);
        }
        if reply.closes && !bytes.is_empty() && !self.is_calm && self.rng.chance(200) {
            let kept = self.rng.index(bytes.len());
            bytes.truncate(kept);
        }
        if !bytes.is_empty() {
            self.backend_says(number, &bytes);
        }
        if reply.closes {
            self.backend_closes(number);
        }
    }

    /// Notes what a session has done.
    fn backend_tells(&mut self, number: usize, news: Vec<News>) {
        for one in news {
            match one {
                News::Wrote(row) => {
                    // What hostile ends repeat runs again.
                    let is_own = self.plan.hostile == 0;
                    if !self.rows.written.insert(row.clone()) && is_own {
                        self.violate("once", || format!("server {number} writes {row} again"));
                    }
                }
                News::Committed(row) => drop(self.rows.committed.insert(row)),
                News::Undone(_) => {}
            }
        }
    }

    fn backend_closes(&mut self, number: usize) {
        let link = self.backends[number].link;
        let session = &mut self.backends[number].session;
        session.roll_back();
        self.backends[number].is_over = true;
        self.links[link.0].up.closing = true;
        self.pump(link, Way::Up);
    }

    /// Ends a session with an error that nobody has asked for.
    pub(crate) fn shut_down(&mut self, number: usize) {
        if !self.backends[number].is_serving() {
            return;
        }
        self.faults += 1;
        let mut reply = Reply { closes: true, ..Reply::default() };
        reply.err(1053, "08S01", "Server shutdown in progress");
        self.backend_answers(number, &reply);
    }

    /// Ends a session whose connection is over.
    pub(crate) fn backend_ends(&mut self, number: usize) {
        self.backends[number].session.roll_back();
        self.backends[number].is_over = true;
        let link = self.backends[number].link;
        self.links[link.0].up.kill();
    }
}
