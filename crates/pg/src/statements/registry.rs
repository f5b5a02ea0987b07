//! Registry: every prepared statement of the process, once.
//!
//! A Parse looks in the core's own statements first, then here. The registry is sharded; Refrain
//! takes a shard's lock once per new text and core, when somebody looks at the admin console, and
//! in the purge. A hash with a seed of this process chooses the place, so that nobody can craft
//! texts that collide; the full bytes are compared, so that a collision is merely slow (E7).
//!
//! The purge has two phases. [`Registry::due`] reads counters without a lock: the bytes are over
//! the limit, more than one in `IDLE_PART` of the statements are unused, and the last round
//! through all shards ended more than `PURGE_EVERY_US` ago. [`Registry::purge`] then takes one
//! shard and looks at up to `PURGE_ENTRIES_MAX` of its entries (E92). It drops those that have
//! neither clients nor servers, and to which nothing but the registry refers. Under the shard's
//! lock that is certain, since new references come from under that lock or from an existing one.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashTable;
use refrain_pool::Now;
use refrain_pool::seed::Seed;

use crate::statements::statement::{Common, Identity, Statement, base36};

/// Parts of the registry, each with its own lock.
const SHARDS: usize = 64;
/// Entries that one purge looks at in a shard.
const PURGE_ENTRIES_MAX: usize = 256;
/// A purge is worth its while if more than one in so many statements has no client and no server.
const IDLE_PART: usize = 10;
/// Time between two purges, in microseconds.
const PURGE_EVERY_US: u64 = 1_000_000;

/// All statements.
#[derive(Debug)]
pub struct Registry {
    shards: Vec<Mutex<HashTable<Statement>>>,
    seed: Seed,
    common: Arc<Common>,
    next_id: AtomicU64,
    bytes: AtomicUsize,
    entries: AtomicUsize,
    purged: AtomicU64,
    next_shard: AtomicUsize,
}

impl Registry {
    /// Makes an empty registry whose names begin with a nonce of 40 random bits.
    pub fn new(nonce: u64, seed: Seed) -> Self {
        let mut prefix = b"_r".to_vec();
        base36(&mut prefix, nonce & 0xff_ffff_ffff);
        prefix.push(b'_');
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            seed,
            common: Arc::new(Common { prefix: prefix.into(), idle: AtomicUsize::new(0) }),
            next_id: AtomicU64::new(1),
            bytes: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            purged: AtomicU64::new(0),
            next_shard: AtomicUsize::new(0),
        }
    }

    /// Returns the beginning of every internal name of this process.
    pub fn prefix(&self) -> &[u8] {
        &self.common.prefix
    }

    /// Hashes an identity; the hash is the same everywhere in the process.
    #[inline]
    pub fn hash(&self, identity: &Identity<'_>) -> u64 {
        let place = identity.pool.0.rotate_left(32) ^ identity.env.mixed();
        self.seed.hash_one(identity.tail) ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the seed of this process.
    pub fn seed(&self) -> &Seed {
        &self.seed
    }

    /// Hashes any bytes, such as a description of columns.
    pub fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        self.seed.hash_one(bytes)
    }

    /// Returns the statement with this identity, and makes it if there is none.
    pub fn intern(&self, identity: Identity<'_>, hash: u64) -> Statement {
        let mut shard = self.shard(hash as usize % SHARDS);
        if let Some(found) = shard.find(hash, |s| s.identity() == identity) {
            return found.clone();
        }
        let made = Statement::counted(self.next_id(), identity, &self.common);
        self.bytes.fetch_add(made.bytes(), Relaxed);
        self.entries.fetch_add(1, Relaxed);
        shard.insert_unique(hash, made.clone(), |s| self.hash(&s.identity()));
        made
    }

    /// Makes a statement that is not shared: its text is too long, or its settings are those of one
    /// client.
    pub fn make(&self, identity: Identity<'_>) -> Statement {
        Statement::new(self.next_id(), identity, &self.common)
    }

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Relaxed)
    }

    /// Returns a name that no server knows.
    pub fn no_statement(&self) -> Vec<u8> {
        [self.prefix(), &b"none"[..]].concat()
    }

    /// Returns the name of the statement and the portal of Refrain's internal queries.
    pub fn internal(&self) -> Vec<u8> {
        [self.prefix(), &b"aside"[..]].concat()
    }

    /// Returns the bytes of all statements.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Returns the number of statements.
    pub fn entries(&self) -> usize {
        self.entries.load(Relaxed)
    }

    /// True if a purge would be worth its while; takes no lock.
    pub fn due(&self, now: Now, bytes_max: usize) -> bool {
        let last = self.purged.load(Relaxed);
        self.bytes() > bytes_max
            && self.common.idle.load(Relaxed) > self.entries() / IDLE_PART
            && now.0.saturating_sub(last) > PURGE_EVERY_US
    }

    /// Drops unused statements from the next shard, and returns how many.
    pub fn purge(&self, now: Now) -> usize {
        let index = self.next_shard.fetch_add(1, Relaxed) % SHARDS;
        if index == SHARDS - 1 {
            self.purged.store(now.0, Relaxed);
        }
        let mut shard = self.shard(index);
        let mut looked_at = 0;
        let mut dropped = Vec::new();
        for statement in shard.extract_if(|s| {
            looked_at += 1;
            looked_at <= PURGE_ENTRIES_MAX
                && s.is_nobodys()
                && s.counts().0 == 0
                && s.counts().1 == 0
        }) {
            dropped.push(statement);
        }
        drop(shard);
        self.common.idle.fetch_sub(dropped.len(), Relaxed);
        let bytes: usize = dropped.iter().map(|s| s.bytes()).sum();
        self.bytes.fetch_sub(bytes, Relaxed);
        self.entries.fetch_sub(dropped.len(), Relaxed);
        dropped.len()
    }

    /// Calls `look` with every statement, shard by shard.
    pub fn for_each(&self, mut look: impl FnMut(&Statement)) {
        for index in 0..SHARDS {
            self.shard(index).iter().for_each(&mut look);
        }
    }

    fn shard(&self, index: usize) -> MutexGuard<'_, HashTable<Statement>> {
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::EnvId;
    use refrain_pool::ids::PoolId;

    fn identity(tail: &[u8]) -> Identity<'_> {
        Identity { pool: PoolId(0), env: EnvId::of(0), tail }
    }

    fn intern(registry: &Registry, identity: Identity<'_>) -> Statement {
        registry.intern(identity, registry.hash(&identity))
    }

    #[test]
    fn identity_is_the_exact_bytes_pool_and_environment() {
        let registry = Registry::new(1, Seed::default());
        let one = intern(&registry, identity(b"select $1\0\0\0"));
        assert_eq!(one.id, intern(&registry, identity(b"select $1\0\0\0")).id);
        // E6: other parameter types make another statement.
        assert_ne!(one.id, intern(&registry, identity(b"select $1\0\0\x01\0\0\0\x17")).id);
        let other = Identity { env: EnvId::of(1), ..identity(b"select $1\0\0\0") };
        assert_ne!(one.id, intern(&registry, other).id);
        let other = Identity { pool: PoolId(1), ..identity(b"select $1\0\0\0") };
        assert_ne!(one.id, intern(&registry, other).id);
    }

    #[test]
    fn a_purge_is_due_when_a_tenth_is_nobodys() {
        let registry = Registry::new(1, Seed::default());
        let later = Now(2 * PURGE_EVERY_US);
        let held: Vec<_> = (0..20)
            .map(|i| intern(&registry, identity(format!("text {i}\0\0\0").as_bytes())))
            .collect();
        assert!(registry.due(later, 0), "nobody has any");
        held[..19].iter().for_each(|statement| statement.add_clients(1));
        held.iter().for_each(|statement| statement.add_server());
        assert!(!registry.due(later, 0), "all are somebody's");
        held.iter().for_each(|statement| statement.drop_server());
        assert!(!registry.due(later, 0), "one in twenty is not enough");
        held[..2].iter().for_each(|statement| statement.drop_clients(1));
        assert!(registry.due(later, 0));
        assert!(!registry.due(later, usize::MAX), "there is room");
        assert!(!registry.due(Now(PURGE_EVERY_US), 0), "it is not time");
    }

    #[test]
    fn a_hash_collision_is_only_slow() {
        let registry = Registry::new(1, Seed::default());
        let one = registry.intern(identity(b"a\0\0\0"), 7);
        let two = registry.intern(identity(b"b\0\0\0"), 7);
        assert_ne!(one.id, two.id);
    }

    #[test]
    fn the_purge_takes_what_nobody_has_and_nothing_else() {
        let registry = Registry::new(1, Seed::default());
        let held = intern(&registry, identity(b"held\0\0\0"));
        let served = intern(&registry, identity(b"served\0\0\0"));
        served.add_server();
        drop(served);
        for i in 0..100 {
            intern(&registry, identity(format!("text {i}\0\0\0").as_bytes()));
        }
        let dropped: usize = (0..SHARDS).map(|_| registry.purge(Now(5))).sum();
        assert_eq!((dropped, registry.entries()), (100, 2));
        let mut bytes = 0;
        registry.for_each(|s| bytes += s.bytes());
        assert_eq!(bytes, registry.bytes());
        assert_eq!(held.id, intern(&registry, identity(b"held\0\0\0")).id);
    }
}
