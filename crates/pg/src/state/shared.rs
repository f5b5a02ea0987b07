//! PostgreSQL's part of what the cores share: statements, credentials, environments, schemas.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_cache::Bug as CacheBug;
use refrain_cache::Stats;
use refrain_config::{Options, UserSecret};
use refrain_pool::settings::PoolSettings;

use crate::auth::{Credential, Like, Password, ScramVerifier, Seed as AuthSeed, StoredSecret};
use crate::ground::ids::EnvId;
use crate::ground::schema::Schema;
use crate::results::rule;
use crate::results::store::{Flush, ResultStore};
use crate::results::writing::DatabaseTopics;
use crate::settings::interned::Environments;
use crate::state::hba_uses::HbaUses;
use crate::state::pool_shared::PoolSharedPart;
use crate::statements::registry::{self, Registry};

/// PostgreSQL's part of what the cores share.
#[derive(Debug)]
pub struct SharedPart {
    /// Every statement.
    pub registry: Registry,
    credentials: Mutex<HashMap<Box<str>, Option<Credential>>>,
    environments: Mutex<Environments>,
    next_environment: AtomicU64,
    /// Changes of schema, by the database where they were made.
    schemas: Mutex<HashMap<String, Arc<Schema>>>,
    auth_seed: AuthSeed,
    /// The rules of `pg_hba.conf`, and how often each has counted.
    hba: Mutex<Arc<HbaUses>>,
    /// Replies that are kept.
    pub(crate) results: Arc<ResultStore>,
}

impl SharedPart {
    /// Makes the part at the start, with random bytes from `entropy`.
    pub(crate) fn new(options: &Options, entropy: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut nonce = [0; 8];
        entropy(&mut nonce);
        let mut seed = [0; 16];
        entropy(&mut seed);
        let mut auth_seed = [0; 32];
        entropy(&mut auth_seed);
        let seed = registry::seed(seed);
        Self {
            results: ResultStore::new(options, &seed),
            registry: Registry::new(u64::from_le_bytes(nonce), seed),
            credentials: Mutex::default(),
            environments: Mutex::default(),
            next_environment: AtomicU64::new(1),
            schemas: Mutex::default(),
            auth_seed: AuthSeed::new(auth_seed),
            hba: Mutex::new(Arc::new(HbaUses::new(options.hba.clone()))),
        }
    }

    /// Makes the shared part of a pool of this database.
    pub(crate) fn pool_shared(&self, settings: &PoolSettings, database: &str) -> PoolSharedPart {
        let place = settings.place(database);
        let topics = DatabaseTopics::new(&self.results, &place);
        let schema = lock(&self.schemas).entry(place).or_default().clone();
        PoolSharedPart::new(settings, schema, topics)
    }

    /// Forgets the credentials and old rules, and bounds the cache: the options have changed.
    pub(crate) fn options_changed(&self, options: &Options) {
        lock(&self.credentials).clear();
        let mut hba = lock(&self.hba);
        if **hba.hba() != *options.hba {
            *hba = Arc::new(HbaUses::new(options.hba.clone()));
        }
        drop(hba);
        self.results.configure(options);
    }

    /// Forgets unused environments and schemas.
    pub(crate) fn sweep(&self) {
        lock(&self.environments).sweep();
        lock(&self.schemas).retain(|_, schema| Arc::strong_count(schema) > 1);
    }

    /// Returns the rules of `pg_hba.conf`, with their counts.
    pub(crate) fn hba(&self) -> Arc<HbaUses> {
        lock(&self.hba).clone()
    }

    /// Returns the counts of the cache.
    pub fn cache_stats(&self) -> Stats {
        self.results.cache.stats()
    }

    /// Voids replies in the cache. False if no reply can depend on what is to be flushed.
    pub fn flush_results(&self, what: Flush<'_>) -> bool {
        rule::flush(&self.results, self.registry.seed(), what)
    }

    /// Plants a bug in the cache, for the simulator.
    pub fn plant_in_results(&self, bug: CacheBug) {
        self.results.cache.plant(bug);
    }

    /// Returns the credential of a user. An unknown user gets one that no proof satisfies.
    pub(crate) fn credential(&self, options: &Options, user: &str) -> Credential {
        let mut known = lock(&self.credentials);
        let prepared = known.entry(user.into()).or_insert_with(|| {
            let stored = stored(&options.user(user)?.secret)?;
            Some(Credential::prepare(user, stored, &self.auth_seed))
        });
        if let Some(credential) = prepared {
            return credential.clone();
        }
        known.remove(user); // unknown names would fill the map
        Credential::unknown(user, Like::Password, &self.auth_seed)
    }

    /// Returns the parse environment of the settings that change what a text means. Its number
    /// stays the same while it is in use.
    pub fn environment(&self, settings: &[u8]) -> Arc<EnvId> {
        lock(&self.environments).intern(settings, || self.own_environment())
    }

    /// Makes a parse environment for one client alone.
    pub fn own_environment(&self) -> EnvId {
        EnvId(self.next_environment.fetch_add(1, Relaxed))
    }
}

fn stored(secret: &UserSecret) -> Option<StoredSecret> {
    match secret {
        UserSecret::None => None,
        UserSecret::Plain(plain) => Password::new(plain.expose()).map(StoredSecret::Password),
        UserSecret::Md5(hash) => StoredSecret::parse(hash.expose()),
        UserSecret::Scram(verifier) => {
            let refrain_config::ScramVerifier { iterations, salt, stored_key, server_key } =
                verifier.clone();
            Some(StoredSecret::Scram(ScramVerifier { iterations, salt, stored_key, server_key }))
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
