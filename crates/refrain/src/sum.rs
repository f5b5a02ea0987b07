//! What the cores say of their pools, added up.

use std::collections::BTreeMap;
use std::sync::Arc;

use refrain_engine::snapshot::{PoolView, Snapshot};

/// Names a pool: database and user.
pub(crate) type Key = (Arc<str>, Arc<str>);

/// Each pool over all cores.
pub(crate) fn pools(snapshots: &[Snapshot]) -> BTreeMap<Key, PoolView> {
    let mut pools: BTreeMap<Key, PoolView> = BTreeMap::new();
    for part in snapshots.iter().flat_map(|core| &core.pools) {
        let key = (Arc::clone(&part.database), Arc::clone(&part.user));
        match pools.get_mut(&key) {
            Some(sum) => add(sum, part),
            None => drop(pools.insert(key, part.clone())),
        }
    }
    pools
}

fn add(sum: &mut PoolView, part: &PoolView) {
    sum.paused |= part.paused;
    sum.waiting += part.waiting;
    sum.max_wait_us = sum.max_wait_us.max(part.max_wait_us);
    sum.counters.add(&part.counters);
}
