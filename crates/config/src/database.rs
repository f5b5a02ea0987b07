//! Databases clients may ask for, and the server behind each.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::pool::{PoolOptions, PoolOverrides};
use crate::secret::Secret;
use crate::sqlite::{Sqlite, StatementAdmission, Synchronous};
use crate::table::table;
use crate::value::choice;

/// A database as clients name it.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// The name clients ask for; [`Database::ANY`] stands for every name without an entry of its own.
    pub name: String,
    /// What is behind it.
    pub server: Server,
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
    /// Names that lead to the admin console, and to no database.
    pub const CONSOLES: [&str; 2] = ["refrain", "pgbouncer"];
    /// What a file is called that cannot have its own name: tools ask for this where nobody names another.
    pub(crate) const USUAL: &str = "postgres";
}

choice! {
    /// What answers for a database.
    Backend {
        /// A PostgreSQL server.
        Postgres = "postgres",
        /// SQLite, in this process.
        Sqlite = "sqlite",
    }
}

/// A server, and how to log in to it.
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
    /// No other process: SQLite answers here, as a PostgreSQL server would.
    Sqlite(Arc<Sqlite>),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix { dir, port } => write!(f, "{}/.s.PGSQL.{port}", dir.display()),
            Self::Sqlite(file) => write!(f, "{}", file.path.display()),
        }
    }
}

table! {
    /// A database's own keys, as they stand in the file.
    pub(crate) struct DatabaseKeys;

    /// What answers for the database: a PostgreSQL server, or SQLite in this process.
    backend: Backend = "postgres",
        NewConnections, takes ["sqlite"], not ["mysql"];

    /// The server as `postgres://user:password@host:port/dbname?option=value`.
    ///
    /// Or a file as `sqlite:path?option=value`.
    ///
    /// In the query may stand any key of this table and any pool option. What is also set by a key of its own is
    /// taken from there. Characters with a meaning in URLs are written as `%` and two hexadecimal digits.
    url: Option<Secret>,
        NewConnections, takes ["postgres://app:pw@db.example/app", "sqlite:app.db"], not [];

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

    /// File of an SQLite database; it is made if it is not there.
    ///
    /// Where it does not begin with `/`, it is looked for in the folder that Refrain was started in.
    path: Option<String>,
        NewConnections, takes ["/var/lib/refrain/app.db"], not [];

    /// Compiled statements that each connection to SQLite keeps; 0 keeps none.
    stmt_cache_size: u32 = "256" ["0" to "100000"],
        NewConnections, takes ["0", "1000"], not ["-1", "unlimited"];

    /// From which use on a connection to SQLite keeps a statement.
    ///
    /// `second-use`: a text that comes once costs nothing and pushes out nothing. `always`: from the first.
    stmt_cache_admit: StatementAdmission = "second-use",
        NewConnections, takes ["always"], not ["never", "2"];

    /// Length of text up to which a connection to SQLite keeps a statement.
    stmt_cache_max_sql: usize = "16KiB" ["1B" to "16MiB"],
        NewConnections, takes ["1MiB"], not ["0", "1GiB"];

    /// How far a commit is on disk when SQLite's client is told of it.
    ///
    /// `full`: it survives a loss of power. `normal`: it survives the end of the process, and a loss of power may undo
    /// the last ones. `off`: a loss of power may leave a corrupt file.
    sqlite_synchronous: Synchronous = "full",
        NewConnections, takes ["normal", "off"], not ["extra", "on"];

    /// Wait of SQLite for a lock that another process holds.
    sqlite_busy_timeout: Duration = "5s" ["0ms" to "1h"],
        NewConnections, takes ["100ms"], not ["never", "5"];

    /// Wait in line to write to an SQLite database, unless the client sets its `lock_timeout`.
    ///
    /// One transaction writes at a time. Who waited for so long is told 55P03.
    sqlite_lock_timeout: Duration = "5s" ["1ms" to "1h"],
        NewConnections, takes ["30s"], not ["never", "5"];

    /// Longest text, blob or row in an SQLite database.
    ///
    /// A client's message may be twice as long, as texts of bytes are. A statement may hold several such values at once.
    sqlite_max_length: usize = "300MiB" ["1MiB" to "900MiB"],
        NewConnections, takes ["16MiB"], not ["0B", "1GiB", "unlimited"];

    /// Memory that a connection to an SQLite database may have.
    ///
    /// A statement that would need more ends with 53200. What counts are the values it holds, its sorts and lists, and what the
    /// connection keeps: pages and compiled statements. A value takes two or three times its length while it is written.
    sqlite_max_memory: usize = "1GiB" ["16MiB" to "512GiB"],
        NewConnections, takes ["64MiB"], not ["0B", "1MiB", "unlimited"];

    /// Memory for pages of an SQLite database, shared evenly by the cores.
    ///
    /// On each core one connection has this share, on which short reads run: what is there is read without a system call,
    /// until somebody writes. Every other connection has 2 MiB, and this one has no less, and no more than a quarter of
    /// `sqlite_max_memory`.
    sqlite_cache_size: usize = "128MiB" ["0B" to "64GiB"],
        NewConnections, takes ["16MiB", "4GiB"], not ["-1", "65GiB", "all"];

    /// Bytes of an SQLite database that are read as memory, without a system call; 0 for none.
    ///
    /// It costs no memory of the process. A disk that fails while such a byte is read, or another program that makes the
    /// file shorter, ends the process with all else that it serves; without it that client is told, and nobody else hears of it.
    sqlite_mmap_size: usize = "0B" ["0B" to "2GiB"],
        NewConnections, takes ["256MiB", "1GiB"], not ["1TiB", "all"];

    /// Threads that are kept for reads of an SQLite database that take long.
    ///
    /// There are more, up to 64, while all of these are busy.
    sqlite_readers: u16 = "2" ["1" to "1024"],
        NewConnections, takes ["8"], not ["0", "cores"];

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
        let server = database.server.clone();
        let keys = Self {
            dbname: server.dbname,
            user: server.user,
            password: server.password,
            application_name: server.application_name,
            parameters: server.parameters,
            max_connections: database.max_connections,
            max_client_connections: database.max_client_connections,
            ..Self::default()
        };
        match server.host {
            Host::Tcp { host, port } => Self { host: Some(host), port, ..keys },
            Host::Unix { dir, port } => {
                Self { host: Some(dir.display().to_string()), port, ..keys }
            }
            Host::Sqlite(file) => keys.with_file(&file),
        }
    }

    fn with_file(self, file: &Sqlite) -> Self {
        Self {
            backend: Backend::Sqlite,
            path: Some(file.path.display().to_string()),
            stmt_cache_size: file.stmt_cache_size,
            stmt_cache_admit: file.stmt_cache_admit,
            stmt_cache_max_sql: file.stmt_cache_max_sql,
            sqlite_synchronous: file.synchronous,
            sqlite_busy_timeout: file.busy_timeout,
            sqlite_lock_timeout: file.lock_timeout,
            sqlite_max_length: file.max_length,
            sqlite_max_memory: file.max_memory,
            sqlite_cache_size: file.cache_size,
            sqlite_mmap_size: file.mmap_size,
            sqlite_readers: file.readers,
            ..self
        }
    }

    /// The server these keys name; the error is the key at fault and what is wrong.
    pub(crate) fn into_server(self) -> Result<Server, (&'static str, &'static str)> {
        let host = match self.backend {
            Backend::Postgres => self.place()?,
            Backend::Sqlite => Host::Sqlite(Arc::new(self.file()?)),
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

    fn place(&self) -> Result<Host, (&'static str, &'static str)> {
        if self.path.is_some() {
            return Err(("path", "is of SQLite: set backend = \"sqlite\", or take it out"));
        }
        let port = self.port;
        match self.host.as_deref().filter(|host| !host.is_empty()) {
            None => Err(("host", "is missing: where is the server? (`url` will do as well)")),
            Some(dir) if dir.starts_with('/') => Ok(Host::Unix { dir: PathBuf::from(dir), port }),
            Some(host) => Ok(Host::Tcp { host: host.to_owned(), port }),
        }
    }

    fn file(&self) -> Result<Sqlite, (&'static str, &'static str)> {
        if self.host.is_some() {
            return Err(("host", "is of PostgreSQL: an SQLite database has a path"));
        }
        let path = self.path.as_deref().filter(|path| !path.is_empty());
        Ok(Sqlite {
            path: path.ok_or(("path", "is missing: where is the file?"))?.into(),
            synchronous: self.sqlite_synchronous,
            busy_timeout: self.sqlite_busy_timeout,
            lock_timeout: self.sqlite_lock_timeout,
            readers: self.sqlite_readers,
            max_length: self.sqlite_max_length,
            max_memory: self.sqlite_max_memory,
            cache_size: self.sqlite_cache_size,
            mmap_size: self.sqlite_mmap_size,
            stmt_cache_size: self.stmt_cache_size,
            stmt_cache_admit: self.stmt_cache_admit,
            stmt_cache_max_sql: self.stmt_cache_max_sql,
        })
    }
}
