//! Options of one pool.

use std::sync::Arc;

use refrain_config::{Host, Options, PoolOptions, Server};

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

impl PoolSettings {
    /// The database there, for two pools to see whether it is the same.
    pub fn place(&self, database: &str) -> String {
        format!("{}/{}", self.host, self.server.dbname.as_deref().unwrap_or(database))
    }

    /// What is configured for a user of a database; `None` where there is no such database, or no
    /// such user.
    pub fn of(options: &Options, database: &str, user: &str) -> Option<Arc<Self>> {
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
