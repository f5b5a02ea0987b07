//! Databases that clients may ask for, and the server of each.

use std::path::PathBuf;
use std::time::Duration;

use crate::host::{Host, LoadBalanceHosts, Ports, Reads, TargetSessionAttrs};
use crate::pool::{PoolOptions, PoolOverrides};
use crate::secret::Secret;
use crate::sqlite::{StatementAdmission, Synchronous};
use crate::table::table;
use crate::tls::{
    Authorities, ChannelBinding, SslMode, SslNegotiation, TlsCipher, TlsGroup, TlsProtocol,
};
use crate::value::choice;

/// A database that clients may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    /// The name that clients ask for; [`Database::ANY`] stands for every name without an entry of
    /// its own.
    pub name: String,
    /// The server of the database.
    pub server: Server,
    /// Options of its pools, without those that are set for a user.
    pub pool: PoolOptions,
    /// The part of `pool` that is set under this database and not in `[pool]`.
    pub overrides: PoolOverrides,
    /// Server connections over all pools of the database; `None` is no limit. For `*`, the limit of
    /// each name.
    pub max_connections: Option<u32>,
    /// Clients of the database; `None` is no limit. For `*`, the limit of each name.
    pub max_client_connections: Option<u32>,
    /// The lookup of its users by query, as far as it differs from that of the program.
    pub auth_query: AuthQueryKeys,
}

/// The keys of a database that say how its users are looked up; what is `None` is as for the
/// program as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthQueryKeys {
    /// User as whom the database is asked.
    pub user: Option<String>,
    /// The query.
    pub query: Option<String>,
    /// Name of the database that is asked.
    pub dbname: Option<String>,
}

impl Database {
    /// The name of the entry that stands for all names without an entry.
    pub const ANY: &str = "*";
    /// Names of the admin console, which are not databases.
    pub const CONSOLES: [&str; 2] = ["refrain", "pgbouncer"];
    /// The database name of an SQLite file whose own name cannot be used. Tools ask for this name
    /// by default.
    pub(crate) const USUAL: &str = "postgres";

    /// Whether the database is on a server of MySQL or MariaDB.
    pub fn is_mysql(&self) -> bool {
        self.server.backend == Backend::Mysql
    }
}

choice! {
    /// The backend of a database.
    Backend {
        /// A PostgreSQL server.
        Postgres = "postgres",
        /// SQLite, in this process.
        Sqlite = "sqlite",
        /// A server of MySQL or MariaDB.
        Mysql = "mysql",
    }
}

choice! {
    /// The way in which Refrain learns of commits that do not pass through it.
    Changes {
        /// None.
        Off = "off",
        /// The stream of logical replication.
        Replication = "replication",
    }
}

/// A server, and the credentials for logging in to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The kind of the server.
    pub backend: Backend,
    /// Address of the server, or of the first one of several.
    pub host: Host,
    /// Addresses of the other servers of the same database.
    pub more_hosts: Vec<Host>,
    /// The order in which the servers are tried.
    pub load_balance_hosts: LoadBalanceHosts,
    /// The state that a server has to be in.
    pub target_session_attrs: TargetSessionAttrs,
    /// The servers on which reads may run.
    pub reads: Reads,
    /// The age of what a read on a standby shows, at most.
    pub max_lag: Duration,
    /// Name of the database on the server; `None` is the name that the client asked for.
    pub dbname: Option<String>,
    /// User to log in as; `None` is the client's user name.
    pub user: Option<String>,
    /// Password to log in with, or its MD5 hash; `None` is that of the user under `[users]`, if it
    /// is there.
    pub password: Option<Secret>,
    /// Whether logins are bound to the server's certificate.
    pub channel_binding: ChannelBinding,
    /// The `application_name` of server connections, unless the client sets its own.
    pub application_name: Option<String>,
    /// Further startup parameters, in the order of the file.
    pub parameters: Vec<(String, String)>,
    /// The query that a new server runs first.
    pub connect_query: Option<String>,
    /// How Refrain learns of the commits of others.
    pub changes: ChangesOptions,
}

/// How Refrain learns of the commits that do not pass through it.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangesOptions {
    /// The way.
    pub by: Changes,
    /// The publications that have the tables.
    pub publications: Vec<String>,
    /// The user who follows the stream; `None` is the user of the servers.
    pub user: Option<String>,
    /// The password of that user; `None` is that of the servers.
    pub password: Option<Secret>,
}

impl Server {
    /// Returns the addresses of all servers of the database.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        std::iter::once(&self.host).chain(&self.more_hosts)
    }

    /// Returns the hosts and the database's name there. Two entries for one database have the same.
    pub fn place(&self, database: &str) -> String {
        let database = self.dbname.as_deref().unwrap_or(database);
        format!("{}/{database}", self.host_list())
    }

    /// Returns the addresses with commas between them.
    pub fn host_list(&self) -> String {
        self.hosts().map(Host::to_string).collect::<Vec<_>>().join(",")
    }
}

table! {
    /// A database's own keys, as they stand in the file.
    pub(crate) struct DatabaseKeys;

    /// Backend of the database: a server of PostgreSQL or MySQL, or SQLite in this process.
    ///
    /// `mysql` is also for MariaDB. Clients of PostgreSQL reach databases with the first two
    /// (`listen`), clients of MySQL those with `mysql` (`mysql_listen`).
    backend: Backend = "postgres",
        NewConnections, takes ["sqlite", "mysql"], not ["mariadb"];

    /// URL of the server: `postgres://user:password@host:port/dbname?option=value`.
    ///
    /// For a server of MySQL or MariaDB: `mysql://` or `mariadb://` and the same. For an SQLite
    /// file: `sqlite:path?option=value`.
    ///
    /// The query part may set any key of this table and any pool option. A key of its own takes
    /// precedence over the URL. Characters that have a meaning in URLs are written as `%` and two
    /// hexadecimal digits.
    url: Option<Secret>,
        NewConnections, takes ["postgres://app:pw@db.example/app", "mysql://db.example"], not [];

    /// Name or address of the server, or the directory of its Unix socket.
    ///
    /// Several with commas between them are the servers of one database, of which Refrain uses
    /// those in the state of `target_session_attrs` (`docs/hosts.md`). For MySQL there is one, and
    /// its socket is the path of the socket itself.
    host: Option<String>,
        NewConnections, takes ["db.example", "::1", "/run/postgresql", "a.example,b.example"], not [];

    /// Port of the server; for MySQL, 3306 unless set.
    ///
    /// Where `host` has several names: one port for all, or as many ports, with commas between
    /// them.
    port: Ports = "5432" ["1" to "65535"],
        NewConnections, takes ["6000"], not ["0", "65536", "6000,"];

    /// State that the server has to be in.
    ///
    /// The words are libpq's. `primary` takes a server that is not in recovery, `standby` one that
    /// is; `read-write` takes a server whose sessions may write (neither in recovery nor with
    /// `default_transaction_read_only`), `read-only` one whose sessions may not; `prefer-standby`
    /// takes a standby if one of the hosts is one. Refrain looks at the state when it logs in, and
    /// leaves a server that changes its state.
    target_session_attrs: TargetSessionAttrs = "any",
        NewConnections, takes ["read-write", "prefer-standby"], not ["master", "on"];

    /// Order in which the hosts are tried, where there are several.
    ///
    /// `disable`: as they are written, and the one in use as long as it can be used. `round-robin`:
    /// in turn. `random`: at random.
    load_balance_hosts: LoadBalanceHosts = "disable",
        NewConnections, takes ["round-robin", "random"], not ["on", "least-connections"];

    /// Servers on which reads may run.
    ///
    /// `primary`: those in the state of `target_session_attrs`. `standby`: single statements
    /// outside of transaction blocks that are known to be reads run on standbys among the hosts as
    /// well, if it is certain that the standby has all that the client has written, and all that
    /// was committed `max_lag` ago (`docs/hosts.md`). Needs several hosts, and a
    /// `target_session_attrs` of `read-write` or `primary`.
    reads: Reads = "primary",
        NewConnections, takes ["standby"], not ["replica", "on"];

    /// Age of what a read on a standby shows, at most.
    ///
    /// A read sees everything that was committed this long before it was sent. Where no standby has
    /// that much, reads run on the primary.
    max_lag: Duration = "10s" ["100ms" to "1d"],
        NewConnections, takes ["1s", "1min"], not ["0s", "never", "5"];

    /// Name of the database on the server; if unset, the name that the client asked for.
    dbname: Option<String>,
        NewConnections, takes ["app"], not [];

    /// User name for logging in to the server; if unset, the client's user name.
    ///
    /// With a fixed user, all clients of the database share one pool, except users with options of
    /// their own (`docs/decisions/0105-one-pool-for-a-fixed-user.md`).
    user: Option<String>,
        NewConnections, takes ["app"], not [];

    /// Password for logging in to the server.
    ///
    /// If unset, Refrain uses the password of that user under `[users]` or in `auth_file`, if it is
    /// there in plain text. A hash, `md5…`, serves at servers that ask for `md5`.
    password: Option<Secret>,
        NewConnections, takes ["secret"], not [];

    /// User as whom Refrain asks for the passwords of this database's users.
    ///
    /// If unset, the global `auth_user`.
    auth_user: Option<String>,
        NewConnections, takes ["pgbouncer"], not [];

    /// Query for the name and password of a user of this database.
    ///
    /// If unset, the global `auth_query`.
    auth_query: Option<String>,
        NewConnections, takes ["SELECT * FROM user_lookup($1)"], not [];

    /// Database in which `auth_query` runs for this database's users.
    ///
    /// If unset, the global `auth_dbname`.
    auth_dbname: Option<String>,
        NewConnections, takes ["postgres"], not [];

    /// Whether connections to the server are encrypted, and what is checked of its certificate.
    ///
    /// The words are libpq's. `allow` encrypts if the server refuses a connection in the clear,
    /// `prefer` if the server can. `require` refuses a server that cannot; with `sslrootcert` it is
    /// `verify-ca`. `verify-ca` refuses a certificate that no authority in `sslrootcert` has
    /// signed, and `verify-full` also one that is not for `host`. If unset, it is `prefer`, and
    /// `verify-full` with `sslrootcert = "system"`. A connection to a Unix socket is never
    /// encrypted.
    sslmode: Option<SslMode>,
        NewConnections, takes ["disable", "verify-full"], not ["on", "verify"];

    /// Whether the server is asked first if it encrypts, or the connection begins with TLS.
    ///
    /// The words are libpq's. `direct` saves a round trip, and needs PostgreSQL 17 and an `sslmode`
    /// of at least `require`.
    sslnegotiation: SslNegotiation = "postgres",
        NewConnections, takes ["direct"], not ["requiredirect", "tls"];

    /// File with the certificates of the authorities that may sign the server's certificate.
    ///
    /// `system` stands for the authorities that the system trusts, and needs `verify-full`: anybody
    /// may have a certificate of theirs. If the environment variable `SSL_CERT_FILE` or
    /// `SSL_CERT_DIR` is set, they are those there.
    sslrootcert: Option<Authorities> = "off",
        NewConnections, takes ["/etc/refrain/root.crt", "system"], not ["root.crt", "SYSTEM"];

    /// File with lists of certificates that the authorities in `sslrootcert` have revoked (CRL).
    ///
    /// If set, there has to be a list of each authority between the server's certificate and
    /// `sslrootcert`, and its time must not be over. A reload reads it again.
    sslcrl: Option<PathBuf> = "off",
        NewConnections, takes ["/etc/refrain/root.crl"], not ["root.crl"];

    /// File with the certificate that Refrain shows to a server that asks for one.
    ///
    /// The certificates of intermediate authorities may follow it.
    sslcert: Option<PathBuf> = "off",
        NewConnections, takes ["/etc/refrain/client.crt"], not ["client.crt"];

    /// File with the private key of the certificate in `sslcert`.
    sslkey: Option<PathBuf> = "off",
        NewConnections, takes ["/etc/refrain/client.key"], not ["client.key"];

    /// Whether logins by SCRAM are bound to the server's certificate.
    ///
    /// `require` refuses a server that does not offer it (`SCRAM-SHA-256-PLUS`).
    channel_binding: ChannelBinding = "prefer",
        NewConnections, takes ["disable", "require"], not ["on", "true"];

    /// Versions of TLS for connections to the server.
    server_tls_protocols: Vec<TlsProtocol> = "tlsv1.2, tlsv1.3",
        NewConnections, takes ["tlsv1.3"], not ["tlsv1.1", "secure"];

    /// Cipher suites for connections to the server, best first; if empty, all that Refrain has.
    server_tls_ciphers: Vec<TlsCipher> = "",
        NewConnections, takes ["TLS_AES_128_GCM_SHA256"], not ["HIGH:!aNULL"];

    /// Groups for the exchange of keys with the server, best first; if empty, all that Refrain has.
    server_tls_groups: Vec<TlsGroup> = "",
        NewConnections, takes ["X25519, prime256v1"], not ["auto"];

    /// The `application_name` for clients that do not set their own.
    application_name: Option<String>,
        NewConnections, takes ["refrain"], not [];

    /// Query that each new server runs before clients get it. For PostgreSQL only.
    ///
    /// If it fails, the log tells, and clients get the server all the same. A server on which a
    /// client has left something is closed, because a reset would undo what the query has set.
    /// Settings are better set by `parameters`: what a client changes of them goes back to what
    /// they are without the query.
    connect_query: Option<String>,
        NewConnections, takes ["SET jit TO off"], not [];

    /// Whether Refrain follows the logical replication of the database, to learn of all commits.
    ///
    /// Rules of the cache with `consistency = "commits"` need it (`docs/cache.md`). Refrain makes a
    /// temporary slot while there are such rules, and never a publication.
    changes: Changes = "off",
        NewConnections, takes ["replication"], not ["on", "logical"];

    /// Publications that have the tables of which replies are kept by `commits`.
    publications: Vec<String> = "refrain",
        NewConnections, takes ["shop, stock"], not [];

    /// User with the attribute REPLICATION as whom Refrain follows the replication; if unset,
    /// `user`.
    changes_user: Option<String>,
        NewConnections, takes ["replicator"], not [];

    /// Password of `changes_user`; if unset, that of `user`.
    changes_password: Option<Secret>,
        NewConnections, takes ["secret"], not [];

    /// Further startup parameters sent to the server.
    parameters: Vec<(String, String)>,
        NewConnections, takes [], not ["search_path=app"];

    /// File of an SQLite database; created if it does not exist.
    ///
    /// A path that does not begin with `/` is relative to the directory in which Refrain was
    /// started.
    path: Option<String>,
        NewConnections, takes ["/var/lib/refrain/app.db"], not [];

    /// Compiled statements that each connection to SQLite caches; 0 disables the cache.
    stmt_cache_size: u32 = "256" ["0" to "100000"],
        NewConnections, takes ["0", "1000"], not ["-1", "unlimited"];

    /// When a connection to SQLite caches a statement.
    ///
    /// `second-use`: on its second use, so that a statement that is run once does not evict
    /// another. `always`: on its first use.
    stmt_cache_admit: StatementAdmission = "second-use",
        NewConnections, takes ["always"], not ["never", "2"];

    /// Text length up to which a connection to SQLite caches a statement.
    stmt_cache_max_sql: usize = "16KiB" ["1B" to "16MiB"],
        NewConnections, takes ["1MiB"], not ["0", "1GiB"];

    /// Durability of a commit in SQLite when the client gets its reply.
    ///
    /// `full`: the commit survives a power failure. `normal`: it survives the end of the process,
    /// but a power failure may undo the latest commits. `off`: a power failure may corrupt the
    /// file.
    sqlite_synchronous: Synchronous = "full",
        NewConnections, takes ["normal", "off"], not ["extra", "on"];

    /// Time SQLite waits for a lock that another process holds.
    sqlite_busy_timeout: Duration = "5s" ["0ms" to "1h"],
        NewConnections, takes ["100ms"], not ["never", "5"];

    /// Time a transaction waits to write to an SQLite database, unless `lock_timeout` is set.
    ///
    /// One transaction writes at a time. A client that waited this long gets SQLSTATE 55P03. The
    /// client's own `lock_timeout` takes precedence.
    sqlite_lock_timeout: Duration = "5s" ["1ms" to "1h"],
        NewConnections, takes ["30s"], not ["never", "5"];

    /// Length of the longest text, blob or row in an SQLite database.
    ///
    /// A client's message may be twice as long, because `bytea` values are sent as text. A
    /// statement may hold several such values at once.
    sqlite_max_length: usize = "300MiB" ["1MiB" to "900MiB"],
        NewConnections, takes ["16MiB"], not ["0B", "1GiB", "unlimited"];

    /// Memory that a connection to an SQLite database may use.
    ///
    /// A statement that would need more fails with SQLSTATE 53200. The limit counts the values that
    /// a statement holds, its sorts and lists, and the pages and compiled statements that the
    /// connection caches. A value takes two or three times its length while it is written.
    sqlite_max_memory: usize = "1GiB" ["16MiB" to "512GiB"],
        NewConnections, takes ["64MiB"], not ["0B", "1MiB", "unlimited"];

    /// Memory for pages of an SQLite database, shared evenly by the cores.
    ///
    /// On each core, one connection has this share and runs short reads. It reads cached pages
    /// without a system call, until another connection writes. Its cache is at least 2 MiB and at
    /// most a quarter of `sqlite_max_memory`. Every other connection has 2 MiB.
    sqlite_cache_size: usize = "128MiB" ["0B" to "64GiB"],
        NewConnections, takes ["16MiB", "4GiB"], not ["-1", "65GiB", "all"];

    /// Bytes of an SQLite database that are memory-mapped; 0 disables this.
    ///
    /// Mapped pages are read without a system call and take no memory of the process. If the disk
    /// fails while such a page is read, or another program truncates the file, the whole Refrain
    /// process ends. Without mapping, only the client concerned gets an error.
    sqlite_mmap_size: usize = "0B" ["0B" to "2GiB"],
        NewConnections, takes ["256MiB", "1GiB"], not ["1TiB", "all"];

    /// Threads kept for long reads of an SQLite database.
    ///
    /// While all of them are busy, Refrain starts more, up to 64.
    sqlite_readers: u16 = "2" ["1" to "1024"],
        NewConnections, takes ["8"], not ["0", "cores"];

    /// Server connections over all pools of the database. Under `*`, the limit of each name.
    ///
    /// At the limit, a pool whose clients wait gets the room of the server of another pool that was
    /// idle for longest (`servers_evicted` in the metrics, `server_evicted` in the log).
    max_connections: Option<u32> = "unlimited" ["1" to "1000000"],
        Reload, takes ["100"], not ["0"];

    /// Clients of the database. Under `*`, the limit of each name.
    max_client_connections: Option<u32> = "unlimited" ["1" to "10000000"],
        Reload, takes ["100"], not ["0"];
}
