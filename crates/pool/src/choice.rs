//! Which idle server of a pool a client gets: the one used last, the one used longest ago, the one
//! that suits it, or none.

use refrain_config::PoolOptions;

use crate::time::Now;

/// The order in which idle servers are lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LendOrder {
    /// The one used last comes first.
    Last,
    /// The one used longest ago comes first (`server_round_robin`).
    First,
}

impl LendOrder {
    /// Returns the order that the options ask for.
    pub(crate) fn of(options: &PoolOptions) -> Self {
        if options.server_round_robin { Self::First } else { Self::Last }
    }
}

/// The state by which a pool chooses among its idle servers.
#[derive(Debug)]
pub(crate) struct Choice {
    /// Whether the pool is paused, so that no idle server is lent.
    pub(crate) paused: bool,
    /// Whether a server of this core may have traces of clients ([`crate::Protocol::is_marked`]).
    pub(crate) marked: bool,
    /// The order in which servers are lent that suit a client alike.
    pub(crate) order: LendOrder,
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
    pub(crate) fn new(paused: bool, order: LendOrder) -> Self {
        let lends_last = !paused && order == LendOrder::Last;
        let (marked, missed, renewed) = (false, false, Now(0));
        Self { paused, marked, order, lends_last, missed, renewed }
    }

    /// Lends servers in this order from now on.
    pub(crate) fn lend_in(&mut self, order: LendOrder) {
        self.order = order;
        self.decide();
    }

    fn decide(&mut self) {
        self.lends_last = !self.paused && !self.marked && self.order == LendOrder::Last;
    }

    /// Whether a client's server is picked among the idle ones.
    pub(crate) fn picks(&self) -> bool {
        self.marked || self.order == LendOrder::First
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
