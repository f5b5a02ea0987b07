//! Figures of pools, summed by what `metrics_by` says: a scrape stays short where there are many
//! users.

use std::collections::BTreeMap;
use std::sync::Arc;

use refrain_config::MetricsBy;
use refrain_pg::snapshot::CacheRuleRow;
use refrain_pg::{Counters, PoolView, Snapshot};

use crate::pg;
use crate::sum::{self, Key};

/// The sums by `metrics_by`.
pub(super) struct Grouped<'a> {
    pub(super) by: MetricsBy,
    pub(super) snapshots: &'a [Snapshot],
}

impl Grouped<'_> {
    /// Returns the key under which a pool counts: the names that are no labels are empty.
    pub(super) fn key(&self, database: &Arc<str>, user: &Arc<str>) -> Key {
        match self.by {
            MetricsBy::Pool => (Arc::clone(database), Arc::clone(user)),
            MetricsBy::Database => (Arc::clone(database), "".into()),
            MetricsBy::Total => ("".into(), "".into()),
        }
    }

    /// Returns the labels of a key.
    pub(super) fn labels<'k>(&self, key: &'k Key) -> Vec<(&'static str, &'k str)> {
        let (database, user) = key;
        match self.by {
            MetricsBy::Pool => vec![("database", database), ("user", user)],
            MetricsBy::Database => vec![("database", database)],
            MetricsBy::Total => Vec::new(),
        }
    }

    /// Returns the pools. Of those with one key, sizes are added.
    pub(super) fn pools(&self) -> BTreeMap<Key, PoolView> {
        let mut groups: BTreeMap<Key, PoolView> = BTreeMap::new();
        for ((database, user), pool) in sum::pools(self.snapshots) {
            let key = self.key(&database, &user);
            match groups.get_mut(&key) {
                Some(group) => {
                    sum::add(group, &pool);
                    group.size = group.size.saturating_add(pool.size);
                    group.share_width += pool.share_width;
                }
                None => drop(groups.insert(key, pool)),
            }
        }
        groups
    }

    /// Returns the counters, with those of pools that were forgotten.
    pub(super) fn counters(&self) -> BTreeMap<Key, Counters> {
        let mut groups: BTreeMap<Key, Counters> = BTreeMap::new();
        for ((database, user), counters) in sum::counters(self.snapshots) {
            groups.entry(self.key(&database, &user)).or_default().add(&counters);
        }
        groups
    }

    /// Returns the rules of the cache, by their names.
    pub(super) fn cache_rules(&self) -> BTreeMap<(Key, String), CacheRuleRow> {
        let mut groups: BTreeMap<_, CacheRuleRow> = BTreeMap::new();
        for row in pg::sum::cache_rules(self.snapshots) {
            let key = (self.key(&row.database, &row.user), row.rule.name.clone());
            match groups.get_mut(&key) {
                Some(group) => group.counts.add(&row.counts),
                None => drop(groups.insert(key, row)),
            }
        }
        groups
    }
}
