//! Bytes in flight: cuts them into pieces, lets paused readers read again, and breaks links.

use refrain_sim::net::{LinkId, Way};

use crate::world::{Happening, World};

impl World {
    /// Moves the sender's bytes into the pipe, as far as they fit.
    pub(crate) fn pump(&mut self, id: LinkId, way: Way) {
        let (rng, plan) = (&mut self.rng, &self.plan);
        let delays = self.links[id.0].pump(way, self.now, || {
            let most = if rng.chance(100) { 7 } else { plan.piece };
            let most = usize::try_from(rng.range(1, most)).unwrap_or(1);
            (most, rng.range(plan.latency.0, plan.latency.1))
        });
        for delay in delays {
            self.later(delay, Happening::Deliver(id, way));
        }
        if way == Way::Down && self.links[id.0].owes_buffer() {
            let delay = self.rng.below(100);
            self.later(delay, Happening::Sent(id));
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

    /// Breaks a link. The bytes in flight are lost, and the engine notices a little later.
    pub(crate) fn break_link(&mut self, id: LinkId) {
        self.trace.fold([self.now, id.0 as u64, 7], &[]);
        self.trace.line(self.now, "reset", &format!("{:?}", self.links[id.0].peer), String::new);
        let link = &mut self.links[id.0];
        link.up.kill();
        link.down.kill();
        let delay = self.rng.below(200);
        self.later(delay, Happening::Broken(id));
    }
}
