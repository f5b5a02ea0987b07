//! Databases clients may ask for, and the server behind each.

use std::fmt;
use std::path::PathBuf;

use crate::pool::{PoolOptions, PoolOverrides};
use crate::secret::Secret;
use crate::table::table;

/// A database as clients name it.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// The name clients ask for; [`Database::ANY`] stands for every name without an entry of its own.
    pub name: String,
    /// What is behind it.
    pub backend: Backend,
    /// Its pools' options, before those set for a user are laid over.
    pub pool: PoolOptions,
    /// The part of `pool` that was set here and not in `[pool]`.
    pub overrides: PoolOverrides,
    /// Servers over all pools of the database; `None` is no limit. For `*`: of each name.
    pub max_connections: Option<u32>,
    /// Clients of the database; `None` is no limit. For `*`: of each name.
    pub max_client_connections: Option<u32>,
}

impl Database {
    /// The name of the entry that stands for all names without one.
    pub const ANY: &str = "*";
}

/// What answers for a database.
#[derive(Clone, Debug, PartialEq)]
pub enum Backend {
    /// A PostgreSQL server.
    Postgres(Server),
}

/// A PostgreSQL server, and how to log in to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Where it is.
    pub host: Host,
    /// The database there; `None` is the name the client asked for.
    pub dbname: Option<String>,
    /// The user to log in as; `None` is the client's own name.
    pub user: Option<String>,
    /// The password to log in with; `None` is that of the user, if it is known here.
    pub password: Option<Secret>,
    /// The `application_name` of every connection; `None` is the client's.
    pub application_name: Option<String>,
    /// Further startup parameters, in the order written.
    pub parameters: Vec<(String, String)>,
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name or an address, without brackets, and a port.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// The directory of a Unix socket `.s.PGSQL.<port>`.
    Unix {
        /// Directory.
        dir: PathBuf,
        /// The number at the end of the socket's name.
        port: u16,
    },
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix { dir, port } => write!(f, "{}/.s.PGSQL.{port}", dir.display()),
        }
    }
}

table! {
    /// A database's own keys, as they stand in the file.
    pub(crate) struct DatabaseKeys;

    /// The server as `postgres://user:password@host:port/dbname?option=value`.
    ///
    /// In the query may stand any key of this table and any pool option. What is also set by a key of its own is
    /// taken from there. Characters with a meaning in URLs are written as `%` and two hexadecimal digits.
    url: Option<Secret>,
        NewConnections, takes ["postgres://app:pw@db.example/app"], not [];

    /// Name or address of the server, or the directory of its Unix socket.
    host: Option<String>,
        NewConnections, takes ["db.example", "::1", "/run/postgresql"], not [];

    /// Port of the server.
    port: u16 = "5432" ["1" to "65535"],
        NewConnections, takes ["6000"], not ["0", "65536"];

    /// Name of the database on the server; that which the client asked for when unset.
    dbname: Option<String>,
        NewConnections, takes ["app"], not [];

    /// User to log in to the server as; the client's name when unset.
    user: Option<String>,
        NewConnections, takes ["app"], not [];

    /// Password to log in to the server with; the user's when unset.
    ///
    /// When unset, the password of that name under `[users]` is used, if it stands there in plain text.
    password: Option<Secret>,
        NewConnections, takes ["secret"], not [];

    /// Name of the program, for clients that do not give theirs.
    application_name: Option<String>,
        NewConnections, takes ["refrain"], not [];

    /// Further startup parameters sent to the server.
    parameters: Vec<(String, String)>,
        NewConnections, takes [], not ["search_path=app"];

    /// Servers over all pools of the database. Under `*`, of each name.
    max_connections: Option<u32> = "unlimited" ["1" to "1000000"],
        Reload, takes ["100"], not ["0"];

    /// Clients of the database. Under `*`, of each name.
    max_client_connections: Option<u32> = "unlimited" ["1" to "10000000"],
        Reload, takes ["100"], not ["0"];
}

impl DatabaseKeys {
    /// The keys by which a database would be written, without `url`.
    pub(crate) fn of(database: &Database) -> Self {
        let Backend::Postgres(server) = database.backend.clone();
        let (host, port) = match server.host {
            Host::Tcp { host, port } => (host, port),
            Host::Unix { dir, port } => (dir.display().to_string(), port),
        };
        Self {
            url: None,
            host: Some(host),
            port,
            dbname: server.dbname,
            user: server.user,
            password: server.password,
            application_name: server.application_name,
            parameters: server.parameters,
            max_connections: database.max_connections,
            max_client_connections: database.max_client_connections,
        }
    }

    /// The server these keys name; the error is the key at fault and what is wrong.
    pub(crate) fn into_server(self) -> Result<Server, (&'static str, &'static str)> {
        let port = self.port;
        let host = match self.host.filter(|host| !host.is_empty()) {
            None => {
                return Err(("host", "is missing: where is the server? (`url` will do as well)"));
            }
            Some(dir) if dir.starts_with('/') => Host::Unix { dir: PathBuf::from(dir), port },
            Some(host) => Host::Tcp { host, port },
        };
        Ok(Server {
            host,
            dbname: self.dbname,
            user: self.user,
            password: self.password,
            application_name: self.application_name,
            parameters: self.parameters,
        })
    }
}
