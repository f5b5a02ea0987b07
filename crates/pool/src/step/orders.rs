//! Commands of the operator that concern pools and their idle servers alone: PAUSE, RESUME,
//! RECONNECT, and what RELOAD changes for servers.

use std::sync::Arc;

use crate::connections::Connections;
use crate::core_state::CoreState;
use crate::engine::Supply;
use crate::ids::{Conn, PoolId};
use crate::pool::Pool;
use crate::protocol::Protocol;
use crate::server::ServerState;

/// Whether a command for a database, or for all, concerns a pool.
pub(crate) fn concerns<P: Protocol>(database: Option<&Arc<str>>, pool: &Pool<P>) -> bool {
    database.is_none_or(|database| *database == pool.shared.database)
}

/// Returns these pools of a core.
pub(crate) fn find_pools<P: Protocol>(
    core_state: &CoreState<P>,
    which: impl Fn(&Pool<P>) -> bool,
) -> Vec<PoolId> {
    core_state.pools().filter(|pool| which(pool)).map(|pool| pool.shared.id).collect()
}

/// Returns the servers of these pools.
pub(crate) fn servers_of<P: Protocol>(connections: &Connections<P>, pools: &[PoolId]) -> Vec<Conn> {
    let servers = connections.servers();
    servers.filter(|server| pools.contains(&server.pool)).map(|server| server.conn).collect()
}

impl<P: Protocol> Supply<'_, P> {
    /// Has the pools of a database, or all, lend no server until they are resumed.
    pub(crate) fn pause(&mut self, database: Option<&Arc<str>>) {
        for id in find_pools(self.core_state, |pool| concerns(database, pool)) {
            self.core_state.pool(id).choice.pause(true);
        }
        self.close_idle(|pool| concerns(database, pool));
    }

    /// Has the pools of a database, or all, lend servers again.
    pub(crate) fn resume(&mut self, database: Option<&Arc<str>>) {
        for id in find_pools(self.core_state, |pool| concerns(database, pool)) {
            self.core_state.pool(id).choice.pause(false);
            self.grow(id);
        }
    }

    /// Closes the idle servers of a database, or of all, and the others once they are free.
    pub(crate) fn reconnect(&mut self, database: Option<&Arc<str>>) {
        let pools = find_pools(self.core_state, |pool| concerns(database, pool));
        for conn in servers_of(self.connections, &pools) {
            if let Some(server) = self.connections.server(conn) {
                server.make_obsolete();
            }
        }
        self.close_idle(|pool| concerns(database, pool));
    }

    /// Puts new options into force for the pools and their servers.
    pub(crate) fn reload(&mut self) {
        let mut reloaded = Vec::new();
        for pool in self.core_state.pools_mut() {
            pool.removed = pool.shared.is_removed();
            reloaded.push(pool.shared.id);
        }
        for id in reloaded {
            self.renew_settings(id);
        }
        self.close_outdated();
        self.core_state.open_kept_pools(self.now);
        for id in find_pools(self.core_state, |pool| pool.removed) {
            self.lose_jobs(id);
        }
    }

    /// Closes servers that nobody uses and that are to be connected anew.
    fn close_outdated(&mut self) {
        let mut outdated = Vec::new();
        for server in self.connections.servers() {
            let pool = self.core_state.peek_pool(server.pool);
            let is_old = pool.is_some_and(|pool| pool.shared.reconnects() != server.reconnects);
            if is_old && matches!(server.state, ServerState::Idle) {
                outdated.push(server.conn);
            }
        }
        outdated.into_iter().for_each(|server| self.close(server));
    }

    /// Closes the idle servers of these pools.
    pub(crate) fn close_idle(&mut self, which: impl Fn(&Pool<P>) -> bool) {
        let pools = find_pools(self.core_state, which);
        for conn in servers_of(self.connections, &pools) {
            let server = self.connections.server(conn);
            if server.is_some_and(|server| matches!(server.state, ServerState::Idle)) {
                self.close(conn);
            }
        }
    }
}
