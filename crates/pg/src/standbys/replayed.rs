//! Replayed: what a standby has said of itself on one connection.
//!
//! A standby loses nothing of what it has replayed while the connection lasts. Another connection
//! to the same name may lead to another standby, so nothing is taken from there.

use refrain_pool::Now;

use crate::standbys::position::Position;

/// Time for which a standby is not asked again that was too late for a read, in microseconds.
const REST_US: u64 = 50_000;

/// The position of a standby, as it has said itself.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    position: Option<Position>,
    rests_until: Now,
    /// Whether the server was asked: reads of another pool's clients run there.
    is_asked: bool,
}

impl Replayed {
    /// Notes that the server is asked.
    pub(crate) fn begin(&mut self) {
        self.is_asked = true;
    }

    /// Whether the server was ever asked. Reads run on none before.
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Takes in what the standby has said.
    pub(crate) fn learn(&mut self, position: Option<Position>) {
        self.position = position;
    }

    /// Whether the standby is known to have all that is needed.
    pub(crate) fn has(&self, needs: &Position) -> bool {
        self.position.is_some_and(|position| position.has(needs))
    }

    /// Notes that the standby was too late for a read, or could not say.
    pub(crate) fn was_late(&mut self, now: Now) {
        self.rests_until = Now(now.0 + REST_US);
    }

    /// Returns how well the standby suits a read: 0 if it has what is needed, 1 if it is to be
    /// asked in front of the read.
    pub(crate) fn rates(&self, needs: &Position, now: Now) -> Option<u8> {
        if self.has(needs) { Some(0) } else { (self.rests_until <= now).then_some(1) }
    }
}
