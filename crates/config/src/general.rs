//! Options of the program as a whole: the keys at the top of the file.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::choices::{
    AuthMethod, DriverChoice, MetricsBy, PgBouncerVersion, PoolerErrors, Unavailable, Workers,
};
use crate::general_log::table_with_log;
use crate::system::{FileMode, OrBeside, OrSystem, Port};
use crate::tls::{SslMode, TlsCipher, TlsGroup, TlsProtocol};

table_with_log! {
    /// Options of the program as a whole.
    pub struct General;

    /// TCP addresses on which Refrain accepts clients.
    ///
    /// The list may be empty if there is a Unix socket (`unix_socket_dir`).
    listen: Vec<SocketAddr> = "127.0.0.1:6432",
        Restart, takes ["0.0.0.0:6432", "127.0.0.1:6432, [::1]:6432"], not ["localhost:6432", "6432"];

    /// Directory of the Unix socket on which Refrain accepts clients.
    ///
    /// The socket's name is `.s.PGSQL.` followed by a port: that of `unix_socket_port`.
    unix_socket_dir: Option<PathBuf> = "off",
        Restart, takes ["/run/refrain"], not ["run/refrain"];

    /// Port in the name of the Unix socket.
    ///
    /// `listen` is that of the first address in `listen`. Without an address, it is 6432.
    unix_socket_port: Option<Port> = "listen",
        Restart, takes ["6432"], not ["65536"];

    /// Permissions of the Unix sockets: who may connect.
    ///
    /// The permissions of the directory count as well.
    unix_socket_mode: FileMode = "0777",
        Restart, takes ["0770", "700"], not ["rwx", "0999", "1777"];

    /// Group of the Unix sockets; if unset, that of the process.
    unix_socket_group: Option<String>,
        Restart, takes ["postgres"], not [];

    /// Whether other processes may listen at the same TCP addresses (`SO_REUSEPORT`).
    ///
    /// The kernel then spreads new clients over the processes. A cancel request that reaches
    /// another process than its session cancels nothing.
    so_reuseport: bool = "false",
        Restart, takes ["true"], not ["yes", "1"];

    /// Whether the kernel asks idle TCP connections whether their peers are there.
    ///
    /// For clients and servers, as the following three options.
    tcp_keepalive: bool = "true",
        Restart, takes ["false"], not ["yes", "1"];

    /// Time for which a TCP connection is idle before the kernel asks for its peer.
    ///
    /// The kernel counts in seconds.
    tcp_keepidle: OrSystem<Duration> = "system" ["1s" to "9h"],
        Restart, takes ["1min"], not ["0s", "10h", "60"];

    /// Time between two such questions.
    tcp_keepintvl: OrSystem<Duration> = "system" ["1s" to "9h"],
        Restart, takes ["10s"], not ["0s", "10h", "60"];

    /// Such questions without an answer after which a connection ends.
    tcp_keepcnt: OrSystem<u32> = "system" ["1" to "127"],
        Restart, takes ["3"], not ["0", "128"];

    /// Time for which sent bytes may stay without an answer before a TCP connection ends.
    tcp_user_timeout: OrSystem<Duration> = "system" ["1ms" to "1d"],
        Restart, takes ["30s"], not ["0s", "2d", "30"];

    /// Bytes that the kernel buffers for a TCP connection, in each direction.
    ///
    /// For clients and servers. The kernel doubles the number for its own use, and lowers it to
    /// `net.core.rmem_max` and `net.core.wmem_max`.
    tcp_socket_buffer: OrSystem<usize> = "system" ["1KiB" to "1GiB"],
        Restart, takes ["64KiB"], not ["1B", "2GiB"];

    /// Time after which a server at work is given up that acknowledges nothing it is sent.
    ///
    /// Its machine or the network is gone, and nobody tells Refrain. A server that acknowledges is
    /// never given up, however long it takes to answer. For TCP.
    server_silence_timeout: Option<Duration> = "20s" ["1s" to "1d"],
        Reload, takes ["1min", "never"], not ["0s", "2d", "30"];

    /// TCP addresses on which Refrain accepts clients of MySQL and MariaDB.
    ///
    /// Without a database of MySQL, Refrain does not listen there.
    mysql_listen: Vec<SocketAddr> = "127.0.0.1:6033",
        Restart, takes ["0.0.0.0:3306", "127.0.0.1:6033, [::1]:6033"], not ["localhost:6033"];

    /// Path of the Unix socket on which Refrain accepts clients of MySQL and MariaDB.
    mysql_socket: Option<PathBuf> = "off",
        Restart, takes ["/run/refrain/mysqld.sock"], not ["mysqld.sock"];

    /// Database for clients that do not name one.
    ///
    /// The driver of such a client asks for a database named like the user, as with PostgreSQL. The
    /// default is used if no database has that name. When unset, the client is refused.
    default_database: Option<String>,
        Reload, takes ["app"], not [];

    /// Connections that the kernel queues until Refrain accepts them.
    ///
    /// The kernel lowers the value to `net.core.somaxconn`.
    listen_backlog: u32 = "1024" ["1" to "65535"],
        Restart, takes ["128"], not ["0", "70000"];

    /// Threads that serve connections.
    ///
    /// `cores` starts one for each core that the process may use. As few of them as the load needs
    /// get clients (`worker_load`).
    workers: Workers = "cores" ["1" to "1024"],
        Restart, takes ["1", "8"], not ["0", "all"];

    /// Percentage of its time in which a thread is busy before the next one gets new clients.
    ///
    /// Many clients on few threads cost less CPU than the same clients on many threads: each call
    /// of the kernel sends and receives for more of them. When a thread is busy for another 20 % of
    /// its time, clients move from there to another thread, and back when they need it no more.
    /// With `0` clients are spread over all threads as they come, and none moves.
    worker_load: u32 = "70" ["0" to "80"],
        Restart, takes ["0", "50"], not ["81", "-1", "half"];

    /// Kernel interface for socket I/O.
    ///
    /// `auto` uses io_uring where the kernel allows it, otherwise epoll. With `uring`, Refrain does
    /// not start without io_uring.
    driver: DriverChoice = "auto",
        Restart, takes ["uring", "epoll"], not ["select"];

    /// Address at which Refrain serves metrics over HTTP.
    metrics_listen: Option<SocketAddr> = "127.0.0.1:9432",
        Restart, takes ["off", "[::1]:9100"], not ["on", "9432"];

    /// Whether Refrain serves the dashboard, a page for people, at `metrics_listen`.
    ///
    /// At an address of this machine alone, such as 127.0.0.1, the page needs no login. At another
    /// address the browser asks for a user of `admin_users` or `stats_users` and the password, and
    /// sends them unencrypted (`docs/dashboard.md`).
    dashboard: bool = "true",
        Reload, takes ["false"], not ["on", "1"];

    /// Names by which the metrics of pools are told apart.
    ///
    /// `database`: the users of a database count together, so that a scrape of many users stays
    /// short. `pool`: each user of a database counts alone, which takes about 10 kB of each scrape
    /// for each. `total`: all pools count together. The console shows each pool in any case.
    metrics_by: MetricsBy = "database",
        Reload, takes ["pool", "total"], not ["user", "off"];

    /// Statements that have metrics of their own: those that took most time.
    ///
    /// With `0` none has. Their texts are shown without literals, and as far as their 120th
    /// character.
    metrics_statements: u32 = "20" ["0" to "1000"],
        Reload, takes ["0", "100"], not ["-1", "1001", "all"];

    /// Statements of which each thread keeps figures, for `SHOW STATEMENTS` and the metrics.
    ///
    /// When one more is run, those that were run least lately make room. A statement takes about
    /// 1 KiB on each thread that runs it. With `0` nothing is counted.
    stat_statements_max: u32 = "5000" ["0" to "100000"],
        Reload, takes ["0", "100"], not ["-1", "100001", "all"];

    /// Whether texts of MySQL's clients that are not prepared have figures each of its own.
    ///
    /// Texts that differ in their literals alone are one. Each text is then read once more, which
    /// adds some percent to what Refrain works for it. Otherwise all of a pool count together.
    stat_texts: bool = "false",
        Reload, takes ["true"], not ["yes", "1"];

    /// Time over which statistics are taken, for averages of the console and for the log.
    ///
    /// An average covers the period before and the one under way.
    stats_period: Duration = "1min" ["1s" to "1d"],
        Reload, takes ["10s"], not ["0s", "2d", "60", "never"];

    /// File with the number of the process, which is removed at the end.
    ///
    /// If a file there names another process that is alive, Refrain does not start.
    pidfile: Option<PathBuf> = "off",
        Restart, takes ["/run/refrain.pid"], not ["refrain.pid"];

    /// Unix socket at which a new Refrain asks this one for its place (`refrain --takeover`).
    ///
    /// Only the user that Refrain runs as, and root, are heard. `auto` is the path of `pidfile`
    /// with `.takeover` behind it; without one, that of the Unix socket in `unix_socket_dir`, or of
    /// `mysql_socket`, with `.takeover` behind it; without these, `refrain.takeover` in the
    /// directory that systemd made (`RUNTIME_DIRECTORY`), and else none. See `docs/restart.md`.
    takeover_socket: OrBeside = "auto",
        Restart, takes ["/run/refrain/takeover", "off"], not ["takeover"];

    /// User of the operating system that Refrain becomes at the start; only root may change.
    os_user: Option<String>,
        Restart, takes ["postgres"], not [];

    /// Whether the kernel may write a core file if Refrain ends by a fault.
    ///
    /// A core file has passwords, keys and rows of the moment. If false, debuggers and tracers of
    /// other users than root cannot attach to Refrain either.
    core_files: bool = "false",
        Restart, takes ["true"], not ["yes", "1"];

    /// Users who may run commands on the admin console.
    ///
    /// They may also see everything that `stats_users` see.
    admin_users: Vec<String> = "",
        Reload, takes ["root", "ann, bob"], not [];

    /// Users who may look at the admin console but not change anything.
    stats_users: Vec<String> = "",
        Reload, takes ["exporter"], not [];

    /// Number of this process among several that serve the same clients; with 0 there are no
    /// others.
    ///
    /// The key of each client then names the process, and a cancel request that reaches another one
    /// of `[peers]` is passed on. The scheme is PgBouncer's, so peers may be PgBouncer.
    peer_id: u32 = "0" ["0" to "16383"],
        NewConnections, takes ["1"], not ["16384", "-1"];

    /// Version of PgBouncer that the console has the columns of.
    ///
    /// `SHOW VERSION` names it, and exporters choose by it which columns they read.
    pgbouncer_version: PgBouncerVersion = "1.24",
        Reload, takes ["1.26"], not ["1.23", "1.24.1"];

    /// Method by which clients authenticate.
    ///
    /// `trust` accepts every client under any user name. The other methods accept only users from
    /// the configuration file, from `auth_file` and from `auth_query`. `md5` asks for SCRAM if the
    /// user's secret is a SCRAM verifier. `password` makes the client send its password in clear
    /// text. With `hba` the rules of `hba` or `hba_file` choose the method for each client
    /// (`docs/hba.md`).
    ///
    /// Refrain trusts its clients if it is started with a URL without a password. Clients must then
    /// be on the same machine, unless `insecure_trust` is set.
    auth: AuthMethod = "scram",
        NewConnections, takes ["trust", "password", "md5", "hba"], not ["none", "SCRAM"];

    /// Rules of authentication, in the syntax of PostgreSQL's `pg_hba.conf`.
    ///
    /// The first line that applies to a client decides (`docs/hba.md`). For `auth = "hba"`. In TOML
    /// three quotes enclose a text of several lines; three apostrophes leave backslashes as they
    /// are.
    hba: Option<String>,
        NewConnections, takes ["local all all peer"], not [];

    /// File with the rules of authentication, in place of `hba`.
    ///
    /// Refrain reads it, and the files that it includes, at the start and at every reload.
    hba_file: Option<PathBuf> = "off",
        NewConnections, takes ["/etc/refrain/pg_hba.conf"], not ["pg_hba.conf"];

    /// Maps of user names, in the syntax of PostgreSQL's `pg_ident.conf`.
    ///
    /// The option `map` of a rule names the map that applies.
    ident: Option<String>,
        NewConnections, takes ["staff root postgres"], not [];

    /// File with the maps of user names, in place of `ident`.
    ///
    /// Refrain reads it, and the files that it includes, at the start and at every reload.
    ident_file: Option<PathBuf> = "off",
        NewConnections, takes ["/etc/refrain/pg_ident.conf"], not ["pg_ident.conf"];

    /// File with further users, in the format of PgBouncer's `userlist.txt`.
    ///
    /// Each line has a name and a password in double quotes, `"user" "password"`; the password is
    /// in plain text or as PostgreSQL stores it. The file is read again at each reload. If a user
    /// has a password under `[users]`, that one counts.
    auth_file: Option<PathBuf>,
        NewConnections, takes ["/etc/refrain/userlist.txt"], not ["userlist.txt"];

    /// User as whom Refrain asks a database for the passwords of users; if unset, it does not.
    ///
    /// Users who have no password under `[users]` or in `auth_file` are looked up by `auth_query`.
    /// The password of `auth_user` itself comes from there, or from the database's `password`.
    auth_user: Option<String>,
        NewConnections, takes ["pgbouncer"], not [];

    /// Query for a user's name and password; `$1` is the name that the client gave.
    ///
    /// If unset, the query is `SELECT rolname, CASE WHEN rolvaliduntil < now() THEN NULL ELSE
    /// rolpassword END FROM pg_authid WHERE rolname=$1 AND rolcanlogin`, which needs a superuser.
    /// It must return one row with these two columns, or none if there is no such user. See
    /// `docs/users.md`.
    auth_query: Option<String>,
        NewConnections, takes ["SELECT * FROM user_lookup($1)"], not [];

    /// Database in which `auth_query` runs; if unset, the database that the client asks for.
    ///
    /// A name under `[databases]`. Clients of the admin console are looked up there too, and only
    /// if it is set.
    auth_dbname: Option<String>,
        NewConnections, takes ["postgres"], not [];

    /// Time for which the answer of `auth_query` about a user is used again.
    ///
    /// A new password counts at the latest after this time. It counts earlier if a login with the
    /// new password fails: the next one then asks the database. `FLUSH AUTH` forgets all answers.
    auth_cache_ttl: Duration = "30s" ["0ms" to "1d"],
        Reload, takes ["0s", "5min"], not ["30", "2d", "never"];

    /// Time for which the answer that a user does not exist or cannot log in is used again.
    auth_cache_negative_ttl: Duration = "2s" ["0ms" to "1d"],
        Reload, takes ["0s", "30s"], not ["30", "2d", "never"];

    /// Time for which an answer of `auth_query` is used if the database cannot be asked.
    ///
    /// A login without such an answer is refused or waits (`auth_unavailable`).
    auth_cache_stale: Duration = "1h" ["0ms" to "30d"],
        Reload, takes ["0s", "1d"], not ["30", "31d", "never"];

    /// Whether a login is refused whose user is not known while the database cannot be asked.
    ///
    /// `refuse`: the client gets SQLSTATE 57P03. `wait`: the login waits until the database can be
    /// asked, at most for `client_login_timeout`.
    auth_unavailable: Unavailable = "refuse",
        Reload, takes ["wait"], not ["accept"];

    /// Users of whom Refrain keeps the answer of `auth_query`, over all databases.
    auth_cache_size: u32 = "10000" ["1" to "10000000"],
        Reload, takes ["1", "100000"], not ["0", "unlimited"];

    /// Whether clients from other machines may be trusted.
    ///
    /// If false, Refrain refuses `trust` when `listen` or `mysql_listen` has an address that is not
    /// a loopback address. The Unix socket is exempt: the permissions of its directory decide who
    /// can connect.
    insecure_trust: bool = "false",
        Reload, takes ["true"], not ["yes", "1"];

    /// Whether `trust` accepts users who are not known.
    ///
    /// If false, a user has to stand in the configuration file or in `auth_file`, or has to be
    /// found by `auth_query`.
    trust_unknown: bool = "true",
        NewConnections, takes ["false"], not ["no", "0"];

    /// Whether connections of clients are encrypted, and which certificates clients need.
    ///
    /// The words are PgBouncer's. With `allow` and `prefer` the client chooses. `require` refuses
    /// clients that do not encrypt, except on the Unix socket, where nothing is encrypted.
    /// `verify-ca` and `verify-full` also refuse a client without a certificate that an authority
    /// in `client_tls_ca_file` has signed.
    client_tls_sslmode: SslMode = "disable",
        NewConnections, takes ["prefer", "verify-full"], not ["on", "verify"];

    /// File with the certificate that Refrain shows to clients.
    ///
    /// The certificates of intermediate authorities may follow it. A reload reads all files of TLS
    /// again, also if their names are the same.
    client_tls_cert_file: Option<PathBuf> = "off",
        NewConnections, takes ["/etc/refrain/server.crt"], not ["server.crt"];

    /// File with the private key of the certificate in `client_tls_cert_file`.
    client_tls_key_file: Option<PathBuf> = "off",
        NewConnections, takes ["/etc/refrain/server.key"], not ["server.key"];

    /// File with the certificates of the authorities that may sign certificates of clients.
    ///
    /// If set, Refrain asks clients for a certificate, and refuses one that none of them has
    /// signed.
    client_tls_ca_file: Option<PathBuf> = "off",
        NewConnections, takes ["/etc/refrain/root.crt"], not ["root.crt"];

    /// File with lists of certificates that the authorities in `client_tls_ca_file` have revoked
    /// (CRL).
    ///
    /// If set, there has to be a list of each authority between a client's certificate and
    /// `client_tls_ca_file`, and its time must not be over. A reload reads it again.
    client_tls_crl_file: Option<PathBuf> = "off",
        NewConnections, takes ["/etc/refrain/root.crl"], not ["root.crl"];

    /// Versions of TLS for connections of clients.
    client_tls_protocols: Vec<TlsProtocol> = "tlsv1.2, tlsv1.3",
        NewConnections, takes ["tlsv1.3"], not ["tlsv1.1", "secure"];

    /// Cipher suites for connections of clients, best first; if empty, all that Refrain has.
    ///
    /// If set, this order decides, otherwise that of the client.
    client_tls_ciphers: Vec<TlsCipher> = "",
        NewConnections, takes ["TLS_AES_128_GCM_SHA256"], not ["HIGH:!aNULL"];

    /// Groups for the exchange of keys with clients, best first; if empty, all that Refrain has.
    client_tls_groups: Vec<TlsGroup> = "",
        NewConnections, takes ["X25519, prime256v1"], not ["auto"];

    /// Whether clients of other machines may send their passwords in clear text, without TLS.
    ///
    /// If false, Refrain refuses such a client where the method is `password`. Clients with TLS, of
    /// a loopback address or of the Unix socket are exempt.
    insecure_password: bool = "false",
        NewConnections, takes ["true"], not ["yes", "1"];

    /// Rounds by which Refrain hashes a password that it has in plain text, for SCRAM.
    ///
    /// Such a password is hashed when its user first logs in. PostgreSQL's verifiers have rounds of
    /// their own. For clients of PostgreSQL.
    scram_iterations: u32 = "4096" ["1" to "1000000"],
        NewConnections, takes ["10000"], not ["0", "1000001"];

    /// Whether servers see a client's address in its `application_name`.
    ///
    /// The name is followed by ` - ` and the address with its port; of a client on the Unix socket,
    /// by ` - unix:` and the port of the socket, where PgBouncer has the process of the client too.
    /// A client without a name is called `app`. The client's own `SET application_name` takes its
    /// place. For PostgreSQL.
    application_name_add_host: bool = "false",
        NewConnections, takes ["true"], not ["yes", "1"];

    /// Words and SQLSTATEs of Refrain's own errors, for clients of PostgreSQL.
    ///
    /// `postgresql`: those of PostgreSQL where it has such an error. `pgbouncer`: those of
    /// PgBouncer, most of which have SQLSTATE 08P01 (`docs/pgbouncer.md`). A `pgbouncer.ini` has
    /// these.
    pooler_errors: PoolerErrors = "postgresql",
        Reload, takes ["pgbouncer"], not ["postgres", "mysql"];

    /// Notice that each client gets when it has logged in. For clients of PostgreSQL.
    login_notify_message: Option<String>,
        Reload, takes ["Down for an hour on Sunday"], not [];

    /// Time for which the addresses of a host's name are used until it is looked up again.
    ///
    /// If the name is not found then, they stay in use. A shorter time counts from the next look.
    dns_max_ttl: Duration = "15s" ["0ms" to "1d"],
        Reload, takes ["1min"], not ["never", "2d", "15"];

    /// Time for which a name that was not found is not looked up again.
    dns_nxdomain_ttl: Duration = "0ms" ["0ms" to "1d"],
        Reload, takes ["15s"], not ["never", "2d", "15"];

    /// File with the name servers that are asked for the names of hosts, as in resolv.conf(5).
    ///
    /// If unset, the system's resolver is asked. Otherwise Refrain looks names up in `/etc/hosts`,
    /// and then asks the servers of this file. Of its lines `nameserver`, `search` and `domain`
    /// count, and of `options` the words `ndots`, `timeout` and `attempts`. A name server may have
    /// a port (`127.0.0.1:5353`).
    resolv_conf: Option<PathBuf> = "off",
        Reload, takes ["/etc/refrain/resolv.conf"], not ["resolv.conf"];

    /// Clients connected at the same time, over all databases; further clients are refused.
    ///
    /// Connections that have not logged in count towards `max_login_conn` instead. Connections to
    /// the admin console are counted separately. Each client takes a file descriptor: if the
    /// process is not allowed that many, the limit is lower.
    max_client_conn: u32 = "10000" ["1" to "10000000"],
        Reload, takes ["1", "500000"], not ["0", "unlimited"];

    /// Connections that are logging in at the same time.
    ///
    /// When one more connects, Refrain accepts it and closes the oldest of the address that has the
    /// most. An IPv6 network of 64 bits counts as one address, and so does a user of the Unix
    /// socket. The limit is at most a quarter of the file descriptors available to clients.
    max_login_conn: u32 = "1000" ["1" to "10000000"],
        Reload, takes ["1", "100000"], not ["0", "unlimited"];

    /// Time within which a client must log in.
    ///
    /// A client that has sent no startup packet by then is disconnected without a message, as
    /// PostgreSQL does after `authentication_timeout`.
    client_login_timeout: Option<Duration> = "15s" ["1ms" to "1d"],
        NewConnections, takes ["5s", "never"], not ["0s", "60", "2d"];

    /// Time a cancel request may wait for a connection to its server.
    cancel_timeout: Option<Duration> = "10s" ["1ms" to "1d"],
        NewConnections, takes ["1s", "never"], not ["0s", "10"];

    /// Time that clients get to finish when Refrain shuts down.
    ///
    /// After this time the remaining clients are disconnected. With `never`, Refrain waits for the
    /// last one.
    shutdown_timeout: Option<Duration> = "30s" ["0ms" to "7d"],
        Reload, takes ["0s", "never"], not ["30"];

    /// Memory for the texts of shared statements, over all pools.
    ///
    /// Above this limit, Refrain drops texts that no client and no server uses any more.
    max_statement_bytes: usize = "64MiB" ["64KiB" to "64GiB"],
        Reload, takes ["1GiB", "1048576"], not ["1KiB", "64MB"];
}
