//! Cache: the shards, and what they have in common.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Seed;
use crate::bug::{Bug, Planted};
use crate::fill::{Asker, Fill, Found, Kept, Waiter};
use crate::shard::{Ask, Reply, Shard};
use crate::stats::{EntryView, Stats};
use crate::terms::Terms;
use crate::topics::TopicSet;

/// Shards: enough that cores seldom wait for each other, and few enough that a large reply fits.
const SHARDS: usize = 16;

/// Replies in memory, shared by all cores.
#[derive(Debug)]
pub struct Cache {
    shards: Box<[Mutex<Shard>]>,
    seed: Seed,
    /// The shard that is swept next.
    swept: AtomicU64,
    bug: Planted<Bug>,
}

impl Cache {
    /// Makes an empty cache. `limit` is the number of bytes that it takes at most; `queues` are
    /// those that the replies of each queue take at most.
    pub fn new(seed: Seed, limit: usize, queues: &[usize]) -> Self {
        let (limit, queues) = shares(limit, queues);
        let shards = (0..SHARDS).map(|_| Mutex::new(Shard::new(limit, &queues)));
        Self { shards: shards.collect(), seed, swept: AtomicU64::new(0), bug: Planted::default() }
    }

    /// Drops all replies and takes other limits.
    pub fn configure(&self, limit: usize, queues: &[usize]) {
        let (limit, queues) = shares(limit, queues);
        self.shards.iter().for_each(|shard| lock(shard).configure(limit, &queues));
    }

    /// Looks for a reply, and appends it to `out` if there is one. `topics` are those that the
    /// reply depends on.
    #[inline]
    pub fn look(
        &self,
        key: &[u8],
        topics: &Arc<TopicSet>,
        terms: &Terms,
        now: u64,
        asker: Asker,
        out: &mut Vec<u8>,
    ) -> Found {
        let mut hasher = self.seed.build_hasher();
        hasher.write(key);
        let hash = hasher.finish();
        let ask = Ask { hash, key, topics, terms, now, asker };
        let (found, long) = lock(self.shard(hash)).look(&ask, out);
        if let Some((data, key_bytes)) = long {
            out.extend_from_slice(&data[key_bytes..]);
        }
        found
    }

    /// Ends a fill with its reply, which is kept if nothing has changed since it was asked for.
    /// Returns those that wait for it.
    pub fn store(
        &self,
        fill: &Fill,
        bytes: &[u8],
        terms: &Terms,
        took: u64,
        empty: bool,
    ) -> (Kept, Vec<Waiter>) {
        let reply = Reply { bytes, terms, took, empty, refused: false };
        lock(self.shard(fill.hash)).store(fill, &reply)
    }

    /// Ends a fill whose reply cannot be kept. For as long as it would have been fresh, askers go
    /// to the server at once. Returns those that wait for it.
    pub fn refuse(&self, fill: &Fill, terms: &Terms) -> Vec<Waiter> {
        let reply = Reply { bytes: &[], terms, took: 0, empty: false, refused: true };
        lock(self.shard(fill.hash)).store(fill, &reply).1
    }

    /// Ends a fill without a reply. Returns those that wait for it: one of them is to fetch it.
    pub fn abandon(&self, fill: &Fill) -> Vec<Waiter> {
        lock(self.shard(fill.hash)).abandon(fill)
    }

    /// Ends a fill that has failed. If `keeps_old` is set, the reply from before is given in its
    /// place as long as [`Terms::if_error`] says; else it is dropped. Returns those that wait for
    /// it.
    pub fn fail(&self, fill: &Fill, keeps_old: bool) -> Vec<Waiter> {
        lock(self.shard(fill.hash)).fail(fill, keeps_old)
    }

    /// Drops replies that are given to nobody any more, among `most` entries of one shard.
    pub fn sweep(&self, now: u64, most: usize) {
        let shard = self.swept.fetch_add(1, Relaxed) as usize % SHARDS;
        lock(&self.shards[shard]).sweep(now, most);
    }

    /// Returns the bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).bytes()).sum()
    }

    /// Returns its counts.
    pub fn stats(&self) -> Stats {
        let mut all = Stats::default();
        self.shards.iter().for_each(|shard| all.add(lock(shard).stats()));
        all
    }

    /// Returns views of replies that are given to clients, at most `most` of each shard: a sample,
    /// if there are more.
    pub fn view(&self, now: u64, most: usize) -> Vec<EntryView> {
        let mut views = Vec::new();
        self.shards.iter().for_each(|shard| lock(shard).view(now, most, &mut views));
        views
    }

    /// Plants a bug, for the simulator.
    #[cfg(feature = "plant")]
    pub fn plant(&self, bug: Bug) {
        self.bug.plant(bug);
        self.shards.iter().for_each(|shard| lock(shard).plant(bug));
    }

    /// Whether this bug is planted.
    pub fn has(&self, bug: Bug) -> bool {
        self.bug.is(bug)
    }

    #[inline]
    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[(hash >> 40) as usize % SHARDS]
    }

    /// Checks that tables and counts agree, for tests.
    ///
    /// # Panics
    /// If they do not.
    pub fn check(&self) {
        self.shards.iter().for_each(|shard| lock(shard).check());
    }
}

/// Returns the limits of one shard.
fn shares(limit: usize, queues: &[usize]) -> (usize, Vec<usize>) {
    (limit / SHARDS, queues.iter().map(|most| most / SHARDS).collect())
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
