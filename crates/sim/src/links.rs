//! Bytes in flight: cuts them into pieces, and lets paused readers read again.

use crate::net::{LinkId, Way};
use crate::plant::{Plant, hidden_chance};
use crate::world::{Happening, World};

impl World {
    /// Moves the sender's bytes into the pipe, as far as they fit.
    pub(crate) fn pump(&mut self, id: LinkId, way: Way) {
        let (rng, plan) = (&mut self.rng, &self.plan);
        let is_hidden = self.plant == Some(Plant::HiddenChance);
        let delays = self.links[id.0].pump(way, self.now, || {
            let most = if rng.chance(100) { 7 } else { plan.piece };
            let most = usize::try_from(rng.range(1, most)).unwrap_or(1);
            let latency = rng.range(plan.latency.0, plan.latency.1);
            (most, if is_hidden { latency + hidden_chance() } else { latency })
        });
        for delay in delays {
            self.later(delay, Happening::Deliver(id, way));
        }
        if way == Way::Down && self.links[id.0].owes_buffer() {
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
