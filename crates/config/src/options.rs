//! The checked options as a whole, and the ones that apply to a client.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::cache::{Cache, PoolCache};
use crate::choices::AuthMethod;
use crate::database::{AuthQueryKeys, Backend, Database, Server};
use crate::general::General;
use crate::hba::{Groups, Hba};
use crate::peer::Peer;
use crate::pool::PoolOptions;
use crate::secret::{Secret, UserSecret};
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
    /// Other processes that serve the same clients.
    pub peers: Vec<Peer>,
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
}

/// How the users of a database are looked up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthQuery {
    /// The database that is asked, as clients name it.
    pub database: String,
    /// The user as whom it is asked.
    pub user: String,
    /// The query: `$1` is the name of the user that is looked up.
    pub query: String,
}

impl AuthQuery {
    /// The query if none is configured, which is PgBouncer's as well.
    pub const DEFAULT_QUERY: &str = "SELECT rolname, CASE WHEN rolvaliduntil < now() THEN NULL ELSE rolpassword END \
         FROM pg_authid WHERE rolname=$1 AND rolcanlogin";
}

impl Options {
    /// Returns the options with those databases alone whose backends are served.
    #[must_use]
    pub fn of_backends(self: &Arc<Self>, serves: fn(Backend) -> bool) -> Arc<Self> {
        let is_served = |database: &Database| serves(database.server.backend);
        if self.databases.iter().all(is_served) {
            return Arc::clone(self);
        }
        let databases = self.databases.iter().filter(|&it| is_served(it)).cloned().collect();
        Arc::new(Self { databases, ..Self::clone(self) })
    }

    /// Whether a database is on a server of MySQL or MariaDB.
    pub fn has_mysql(&self) -> bool {
        self.databases.iter().any(Database::is_mysql)
    }

    /// Returns the TCP addresses on which clients are accepted.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let General { listen, mysql_listen, .. } = &self.general;
        let of_mysql = mysql_listen.iter().filter(|_| self.has_mysql());
        listen.iter().chain(of_mysql).copied().collect()
    }

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

    /// Returns the other process with this number.
    pub fn peer(&self, id: u32) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.id == id)
    }

    /// Returns the user with this name. Under `trust`, by some rules of `hba`, and with
    /// `auth_query`, clients may log in as users that are not here.
    pub fn user(&self, name: &str) -> Option<&User> {
        self.entry(name).filter(|user| user.name != User::ANY)
    }

    fn entry(&self, name: &str) -> Option<&User> {
        let at = self.users.binary_search_by(|user| user.name.as_str().cmp(name)).ok()?;
        Some(&self.users[at])
    }

    /// Returns the secret of a user that is configured.
    pub fn secret(&self, user: &str) -> Option<&UserSecret> {
        let secret = &self.user(user)?.secret;
        Some(secret).filter(|secret| **secret != UserSecret::None)
    }

    /// Returns the entry with the options of a user: the user's own, or `*`.
    fn options_of(&self, user: &str) -> Option<&User> {
        self.entry(user).or_else(|| self.entry(User::ANY))
    }

    /// Whether a user may log in to a database with the right password. Under `trust`, every user
    /// may, and under `hba` every user whom a rule may let in without one. Users that are looked up
    /// may be known there.
    pub fn admits(&self, database: &str, user: &str) -> bool {
        let without_secret = match self.general.auth {
            AuthMethod::Trust => self.general.trust_unknown,
            AuthMethod::Hba => self.hba.admits_without_secret(user),
            AuthMethod::Password | AuthMethod::Md5 | AuthMethod::Scram => false,
        };
        without_secret
            || self.user(user).is_some()
            || self.auth_query(database).is_some()
            || self.looks_up_as(user)
    }

    /// Whether a user who would be trusted has to be found elsewhere first.
    pub fn must_be_known(&self, user: &str) -> bool {
        let General { auth, trust_unknown, .. } = &self.general;
        *auth == AuthMethod::Trust && !trust_unknown && self.user(user).is_none()
    }

    /// Returns how users of a database are looked up who have no secret here; `None` if they are
    /// not.
    pub fn auth_query(&self, database: &str) -> Option<AuthQuery> {
        let none = AuthQueryKeys::default();
        let keys = if Database::CONSOLES.contains(&database) {
            self.general.auth_dbname.as_ref()?;
            &none
        } else {
            &self.database(database)?.auth_query
        };
        let General { auth_user, auth_query, auth_dbname, .. } = &self.general;
        let user = keys.user.as_ref().or(auth_user.as_ref())?;
        let query = keys.query.as_ref().or(auth_query.as_ref());
        let dbname = keys.dbname.as_ref().or(auth_dbname.as_ref());
        let dbname = dbname.map_or(database, String::as_str);
        let asked = self.database(dbname)?;
        (asked.server.backend == Backend::Postgres).then(|| AuthQuery {
            database: dbname.to_owned(),
            user: user.clone(),
            query: query.map_or(AuthQuery::DEFAULT_QUERY, String::as_str).to_owned(),
        })
    }

    /// Whether users are looked up as this user, in any database.
    fn looks_up_as(&self, user: &str) -> bool {
        let own = self.databases.iter().map(|database| &database.auth_query.user);
        own.chain([&self.general.auth_user]).any(|other| other.as_deref() == Some(user))
    }

    /// Returns the name that a database's servers have in common for a user: all such users share
    /// one pool. `None` if the user has a pool of its own, since the database has no fixed user, or
    /// since the user's options or rules of the cache are not those of other users.
    pub fn common_user(&self, database: &str, user: &str) -> Option<&str> {
        let entry = self.database(database)?;
        let login = entry.server.user.as_deref()?;
        let knows_password =
            entry.server.password.is_some() || self.server_secret(entry, login).is_some();
        // Servers may take the secret that a client proves.
        let by_client = !knows_password && (user == login || entry.is_mysql());
        let any = self.entry(User::ANY);
        let is_like_any = self.options_of(user).is_none_or(|own| {
            own.max_connections.is_none()
                && any.map_or(own.pool.is_empty(), |any| own.pool == any.pool)
        });
        let shares = entry.server.host.is_remote()
            && !by_client
            && is_like_any
            && !self.cache.has_rule_of(user);
        shares.then_some(login)
    }

    /// Returns the secret of a user that logs in to the servers of a database.
    fn server_secret(&self, entry: &Database, login: &str) -> Option<&Secret> {
        let takes_md5 = entry.server.user.is_some() && entry.server.backend == Backend::Postgres;
        self.user(login)?.secret.for_servers(takes_md5)
    }

    /// Returns the names of the databases whose pool keeps servers before any client comes: a
    /// user and that user's password are known, and no client has a part in them.
    pub fn kept_databases(&self) -> impl Iterator<Item = &str> {
        let is_kept = |database: &&Database| {
            let name = database.name.as_str();
            // Servers of MySQL depend on what a client agrees on at its login.
            name != Database::ANY
                && !database.is_mysql()
                && self.common_user(name, "").is_some()
                && self.pool(name, "").is_some_and(|pool| {
                    pool.server.password.is_some() && pool.options.min_pool_size > 0
                })
        };
        self.databases.iter().filter(is_kept).map(|database| database.name.as_str())
    }

    /// Returns the number of clients that a user may have; `None` is no limit.
    pub fn max_clients_of(&self, user: &str) -> Option<u32> {
        self.options_of(user).and_then(|user| user.max_client_connections)
    }

    /// Returns all options that apply to a user of a database; `None` if there is no such database.
    pub fn pool(&self, database: &str, user: &str) -> Option<ResolvedPool> {
        let entry = self.database(database)?;
        let known = self.options_of(user);
        let mut server = entry.server.clone();
        server.dbname.get_or_insert_with(|| database.to_owned());
        let login = server.user.get_or_insert_with(|| user.to_owned());
        let password = self.server_secret(entry, login);
        server.password = server.password.or_else(|| password.cloned());
        let mut options =
            known.map_or_else(|| entry.pool.clone(), |user| user.pool.over(&entry.pool));
        // A user's pools may be smaller than what all pools keep open.
        options.min_pool_size = options.min_pool_size.min(options.pool_size);
        Some(ResolvedPool {
            server,
            options,
            cache: self.cache.of(database, user),
            max_database_connections: entry.max_connections,
            max_database_client_connections: entry.max_client_connections,
            max_user_connections: known.and_then(|user| user.max_connections),
        })
    }
}
