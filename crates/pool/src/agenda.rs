//! The pools that the next ticks visit.
//!
//! A tick costs what is due, and not what exists: of a thousand pools most have no work for it. So
//! a tick visits the pools that were used since the last tick
//! ([`crate::core_state::CoreState::find_pool`] lists each, when a server is lent at the latest),
//! those that are not done ([`crate::pool::Pool::needs_tick`]), and unused ones when each may be
//! forgotten.
//!
//! A pool is in `next` exactly while its [`Visits`] say that it is listed, and in `later` exactly
//! while they have the time there.

use std::collections::BTreeSet;

use crate::ids::PoolId;
use crate::time::Now;

/// The pools that the next ticks visit.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// Pools that the next tick visits. One that was closed since is passed over.
    next: Vec<PoolId>,
    /// Unused pools, by the time at which each may be forgotten.
    later: BTreeSet<(Now, PoolId)>,
}

/// The visits of one pool.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    is_listed: bool,
    rests_until: Option<Now>,
}

impl Visits {
    /// Whether the next tick visits the pool.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Returns the time of the visit to the pool because it is unused.
    pub(crate) fn rests_until(&self) -> Option<Now> {
        self.rests_until
    }

    /// Notes whether the next tick visits the pool again, which this tick has visited.
    pub(crate) fn set_listed(&mut self, is_listed: bool) {
        self.is_listed = is_listed;
    }
}

impl Agenda {
    /// Adds a pool to those that the next tick visits, unless the pool is listed.
    #[inline]
    pub(crate) fn list(&mut self, id: PoolId, visits: &mut Visits) {
        if !visits.is_listed {
            visits.is_listed = true;
            self.next.push(id);
        }
    }

    /// Notes that an unused pool is to be visited at `due`, or no more if that is `None`.
    pub(crate) fn rest(&mut self, id: PoolId, visits: &mut Visits, due: Option<Now>) {
        if visits.rests_until != due {
            visits.rests_until.map(|before| self.later.remove(&(before, id)));
            due.map(|due| self.later.insert((due, id)));
            visits.rests_until = due;
        }
    }

    /// Returns an unused pool whose time has come. The pool stays until [`Agenda::rest`].
    pub(crate) fn due(&self, now: Now) -> Option<PoolId> {
        self.later.first().filter(|(due, _)| *due <= now).map(|(_, id)| *id)
    }

    /// Returns the time at which the first unused pool may be forgotten.
    pub(crate) fn first_rest(&self) -> Option<Now> {
        self.later.first().map(|(due, _)| *due)
    }

    /// Whether the next tick visits any pool.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Takes out the pools that this tick visits.
    pub(crate) fn take(&mut self) -> Vec<PoolId> {
        std::mem::take(&mut self.next)
    }

    /// Puts back the pools that the next tick visits again.
    pub(crate) fn put_back(&mut self, mut visited: Vec<PoolId>) {
        visited.append(&mut self.next);
        self.next = visited;
    }
}
