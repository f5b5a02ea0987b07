//! Model clients: each runs its script, compares every packet with its oracle, and leaves.
//!
//! The checks: every reply is the one that the client's oracle expects, with the rows written that
//! it says are; and no client is disconnected without an error, or with an error that no fault
//! excuses.
//!
//! Hostile clients, if there are any, say what they say, and leave.

use refrain_sim::net::{LinkId, Peer, Way};

use crate::client::{Client, Stage};
use crate::hostile::{HOSTILE, long, spoil};
use crate::login;
use crate::oracle::Got;
use crate::script::Say;
use crate::session::News;
use crate::wire::{Message, cap, com, error_number, message, show};
use crate::world::{Happening, World};

/// Errors with which Refrain ends a session.
const ENDINGS: [u16; 7] = [1040, 1045, 1053, 2003, 2013, 3169, 4031];

/// The error with which servers end sessions, in place of a reply.
const SERVER_SHUTDOWN: u16 = 1053;

impl World {
    /// Connects a client.
    pub(crate) fn client_arrives(&mut self, slot: usize) {
        let number = self.clients.iter().rposition(|client| client.slot == slot).unwrap_or(slot);
        let id = self.accept(Peer::Client(number));
        let client = &mut self.clients[number];
        client.link = Some(id);
        client.stage = Stage::Listens;
    }

    fn client_says(&mut self, number: usize, bytes: &[u8]) {
        let Some(link) = self.clients[number].link else { return };
        self.trace.line(self.now, "says", format_args!("client {number}"), || show(bytes));
        self.links[link.0].up.send(bytes);
        self.pump(link, Way::Up);
    }

    /// Gives bytes to a client.
    pub(crate) fn client_reads(&mut self, number: usize, link: LinkId, bytes: &[u8]) {
        if self.clients[number].link != Some(link) {
            return;
        }
        self.clients[number].input.push(bytes);
        while let Some(message) = self.clients[number].input.take() {
            self.trace
                .line(self.now, "reads", format!("client {number}"), || show(&message.payload));
            self.client_gets(number, &message);
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

    fn client_gets(&mut self, number: usize, got: &Message) {
        let client = &mut self.clients[number];
        if client.stage == Stage::Done {
            return;
        }
        if client.got_fatal {
            let what = show(&got.payload);
            return self.violate("endings", || format!("client {number} got {what} after its end"));
        }
        if client.stage == Stage::Listens && error_number(&got.payload).is_none() {
            return self.client_logs_in(number, got);
        }
        let awaits = client.oracle.awaits();
        let sequence = client.oracle.sequence();
        let is_file = client.oracle.is_within();
        let result = client.oracle.check(got);
        match result {
            Ok(Got::Part) => {}
            Ok(Got::Prepared(held)) => self.clients[number].script.held.push(held),
            Ok(Got::File) => self.client_sends_file(number, got.last.wrapping_add(1)),
            Ok(Got::End(news)) => self.client_got_reply(number, news),
            // Its session and the oracle's are not the same any more.
            Ok(Got::Killed) => self.client_goes(number),
            Err(what) => {
                let excuses = error_number(&got.payload).filter(|its| ENDINGS.contains(its));
                let has_excuse = self.faults > 0 || self.is_drained;
                // It may have been on its way before the command was.
                let fits =
                    got.first == sequence || got.first == 0 || is_file && got.first < sequence;
                if excuses.is_none() || !has_excuse || !fits {
                    return self
                        .violate("oracle", || format!("client {number} {what}; before: {awaits}"));
                }
                self.clients[number].got_fatal = true;
                // A server has said it, and Refrain says what follows from that.
                if excuses == Some(SERVER_SHUTDOWN) {
                    self.client_goes(number);
                }
            }
        }
    }

    fn client_logs_in(&mut self, number: usize, greeting: &Message) {
        let client = &mut self.clients[number];
        let Some(offered) = login::offered(&greeting.payload).filter(|_| greeting.first == 0)
        else {
            let what = show(&greeting.payload);
            return self.violate("login", || format!("client {number} was greeted by {what}"));
        };
        client.agreed &= offered;
        client.greeted = login::session_number(&greeting.payload).unwrap_or(0);
        let Client { agreed, collation, user, schema, .. } = client;
        // A client that names another plugin than the greeting does is asked for its proof.
        let plugin = login::plugin(&greeting.payload);
        let payload = login::response(*agreed, *collation, (user, schema.as_deref()), plugin);
        let sequence = greeting.last + 1;
        let mut bytes = Vec::new();
        message(&mut bytes, sequence, &payload);
        client.oracle.hear(&Message { first: sequence, last: sequence, payload });
        client.stage = Stage::LogsIn;
        self.client_says(number, &bytes);
    }

    /// Sends the file that the server asks for.
    fn client_sends_file(&mut self, number: usize, mut sequence: u8) {
        let client = &mut self.clients[number];
        let mut bytes = Vec::new();
        for at in 0..=client.rng.below(4) {
            let payload = vec![at as u8; client.rng.index(2_000) + 1];
            message(&mut bytes, sequence, &payload);
            client.oracle.hear(&Message { first: sequence, last: sequence, payload });
            sequence = sequence.wrapping_add(1);
        }
        message(&mut bytes, sequence, &[]);
        client.oracle.hear(&Message { first: sequence, last: sequence, payload: Vec::new() });
        self.client_says(number, &bytes);
    }

    /// Notes the end of a reply, and what the client knows by it.
    fn client_got_reply(&mut self, number: usize, news: Vec<News>) {
        self.tally.replies += 1;
        let client = &mut self.clients[number];
        if client.stage == Stage::LogsIn {
            client.stage = if client.oracle.session.ended { Stage::Leaves } else { Stage::Works };
            self.tally.logins += 1;
        }
        for one in news {
            let (row, is_due) = match one {
                News::Wrote(_) => continue,
                News::Committed(row) => (row, true),
                News::Undone(row) => (row, false),
            };
            self.tally.rows += 1;
            if self.rows.committed.contains(&row) != is_due {
                self.violate("rows", || {
                    format!("client {number} wrote {row}; it was due to remain: {is_due}")
                });
            }
        }
    }

    /// Checks that the engine may close a client's connection, and ends the client.
    pub(crate) fn client_ends(&mut self, number: usize, link: LinkId) {
        let client = &self.clients[number];
        if client.link != Some(link) {
            return;
        }
        let failed = self.faults > 0 || self.is_drained;
        let leaves = client.stage == Stage::Leaves && client.oracle.is_settled();
        // Amid a message no error can be sent, and where rows have come none is.
        let is_cut = failed && (client.oracle.is_within() || !client.input.is_empty());
        if !leaves && !is_cut && !client.got_fatal {
            let status = client.status();
            return self.violate("endings", || format!("disconnected without an error: {status}"));
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
            let delay = self.rng.below(20_000);
            self.later(delay, Happening::Arrive(slot));
        }
    }

    /// Lets a client act: send or leave.
    pub(crate) fn client_acts(&mut self, number: usize, appointment: u32) {
        let (abrupt, halves) = (self.plan.rates.abrupt, self.plan.rates.halves);
        let calm = self.is_calm;
        let client = &mut self.clients[number];
        if client.stage != Stage::Works || client.number != appointment {
            return;
        }
        client.armed = false;
        if !calm && client.rng.chance(abrupt) {
            return self.client_goes(number);
        }
        if client.outbox.is_empty() {
            if !client.oracle.is_settled() {
                return;
            }
            self.next_commands(number);
        }
        let client = &mut self.clients[number];
        let all = client.outbox.len();
        let part = if client.rng.chance(halves) { client.rng.index(all) + 1 } else { all };
        let said: Vec<u8> = client.outbox.drain(..part.min(all)).collect();
        let rest = !client.outbox.is_empty();
        let (settled, leaves_amid) = (client.oracle.is_settled(), client.rng.chance(abrupt));
        let think = client.rng.below(self.plan.think);
        self.client_says(number, &said);
        if self.clients[number].stage == Stage::Works && (rest || settled || leaves_amid) {
            self.appoint_client(number, think);
        }
    }

    /// Writes the client's next commands, or its goodbye.
    fn next_commands(&mut self, number: usize) {
        let most = self.plan.pipelined;
        if !self.is_calm && self.rng.chance(self.plan.rates.kill) {
            self.client_kills(number);
        }
        let client = &mut self.clients[number];
        let count = client.rng.index(most) + 1;
        for _ in 0..count {
            if client.script.queue.is_empty() && client.units > 0 {
                client.units -= 1;
                client.script.unit();
            }
            let Some(say) = client.script.queue.pop_front() else { break };
            let (bytes, private) = client.written(&say);
            client.outbox.extend_from_slice(&bytes);
            client.oracle.hear(&private);
            // What follows is the file.
            if client.oracle.session.file.is_some() {
                return;
            }
        }
        if client.script.queue.is_empty() && client.units == 0 {
            message(&mut client.outbox, 0, &[com::QUIT]);
            client.stage = Stage::Leaves;
            self.client_leaves(number);
        }
    }

    /// Has a client kill what another one of its user does.
    fn client_kills(&mut self, number: usize) {
        let user = self.clients[number].user.clone();
        let is_one = |client: &Client| client.stage == Stage::Works && client.user == user;
        let victims: Vec<usize> = (0..self.clients.len())
            .filter(|victim| *victim != number && is_one(&self.clients[*victim]))
            .collect();
        if victims.is_empty() {
            return;
        }
        let victim = &mut self.clients[*self.rng.pick(&victims)];
        victim.oracle.may_be_killed = true;
        let text = format!("KILL QUERY {}", victim.greeted);
        let client = &mut self.clients[number];
        message(&mut client.outbox, 0, &[&[com::QUERY], text.as_bytes()].concat());
        client.oracle.kill();
    }

    /// Sends the goodbye with all that comes before it.
    fn client_leaves(&mut self, number: usize) {
        let said = std::mem::take(&mut self.clients[number].outbox);
        self.client_says(number, &said);
    }

    /// Has a hostile client connect, send something or leave.
    pub(crate) fn hostile_acts(&mut self, at: usize) {
        if self.is_calm && self.hostile[at].link.is_none() {
            return;
        }
        let delay = self.hostile[at].rng.below(3_000);
        self.later(delay, Happening::Attack(at));
        let Some(link) = self.hostile[at].link else { return self.hostile_arrives(at) };
        let hostile = &mut self.hostile[at];
        if hostile.acts == 0 || self.is_calm {
            hostile.link = None;
            if hostile.rng.chance(500) {
                self.links[link.0].up.closing = true;
                self.pump(link, Way::Up);
            } else {
                self.break_link(link);
            }
            return;
        }
        hostile.acts -= 1;
        let mut bytes = hostile.command();
        for _ in 0..hostile.rng.below(4) {
            let more = hostile.command();
            bytes.extend_from_slice(&more);
        }
        if hostile.rng.chance(400) {
            spoil(&mut hostile.rng, &mut bytes);
        }
        if self.plan.piece > 1_000 && self.plan.room > 4_096 && self.hostile[at].rng.chance(3) {
            bytes = long(&mut self.hostile[at].rng);
        }
        self.hostile_says(link, &bytes);
    }

    fn hostile_says(&mut self, link: LinkId, bytes: &[u8]) {
        self.tally.spoiled += bytes.len() as u64;
        self.links[link.0].up.send(bytes);
        self.pump(link, Way::Up);
    }

    fn hostile_arrives(&mut self, at: usize) {
        let link = self.accept(Peer::Client(HOSTILE + at));
        self.hostile[at].begin(link);
        let rng = &mut self.hostile[at].rng;
        let mut agreed = u32::from_le_bytes([0x85, 0xA2, 0x8F, 0x01]) | cap::CONNECT_WITH_DB;
        agreed ^= if rng.chance(200) { 1 << rng.below(32) } else { 0 };
        let schema = *rng.pick(&["false", "false", "d0", "nowhere"]);
        let payload = login::response(agreed & !(1 << 11), 45, ("u0", Some(schema)), login::PLUGIN);
        let mut bytes = Vec::new();
        message(&mut bytes, 1, &payload);
        if rng.chance(150) {
            spoil(rng, &mut bytes);
        }
        // It does not wait to be greeted.
        self.hostile_says(link, &bytes);
    }

    /// Ends a hostile client's connection.
    pub(crate) fn hostile_ends(&mut self, number: usize, link: LinkId) {
        let hostile = &mut self.hostile[number - HOSTILE];
        if hostile.link == Some(link) {
            hostile.link = None;
            self.links[link.0].up.closing = true;
            self.pump(link, Way::Up);
        }
    }
}

impl Client {
    /// Returns a command as the client sends it, and as its private session gets it.
    fn written(&self, say: &Say) -> (Vec<u8>, Message) {
        let (own, private) = match say {
            Say::Command(payload) => (payload.clone(), payload.clone()),
            Say::Statement(at, command, rest) => {
                let held = &self.script.held[*at];
                let with = |number: u32| [&[*command], &number.to_le_bytes()[..], rest].concat();
                (with(held.number), with(held.private))
            }
        };
        let mut bytes = Vec::new();
        message(&mut bytes, 0, &own);
        (bytes, Message { first: 0, last: 0, payload: private })
    }
}
