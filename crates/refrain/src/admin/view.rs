//! The snapshots of all cores, put together.

use std::collections::BTreeMap;
use std::sync::Arc;

use refrain_config::Options;
use refrain_pg::{ClientView, Counters, PoolView, ServerView, Snapshot};
use refrain_pool::Now;
use refrain_pool::ids::Core;
use refrain_pool::snapshot::{ClientViewState, Extent, ServerViewState};

use super::SNAPSHOT_TIMEOUT;
use super::averages::{self, Averages, Figures, Sums, Totals};
use crate::pg::PgState;
use crate::state::State;
use crate::sum::{self, Key};

/// The whole program at about one moment.
pub(super) struct View<'a> {
    pub(super) state: &'a State,
    pub(super) pg: &'a PgState,
    pub(super) averages: &'a Averages,
    pub(super) options: Arc<Options>,
    pub(super) now: Now,
    pub(super) snapshots: Vec<Snapshot>,
}

/// A pool, summed over all cores.
pub(super) struct Pool {
    /// The parts of all cores, added up.
    pub(super) sum: PoolView,
    /// Servers by state, in the order of [`SERVER_STATES`].
    servers: [u32; SERVER_STATES.len()],
    /// Servers of `servers` that have one client each.
    dedicated: [u32; SERVER_STATES.len()],
}

const SERVER_STATES: [ServerViewState; 5] = [
    ServerViewState::Login,
    ServerViewState::Idle,
    ServerViewState::Active,
    ServerViewState::Resetting,
    ServerViewState::Cancelling,
];

impl Pool {
    /// Counts the servers.
    pub(super) fn all_servers(&self) -> u64 {
        self.servers.iter().copied().map(u64::from).sum()
    }

    /// Counts the servers in a state.
    pub(super) fn servers(&self, state: ServerViewState) -> u64 {
        let counts = SERVER_STATES.iter().zip(self.servers);
        counts.filter(|(other, _)| **other == state).map(|(_, count)| u64::from(count)).sum()
    }

    /// True if all servers that the clients of the pool may share are there, and none is idle.
    pub(super) fn is_at_limit(&self) -> bool {
        let shared = || self.servers.iter().zip(self.dedicated).map(|(all, apart)| all - apart);
        let idle = SERVER_STATES
            .iter()
            .zip(shared())
            .any(|(state, count)| *state == ServerViewState::Idle && count > 0);
        !self.sum.is_dedicated && !idle && shared().sum::<u32>() >= self.sum.size
    }
}

impl<'a> View<'a> {
    /// Takes a snapshot of a part of every core.
    pub(super) fn of(
        state: &'a State,
        pg: &'a PgState,
        averages: &'a Averages,
        extent: Extent,
    ) -> Self {
        let snapshots = pg.snapshots(SNAPSHOT_TIMEOUT, extent);
        Self { state, pg, averages, options: state.options(), now: state.clock.now(), snapshots }
    }

    /// Returns the clients that are logged in, with the core that serves each.
    pub(super) fn clients(&self) -> impl Iterator<Item = (Core, &ClientView)> {
        self.snapshots.iter().flat_map(|core| core.clients.iter().map(|client| (core.core, client)))
    }

    /// Returns the servers, with the core that has each.
    pub(super) fn servers(&self) -> impl Iterator<Item = (Core, &ServerView)> {
        self.snapshots.iter().flat_map(|core| core.servers.iter().map(|server| (core.core, server)))
    }

    /// Counts the clients of the console.
    pub(super) fn admins(&self) -> u64 {
        self.clients().filter(|(_, client)| client.state == ClientViewState::Admin).count() as u64
    }

    /// Returns the pools, by database and user.
    pub(super) fn pools(&self) -> Vec<Pool> {
        let pool = |(key, sum)| (key, Pool { sum, servers: [0; 5], dedicated: [0; 5] });
        let mut pools: BTreeMap<Key, Pool> =
            sum::pools(&self.snapshots).into_iter().map(pool).collect();
        for (_, server) in self.servers() {
            let key = (Arc::clone(&server.database), Arc::clone(&server.user));
            let state = SERVER_STATES.iter().position(|state| *state == server.state);
            if let (Some(pool), Some(state)) = (pools.get_mut(&key), state) {
                pool.servers[state] += 1;
                pool.dedicated[state] += u32::from(server.is_dedicated);
            }
        }
        pools.into_values().collect()
    }

    /// Returns PgBouncer's figures, by database.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::new();
        for pool in self.snapshots.iter().flat_map(|core| &core.pools) {
            let sum: &mut Figures = totals.entry(Arc::clone(&pool.database)).or_default();
            averages::add(sum, &averages::figures(&pool.counters));
        }
        if let Some(counters) = sum::forgotten(&self.snapshots) {
            totals.insert(sum::FORGOTTEN.into(), averages::figures(&counters));
        }
        totals
    }

    /// Returns the counters of all pools, added up, with those of forgotten pools.
    pub(super) fn counters(&self) -> Counters {
        let mut all = Counters::default();
        for core in &self.snapshots {
            core.pools.iter().for_each(|pool| all.add(&pool.counters));
            all.add(&core.forgotten);
        }
        all
    }

    /// Returns what has been counted over all pools.
    pub(super) fn sums(&self) -> Sums {
        Sums::of(&self.counters())
    }

    /// Returns how long ago a moment was, in microseconds.
    pub(super) fn ago(&self, since: Option<Now>) -> u64 {
        since.map_or(0, |since| self.now.since(since))
    }
}
