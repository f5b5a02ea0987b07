//! Ends that break the protocol: hostile clients, and servers that lie.
//!
//! A hostile client begins well and is then spoiled: packets are left out, repeated, cut or torn,
//! have other lengths and sequence ids, or are no packets at all. It ends anywhere. A server that
//! lies spoils its replies in the same way, asks for files, is silent, or says what nobody asked
//! for. Beside them honest clients check all their replies; and the engine has to stay whole, with
//! bounded memory, and without a server that nobody has.

use refrain_sim::net::LinkId;
use refrain_sim::rng::Rng;

use crate::feature::FEATURES;
use crate::prepared::execution;
use crate::script::{Held, Say, Script};
use crate::wire::{PAYLOAD_MAX, com, message};

/// The number of the first hostile client: none of the others has as high a one.
pub(crate) const HOSTILE: usize = 1_000_000;

/// The most bytes of garbage.
const GARBAGE_MAX: usize = 200;

/// A hostile client.
#[derive(Debug)]
pub(crate) struct Hostile {
    pub(crate) rng: Rng,
    pub(crate) link: Option<LinkId>,
    script: Script,
    /// How many acts of its session are left.
    pub(crate) acts: u64,
}

impl Hostile {
    /// Makes one that is not connected yet.
    pub(crate) fn new(mut rng: Rng) -> Self {
        let script = script(&mut rng);
        Self { rng, link: None, script, acts: 0 }
    }

    /// Begins a session.
    pub(crate) fn begin(&mut self, link: LinkId) {
        self.link = Some(link);
        self.acts = self.rng.below(30);
        self.script = script(&mut self.rng);
    }

    /// Returns the bytes of the next command, most of them as they should be.
    pub(crate) fn command(&mut self) -> Vec<u8> {
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

/// Returns a text of about the most bytes that a packet has.
pub(crate) fn long(rng: &mut Rng) -> Vec<u8> {
    let length = PAYLOAD_MAX + rng.index(3) - 1;
    let mut payload = vec![b' '; length];
    payload[0] = com::QUERY;
    payload[1..3].copy_from_slice(b"DO");
    let mut bytes = Vec::new();
    message(&mut bytes, 0, &payload);
    bytes
}

/// Spoils what a client says.
pub(crate) fn spoil(rng: &mut Rng, bytes: &mut Vec<u8>) {
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
