//! State that the cores share: options, statements, pools and their limits.
//!
//! It stands behind locks, here and in the files that it is made of. No Bind or Execute of a
//! statement that the server has takes one.
//!
//! Limits count over all cores: a core asks [`Shared::admit_server`] before it connects a server,
//! and calls [`Shared::server_gone`] afterwards. A core that was refused gets a message when there
//! is room again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use refrain_config::{Options, UserSecret};

use crate::auth::{Credential, Like, Password, ScramVerifier, Seed as AuthSeed, Stored};
use crate::ground::ids::{ClientSerial, Conn, Core, EnvId};
use crate::ground::time::Now;
use crate::pipeline::schema::Schema;
use crate::settings::interned::Environments;
use crate::state::lobby::Lobby;
use crate::state::pauses::Pauses;
use crate::state::pools::Pools;
use crate::state::snapshot::StatementView;
use crate::statements::registry::{self, Registry};

pub use crate::ground::ids::PoolId;
pub use crate::state::pool_shared::{PoolSettings, PoolShared};

/// What one core tells another.
#[derive(Clone, Debug)]
pub enum CoreMessage {
    /// A client of `core` waits for a server of this pool, since then.
    WantsServer {
        /// Which pool.
        pool: PoolId,
        /// Who asks.
        core: Core,
        /// Since when its first client waits.
        since: Now,
    },
    /// `core` does not wait any more.
    GotServer {
        /// Which pool.
        pool: PoolId,
        /// Who asked.
        core: Core,
    },
    /// A server of the pool is gone: there may be room for a new one.
    Room {
        /// Which pool.
        pool: PoolId,
    },
    /// Cancel the statement of one of your clients.
    Cancel {
        /// What CancelRequest said.
        pid: u32,
        /// What CancelRequest said.
        key: Box<[u8]>,
    },
    /// A connection of yours that has not logged in has to make way for a later one.
    MakeWay {
        /// Its number.
        conn: Conn,
        /// What it is called: the number may be another's by now.
        serial: ClientSerial,
    },
    /// A client wants everybody to leave a database.
    DrainDatabase {
        /// Its name at the server.
        database: Arc<[u8]>,
    },
    /// Nobody need leave the database any more.
    DatabaseDrained {
        /// Its name at the server.
        database: Arc<[u8]>,
    },
    /// The pool's server was reached, or was not: see what waits for it.
    ServerReached {
        /// Which pool.
        pool: PoolId,
    },
}

/// Servers that exist, and cores that would like another.
#[derive(Debug, Default)]
struct ServerCounts {
    pools: HashMap<PoolId, u32>,
    databases: HashMap<Arc<str>, u32>,
    users: HashMap<Arc<str>, u32>,
    waits_for_room: Vec<(PoolId, Core)>,
}

/// Clients that have shown who they are, by database and by user.
#[derive(Debug, Default)]
struct ClientCounts {
    databases: HashMap<Arc<str>, u32>,
    users: HashMap<Arc<str>, u32>,
}

/// Why a client may not be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitReached {
    /// The database has as many clients as it may have.
    Database,
    /// The user has as many clients as it may have.
    User,
}

/// Whether a server may be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectPermit {
    /// It may, and is counted.
    Granted,
    /// It may not; the core gets [`CoreMessage::Room`] when there is room.
    Refused,
}

/// Everything that cores share.
#[derive(Debug)]
pub struct Shared {
    /// Every statement.
    pub registry: Registry,
    /// How many engines there are.
    pub cores: u16,
    /// Connections of clients, over all cores.
    pub lobby: Lobby,
    options: RwLock<Arc<Options>>,
    pools: Mutex<Pools>,
    credentials: Mutex<HashMap<Box<str>, Option<Credential>>>,
    environments: Mutex<Environments>,
    next_environment: AtomicU64,
    server_counts: Mutex<ServerCounts>,
    client_counts: Mutex<ClientCounts>,
    pauses: Mutex<Pauses>,
    /// Changes of schema, by the database where they were made.
    schemas: Mutex<HashMap<String, Arc<Schema>>>,
    serials: AtomicU64,
    auth_seed: AuthSeed,
}

impl Shared {
    /// What `cores` engines share at the start.
    pub fn new(options: Arc<Options>, cores: u16, entropy: &mut dyn FnMut(&mut [u8])) -> Arc<Self> {
        let mut nonce = [0; 8];
        entropy(&mut nonce);
        let mut seed = [0; 16];
        entropy(&mut seed);
        let mut auth_seed = [0; 32];
        entropy(&mut auth_seed);
        let shared = Self {
            registry: Registry::new(u64::from_le_bytes(nonce), registry::seed(seed)),
            cores,
            lobby: Lobby::default(),
            options: RwLock::new(options),
            pools: Mutex::default(),
            credentials: Mutex::default(),
            environments: Mutex::default(),
            next_environment: AtomicU64::new(1),
            server_counts: Mutex::default(),
            client_counts: Mutex::default(),
            pauses: Mutex::default(),
            schemas: Mutex::default(),
            serials: AtomicU64::new(1),
            auth_seed: AuthSeed::new(auth_seed),
        };
        Arc::new(shared)
    }

    /// The options in force.
    pub fn options(&self) -> Arc<Options> {
        self.options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts other options in force, here and for every pool.
    pub fn reload(&self, options: Arc<Options>) {
        *self.options.write().unwrap_or_else(PoisonError::into_inner) = options.clone();
        lock(&self.credentials).clear();
        for pool in lock(&self.pools).iter() {
            pool.configure(PoolSettings::of(&options, &pool.database, &pool.user));
        }
    }

    /// Pauses or resumes a database, or all: for pools that a core opens later. Those that are open
    /// are told by [`crate::state::event::Command`].
    pub fn set_paused(&self, database: Option<&Arc<str>>, paused: bool) {
        lock(&self.pauses).set(database, paused);
    }

    /// Whether a database is paused.
    pub fn is_paused(&self, database: &str) -> bool {
        lock(&self.pauses).has(database)
    }

    /// Whether all databases were paused at once.
    pub fn are_all_paused(&self) -> bool {
        lock(&self.pauses).all()
    }

    /// Has servers of a database, or all, connected anew: for those on their way from core to core.
    pub fn reconnect(&self, database: Option<&Arc<str>>) {
        for pool in lock(&self.pools).iter() {
            if database.is_none_or(|database| *database == pool.database) {
                pool.begin_reconnect();
            }
        }
    }

    /// Has servers at a place connected anew, as they come free.
    pub(crate) fn renew(&self, host: &str) {
        for pool in lock(&self.pools).iter() {
            if pool.settings().host.to_string() == host {
                pool.begin_reconnect();
            }
        }
    }

    /// A number that was never given before.
    pub fn serial(&self) -> u64 {
        self.serials.fetch_add(1, Relaxed)
    }

    /// The pool of a user of a database, if anybody has used it.
    pub fn find_pool(&self, database: &str, user: &str) -> Option<Arc<PoolShared>> {
        let key = (Arc::from(database), Arc::from(user));
        lock(&self.pools).find(&key).cloned()
    }

    /// The pool of a user of a database, made on first use; `None` where there is no such database
    /// or user, or there are too many pools.
    pub fn pool(&self, database: &str, user: &str) -> Option<Arc<PoolShared>> {
        let mut pools = lock(&self.pools);
        let key = (Arc::from(database), Arc::from(user));
        if let Some(pool) = pools.find(&key) {
            return Some(pool.clone()).filter(|pool| !pool.is_removed());
        }
        let settings = PoolSettings::of(&self.options(), database, user)?;
        let schema = lock(&self.schemas).entry(settings.place(database)).or_default().clone();
        pools.add(key.clone(), |id| PoolShared::new(id, key, settings, schema))
    }

    /// The pool with this number. It is there as long as it has a server.
    pub(crate) fn pool_of(&self, id: PoolId) -> Option<Arc<PoolShared>> {
        lock(&self.pools).get(id).cloned()
    }

    /// Forgets a pool, unless a core has it open or it has a server.
    pub(crate) fn forget_pool(&self, id: PoolId) {
        let mut pools = lock(&self.pools);
        let mut server_counts = lock(&self.server_counts);
        if !server_counts.pools.contains_key(&id) && pools.forget(id) {
            server_counts.waits_for_room.retain(|(waits_for_room, _)| *waits_for_room != id);
        }
    }

    /// What a user is checked by. A user nobody knows gets one that no proof satisfies.
    pub fn credential(&self, user: &str) -> Credential {
        let mut known = lock(&self.credentials);
        let prepared = known.entry(user.into()).or_insert_with(|| {
            let options = self.options();
            let stored = stored(&options.user(user)?.secret)?;
            Some(Credential::prepare(user, stored, &self.auth_seed))
        });
        if let Some(credential) = prepared {
            return credential.clone();
        }
        known.remove(user); // names that nobody has are not collected
        Credential::unknown(user, Like::Password, &self.auth_seed)
    }

    /// Numbers the settings that change what a text means, for as long as anybody keeps the number.
    pub fn environment(&self, settings: &[u8]) -> Arc<EnvId> {
        lock(&self.environments).intern(settings, || self.own_environment())
    }

    /// Lets go of what nobody has.
    pub(crate) fn sweep(&self) {
        lock(&self.environments).sweep();
        let unused = |pool: &&Arc<PoolShared>| Arc::strong_count(pool) == 1;
        let pools: Vec<_> = lock(&self.pools).iter().filter(unused).map(|pool| pool.id).collect();
        pools.into_iter().for_each(|id| self.forget_pool(id));
        lock(&self.schemas).retain(|_, schema| Arc::strong_count(schema) > 1);
    }

    /// An environment that is nobody else's.
    pub fn own_environment(&self) -> EnvId {
        EnvId(self.next_environment.fetch_add(1, Relaxed))
    }

    /// Whether `core` may connect one more server to `pool`; `reserve` servers beyond its size.
    pub fn admit_server(&self, pool: &PoolShared, core: Core, reserve: bool) -> ConnectPermit {
        let settings = pool.settings();
        let mut server_counts = lock(&self.server_counts);
        let options = &settings.options;
        let size = options.pool_size + if reserve { options.reserve_pool_size } else { 0 };
        let below = |count: Option<&u32>, max: Option<u32>| {
            max.is_none_or(|max| count.copied().unwrap_or(0) < max)
        };
        let room = below(server_counts.pools.get(&pool.id), Some(size))
            && below(server_counts.databases.get(&pool.database), settings.database_max)
            && below(server_counts.users.get(&pool.user), settings.user_max);
        if !room {
            if !server_counts.waits_for_room.contains(&(pool.id, core)) {
                server_counts.waits_for_room.push((pool.id, core));
            }
            return ConnectPermit::Refused;
        }
        *server_counts.pools.entry(pool.id).or_default() += 1;
        *server_counts.databases.entry(pool.database.clone()).or_default() += 1;
        *server_counts.users.entry(pool.user.clone()).or_default() += 1;
        ConnectPermit::Granted
    }

    /// A server that was admitted is gone. Gives the pools and cores that may try again.
    pub fn server_gone(&self, pool: &PoolShared) -> Vec<(PoolId, Core)> {
        let mut server_counts = lock(&self.server_counts);
        let ServerCounts { pools, databases, users, .. } = &mut *server_counts;
        leave(pools, &pool.id);
        leave(databases, &pool.database);
        leave(users, &pool.user);
        std::mem::take(&mut server_counts.waits_for_room)
    }

    /// How many servers a pool has beyond what it, its database or its user may have: a reload has
    /// made that less.
    pub fn surplus(&self, pool: &PoolShared) -> u32 {
        let settings = pool.settings();
        let server_counts = lock(&self.server_counts);
        let options = &settings.options;
        let size = options.pool_size.saturating_add(options.reserve_pool_size);
        let beyond = |count: Option<&u32>, max: Option<u32>| {
            max.map_or(0, |max| count.copied().unwrap_or(0).saturating_sub(max))
        };
        beyond(server_counts.pools.get(&pool.id), Some(size))
            .max(beyond(server_counts.databases.get(&pool.database), settings.database_max))
            .max(beyond(server_counts.users.get(&pool.user), settings.user_max))
    }

    /// Counts a client in that has shown who it is.
    ///
    /// # Errors
    /// Where its database or user has as many clients as it may have; it is not counted then.
    pub fn admit_client(&self, pool: &PoolShared) -> Result<(), LimitReached> {
        let settings = pool.settings();
        let mut client_counts = lock(&self.client_counts);
        let ClientCounts { databases, users } = &mut *client_counts;
        let full = |count: Option<&u32>, max: Option<u32>| {
            max.is_some_and(|max| count.copied().unwrap_or(0) >= max)
        };
        if full(databases.get(&pool.database), settings.database_clients_max) {
            return Err(LimitReached::Database);
        }
        if full(users.get(&pool.user), settings.user_clients_max) {
            return Err(LimitReached::User);
        }
        *databases.entry(pool.database.clone()).or_default() += 1;
        *users.entry(pool.user.clone()).or_default() += 1;
        Ok(())
    }

    /// A client that was admitted is gone.
    pub fn client_gone(&self, pool: &PoolShared) {
        let mut client_counts = lock(&self.client_counts);
        let ClientCounts { databases, users } = &mut *client_counts;
        leave(databases, &pool.database);
        leave(users, &pool.user);
    }

    /// Servers of a pool, over all cores.
    pub fn servers(&self, pool: PoolId) -> u32 {
        lock(&self.server_counts).pools.get(&pool).copied().unwrap_or(0)
    }

    /// Servers of a database, or all, over all cores and on the way between them.
    pub fn database_servers(&self, database: Option<&str>) -> u32 {
        let server_counts = lock(&self.server_counts);
        match database {
            Some(database) => server_counts.databases.get(database).copied().unwrap_or(0),
            None => server_counts.databases.values().sum(),
        }
    }

    /// Every statement, for the admin console.
    pub fn statements(&self) -> Vec<StatementView> {
        let pools: HashMap<PoolId, Arc<PoolShared>> =
            lock(&self.pools).iter().map(|pool| (pool.id, pool.clone())).collect();
        let mut views = Vec::new();
        self.registry.for_each(|statement| {
            let Some(pool) = pools.get(&statement.pool) else { return };
            views.push(StatementView::of(statement, pool.database.clone(), pool.user.clone()));
        });
        views.sort_by_key(|view| view.id);
        views
    }
}

/// Counts one out.
fn leave<K: Eq + std::hash::Hash>(counts: &mut HashMap<K, u32>, key: &K) {
    let count = counts.get_mut(key).expect("who goes was counted");
    *count = count.checked_sub(1).expect("no more go than came");
    if *count == 0 {
        counts.remove(key);
    }
}

/// Returns a number for a client, which the process gives once.
pub fn client_serial(shared: &Shared) -> ClientSerial {
    ClientSerial(shared.serial())
}

fn stored(secret: &UserSecret) -> Option<Stored> {
    match secret {
        UserSecret::None => None,
        UserSecret::Plain(plain) => Password::new(plain.expose()).map(Stored::Password),
        UserSecret::Md5(hash) => Stored::parse(hash.expose()),
        UserSecret::Scram(verifier) => {
            let refrain_config::ScramVerifier { iterations, salt, stored_key, server_key } =
                verifier.clone();
            Some(Stored::Scram(ScramVerifier { iterations, salt, stored_key, server_key }))
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
