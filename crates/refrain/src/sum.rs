//! Pools and counters, summed over all cores.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use refrain_pg::snapshot::{CacheRuleRow, RepeatedRow};
use refrain_pg::{Counters, PoolView, Snapshot};

/// Identifies a pool: database and user.
pub(crate) type Key = (Arc<str>, Arc<str>);

/// Sums each pool over all cores.
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

/// The database name for the counters of forgotten pools: with them, sums over all rows never fall.
pub(crate) const FORGOTTEN: &str = "(forgotten)";

/// Sums the counters of forgotten pools; `None` if no pool was forgotten.
pub(crate) fn forgotten(snapshots: &[Snapshot]) -> Option<Counters> {
    let mut sum = Counters::default();
    snapshots.iter().for_each(|core| sum.add(&core.forgotten));
    (sum.pool.pools_forgotten > 0).then_some(sum)
}

/// Returns the rules of the cache with their counts over all cores: by pool, in the order in which
/// they apply.
pub(crate) fn cache_rules(snapshots: &[Snapshot]) -> Vec<CacheRuleRow> {
    let mut rows: BTreeMap<_, CacheRuleRow> = BTreeMap::new();
    for part in snapshots.iter().flat_map(|core| &core.protocol.cache_rules) {
        let key = (Arc::clone(&part.database), Arc::clone(&part.user), part.place);
        match rows.get_mut(&key) {
            // Cores may read the configuration again one after the other.
            Some(sum) if sum.rule.name == part.rule.name => sum.counts.add(&part.counts),
            Some(_) => {}
            None => drop(rows.insert(key, part.clone())),
        }
    }
    rows.into_values().collect()
}

/// Returns the texts whose requests are repeated, over all cores: those first on which a rule of
/// the cache would save most time.
pub(crate) fn repeats(snapshots: &[Snapshot]) -> Vec<RepeatedRow> {
    let mut rows: BTreeMap<_, RepeatedRow> = BTreeMap::new();
    for part in snapshots.iter().flat_map(|core| &core.protocol.repeats) {
        let key = (Arc::clone(&part.database), Arc::clone(&part.user), part.text.clone());
        match rows.get_mut(&key) {
            Some(sum) => sum.counts.add(part.counts),
            None => drop(rows.insert(key, part.clone())),
        }
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| Reverse(row.counts.repeated_us));
    rows
}

/// Returns the counters of each pool, and in one row those of all forgotten pools.
pub(crate) fn counters(snapshots: &[Snapshot]) -> Vec<(Key, Counters)> {
    let forgotten = forgotten(snapshots).map(|sum| ((FORGOTTEN.into(), "".into()), sum));
    let pools = pools(snapshots).into_iter().map(|(key, pool)| (key, pool.counters));
    pools.chain(forgotten).collect()
}

fn add(sum: &mut PoolView, part: &PoolView) {
    sum.paused |= part.paused;
    sum.waiting += part.waiting;
    sum.max_wait_us = sum.max_wait_us.max(part.max_wait_us);
    sum.servers_shared += part.servers_shared;
    sum.requests_on_shared += part.requests_on_shared;
    sum.longest_line = sum.longest_line.max(part.longest_line);
    sum.counters.add(&part.counters);
}
