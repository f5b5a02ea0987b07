//! PostgreSQL's part of what the cores share: statements, credentials, environments, schemas.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(feature = "plant")]
use refrain_cache::Bug as CacheBug;
use refrain_cache::{Figures, Stats};
use refrain_config::{Options, Server, UserSecret};
use refrain_pool::Now;
use refrain_pool::durations::LoggedDurations;
use refrain_pool::seed::seed;
use refrain_pool::settings::PoolSettings;

use crate::auth::{Credential, ITERATIONS, Like, Password, Seed as AuthSeed, StoredSecret};
use crate::changes::{Follower, Subscription};
use crate::ground::ids::EnvId;
use crate::ground::schema::Schema;
use crate::reads::answers::Answers;
use crate::results::changes::{ChangesView, TableCoverage};
use crate::results::places::{Place, Places};
use crate::results::rule;
use crate::results::store::{Flush, ResultStore};
use crate::results::topics::DatabaseTopics;
use crate::settings::interned::Environments;
#[cfg(feature = "plant")]
use crate::standbys::bug::StandbyBug;
use crate::state::hba_uses::HbaUses;
use crate::state::peer_keys::PeerKeys;
use crate::state::pool_shared::PoolSharedPart;
use crate::state::replication::Starts;
use crate::statements::registry::Registry;
#[cfg(feature = "plant")]
use crate::users::bug::Bug as UserBug;
use crate::users::known::{KnownUser, KnownUsers, LookupStats};

/// PostgreSQL's part of what the cores share.
#[derive(Debug)]
pub struct SharedPart {
    /// Every statement.
    pub registry: Registry,
    /// The credentials of users of the configuration.
    credentials: Mutex<HashMap<Box<str>, Credential>>,
    environments: Mutex<Environments>,
    next_environment: AtomicU64,
    /// Changes of schema, by the database where they were made.
    schemas: Mutex<HashMap<String, Arc<Schema>>>,
    auth_seed: AuthSeed,
    /// The users that databases were asked about.
    known_users: Arc<KnownUsers>,
    /// The rules of `pg_hba.conf`, and how often each has counted.
    hba: Mutex<Arc<HbaUses>>,
    /// Answers of servers about statements.
    pub(crate) answers: Answers,
    /// Replies that are kept.
    pub(crate) results: Arc<ResultStore>,
    /// The databases of which they are.
    places: Arc<Places>,
    /// The beginnings of replication connections.
    pub(crate) replications: Starts,
    /// The cancel keys of clients, if other processes serve the same clients.
    pub(crate) peer_keys: Arc<PeerKeys>,
    /// Statements of which a core has figures, at most.
    figures_max: AtomicUsize,
    /// The commands that the log tells of because of their time.
    durations: Mutex<LoggedDurations>,
}

impl SharedPart {
    /// Makes the part at the start, with random bytes from `entropy`.
    pub(crate) fn new(options: &Options, entropy: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut nonce = [0; 8];
        entropy(&mut nonce);
        let seed = seed(entropy);
        let mut auth_seed = [0; 32];
        entropy(&mut auth_seed);
        let auth_seed = AuthSeed::new(auth_seed);
        Self {
            results: ResultStore::new(options, &seed),
            answers: Answers::default(),
            places: Arc::default(),
            replications: Starts::default(),
            peer_keys: Arc::default(),
            figures_max: AtomicUsize::new(options.general.stat_statements_max as usize),
            durations: Mutex::new(LoggedDurations::of(&options.general)),
            registry: Registry::new(u64::from_le_bytes(nonce), seed),
            credentials: Mutex::default(),
            environments: Mutex::default(),
            next_environment: AtomicU64::new(1),
            schemas: Mutex::default(),
            known_users: Arc::new(KnownUsers::new(auth_seed.clone())),
            auth_seed,
            hba: Mutex::new(Arc::new(HbaUses::new(options.hba.clone()))),
        }
    }

    /// Makes the shared part of a pool of this database.
    pub(crate) fn pool_shared(
        &self,
        settings: &PoolSettings,
        database: &str,
        variant: u16,
    ) -> PoolSharedPart {
        let place = self.place(&settings.place(database));
        PoolSharedPart::new(settings, place, self.replications.of(variant))
    }

    /// Returns the place of this name.
    fn place(&self, name: &str) -> Arc<Place> {
        let make = || {
            let schema = lock(&self.schemas).entry(name.to_owned()).or_default().clone();
            (DatabaseTopics::new(&self.results, name), schema)
        };
        self.places.place(name, make)
    }

    /// Makes the state machine that follows the replication stream of a database.
    pub fn follower(&self, server: &Server, subscription: Subscription) -> Follower {
        let place = self.place(&server.place(&subscription.database));
        Follower::new(&place, &self.results, subscription)
    }

    /// Returns the states of the replication streams that are followed.
    pub fn changes(&self) -> Vec<ChangesView> {
        let views = self.places.all_known().into_iter().map(|place| place.changes.view());
        let mut views: Vec<_> = views.filter(|view| !view.database.is_empty()).collect();
        views.sort_by(|one, other| one.database.cmp(&other.database));
        views
    }

    /// Returns the tables that replies read of databases whose replication streams are followed.
    pub fn coverages(&self) -> Vec<TableCoverage> {
        let all = self.places.all_known().into_iter().flat_map(|place| place.changes.coverages());
        let mut all: Vec<_> = all.filter(|table| !table.database.is_empty()).collect();
        all.sort_by(|one, other| (&one.database, one.oid).cmp(&(&other.database, other.oid)));
        all
    }

    /// Forgets the credentials and old rules, and bounds the cache: the options have changed.
    pub(crate) fn options_changed(&self, options: &Options) {
        self.auth_seed.set_iterations(options.general.scram_iterations);
        lock(&self.credentials).clear();
        let mut hba = lock(&self.hba);
        if **hba.hba() != *options.hba {
            *hba = Arc::new(HbaUses::new(options.hba.clone()));
        }
        drop(hba);
        self.results.configure(options);
        self.figures_max.store(options.general.stat_statements_max as usize, Relaxed);
        *lock(&self.durations) = LoggedDurations::of(&options.general);
    }

    /// Returns the greatest number of statements of which a core has figures.
    pub(crate) fn figures_max(&self) -> usize {
        self.figures_max.load(Relaxed)
    }

    /// Returns which commands the log tells of because of their time.
    pub(crate) fn durations(&self) -> LoggedDurations {
        *lock(&self.durations)
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

    /// Returns the process ID that the cores know, and the secret key, of the client that a cancel
    /// request names, if the client's key names this process among others.
    pub fn cancel_key(&self, pid: u32, key: &[u8]) -> Option<(u32, Box<[u8]>)> {
        self.peer_keys.find(pid, key)
    }

    /// Whether a process ID is the inner one of a client whose key names this process. A request
    /// that names it is none of that client.
    pub fn is_inner_pid(&self, pid: u32) -> bool {
        self.peer_keys.is_inner(pid)
    }

    /// Returns the counts of the cache.
    pub fn cache_stats(&self) -> Stats {
        self.results.cache.stats()
    }

    /// Returns the figures of the replies of each rule of the cache, by its name.
    pub fn cache_figures(&self) -> Vec<(String, Figures)> {
        self.results.figures()
    }

    /// Voids replies in the cache. False if no reply can depend on what is to be flushed.
    pub fn flush_results(&self, what: Flush<'_>) -> bool {
        rule::flush(&self.results, self.registry.seed(), what)
    }

    /// Plants a bug in the cache, for the simulator.
    #[cfg(feature = "plant")]
    pub fn plant_in_results(&self, bug: CacheBug) {
        self.results.cache.plant(bug);
    }

    /// Plants a bug in what is known of standbys, for the simulator.
    #[cfg(feature = "plant")]
    pub fn plant_in_standbys(&self, bug: StandbyBug) {
        self.places.plant(bug);
    }

    /// Plants a bug in what is known of users, for the simulator.
    #[cfg(feature = "plant")]
    pub fn plant_in_users(&self, bug: UserBug) {
        self.known_users.plant(bug);
    }

    /// Returns the credential of a user of the configuration who has this secret. With an empty
    /// password, nobody can log in.
    pub(crate) fn configured_credential(&self, user: &str, secret: &UserSecret) -> Credential {
        let Some(stored) = stored(secret) else { return self.unknown_credential(user, false) };
        let (mut prepared, seed) = (lock(&self.credentials), &self.auth_seed);
        // Another core may have prepared it under the options from before a reload.
        if let Some(credential) = prepared.get(user).filter(|known| known.is_of(&stored, seed)) {
            return credential.clone();
        }
        let credential = Credential::prepare(user, stored, seed);
        prepared.insert(user.into(), credential.clone());
        credential
    }

    /// Returns a credential that no proof satisfies, for a user who is unknown or may not log in.
    /// Where users are looked up, it is like that of a role of PostgreSQL.
    pub(crate) fn unknown_credential(&self, user: &str, is_looked_up: bool) -> Credential {
        let like =
            if is_looked_up { Like::Scram { iterations: ITERATIONS } } else { Like::Password };
        Credential::unknown(user, like, &self.auth_seed)
    }

    /// Returns the users that databases were asked about.
    pub(crate) fn known_users(&self) -> &Arc<KnownUsers> {
        &self.known_users
    }

    /// Returns the users that databases were asked about, to be shown.
    pub fn looked_up(&self) -> Vec<KnownUser> {
        self.known_users.list()
    }

    /// Returns the counts of users that were looked up.
    pub fn lookup_stats(&self) -> LookupStats {
        self.known_users.stats()
    }

    /// Forgets what databases said of users.
    pub fn flush_users(&self, now: Now) {
        self.known_users.flush(now);
    }

    /// Returns the parse environment of the settings that change what a text means. Its number
    /// stays the same while it is in use.
    pub fn environment(&self, settings: &[u8]) -> Arc<EnvId> {
        lock(&self.environments).intern(settings, || self.own_environment())
    }

    /// Returns the number of what no setting shows and what decides, beside the settings, what a
    /// text means. It stays the same while it is in use.
    pub fn beside(&self, what: &[u8]) -> Arc<EnvId> {
        lock(&self.environments)
            .intern(what, || EnvId { settings: 0, beside: self.own_environment().settings })
    }

    /// Makes a parse environment for one client alone.
    pub fn own_environment(&self) -> EnvId {
        EnvId::of(self.next_environment.fetch_add(1, Relaxed))
    }
}

fn stored(secret: &UserSecret) -> Option<StoredSecret> {
    match secret {
        UserSecret::None | UserSecret::Native(_) => None,
        UserSecret::Plain(plain) => Password::new(plain.expose()).map(StoredSecret::Password),
        UserSecret::Md5(hash) => StoredSecret::parse(hash.expose()),
        UserSecret::Scram(verifier) => Some(StoredSecret::Scram(verifier.clone())),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
