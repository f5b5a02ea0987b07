//! The checker of questions to idle servers: a server that was idle for `server_check_delay` is
//! asked whether it is there, before a client gets it.
//!
//! A server that a client has got within one step of the engine has not been asked: the answer
//! would be an event of its own.

use std::collections::HashMap;

use refrain_pg::Snapshot;
use refrain_pool::snapshot::ServerViewState;

/// The servers of an engine that are idle, by number, and the time since when each is.
#[derive(Debug, Default)]
pub(crate) struct Idle(HashMap<u64, u64>);

impl Idle {
    /// Returns the idle servers of an engine.
    pub(crate) fn of(view: &Snapshot) -> Self {
        let idle = view.servers.iter().filter(|server| server.state == ServerViewState::Idle);
        Self(idle.map(|server| (server.serial, server.lent.0)).collect())
    }

    /// Returns one of the servers that a client has got since, though it was idle for `delay`
    /// microseconds.
    pub(crate) fn lent_unasked(&self, view: &Snapshot, delay: u64) -> Option<u64> {
        let is_due = |since: &u64| since + delay <= view.now.0;
        let mut lent = view.servers.iter().filter(|server| server.client.is_some());
        let found = lent.find(|server| self.0.get(&server.serial).is_some_and(is_due));
        found.map(|server| server.serial)
    }
}
