//! The state that the cores share: options, pools, the counts of servers, and what the process has
//! once.
//!
//! Locks protect this state, here and in the files of its parts. A message of a client that has a
//! server takes none of these locks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use refrain_config::{Database, Options, Server};

use crate::client_counts::{ClientLimits, LimitReached};
use crate::counts::Counts;
use crate::full_hosts::FullHosts;
use crate::hosts::{Health, HostLists, Hosts};
use crate::ids::{ClientSerial, PoolId};
use crate::lobby::Lobby;
use crate::lost_hosts::LostHosts;
use crate::moved::Moved;
use crate::parts::Parts;
use crate::pool_shared::PoolShared;
use crate::pools::Pools;
use crate::process::Process;
use crate::settings::PoolSettings;

/// The state that the cores share.
#[derive(Debug)]
pub struct Shared<P: Parts> {
    /// Number of engines.
    pub cores: u16,
    /// The connections of clients, over all cores.
    pub lobby: Lobby,
    /// The counts of servers, over all cores.
    pub counts: Counts,
    /// The clients that are at another core than their process ID names.
    pub(crate) moved: Moved,
    /// The hosts that cannot be connected to.
    pub(crate) lost_hosts: LostHosts,
    /// The hosts that have no room for one more server.
    pub(crate) full_hosts: FullHosts,
    /// The hosts of pools that have several.
    host_lists: HostLists,
    /// The protocol's part.
    pub protocol: P::Shared,
    options: RwLock<Arc<Options>>,
    pools: Mutex<Pools<P>>,
    process: Arc<Process>,
}

impl<P: Parts> Shared<P> {
    /// Makes the state that `cores` engines share at the start.
    pub fn new(options: Arc<Options>, cores: u16, entropy: &mut dyn FnMut(&mut [u8])) -> Arc<Self> {
        Self::in_process(Arc::default(), options, cores, entropy)
    }

    /// Makes that state in a process that may serve other protocols as well.
    pub fn in_process(
        process: Arc<Process>,
        options: Arc<Options>,
        cores: u16,
        entropy: &mut dyn FnMut(&mut [u8]),
    ) -> Arc<Self> {
        Arc::new(Self {
            cores,
            lobby: Lobby::of(Arc::clone(&process)),
            counts: Counts::default(),
            moved: Moved::default(),
            lost_hosts: LostHosts::default(),
            full_hosts: FullHosts::default(),
            host_lists: HostLists::default(),
            protocol: P::shared(&options, entropy),
            options: RwLock::new(options),
            pools: Mutex::default(),
            process,
        })
    }

    /// Returns the options in force.
    pub fn options(&self) -> Arc<Options> {
        self.options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts new options into force, here and for every pool.
    pub fn reload(&self, options: Arc<Options>) {
        *self.options.write().unwrap_or_else(PoisonError::into_inner) = options.clone();
        P::options_changed(&self.protocol, &options);
        self.lost_hosts.keep(options.databases.iter().flat_map(|database| database.server.hosts()));
        for pool in lock(&self.pools).iter() {
            let (database, user) = (&pool.database, &pool.user);
            let settings = match pool.is_common {
                true => PoolSettings::of_common(&options, database, &self.host_lists),
                false => PoolSettings::of(&options, database, user, &self.host_lists),
            };
            pool.configure(settings.map(|settings| self.of_variant(settings, pool.variant)));
        }
    }

    /// Returns the databases of which each host is lost or in another state than is wanted, as far
    /// as is known.
    pub fn unreachable(&self) -> Vec<Database> {
        let may_serve = |server: &Server| match self.host_lists.of(server) {
            Some(hosts) => {
                let serves = |health| match health {
                    Health::Good | Health::Unknown => true,
                    Health::Down | Health::Unsuited => false,
                };
                hosts.view().iter().any(|host| serves(host.health))
            }
            None => !self.lost_hosts.has(&server.host),
        };
        let options = self.options();
        options.databases.iter().filter(|it| !may_serve(&it.server)).cloned().collect()
    }

    /// Pauses or resumes a database, or all, for pools that a core opens later. Pools that are open
    /// get the [`crate::event::Command`].
    pub fn set_paused(&self, database: Option<&Arc<str>>, paused: bool) {
        self.process.pauses().set(database, paused);
    }

    /// Whether a database is paused.
    pub fn is_paused(&self, database: &str) -> bool {
        self.process.pauses().has(database)
    }

    /// Whether all databases were paused at once.
    pub fn are_all_paused(&self) -> bool {
        self.process.pauses().all()
    }

    /// Has a database take no new clients, or take them again. Clients that it has stay.
    pub fn set_disabled(&self, database: &Arc<str>, disabled: bool) {
        let mut names = self.process.disabled();
        match disabled {
            true => drop(names.insert(Arc::clone(database))),
            false => drop(names.remove(database)),
        }
    }

    /// Whether a database takes no new clients.
    pub fn is_disabled(&self, database: &str) -> bool {
        self.process.disabled().contains(database)
    }

    /// Orders that servers of a database, or of all, are connected anew, including servers on the
    /// way between cores.
    pub fn reconnect(&self, database: Option<&Arc<str>>) {
        for pool in lock(&self.pools).iter() {
            if database.is_none_or(|database| *database == pool.database) {
                pool.begin_reconnect();
            }
        }
    }

    /// Pauses a database, or all, and orders that its clients are killed, including clients on the
    /// way between cores.
    pub fn kill(&self, database: Option<&Arc<str>>) {
        self.set_paused(database, true);
        let next = self.serial();
        for pool in lock(&self.pools).iter() {
            if database.is_none_or(|database| *database == pool.database) {
                pool.kill_below(next);
            }
        }
    }

    /// Orders that servers at a host are connected anew, as they come free, since the defaults of
    /// new sessions have changed.
    pub fn renew(&self, host: &str) {
        for pool in lock(&self.pools).iter() {
            if pool.settings().server.hosts().any(|other| other.to_string() == host) {
                pool.renew_servers();
            }
        }
    }

    /// Returns a number for a client, which the process gives once.
    pub(crate) fn client_serial(&self) -> ClientSerial {
        ClientSerial(self.serial())
    }

    /// Returns a number that was never given before.
    pub fn serial(&self) -> u64 {
        self.process.serial()
    }

    /// Returns the pool of a user of a database, if the process has made that pool.
    pub fn find_pool(&self, database: &str, user: &str) -> Option<Arc<PoolShared<P>>> {
        let options = self.options();
        let user = options.common_user(database, user).map_or(user, |_| "");
        let key = (Arc::from(database), Arc::from(user), 0);
        lock(&self.pools).find(&key).cloned()
    }

    /// Counts a client of a user that has authenticated.
    ///
    /// # Errors
    /// If the client's database or user has as many clients as allowed. The client is not counted
    /// then.
    pub fn admit_client(&self, pool: &PoolShared<P>, user: &str) -> Result<(), LimitReached> {
        let database = pool.settings().database_clients_max;
        let limits = ClientLimits { database, user: self.options().max_clients_of(user) };
        self.process.client_counts.admit(&pool.database, user, limits)
    }

    /// Counts out a client that was admitted.
    pub(crate) fn client_gone(&self, pool: &PoolShared<P>, user: &Arc<str>) {
        self.process.client_counts.gone(&pool.database, user);
    }

    /// Whether the options let a user be a client of a pool. A pool of the user's own is removed
    /// where they do not.
    pub(crate) fn admits(&self, pool: &PoolShared<P>, user: &str) -> bool {
        !pool.is_common || self.options().admits(&pool.database, user)
    }

    /// Returns the pool of a user of a database, and makes the pool on first use. Users for whom
    /// servers log in as one share a pool. Returns `None` if there is no such database or user, or
    /// if there are too many pools.
    pub fn pool(&self, database: &str, user: &str) -> Option<Arc<PoolShared<P>>> {
        self.pool_of_variant(database, user, 0)
    }

    /// Returns the pool of a user of a database whose servers are of a variant, and makes the pool
    /// on first use. A protocol has variants if clients agree on something at their login that a
    /// server has to agree on as well. Each variant is a pool of its own, with settings that the
    /// protocol may change ([`Parts::of_variant`]).
    pub fn pool_of_variant(
        &self,
        database: &str,
        user: &str,
        variant: u16,
    ) -> Option<Arc<PoolShared<P>>> {
        let options = self.options();
        let is_common = options.common_user(database, user).is_some();
        if is_common && !options.admits(database, user) {
            return None;
        }
        self.make_pool(&options, database, user, variant)
    }

    /// Returns the pools that keep servers before any client comes, and makes those that are not
    /// there.
    pub(crate) fn kept_pools(&self) -> Vec<Arc<PoolShared<P>>> {
        let options = self.options();
        let make = |database| self.make_pool(&options, database, "", 0);
        options.kept_databases().filter_map(make).collect()
    }

    fn make_pool(
        &self,
        options: &Options,
        database: &str,
        user: &str,
        variant: u16,
    ) -> Option<Arc<PoolShared<P>>> {
        let common = options.common_user(database, user).map(Arc::from);
        let own = if common.is_some() { "" } else { user };
        let mut pools = lock(&self.pools);
        let key = (Arc::from(database), Arc::from(own), variant);
        if let Some(pool) = pools.find(&key) {
            return Some(pool.clone()).filter(|pool| !pool.is_removed());
        }
        let settings = match common {
            Some(_) => PoolSettings::of_common(options, database, &self.host_lists)?,
            None => PoolSettings::of(options, database, user, &self.host_lists)?,
        };
        let settings = self.of_variant(settings, variant);
        let part = P::pool_shared(&self.protocol, &settings, database, variant);
        pools.add(key.clone(), |id| PoolShared::new(id, key, common, settings, part))
    }

    /// Returns the settings of a pool of a variant. Variant 0 is what most pools are.
    fn of_variant(&self, mut settings: Arc<PoolSettings>, variant: u16) -> Arc<PoolSettings> {
        if variant > 0 {
            let settings = Arc::make_mut(&mut settings);
            P::of_variant(&self.protocol, settings, variant);
            settings.hosts = self.host_lists.of(&settings.server);
        }
        settings
    }

    /// Returns the lists of hosts of pools that have several, or that want one of a certain state.
    pub fn host_lists(&self) -> Vec<Arc<Hosts>> {
        self.host_lists.all()
    }

    /// Returns all pools.
    pub fn pools(&self) -> Vec<Arc<PoolShared<P>>> {
        lock(&self.pools).iter().cloned().collect()
    }

    /// Returns the pool with this number. A pool that has a server is not forgotten.
    pub(crate) fn pool_of(&self, id: PoolId) -> Option<Arc<PoolShared<P>>> {
        lock(&self.pools).get(id).cloned()
    }

    /// Forgets a pool, unless a core has it open or it has a server.
    pub(crate) fn forget_pool(&self, id: PoolId) {
        let mut pools = lock(&self.pools);
        self.counts.forget(id, || pools.forget(id));
    }

    /// Forgets pools that no core has open, and has the protocol forget what no core uses.
    pub(crate) fn sweep(&self) {
        let unused = |pool: &&Arc<PoolShared<P>>| Arc::strong_count(pool) == 1;
        let pools: Vec<_> = lock(&self.pools).iter().filter(unused).map(|pool| pool.id).collect();
        pools.into_iter().for_each(|id| self.forget_pool(id));
        P::sweep(&self.protocol);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
