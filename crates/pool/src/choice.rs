//! Which idle server of a pool a client gets: the one used last, the one that suits it, or none.

use crate::time::Now;

/// The state by which a pool chooses among its idle servers.
#[derive(Debug)]
pub(crate) struct Choice {
    /// Whether the pool is paused, so that no idle server is lent.
    pub(crate) paused: bool,
    /// Whether a server of this core may have traces of clients ([`crate::Protocol::is_marked`]).
    pub(crate) marked: bool,
    /// Whether any client gets the server used last: the pool is neither paused nor marked.
    pub(crate) lends_last: bool,
    /// Whether a client lately got a server that does not suit it ([`crate::Protocol::suits`]).
    pub(crate) missed: bool,
    /// When a server was last connected because of that.
    pub(crate) renewed: Now,
}

impl Choice {
    /// Makes the state of a pool without servers.
    pub(crate) fn new(paused: bool) -> Self {
        Self { paused, marked: false, lends_last: !paused, missed: false, renewed: Now(0) }
    }

    /// Pauses the pool, or resumes it.
    pub(crate) fn pause(&mut self, paused: bool) {
        self.paused = paused;
        self.lends_last = !paused && !self.marked;
    }

    /// Notes that a server has traces of a client.
    #[cold]
    pub(crate) fn mark(&mut self) {
        self.marked = true;
        self.lends_last = false;
    }

    /// Notes that no server is left, so none is marked.
    pub(crate) fn unmark(&mut self) {
        (self.marked, self.missed) = (false, false);
        self.lends_last = !self.paused;
    }
}
