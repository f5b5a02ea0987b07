//! PostgreSQL's part of what the cores share of one pool: the schema's version, the login to
//! servers, and the settings that servers reported.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_config::Server;
use refrain_pool::settings::PoolSettings;

use crate::auth::{Password, Salted, Secret};
use crate::pipeline::schema::{Defining, Schema};
use crate::settings::session::{ServerParameters, Settings};

/// Catalogs of which the newest objects are asked for.
pub(crate) const CATALOGS: usize = 6;

/// Kinds of settings that servers of a pool give their sessions: where there are more, as at
/// servers that differ, nobody is connected anew for one more.
const MET_MAX: usize = 16;

/// PostgreSQL's part of what the cores share of one pool.
#[derive(Debug)]
pub struct PoolSharedPart {
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
    /// What the first server said at its login: ParameterStatus, in order.
    server_parameters: Mutex<Option<Arc<ServerParameters>>>,
    /// What settings servers were seen to give their sessions, by number.
    met: Mutex<Vec<u64>>,
    login: Mutex<ServerLogin>,
}

/// How to log in to the pool's servers.
#[derive(Debug)]
struct ServerLogin {
    secret: Secret,
    salted: Option<Salted>,
}

impl PoolSharedPart {
    /// Makes the part of a pool that nobody has used yet.
    pub(crate) fn new(settings: &PoolSettings, schema: Arc<Schema>) -> Self {
        Self {
            schema_version: AtomicU64::new(0),
            schema,
            code: AtomicU64::new(0),
            newest: Default::default(),
            server_parameters: Mutex::new(None),
            met: Mutex::default(),
            login: Mutex::new(ServerLogin::new(&settings.server)),
        }
    }

    /// Puts another password for the servers in force, if one is configured.
    pub(crate) fn configure(&self, settings: &PoolSettings) {
        if settings.server.password.is_some() {
            *lock(&self.login) = ServerLogin::new(&settings.server);
        }
    }

    /// Takes a client's secret for the servers.
    pub(crate) fn learn_secret(&self, secret: &Secret) {
        lock(&self.login).secret = secret.clone();
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

    /// What to log in to servers with.
    pub fn secret(&self) -> Secret {
        lock(&self.login).secret.clone()
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

impl ServerLogin {
    fn new(server: &Server) -> Self {
        Self { secret: configured(server), salted: None }
    }
}

fn configured(server: &Server) -> Secret {
    let password = server.password.as_ref().and_then(|secret| Password::new(secret.expose()));
    password.map_or(Secret::None, Secret::Password)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
