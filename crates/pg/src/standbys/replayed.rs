//! Replayed: what a standby has said of itself on one connection.
//!
//! A standby loses nothing of what it has replayed while the connection lasts. Another connection
//! to the same name may lead to another standby, so nothing is taken from there.

use refrain_pool::Now;
use refrain_pool::ids::PoolId;

use crate::standbys::patience::pause_after;
use crate::standbys::position::Position;

/// Time for which a standby is not asked again that was too late for a read, in microseconds.
const REST_US: u64 = 50_000;

/// The position of a standby, as it has said itself.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    position: Option<Position>,
    rests_until: Now,
    /// Questions since the last answer that have failed.
    unsaid: u32,
    /// The pool of the client whose read runs there, or has run there last.
    home: Option<PoolId>,
    /// The moment at which the session began ([`crate::standbys::defaults`]).
    begun: u64,
    /// The count of schema changes up to which the session has all defaults.
    defaults: u64,
}

impl Replayed {
    /// Begins with a session that begins at this moment.
    pub(crate) fn begin(&mut self, begun: u64) {
        self.begun = begun;
    }

    /// Returns the moment at which the session began.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// Notes up to which count of schema changes the session has all defaults.
    pub(crate) fn has_defaults(&mut self, schema_changes: u64) {
        self.defaults = schema_changes;
    }

    /// Notes that the server gets a read of a client of another pool.
    pub(crate) fn visit(&mut self, home: PoolId) {
        self.home = Some(home);
    }

    /// Returns the pool of the client whose read runs there, or has run there last; `None` if the
    /// server works for clients of its own pool.
    #[inline]
    pub(crate) fn home(&self) -> Option<PoolId> {
        self.home
    }

    /// Takes in what the standby has said.
    pub(crate) fn learn(&mut self, position: Option<Position>) {
        (self.position, self.unsaid) = (position, 0);
    }

    /// Whether the standby is known to have all that is needed.
    pub(crate) fn has(&self, needs: &Position) -> bool {
        self.position.is_some_and(|position| position.has(needs))
    }

    /// Notes that the standby was too late for a read.
    pub(crate) fn was_late(&mut self, now: Now) {
        self.rests_until = Now(now.0 + REST_US);
    }

    /// Notes that a question has failed.
    pub(crate) fn could_not_say(&mut self, now: Now) {
        self.unsaid += 1;
        self.rests_until = Now(now.0 + pause_after(self.unsaid));
    }

    /// Returns how well the standby suits a read: 0 if it has what is needed and began behind the
    /// last change of `defaults`, 1 if it is to be asked in front of the read.
    pub(crate) fn rates(&self, needs: &Position, defaults: u64, now: Now) -> Option<u8> {
        match self.has(needs) {
            true => Some(u8::from(self.defaults < defaults)),
            false => (self.rests_until <= now).then_some(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standbys::patience::PATIENCE_US;
    use crate::standbys::position::tests::position;

    #[test]
    fn a_standby_that_cannot_say_is_asked_seldom() {
        let (mut replayed, needs) = (Replayed::default(), position(1, 50));
        for seconds in [1, 2, 4, 8, 16, 32, 32] {
            replayed.was_late(Now(7));
            replayed.could_not_say(Now(7));
            let end = 7 + seconds * PATIENCE_US;
            assert_eq!(replayed.rates(&needs, 0, Now(end - 1)), None);
            assert_eq!(replayed.rates(&needs, 0, Now(end)), Some(1));
        }
        replayed.learn(Some(position(1, 49)));
        replayed.was_late(Now(7));
        assert_eq!(replayed.rates(&needs, 0, Now(7 + REST_US)), Some(1));
    }

    #[test]
    fn a_session_counts_that_began_behind_a_change_of_defaults() {
        let (mut replayed, needs) = (Replayed::default(), position(1, 50));
        replayed.has_defaults(4);
        replayed.learn(Some(needs));
        assert_eq!(replayed.rates(&needs, 4, Now(1)), Some(0));
        assert_eq!(replayed.rates(&needs, 5, Now(1)), Some(1), "it began before");
    }
}
