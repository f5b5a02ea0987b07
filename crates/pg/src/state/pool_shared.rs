//! PostgreSQL's part of what the cores share of one pool: the schema's version, the login to
//! servers, and the settings that servers reported.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_config::Server;
use refrain_pool::Now;
use refrain_pool::settings::PoolSettings;

use crate::auth::{Md5Hash, Password, Salted, Secret};
use crate::ground::schema::Defining;
use crate::results::confirmed::Confirmed;
use crate::results::places::Place;
use crate::results::topics::DatabaseTopics;
use crate::settings::session::{ServerParameters, Settings};
use crate::state::replication::Start;

/// Number of catalogs whose newest objects a look asks for.
pub(crate) const CATALOGS: usize = 6;

/// Most different sets of default settings that are remembered for the servers of a pool. If there
/// are more, a new set no longer has servers connected anew.
const MET_MAX: usize = 16;

/// PostgreSQL's part of what the cores share of one pool.
#[derive(Debug)]
pub struct PoolSharedPart {
    /// Counts the changes of schema that passed through Refrain.
    schema_version: AtomicU64,
    /// The database: its count of possible schema changes, over all its pools, and the topics on
    /// which replies that are kept depend. Autoprepared statements are verified again when the
    /// count changes; clients' own statements use the schema version.
    place: Arc<Place>,
    /// Counts the changes, certain or possible, of functions and triggers that passed through
    /// Refrain.
    code: AtomicU64,
    /// The OID of the newest object that a look has seen, by catalog.
    newest: [AtomicU32; CATALOGS],
    /// The ParameterStatus messages of a server's login, in order.
    server_parameters: Mutex<Option<Arc<ServerParameters>>>,
    /// When a server last reported one of them anew, in microseconds: others may have changed too.
    defaults_changed: AtomicU64,
    /// The sets of default settings that servers were seen to have, by number.
    met: Mutex<Vec<u64>>,
    login: Mutex<ServerLogin>,
    /// The beginning of its servers, if they are for replication.
    replication: Option<Arc<Start>>,
    /// The last login at a server.
    pub(crate) confirmed: Confirmed,
}

/// The secret for logins at the pool's servers.
#[derive(Debug)]
struct ServerLogin {
    /// The secret in the configuration.
    configured: Secret,
    secret: Secret,
    /// Counts the secrets that clients have proved.
    version: u32,
    /// Whether the secret is one of those.
    learned: bool,
    /// The last of those that servers have refused.
    refused: Option<Secret>,
    salted: Option<Salted>,
}

impl PoolSharedPart {
    /// Makes the part of a new pool.
    pub(crate) fn new(
        settings: &PoolSettings,
        place: Arc<Place>,
        replication: Option<Arc<Start>>,
    ) -> Self {
        Self {
            schema_version: AtomicU64::new(0),
            place,
            code: AtomicU64::new(0),
            newest: Default::default(),
            server_parameters: Mutex::new(None),
            defaults_changed: AtomicU64::new(0),
            met: Mutex::default(),
            login: Mutex::new(ServerLogin::new(&settings.server)),
            replication,
            confirmed: Confirmed::default(),
        }
    }

    /// Uses the configured secret for the servers from now on, if there is one. One that a client
    /// has proved stays if the configured one is the same as before.
    pub(crate) fn configure(&self, settings: &PoolSettings) {
        let mut login = lock(&self.login);
        let configured = configured(&settings.server);
        let is_new = !configured.is_same(&login.configured);
        if is_new && settings.server.password.is_some() {
            *login = ServerLogin::new(&settings.server);
        } else {
            login.configured = configured;
        }
    }

    /// Whether its servers are for replication.
    pub(crate) fn is_for_replication(&self) -> bool {
        self.replication.is_some()
    }

    /// Whether a secret that a client has proved, who has the name of the servers' own `user`,
    /// serves at the servers better than the configured one. A hash serves at those alone that ask
    /// for MD5, and its password at all. The client's own password may be another.
    pub(crate) fn learns(&self, secret: &Secret, user: &str) -> bool {
        match (&lock(&self.login).configured, secret) {
            (Secret::None, secret) => !matches!(secret, Secret::None),
            (Secret::Md5(hash), Secret::Password(password)) => {
                Md5Hash::of(password, user).bytes() == hash.bytes()
            }
            (Secret::Md5(_) | Secret::Password(_) | Secret::Scram(_), _) => false,
        }
    }

    /// Uses a client's secret for the servers from now on. Returns whether it is another one than
    /// the last that servers have refused.
    pub(crate) fn learn_secret(&self, secret: &Secret) -> bool {
        let mut login = lock(&self.login);
        let is_other = login.refused.as_ref().is_some_and(|refused| !refused.is_same(secret));
        if is_other {
            login.refused = None;
        }
        login.secret = secret.clone();
        login.version = login.version.wrapping_add(1);
        login.learned = true;
        is_other
    }

    /// Forgets the secret of this version, if it is a client's: servers refuse it. Returns whether
    /// it was forgotten.
    pub(crate) fn forget_secret(&self, version: u32) -> bool {
        let mut login = lock(&self.login);
        let forgets = login.learned && login.version == version;
        if forgets {
            let configured = login.configured.clone();
            login.refused = Some(std::mem::replace(&mut login.secret, configured));
            login.learned = false;
        }
        forgets
    }

    /// Returns the parameters that a server reported at its login, if one has.
    pub fn server_parameters(&self) -> Option<Arc<ServerParameters>> {
        lock(&self.server_parameters).clone()
    }

    /// Remembers the parameters of a server's login. True if they are the first, or differ from
    /// those known.
    pub fn learn_server_parameters(&self, said: ServerParameters) -> bool {
        let mut known = lock(&self.server_parameters);
        let news = known.as_ref().is_none_or(|known| **known != said);
        if news {
            *known = Some(Arc::new(said));
        }
        news
    }

    /// Changes known parameters to the values that a server has reported `now`.
    pub(crate) fn amend_server_parameters<'a>(
        &self,
        said: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        now: Now,
    ) {
        self.defaults_changed.fetch_max(now.0, Relaxed);
        let mut known = lock(&self.server_parameters);
        let Some(server_parameters) = known.as_mut() else { return };
        let server_parameters = Arc::make_mut(server_parameters);
        for (name, value) in said {
            let found =
                server_parameters.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.into_iter().for_each(|(_, known)| *known = value.into());
        }
    }

    /// Returns when a server last reported another default than before.
    #[inline]
    pub(crate) fn defaults_changed(&self) -> Now {
        Now(self.defaults_changed.load(Relaxed))
    }

    /// Records the default settings of a server. True if they are new, and not the first: servers
    /// had others before.
    pub(crate) fn meet(&self, defaults: &Settings) -> bool {
        let number = defaults.number();
        let mut met = lock(&self.met);
        if met.contains(&number) || met.len() >= MET_MAX {
            return false;
        }
        met.push(number);
        met.len() > 1
    }

    /// Forgets the servers' parameters, because the database no longer exists.
    pub(crate) fn forget_server_parameters(&self) {
        *lock(&self.server_parameters) = None;
    }

    /// Returns the schema version.
    pub fn schema_version(&self) -> u64 {
        self.schema_version.load(Relaxed)
    }

    /// Counts a change of the schema.
    pub fn begin_schema_version(&self) {
        self.schema_version.fetch_add(1, Relaxed);
        self.schema_change();
    }

    /// Counts a possible change of the schema.
    pub fn schema_change(&self) {
        self.place.schema.schema_change();
    }

    /// Counts a change of functions or triggers, or a possible one.
    pub fn change_code(&self) {
        self.code.fetch_add(1, Relaxed);
    }

    /// Returns the count of changes of functions and triggers.
    pub fn code(&self) -> u64 {
        self.code.load(Relaxed)
    }

    /// Records the newest objects that a session sees. If one of them is newer than all seen
    /// before, the schema has changed.
    pub fn see(&self, newest: [u32; CATALOGS]) {
        let newer = |(seen, oid): (&AtomicU32, u32)| seen.fetch_max(oid, Relaxed) < oid;
        // All of them are to be remembered.
        let changes = self.newest.iter().zip(newest).filter(|pair| newer(*pair)).count();
        if changes > 0 {
            self.begin_schema_version();
            self.change_code();
        }
    }

    /// Voids all replies of the database in the cache.
    pub fn flush_results(&self) {
        self.place.topics.schema.void();
    }

    /// Returns the topics on which replies that are kept depend.
    #[inline]
    pub(crate) fn database(&self) -> &DatabaseTopics {
        &self.place.topics
    }

    /// Returns the database of the pool.
    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// Returns the count of possible changes of the schema.
    pub fn schema_changes(&self) -> u64 {
        self.place.schema.schema_changes()
    }

    /// Notes that a text is sent that may change the schema, until the result is dropped.
    pub(crate) fn begin_defining(&self) -> Defining {
        Defining::begin(&self.place.schema)
    }

    /// Whether a transaction is under way that may change the schema.
    #[inline]
    pub(crate) fn is_being_defined(&self) -> bool {
        self.place.schema.is_being_defined()
    }

    /// Returns the secret for logins at servers, and its version.
    pub fn secret(&self) -> (Secret, u32) {
        let login = lock(&self.login);
        (login.secret.clone(), login.version)
    }

    /// Returns the result of PBKDF2 for the secret, so that it runs once per pool.
    pub fn salted(&self) -> Option<Salted> {
        lock(&self.login).salted.clone()
    }

    /// Keeps the result of PBKDF2 for the secret.
    pub fn keep_salted(&self, salted: Option<Salted>) {
        lock(&self.login).salted = salted;
    }
}

impl ServerLogin {
    fn new(server: &Server) -> Self {
        let configured = configured(server);
        let secret = configured.clone();
        Self { configured, secret, version: 0, learned: false, refused: None, salted: None }
    }
}

fn configured(server: &Server) -> Secret {
    let Some(secret) = &server.password else { return Secret::None };
    match Md5Hash::parse(secret.expose()) {
        Some(hash) => Secret::Md5(hash),
        None => Password::new(secret.expose()).map_or(Secret::None, Secret::Password),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
