//! The settings of one pool, resolved from the configuration.

use std::sync::Arc;
use std::time::Duration;

use refrain_config::{
    Autoprepare, Host, Options, PoolCache, PoolOptions, Reads, Server, ShareServers,
};

use crate::hosts::{HostLists, Hosts};

/// Time after which an unused pool goes whose servers have moved.
const GOES_SOON: Duration = Duration::from_secs(1);

/// The settings of a pool.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// The options: those of the database and the user, laid over the defaults.
    pub options: PoolOptions,
    /// The rules of the result cache.
    pub cache: PoolCache,
    /// Whether requests of clients without a server are looked at: there are rules of the cache, or
    /// reads run elsewhere. It may be true where neither is so any more.
    pub looks: bool,
    /// The host of the pool's servers, or the first one of several.
    pub host: Arc<Host>,
    /// The knowledge of the hosts, if the pool has several, or wants one of a certain state.
    pub hosts: Option<Arc<Hosts>>,
    /// Whether connections lead to the servers. What spares servers work is not worth its while for
    /// sessions in this process, so these have no rules of the cache.
    pub is_remote: bool,
    /// The server to log in to.
    pub server: Server,
    /// Number of servers of the database at most.
    pub database_max: Option<u32>,
    /// Number of servers of the user at most.
    pub user_max: Option<u32>,
    /// Number of clients of the database at most.
    pub database_clients_max: Option<u32>,
}

impl PoolSettings {
    /// Returns the hosts and the database's name there. Two pools of one database have the same.
    pub fn place(&self, database: &str) -> String {
        self.server.place(database)
    }

    /// Returns the settings of a pool whose servers are at another place than when it was made.
    ///
    /// What is known of a place's statements, and replies that are kept, belong to the pool for as
    /// long as it is there. So it does without, and goes soon after its last client: the next pool
    /// of this database and user knows the new place.
    #[must_use]
    pub(crate) fn elsewhere(&self) -> Self {
        let mut options = self.options.clone();
        options.share_servers = ShareServers::Off;
        options.autoprepare = Autoprepare::Off;
        let timeout = options.pool_idle_timeout.unwrap_or(GOES_SOON).min(GOES_SOON);
        options.pool_idle_timeout = Some(timeout);
        Self { options, cache: PoolCache::default(), ..self.clone() }
    }

    /// Returns the settings for a user of a database, or `None` if there is no such database or no
    /// such user.
    pub(crate) fn of(
        options: &Options,
        database: &str,
        user: &str,
        lists: &HostLists,
    ) -> Option<Arc<Self>> {
        Self::resolve(options, database, user, lists).filter(|_| options.admits(database, user))
    }

    /// Returns the settings of the pool that users of a database share, or `None` if there is no
    /// such database or it has no fixed user.
    pub(crate) fn of_common(
        options: &Options,
        database: &str,
        lists: &HostLists,
    ) -> Option<Arc<Self>> {
        options.common_user(database, "")?;
        Self::resolve(options, database, "", lists)
    }

    fn resolve(
        options: &Options,
        database: &str,
        user: &str,
        lists: &HostLists,
    ) -> Option<Arc<Self>> {
        let resolved = options.pool(database, user)?;
        let server = resolved.server;
        let is_remote = server.host.is_remote();
        let mut cache = if is_remote { resolved.cache } else { PoolCache::default() };
        // Writes are noted for reads elsewhere as they are for replies that are kept.
        cache.is_on |= is_remote && server.reads == Reads::Standby;
        Some(Arc::new(Self {
            options: resolved.options,
            looks: cache.keeps() || server.reads == Reads::Standby,
            cache,
            host: Arc::new(server.host.clone()),
            hosts: lists.of(&server),
            is_remote,
            server,
            database_max: resolved.max_database_connections,
            user_max: resolved.max_user_connections,
            database_clients_max: resolved.max_database_client_connections,
        }))
    }
}
