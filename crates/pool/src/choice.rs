//! Which idle server of a pool a client gets: the one used last, the one used longest ago, the one
//! that suits it, or none.

use crate::time::Now;

/// The state by which a pool chooses among its idle servers.
#[derive(Debug)]
pub(crate) struct Choice {
    /// Whether the pool is paused, so that no idle server is lent.
    pub(crate) paused: bool,
    /// Whether a server of this core may have traces of clients ([`crate::Protocol::is_marked`]).
    pub(crate) marked: bool,
    /// Whether clients get the server that was used longest ago (`server_round_robin`).
    pub(crate) round_robin: bool,
    /// Whether any client gets the server used last: the pool is neither paused nor marked, and
    /// does not take turns.
    pub(crate) lends_last: bool,
    /// Whether a client lately got a server that does not suit it ([`crate::Protocol::suits`]).
    pub(crate) missed: bool,
    /// When a server was last connected because of that.
    pub(crate) renewed: Now,
}

impl Choice {
    /// Makes the state of a pool without servers.
    pub(crate) fn new(paused: bool, round_robin: bool) -> Self {
        let lends_last = !paused && !round_robin;
        let (marked, missed, renewed) = (false, false, Now(0));
        Self { paused, marked, round_robin, lends_last, missed, renewed }
    }

    /// Has clients get the server that was used longest ago from now on, or not.
    pub(crate) fn take_turns(&mut self, round_robin: bool) {
        self.round_robin = round_robin;
        self.decide();
    }

    fn decide(&mut self) {
        self.lends_last = !self.paused && !self.marked && !self.round_robin;
    }

    /// Whether a client's server is picked among the idle ones.
    pub(crate) fn picks(&self) -> bool {
        self.marked || self.round_robin
    }

    /// Pauses the pool, or resumes it.
    pub(crate) fn pause(&mut self, paused: bool) {
        self.paused = paused;
        self.decide();
    }

    /// Notes that a server has traces of a client.
    #[cold]
    pub(crate) fn mark(&mut self) {
        self.marked = true;
        self.decide();
    }

    /// Notes that no server is left, so none is marked.
    pub(crate) fn unmark(&mut self) {
        (self.marked, self.missed) = (false, false);
        self.decide();
    }
}
