//! Ends that break the protocol: hostile clients, and servers that lie.
//!
//! A hostile client begins well and is then spoiled: packets are left out, repeated, cut or torn,
//! have other lengths and sequence ids, or are no packets at all. It ends anywhere. A server that
//! lies spoils its replies in the same way, asks for files, is silent, or says what nobody asked
//! for. Beside them honest clients check all their replies; and the engine has to stay whole, with
//! bounded memory, and without a server that nobody has.

use refrain_sim::net::{LinkId, Peer, Way};
use refrain_sim::rng::Rng;

use crate::feature::FEATURES;
use crate::login;
use crate::prepared::execution;
use crate::script::{Held, Say, Script};
use crate::wire::{PAYLOAD_MAX, cap, com, message};
use crate::world::{Happening, World};

/// The number of the first hostile client: none of the others has as high a one.
pub(crate) const HOSTILE: usize = 1_000_000;

/// The most bytes of garbage.
const GARBAGE_MAX: usize = 200;

/// A hostile client.
#[derive(Debug)]
pub(crate) struct Hostile {
    rng: Rng,
    link: Option<LinkId>,
    script: Script,
    /// How many acts of its session are left.
    acts: u64,
}

impl Hostile {
    /// Makes one that is not connected yet.
    pub(crate) fn new(mut rng: Rng) -> Self {
        let script = script(&mut rng);
        Self { rng, link: None, script, acts: 0 }
    }

    /// Returns the bytes of the next command, most of them as they should be.
    fn command(&mut self) -> Vec<u8> {
        if self.script.queue.is_empty() {
            self.script.unit();
        }
        let payload = match self.script.queue.pop_front() {
            Some(Say::Command(payload)) => payload,
            Some(Say::Statement(_, command, rest)) => {
                let number = self.rng.range(0, 4) as u32;
                [&[command], &number.to_le_bytes()[..], &rest].concat()
            }
            None => execution(1, 0, &[], None),
        };
        let mut bytes = Vec::new();
        message(&mut bytes, 0, &payload);
        bytes
    }
}

fn script(rng: &mut Rng) -> Script {
    let mut script = Script::new(HOSTILE, [1; FEATURES.len()], 300, rng.fork(1));
    let held = |number| Held { private: 0, number, parameters: 1, has_types: true };
    script.held = (1..4).map(held).collect();
    script
}

impl World {
    /// Whether there are ends that break the protocol, and may do so by now.
    pub(crate) fn is_hostile(&self) -> bool {
        self.plan.hostile > 0 && !self.is_calm
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
                self.reset(link);
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
        let hostile = &mut self.hostile[at];
        hostile.link = Some(link);
        hostile.acts = hostile.rng.below(30);
        hostile.script = script(&mut hostile.rng);
        let rng = &mut hostile.rng;
        let mut agreed = u32::from_le_bytes([0x85, 0xA2, 0x8F, 0x01]) | cap::CONNECT_WITH_DB;
        agreed ^= if rng.chance(200) { 1 << rng.below(32) } else { 0 };
        let schema = *rng.pick(&["false", "false", "d0", "nowhere"]);
        let payload = login::response(agreed & !(1 << 11), 45, "u0", Some(schema));
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

/// Returns a text of about the most bytes that a packet has.
fn long(rng: &mut Rng) -> Vec<u8> {
    let length = PAYLOAD_MAX + rng.index(3) - 1;
    let mut payload = vec![b' '; length];
    payload[0] = com::QUERY;
    payload[1..3].copy_from_slice(b"DO");
    let mut bytes = Vec::new();
    message(&mut bytes, 0, &payload);
    bytes
}

/// Spoils what a client says.
fn spoil(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let length = bytes.len().max(1);
    match rng.below(9) {
        0 => bytes.truncate(rng.index(length)),
        1 => drop(bytes.drain(..rng.index(length))),
        2 => bytes.extend_from_within(rng.index(length)..),
        3 => garbage(rng, bytes),
        4 => {
            let mut other = Vec::new();
            garbage(rng, &mut other);
            *bytes = other;
        }
        5 => set(bytes, 3, rng.bits()),
        6 => set(bytes, rng.index(3), rng.bits()),
        7 => set(bytes, 4, rng.bits()),
        _ => {
            for _ in 0..rng.range(1, 8) {
                set(bytes, rng.index(length), rng.bits());
            }
        }
    }
}

/// Spoils what a server says.
pub(crate) fn lie(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if !rng.chance(150) {
        return;
    }
    match rng.below(6) {
        // It is silent.
        0 => bytes.clear(),
        // It asks for a file.
        1 => {
            bytes.clear();
            message(bytes, 1, b"\xFB/etc/passwd");
        }
        // It says more than it was asked for.
        2 => {
            message(bytes, 1, &[0, 0, 0, 2, 0, 0, 0]);
        }
        // It never ends.
        3 => {
            let row = bytes.clone();
            for _ in 0..rng.below(300) {
                bytes.extend_from_slice(&row);
            }
        }
        _ => spoil(rng, bytes),
    }
}

fn set(bytes: &mut [u8], at: usize, value: u64) {
    let value = [0, 1, 0xFB, 0xFC, 0xFE, 0xFF, value as u8][(value >> 8) as usize % 7];
    if let Some(byte) = bytes.get_mut(at) {
        *byte = value;
    }
}

fn garbage(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let at = bytes.len();
    bytes.resize(at + rng.index(GARBAGE_MAX), 0);
    rng.fill(&mut bytes[at..]);
}
