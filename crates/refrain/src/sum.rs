//! Pools and counters, summed over all cores of a protocol.

use std::collections::BTreeMap;
use std::sync::Arc;

use refrain_pool::Parts;
use refrain_pool::snapshot::{PoolView, Snapshot};
use refrain_pool::stats::Counters;

/// Identifies a pool: database and user.
pub(crate) type Key = (Arc<str>, Arc<str>);

/// Sums each pool over all cores, and with it the servers that have one client each and are opened
/// for the same user: they have a mode of their own, and no size bounds them with the others.
pub(crate) fn pools<P: Parts + Clone>(snapshots: &[Snapshot<P>]) -> BTreeMap<Key, PoolView<P>> {
    let mut pools: BTreeMap<Key, PoolView<P>> = BTreeMap::new();
    for part in snapshots.iter().flat_map(|core| &core.pools) {
        let key = (Arc::clone(&part.database), Arc::clone(&part.user));
        match pools.get_mut(&key) {
            Some(sum) if sum.is_dedicated && !part.is_dedicated => {
                let dedicated = std::mem::replace(sum, part.clone());
                add(sum, &dedicated);
            }
            Some(sum) => add(sum, part),
            None => {
                let mut sum = part.clone();
                if sum.is_dedicated {
                    (sum.size, sum.share_width) = (0, 0);
                }
                pools.insert(key, sum);
            }
        }
    }
    pools
}

/// The database name for the counters of forgotten pools: with them, sums over all rows never fall.
pub(crate) const FORGOTTEN: &str = "(forgotten)";

/// Sums the counters of forgotten pools; `None` if no pool was forgotten.
pub(crate) fn forgotten<P: Parts>(snapshots: &[Snapshot<P>]) -> Option<Counters<P::Counters>> {
    let mut sum = Counters::default();
    snapshots.iter().for_each(|core| sum.add(&core.forgotten));
    (sum.pool.pools_forgotten > 0).then_some(sum)
}

/// Returns the counters of each pool, and in one row those of all forgotten pools.
pub(crate) fn counters<P: Parts + Clone>(
    snapshots: &[Snapshot<P>],
) -> Vec<(Key, Counters<P::Counters>)> {
    let forgotten = forgotten(snapshots).map(|sum| ((FORGOTTEN.into(), "".into()), sum));
    let pools = pools(snapshots).into_iter().map(|(key, pool)| (key, pool.counters));
    pools.chain(forgotten).collect()
}

/// Adds the figures of a part of a pool.
pub(crate) fn add<P: Parts>(sum: &mut PoolView<P>, part: &PoolView<P>) {
    sum.paused |= part.paused;
    sum.active += part.active;
    sum.waiting += part.waiting;
    sum.max_wait_us = sum.max_wait_us.max(part.max_wait_us);
    sum.servers_shared += part.servers_shared;
    sum.requests_on_shared += part.requests_on_shared;
    sum.longest_line = sum.longest_line.max(part.longest_line);
    sum.counters.add(&part.counters);
}

#[cfg(test)]
pub(crate) mod tests {
    use refrain_config::{Host, PoolMode, ShareServers};
    use refrain_pg::snapshot::CoreView;
    use refrain_pg::{PoolView, Snapshot};
    use refrain_pool::Now;
    use refrain_pool::ids::Core;

    use super::*;

    /// Returns a pool with large figures.
    pub(crate) fn pool(database: &str, user: &str) -> PoolView {
        let mut counters = refrain_pg::Counters::default();
        counters.pool.queries = 1_000_000_000;
        counters.query_time.count(123_456_789);
        PoolView {
            database: database.into(),
            user: user.into(),
            mode: PoolMode::Transaction,
            size: 20,
            host: Arc::new(Host::Unix { dir: "/tmp".into(), port: 5432 }),
            server_database: database.into(),
            paused: false,
            is_dedicated: false,
            waiting: 1,
            active: 1,
            asking: 0,
            max_wait_us: 123_456_789,
            share_servers: ShareServers::Reads,
            share_width: 2,
            servers_shared: 1,
            requests_on_shared: 1,
            longest_line: 3,
            counters,
        }
    }

    /// Returns the snapshot of a core with these pools.
    pub(crate) fn snapshot(core: Core, pools: Vec<PoolView>) -> Snapshot {
        Snapshot {
            core,
            now: Now(0),
            pools,
            forgotten: refrain_pg::Counters::default(),
            clients: Vec::new(),
            servers: Vec::new(),
            protocol: CoreView::default(),
            commands: Vec::new(),
            connections: 0,
            logging_in: 0,
        }
    }

    #[test]
    fn a_pool_has_the_mode_and_size_of_the_servers_that_clients_share() {
        let shared = || pool("d", "u");
        let dedicated = || PoolView { mode: PoolMode::Session, is_dedicated: true, ..shared() };
        let sum = |parts| pools(&[snapshot(Core(0), parts)]).into_values().next().unwrap();
        for parts in [vec![shared(), dedicated()], vec![dedicated(), dedicated(), shared()]] {
            let count = parts.len() as u32;
            let sum = sum(parts);
            assert_eq!((sum.mode, sum.size, sum.is_dedicated), (PoolMode::Transaction, 20, false));
            assert_eq!((sum.active, sum.waiting), (count, count));
        }
        assert_eq!((sum(vec![dedicated()]).size, sum(vec![dedicated()]).share_width), (0, 0));
    }
}
