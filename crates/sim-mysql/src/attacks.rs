//! Hostile clients in the world: they connect, say what they say, and leave.

use refrain_sim::net::{LinkId, Peer, Way};

use crate::hostile::{HOSTILE, long, spoil};
use crate::login;
use crate::wire::{cap, message};
use crate::world::{Happening, World};

impl World {
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
