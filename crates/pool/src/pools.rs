//! The table of all pools of the process, which are in use or were so lately.
//!
//! A pool's first client makes the pool. It is forgotten when no core has it open and it has no
//! server: where a database is configured as `*`, or all users are trusted, clients can choose any
//! name, and the table must not grow with each name. Each core opens and closes its part by itself
//! ([`crate::core_state::CoreState`]). The count of the pool's [`Arc`] shows whether a core has it
//! open.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ids::PoolId;
use crate::parts::Parts;
use crate::pool_shared::{PoolKey, PoolShared};

/// Number of pools that can exist at a time.
const POOLS_MAX: usize = 100_000;

/// The table of all pools.
#[derive(Debug)]
pub(crate) struct Pools<P: Parts> {
    places: Vec<PoolEntry<P>>,
    free: Vec<u32>,
    by_key: HashMap<PoolKey, PoolId>,
}

/// A place in the table of pools.
#[derive(Debug)]
struct PoolEntry<P: Parts> {
    /// Number of pools that had the place before.
    time: u32,
    pool: Option<Arc<PoolShared<P>>>,
}

impl<P: Parts> Default for Pools<P> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), by_key: HashMap::new() }
    }
}

impl<P: Parts> Pools<P> {
    /// Returns the pool with this key.
    pub(crate) fn find(&self, key: &PoolKey) -> Option<&Arc<PoolShared<P>>> {
        self.get(*self.by_key.get(key)?)
    }

    /// Returns the pool with this number.
    pub(crate) fn get(&self, id: PoolId) -> Option<&Arc<PoolShared<P>>> {
        self.places.get(id.place())?.pool.as_ref().filter(|pool| pool.id == id)
    }

    /// Adds a pool, unless there are too many.
    pub(crate) fn add(
        &mut self,
        key: PoolKey,
        make: impl FnOnce(PoolId) -> PoolShared<P>,
    ) -> Option<Arc<PoolShared<P>>> {
        if self.by_key.len() >= POOLS_MAX {
            return None;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(PoolEntry { time: 0, pool: None });
            u32::try_from(self.places.len() - 1).expect("fewer than 2^32 pools")
        });
        let id = PoolId::new(place, self.places[place as usize].time);
        let pool = Arc::new(make(id));
        self.places[place as usize].pool = Some(pool.clone());
        let before = self.by_key.insert(key, id);
        assert!(before.is_none(), "a pool is made once");
        Some(pool)
    }

    /// Forgets a pool, unless a core has it open. Returns whether it is forgotten. The caller
    /// checks that the pool has no servers.
    pub(crate) fn forget(&mut self, id: PoolId) -> bool {
        let nobody = self.get(id).is_some_and(|pool| Arc::strong_count(pool) == 1);
        let Some(place) = self.places.get_mut(id.place()).filter(|_| nobody) else { return false };
        let Some(pool) = place.pool.take() else { return false };
        self.by_key.remove(&pool.key());
        // A place whose times are used up stays empty.
        if let Some(next) = place.time.checked_add(1) {
            place.time = next;
            self.free.push(u32::try_from(id.place()).expect("it was a place"));
        }
        true
    }

    /// Iterates over all pools.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<PoolShared<P>>> {
        self.places.iter().filter_map(|place| place.pool.as_ref())
    }
}
