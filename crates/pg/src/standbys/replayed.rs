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
    /// Whether it had what a read needed, once.
    is_proven: bool,
    /// The count of schema changes that its host had replayed for certain when the session began:
    /// so the session's defaults are behind these.
    since: u64,
}

impl Replayed {
    /// Begins with a session at a host that has replayed so many schema changes for certain.
    pub(crate) fn opens(&mut self, schema_changes: u64) {
        self.since = schema_changes;
    }

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

    /// Notes that a read may run there. Returns whether the session's defaults are behind the
    /// change that was the last of so many schema changes.
    pub(crate) fn proves(&mut self, defaults: u64) -> bool {
        self.is_proven = true;
        self.since >= defaults
    }

    /// Notes that the standby was too late for a read, or could not say.
    pub(crate) fn was_late(&mut self, now: Now) {
        self.rests_until = Now(now.0 + REST_US);
        if !self.is_proven {
            // Whatever its host has replayed: this may be another standby.
            self.since = 0;
        }
    }

    /// Returns how well the standby suits a read: 0 if it has what is needed and began behind the
    /// last change of `defaults`, 1 if it is to be asked in front of the read.
    pub(crate) fn rates(&self, needs: &Position, defaults: u64, now: Now) -> Option<u8> {
        match self.has(needs) {
            true => Some(u8::from(self.since < defaults)),
            false => (self.rests_until <= now).then_some(1),
        }
    }
}
