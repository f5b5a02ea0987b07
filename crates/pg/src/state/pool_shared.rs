//! What the cores share of one pool: its options, its login to servers, and what those said of
//! themselves.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use refrain_config::{Host, Options, PoolOptions, Server};

use crate::auth::{Password, Salted, Secret};
use crate::ground::ids::PoolId;
use crate::pipeline::schema::{Defining, Schema};
use crate::settings::session::{ServerParameters, Settings};

/// Catalogs of which the newest objects are asked for.
pub(crate) const CATALOGS: usize = 6;

/// Kinds of settings that servers of a pool give their sessions: where there are more, as at
/// servers that differ, nobody is connected anew for one more.
const MET_MAX: usize = 16;

/// One user of one database, over all cores.
#[derive(Debug)]
pub struct PoolShared {
    /// Its number.
    pub id: PoolId,
    /// The database as clients name it.
    pub database: Arc<str>,
    /// The user as clients name themselves.
    pub user: Arc<str>,
    /// Counts changes of schema that passed through here.
    schema_version: AtomicU64,
    /// All that may have changed the schema, by whichever pool of the same database there, or has
    /// and is committed only now. For what is planned unasked; a client's own statements go by the
    /// schema version.
    schema: Arc<Schema>,
    /// Counts changes of functions and triggers that passed through here, or may have.
    code: AtomicU64,
    /// The newest objects of the database that were seen, by catalog.
    newest: [AtomicU32; CATALOGS],
    /// Counts the times that its servers were to be connected anew.
    reconnects: AtomicU32,
    /// Whether its user or its database is not configured any more.
    removed: AtomicBool,
    /// Its servers that are logged in, over all cores and on the way between them.
    live: AtomicU32,
    settings: RwLock<Arc<PoolSettings>>,
    /// What the first server said at its login: ParameterStatus, in order.
    server_parameters: Mutex<Option<Arc<ServerParameters>>>,
    /// What settings servers were seen to give their sessions, by number.
    met: Mutex<Vec<u64>>,
    login: Mutex<ServerLogin>,
}

/// What is configured for a pool.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// Options, those of database and user laid over the defaults.
    pub options: PoolOptions,
    /// Where its servers are.
    pub host: Arc<Host>,
    /// Whether they are PostgreSQL's.
    pub is_postgres: bool,
    /// The server to log in to.
    pub server: Server,
    /// Servers of the database at most.
    pub database_max: Option<u32>,
    /// Servers of the user at most.
    pub user_max: Option<u32>,
    /// Clients of the database at most.
    pub database_clients_max: Option<u32>,
    /// Clients of the user at most.
    pub user_clients_max: Option<u32>,
}

/// How to log in to the pool's servers.
#[derive(Debug)]
struct ServerLogin {
    secret: Secret,
    salted: Option<Salted>,
}

impl PoolShared {
    /// A pool that nobody has used yet.
    pub(crate) fn new(
        id: PoolId,
        (database, user): (Arc<str>, Arc<str>),
        settings: Arc<PoolSettings>,
        schema: Arc<Schema>,
    ) -> Self {
        let login = ServerLogin { secret: configured(&settings.server), salted: None };
        Self {
            id,
            database,
            user,
            schema_version: AtomicU64::new(0),
            schema,
            code: AtomicU64::new(0),
            newest: Default::default(),
            reconnects: AtomicU32::new(0),
            removed: AtomicBool::new(false),
            live: AtomicU32::new(0),
            settings: RwLock::new(settings),
            server_parameters: Mutex::new(None),
            met: Mutex::default(),
            login: Mutex::new(login),
        }
    }

    /// Puts other options in force: `None` where its user or its database is not configured any
    /// more.
    pub(crate) fn configure(&self, settings: Option<Arc<PoolSettings>>) {
        self.removed.store(settings.is_none(), Relaxed);
        let Some(settings) = settings else { return };
        if settings.server.password.is_some() {
            *lock(&self.login) = ServerLogin { secret: configured(&settings.server), salted: None };
        }
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Has all servers connected anew.
    pub(crate) fn begin_reconnect(&self) {
        self.reconnects.fetch_add(1, Relaxed);
    }

    /// Whether its user or its database is not configured any more: whoever is there leaves, and
    /// nobody is let in.
    pub fn is_removed(&self) -> bool {
        self.removed.load(Relaxed)
    }

    /// What is configured now, or was at last.
    pub fn settings(&self) -> Arc<PoolSettings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the first server said at its login.
    pub fn server_parameters(&self) -> Option<Arc<ServerParameters>> {
        lock(&self.server_parameters).clone()
    }

    /// Remembers what a server said at its login; says whether it is the first, or says other
    /// things.
    pub fn learn_server_parameters(&self, said: ServerParameters) -> bool {
        let mut known = lock(&self.server_parameters);
        let news = known.as_ref().is_none_or(|known| **known != said);
        if news {
            *known = Some(Arc::new(said));
        }
        news
    }

    /// Servers say these of their settings by now.
    pub(crate) fn amend_server_parameters<'a>(
        &self,
        said: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) {
        let mut known = lock(&self.server_parameters);
        let Some(server_parameters) = known.as_mut() else { return };
        let server_parameters = Arc::make_mut(server_parameters);
        for (name, value) in said {
            let found =
                server_parameters.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.into_iter().for_each(|(_, known)| *known = value.into());
        }
    }

    /// A server gives its sessions these settings. Says whether it is the first to, and others give
    /// others.
    pub(crate) fn meet(&self, defaults: &Settings) -> bool {
        let number = defaults.number();
        let mut met = lock(&self.met);
        if met.contains(&number) || met.len() >= MET_MAX {
            return false;
        }
        met.push(number);
        met.len() > 1
    }

    /// What servers said is of the past: the database is not there any more.
    pub(crate) fn forget_server_parameters(&self) {
        *lock(&self.server_parameters) = None;
    }

    /// A server has let us in; says whether it is the only one that has.
    pub(crate) fn server_lives(&self) -> bool {
        self.live.fetch_add(1, Relaxed) == 0
    }

    /// A server that had let us in is gone.
    pub(crate) fn server_dies(&self) {
        let before = self.live.fetch_sub(1, Relaxed);
        assert!(before > 0, "no more servers go than were logged in to");
    }

    /// Whether a server is logged in: then its database is there.
    pub(crate) fn is_live(&self) -> bool {
        self.live.load(Relaxed) > 0
    }

    /// The schema version.
    pub fn schema_version(&self) -> u64 {
        self.schema_version.load(Relaxed)
    }

    /// The schema changed.
    pub fn begin_schema_version(&self) {
        self.schema_version.fetch_add(1, Relaxed);
        self.schema_change();
    }

    /// The schema may have changed.
    pub fn schema_change(&self) {
        self.schema.schema_change();
    }

    /// What functions and triggers do may have changed.
    pub fn change_code(&self) {
        self.code.fetch_add(1, Relaxed);
    }

    /// Counts what may have changed what functions and triggers do.
    pub fn code(&self) -> u64 {
        self.code.load(Relaxed)
    }

    /// A session has seen objects up to these. If there are newer ones among them than anybody has
    /// seen before, the schema has changed.
    pub fn see(&self, newest: [u32; CATALOGS]) {
        let newer = |(seen, oid): (&AtomicU32, u32)| seen.fetch_max(oid, Relaxed) < oid;
        // All of them are to be remembered.
        let changes = self.newest.iter().zip(newest).filter(|pair| newer(*pair)).count();
        if changes > 0 {
            self.begin_schema_version();
            self.change_code();
        }
    }

    /// Counts all that may have changed the schema.
    pub fn schema_changes(&self) -> u64 {
        self.schema.schema_changes()
    }

    /// Something is sent that may change the schema.
    pub(crate) fn begin_defining(&self) -> Defining {
        Defining::begin(&self.schema)
    }

    /// Whether something is under way that may change the schema.
    #[inline]
    pub(crate) fn is_being_defined(&self) -> bool {
        self.schema.is_being_defined()
    }

    /// Which servers are of now: those connected since they were last to be connected anew.
    pub fn reconnects(&self) -> u32 {
        self.reconnects.load(Relaxed)
    }

    /// What to log in to servers with.
    pub fn secret(&self) -> Secret {
        lock(&self.login).secret.clone()
    }

    /// Takes a client's secret for the servers, where none is configured.
    pub fn learn_secret(&self, secret: &Secret) {
        let settings = self.settings();
        let own = settings.server.user.as_deref() == Some(&*self.user);
        if own && settings.server.password.is_none() && !matches!(secret, Secret::None) {
            lock(&self.login).secret = secret.clone();
        }
    }

    /// What PBKDF2 made of the secret, to do it once a pool.
    pub fn salted(&self) -> Option<Salted> {
        lock(&self.login).salted.clone()
    }

    /// Keeps what PBKDF2 made of the secret.
    pub fn keep_salted(&self, salted: Option<Salted>) {
        lock(&self.login).salted = salted;
    }
}

impl PoolSettings {
    /// The database there, for two pools to see whether it is the same.
    pub(crate) fn place(&self, database: &str) -> String {
        format!("{}/{}", self.host, self.server.dbname.as_deref().unwrap_or(database))
    }

    /// What is configured for a user of a database; `None` where there is no such database, or no
    /// such user.
    pub(crate) fn of(options: &Options, database: &str, user: &str) -> Option<Arc<Self>> {
        let resolved = options.pool(database, user).filter(|_| options.admits(user))?;
        let server = resolved.server;
        Some(Arc::new(Self {
            options: resolved.options,
            host: Arc::new(server.host.clone()),
            is_postgres: !matches!(server.host, Host::Sqlite(_)),
            server,
            database_max: resolved.max_database_connections,
            user_max: resolved.max_user_connections,
            database_clients_max: resolved.max_database_client_connections,
            user_clients_max: resolved.max_user_client_connections,
        }))
    }
}

fn configured(server: &Server) -> Secret {
    let password = server.password.as_ref().and_then(|secret| Password::new(secret.expose()));
    password.map_or(Secret::None, Secret::Password)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
