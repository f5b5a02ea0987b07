//! Bytes in flight: cuts them into pieces, and lets paused readers read again.

use crate::net::{LinkId, Way};
use crate::plant::{Plant, hidden_chance};
use crate::world::{Happening, World};

impl World {
    /// Moves the sender's bytes into the pipe, as far as they fit.
    pub(crate) fn pump(&mut self, id: LinkId, way: Way) {
        loop {
            let most = if self.rng.chance(100) { 7 } else { self.plan.piece };
            let most = usize::try_from(self.rng.range(1, most)).unwrap_or(1);
            let (least_us, most_us) = self.plan.latency;
            let mut latency = self.rng.range(least_us, most_us);
            if self.plant == Some(Plant::HiddenChance) {
                latency += hidden_chance();
            }
            let now = self.now;
            let link = &mut self.links[id.0];
            if way == Way::Down && !link.connected && !link.down.closing {
                return;
            }
            let pipe = link.pipe(way);
            if pipe.dead || !pipe.load(most) {
                break;
            }
            let at = pipe.last.max(now + latency);
            pipe.last = at;
            self.later(at - now, Happening::Deliver(id, way));
        }
        let link = &self.links[id.0];
        if way == Way::Down && link.lent && link.down.is_clear() {
            let lost = self.plant == Some(Plant::LoseSent) && self.strikes();
            if !lost {
                let delay = self.rng.below(100);
                self.later(delay, Happening::Sent(id));
            }
        }
    }

    /// Lets a reader read again.
    pub(crate) fn unpause(&mut self, id: LinkId, way: Way) {
        let pipe = self.links[id.0].pipe(way);
        pipe.paused = false;
        let due = std::mem::take(&mut pipe.due);
        for _ in 0..due {
            self.later(0, Happening::Deliver(id, way));
        }
    }
}
