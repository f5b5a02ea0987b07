//! Pools and counters, summed over all cores of a protocol.

use std::collections::BTreeMap;
use std::sync::Arc;

use refrain_pool::Parts;
use refrain_pool::snapshot::{PoolView, Snapshot};
use refrain_pool::stats::Counters;

/// Identifies a pool: database and user.
pub(crate) type Key = (Arc<str>, Arc<str>);

/// Sums each pool over all cores.
pub(crate) fn pools<P: Parts + Clone>(snapshots: &[Snapshot<P>]) -> BTreeMap<Key, PoolView<P>> {
    let mut pools: BTreeMap<Key, PoolView<P>> = BTreeMap::new();
    for part in snapshots.iter().flat_map(|core| &core.pools) {
        let key = (Arc::clone(&part.database), Arc::clone(&part.user));
        match pools.get_mut(&key) {
            Some(sum) => add(sum, part),
            None => drop(pools.insert(key, part.clone())),
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

/// Adds a core's part of a pool.
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
