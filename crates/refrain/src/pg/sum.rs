//! Figures of the result cache, summed over all cores.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use refrain_pg::Snapshot;
use refrain_pg::snapshot::{CacheRuleRow, RepeatedRow};

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
