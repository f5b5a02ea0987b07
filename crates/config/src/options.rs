//! The checked options as a whole, and the ones that apply to a client.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::cache::{Cache, PoolCache};
use crate::database::{Database, Server};
use crate::general::{AuthMethod, General};
use crate::hba::{Groups, Hba};
use crate::pool::PoolOptions;
use crate::user::User;

/// The whole configuration, checked.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Options {
    /// Options of the program as a whole.
    pub general: General,
    /// The `[pool]` table: the options of every pool, unless its database or user overrides them.
    pub defaults: PoolOptions,
    /// The result cache.
    pub cache: Cache,
    /// Databases, sorted by name.
    pub databases: Vec<Database>,
    /// Users, sorted by name.
    pub users: Vec<User>,
    /// Groups of users, for the rules of authentication.
    pub groups: Groups,
    /// The rules of authentication. They count if `auth` is `hba`.
    pub hba: Arc<Hba>,
}

/// All options that apply to one user of one database.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedPool {
    /// The server, with `dbname` and `user` filled in, and `password` if it is known.
    pub server: Server,
    /// The options of the database, overridden by those of the user.
    pub options: PoolOptions,
    /// The rules of the cache.
    pub cache: PoolCache,
    /// Server connections over all pools of the database.
    pub max_database_connections: Option<u32>,
    /// Clients of the database.
    pub max_database_client_connections: Option<u32>,
    /// Server connections over all pools of the user.
    pub max_user_connections: Option<u32>,
    /// Clients of the user.
    pub max_user_client_connections: Option<u32>,
}

impl Options {
    /// Returns the first of these addresses that other machines may reach, if clients are trusted.
    pub fn trusts_strangers(&self, addresses: &[SocketAddr]) -> Option<SocketAddr> {
        let is_public = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
        let trusts = self.general.auth == AuthMethod::Trust;
        addresses.iter().find(is_public).copied().filter(|_| trusts)
    }

    /// Returns the database for a name: the entry of that name, or `*`.
    pub fn database(&self, name: &str) -> Option<&Database> {
        let named = |wanted: &str| self.databases.iter().find(|d| d.name == wanted);
        named(name).or_else(|| named(Database::ANY))
    }

    /// Returns the name of the database that a client asks for: the name that it sent, or the
    /// default if it named none. A driver that names none sends the name of the user.
    pub fn meant<'a>(&'a self, name: &'a str, user: &str) -> &'a str {
        let names_none = name == user && self.database(name).is_none();
        let default = self.general.default_database.as_deref();
        default.filter(|_| names_none && !Database::CONSOLES.contains(&name)).unwrap_or(name)
    }

    /// Returns the user with this name. Under `trust`, and by some rules of `hba`, clients may log
    /// in as users that are not here.
    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.name == name)
    }

    /// Whether a user may log in with the right password; under `trust`, every user may, and under
    /// `hba` every user whom a rule may let in without one.
    pub fn admits(&self, user: &str) -> bool {
        match self.general.auth {
            AuthMethod::Trust => true,
            AuthMethod::Hba if self.hba.admits_without_secret(user) => true,
            _ => self.user(user).is_some(),
        }
    }

    /// Returns all options that apply to a user of a database; `None` if there is no such database.
    pub fn pool(&self, database: &str, user: &str) -> Option<ResolvedPool> {
        let entry = self.database(database)?;
        let known = self.user(user);
        let mut server = entry.server.clone();
        server.dbname.get_or_insert_with(|| database.to_owned());
        let login = server.user.get_or_insert_with(|| user.to_owned());
        let password = self.user(login).and_then(|user| user.secret.plain());
        server.password = server.password.or_else(|| password.cloned());
        Some(ResolvedPool {
            server,
            options: known.map_or_else(|| entry.pool.clone(), |user| user.pool.over(&entry.pool)),
            cache: self.cache.of(database, user),
            max_database_connections: entry.max_connections,
            max_database_client_connections: entry.max_client_connections,
            max_user_connections: known.and_then(|user| user.max_connections),
            max_user_client_connections: known.and_then(|user| user.max_client_connections),
        })
    }
}
