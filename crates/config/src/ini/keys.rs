//! All keys of PgBouncer, and what becomes of each: the one table behind reading, `check`, the page
//! and the tests.

use super::values::{Kind, Zero};

/// A key of a `pgbouncer.ini`.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// PgBouncer's default; `None` if the key is then not set.
    pub(super) default: Option<&'static str>,
    pub(super) outcome: Outcome,
    /// Another value than the default.
    #[cfg(test)]
    pub(super) sample: &'static str,
}

/// The outcome of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// It is an option of Refrain.
    Option(Table, &'static str, Kind),
    /// It acts by code of its own: this is what it does.
    Acts(&'static str),
    /// It has nothing to do here, for this reason.
    Needless(&'static str),
}

/// The table of Refrain's options that has an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// The options of the program.
    Program,
    /// The options of pools, by default.
    Pool,
    /// The same table as the line: a database's, or a user's.
    Own,
}

use Kind::{AnyText, Count, Flag, Milliseconds, Mode, Names, Path, Seconds, Text, Word};
use Outcome::{Acts, Needless, Option as Same};
use Table::{Own, Pool, Program};
use Zero::{Is, Number as Stays, Unset};

const NEVER: Zero = Is("never");
/// The most servers that a pool may have: PgBouncer's zero is no limit.
const ALL: Zero = Is("100000");

const OF_DATABASES: &str = "as the limit of each database that has none of its own";
const OF_USERS: &str = "as the limit of each user who has none of their own";
const OF_SERVERS: &str = "for the servers of every database, but for those on a Unix socket";
const OF_CLIENTS: &str = "as there, unless `client_tls_sslmode` is `disable`";

const fn key(
    name: &'static str,
    default: Option<&'static str>,
    outcome: Outcome,
    sample: &'static str,
) -> Key {
    #[cfg(not(test))]
    let _ = sample;
    Key {
        name,
        default,
        outcome,
        #[cfg(test)]
        sample,
    }
}

/// The keys of `[pgbouncer]`.
pub(super) const PROGRAM: &[Key] = &[
    key("admin_users", Some(""), Same(Program, "admin_users", Names), "ann, bob"),
    key(
        "application_name_add_host",
        Some("0"),
        Same(Program, "application_name_add_host", Flag),
        "1",
    ),
    key("auth_dbname", None, Same(Program, "auth_dbname", Text), "d"),
    key("auth_file", None, Same(Program, "auth_file", Path), "other.txt"),
    key("auth_hba_file", Some(""), Acts("`hba_file`, if `auth_type` is `hba`"), "hba.conf"),
    key("auth_ident_file", None, Acts("`ident_file`, if `auth_type` is `hba`"), "ident.conf"),
    key("auth_ldap_options", None, Needless("is for `auth_type = ldap` alone"), "ldapurl=\"x\""),
    key("auth_query", None, Same(Program, "auth_query", Text), "select $1, 'x'"),
    key(
        "auth_type",
        Some("md5"),
        Acts(
            "`auth`. `plain` is `password` with `insecure_password`, `any` is `trust` with \
             `insecure_trust`, `trust` the same without `trust_unknown`, `cert` is a rule of `hba`. `ldap`, `pam` and `gss` are refused",
        ),
        "scram-sha-256",
    ),
    key("auth_user", None, Same(Program, "auth_user", Text), "asker"),
    key("autodb_idle_timeout", Some("3600"), Acts("`pool_idle_timeout` of the database `*`"), "9"),
    key("cancel_wait_timeout", Some("10"), Same(Program, "cancel_timeout", Seconds(NEVER)), "3"),
    key("client_idle_timeout", Some("0"), Same(Pool, "client_idle_timeout", Seconds(NEVER)), "3"),
    key(
        "client_login_timeout",
        Some("60"),
        Same(Program, "client_login_timeout", Seconds(NEVER)),
        "3",
    ),
    key(
        "client_tls13_ciphers",
        None,
        Acts("`client_tls_ciphers`, with the other key"),
        "TLS_AES_128_GCM_SHA256",
    ),
    key("client_tls_ca_file", Some(""), Acts(OF_CLIENTS), "/tls/root.crt"),
    key("client_tls_cert_file", Some(""), Acts(OF_CLIENTS), "/tls/other.crt"),
    key(
        "client_tls_ciphers",
        Some("default"),
        Acts(
            "names of suites as there; words such as `default` or `HIGH` stand for all of Refrain's",
        ),
        "ECDHE-RSA-AES128-GCM-SHA256",
    ),
    key(
        "client_tls_dheparams",
        Some("auto"),
        Needless("no suite of Refrain's is of DHE"),
        "legacy",
    ),
    key("client_tls_ecdhcurve", Some("auto"), Acts("`client_tls_groups`"), "secp384r1"),
    key("client_tls_key_file", Some(""), Acts(OF_CLIENTS), "/tls/other.key"),
    key("client_tls_protocols", Some("secure"), Acts("as there, of TLS 1.2 and 1.3"), "tlsv1.3"),
    key("client_tls_sslmode", Some("disable"), Acts("as there"), "require"),
    key(
        "conffile",
        None,
        Needless("a reload reads the file that Refrain was started with"),
        "x.ini",
    ),
    key("default_pool_size", Some("20"), Same(Pool, "pool_size", Count(ALL)), "3"),
    key("disable_pqexec", Some("0"), Same(Pool, "disable_pqexec", Flag), "1"),
    key("dns_max_ttl", Some("15"), Acts("as there, at most `dns_zone_check_period`"), "3"),
    key("dns_nxdomain_ttl", Some("15"), Same(Program, "dns_nxdomain_ttl", Seconds(Stays)), "3"),
    key(
        "dns_zone_check_period",
        Some("0"),
        Acts(
            "`dns_max_ttl`, if that is longer: names are looked up anew, whatever their zones say",
        ),
        "3",
    ),
    key(
        "idle_transaction_timeout",
        Some("0"),
        Same(Pool, "idle_transaction_timeout", Seconds(NEVER)),
        "3",
    ),
    key(
        "ignore_startup_parameters",
        Some(""),
        Needless(
            "Refrain refuses no parameter: each client has those that it asks for, as without a pooler",
        ),
        "extra_float_digits",
    ),
    key("job_name", Some("pgbouncer"), Needless("is for services of Windows"), "x"),
    key(
        "listen_addr",
        Some(""),
        Acts(
            "`listen`, with `listen_port`. `*` is every address; names are looked up; if empty, there is the Unix socket alone",
        ),
        "127.0.0.2",
    ),
    key("listen_backlog", Some("128"), Same(Program, "listen_backlog", Count(Stays)), "5"),
    key("listen_port", Some("6432"), Acts("the ports of `listen`, and `unix_socket_port`"), "6433"),
    key("log_connections", Some("1"), Same(Program, "log_connections", Flag), "0"),
    key("log_disconnections", Some("1"), Same(Program, "log_disconnections", Flag), "0"),
    key("log_pooler_errors", Some("1"), Needless("failures are logged by their level"), "0"),
    key("log_stats", Some("1"), Same(Program, "log_stats", Flag), "0"),
    key("login_notify_message", Some(""), Same(Program, "login_notify_message", Text), "hello"),
    key("logfile", Some(""), Same(Program, "logfile", Path), "p.log"),
    key("max_client_conn", Some("100"), Same(Program, "max_client_conn", Count(Stays)), "7"),
    key("max_db_client_connections", Some("0"), Acts(OF_DATABASES), "7"),
    key("max_db_connections", Some("0"), Acts(OF_DATABASES), "7"),
    key(
        "max_packet_size",
        Some("2147483647"),
        Acts("`max_packet_size` of `[pool]`, of 256 KiB at least"),
        "1000000",
    ),
    key(
        "max_prepared_statements",
        Some("200"),
        Acts("`max_server_statements`; 0 is `prepared_statements = false`"),
        "0",
    ),
    key("max_user_client_connections", Some("0"), Acts(OF_USERS), "7"),
    key("max_user_connections", Some("0"), Acts(OF_USERS), "7"),
    key("min_pool_size", Some("0"), Acts("as there, at most the pool's size"), "2"),
    key("peer_id", Some("0"), Same(Program, "peer_id", Count(Stays)), "1"),
    key("pidfile", Some(""), Same(Program, "pidfile", Path), "p.pid"),
    key("pkt_buf", Some("4096"), Needless("buffers grow and shrink as they are needed"), "8192"),
    key("pool_idle_timeout", Some("0"), Same(Pool, "pool_idle_timeout", Seconds(NEVER)), "3"),
    key("pool_mode", Some("session"), Same(Pool, "pool_mode", Word), "Transaction"),
    key("query_timeout", Some("0"), Same(Pool, "query_timeout", Seconds(NEVER)), "3"),
    key("query_wait_notify", Some("5"), Same(Pool, "query_wait_notify", Seconds(NEVER)), "3"),
    key("query_wait_timeout", Some("120"), Same(Pool, "query_wait_timeout", Seconds(NEVER)), "3"),
    key("reserve_pool_size", Some("0"), Acts("as there; 0 if `reserve_pool_timeout` is 0"), "2"),
    key("reserve_pool_timeout", Some("5"), Same(Pool, "reserve_pool_timeout", Seconds(Stays)), "3"),
    key("resolv_conf", Some(""), Same(Program, "resolv_conf", Path), "/r.conf"),
    key("sbuf_loopcnt", Some("5"), Needless("no connection delays the others"), "3"),
    key("scram_iterations", Some("4096"), Acts("as there, from 1 to 1000000"), "9999"),
    key(
        "server_check_delay",
        Some("30"),
        Acts("`server_check_delay` of `[pool]`, unless `server_check_query` is empty"),
        "3",
    ),
    key(
        "server_check_query",
        Some("<empty>"),
        Acts("`server_check_query` of `[pool]`; `<empty>` is the empty query"),
        "select 2",
    ),
    key(
        "server_connect_timeout",
        Some("15"),
        Same(Pool, "server_connect_timeout", Seconds(Is("1h"))),
        "3",
    ),
    key("server_fast_close", Some("0"), Same(Pool, "server_fast_close", Flag), "1"),
    key("server_idle_timeout", Some("600"), Same(Pool, "server_idle_timeout", Seconds(NEVER)), "3"),
    key("server_lifetime", Some("3600"), Same(Pool, "server_lifetime", Seconds(Is("1s"))), "30"),
    key(
        "server_login_retry",
        Some("15"),
        Same(Pool, "server_login_retry", Seconds(Is("10ms"))),
        "3",
    ),
    key(
        "server_reset_query",
        Some("DISCARD ALL"),
        Same(Pool, "server_reset_query", AnyText),
        "RESET ALL",
    ),
    key(
        "server_reset_query_always",
        Some("0"),
        Needless(
            "in transaction mode, what a session has follows its client, and no other client sees it",
        ),
        "1",
    ),
    key("server_round_robin", Some("0"), Same(Pool, "server_round_robin", Flag), "1"),
    key(
        "server_tls13_ciphers",
        None,
        Acts("`server_tls_ciphers`, with the other key"),
        "TLS_AES_128_GCM_SHA256",
    ),
    key(
        "server_tls_ca_file",
        Some(""),
        Acts("`sslrootcert` of every database, if the mode verifies"),
        "/tls/root.crt",
    ),
    key("server_tls_cert_file", Some(""), Acts("`sslcert` of every database"), "/tls/c.crt"),
    key("server_tls_ciphers", Some("default"), Acts(OF_SERVERS), "ECDHE-RSA-AES128-GCM-SHA256"),
    key("server_tls_key_file", Some(""), Acts("`sslkey` of every database"), "/tls/c.key"),
    key("server_tls_protocols", Some("secure"), Acts(OF_SERVERS), "tlsv1.3"),
    key(
        "server_tls_sslmode",
        Some("prefer"),
        Acts("`sslmode` of every database; `allow` is `prefer`, which is what PgBouncer does"),
        "require",
    ),
    key("service_name", Some("pgbouncer"), Needless("is for services of Windows"), "x"),
    key("so_reuseport", Some("0"), Same(Program, "so_reuseport", Flag), "1"),
    key("stats_period", Some("60"), Same(Program, "stats_period", Seconds(Stays)), "3"),
    key("stats_users", Some(""), Same(Program, "stats_users", Names), "eve"),
    key("suspend_timeout", Some("10"), Needless("there is no SUSPEND"), "3"),
    key("syslog", Some("0"), Same(Program, "syslog", Flag), "1"),
    key("syslog_facility", Some("daemon"), Acts("as there; an unknown one is `daemon`"), "user"),
    key("syslog_ident", Some("pgbouncer"), Same(Program, "syslog_ident", Text), "x"),
    key(
        "tcp_defer_accept",
        Some("1"),
        Needless("a client is always accepted with its first bytes"),
        "0",
    ),
    key("tcp_keepalive", Some("1"), Same(Program, "tcp_keepalive", Flag), "0"),
    key("tcp_keepcnt", Some("0"), Same(Program, "tcp_keepcnt", Count(Unset)), "3"),
    key("tcp_keepidle", Some("0"), Same(Program, "tcp_keepidle", Seconds(Unset)), "3"),
    key("tcp_keepintvl", Some("0"), Same(Program, "tcp_keepintvl", Seconds(Unset)), "3"),
    key("tcp_socket_buffer", Some("0"), Acts("as there, from 1 KiB to 1 GiB"), "65536"),
    key(
        "tcp_user_timeout",
        Some("0"),
        Same(Program, "tcp_user_timeout", Milliseconds(Unset)),
        "3000",
    ),
    key(
        "track_extra_parameters",
        Some("IntervalStyle"),
        Needless("all parameters of a session follow its client"),
        "search_path",
    ),
    key("transaction_timeout", Some("0"), Same(Pool, "transaction_timeout", Seconds(NEVER)), "3"),
    key(
        "unix_socket_dir",
        Some("/tmp"),
        Acts("as there, also for databases without a `host`; `@`, which needs no file, is refused"),
        "/run/p",
    ),
    key("unix_socket_group", Some(""), Same(Program, "unix_socket_group", Text), "staff"),
    key("unix_socket_mode", Some("0777"), Same(Program, "unix_socket_mode", Mode), "0700"),
    key("user", None, Same(Program, "os_user", Text), "postgres"),
    key("verbose", Some("0"), Acts("`log_level`: `debug` for 1, `trace` for more"), "1"),
];

/// The keys of a line in `[databases]`.
pub(super) const DATABASE: &[Key] = &[
    key("dbname", None, Same(Own, "dbname", Text), "other"),
    key(
        "host",
        None,
        Acts("as there; without it, `unix_socket_dir`. For lists of hosts see `docs/hosts.md`"),
        "other",
    ),
    key("port", None, Same(Own, "port", Count(Stays)), "5433"),
    key("user", None, Same(Own, "user", Text), "app"),
    key("password", None, Acts("as there, with `user`"), "pw"),
    key("auth_user", None, Same(Own, "auth_user", Text), "asker"),
    key("auth_query", None, Same(Own, "auth_query", Text), "'select $1, 1'"),
    key("auth_dbname", None, Same(Own, "auth_dbname", Text), "d"),
    key("pool_size", None, Same(Own, "pool_size", Count(ALL)), "3"),
    key("min_pool_size", None, Acts("as there, at most the pool's size"), "2"),
    key("reserve_pool", None, Acts("`reserve_pool_size`, by its old name"), "2"),
    key("reserve_pool_size", None, Acts("as there; 0 if `reserve_pool_timeout` is 0"), "2"),
    key("connect_query", None, Same(Own, "connect_query", Text), "'set jit to off'"),
    key("pool_mode", None, Same(Own, "pool_mode", Word), "Statement"),
    key("query_wait_timeout", None, Same(Own, "query_wait_timeout", Seconds(NEVER)), "3"),
    key("load_balance_hosts", Some("round-robin"), Acts("as there, for lists of hosts"), "disable"),
    key("target_session_attrs", Some("any"), Same(Own, "target_session_attrs", Word), "primary"),
    key("max_db_connections", None, Same(Own, "max_connections", Count(Unset)), "3"),
    key("max_db_client_connections", None, Same(Own, "max_client_connections", Count(Unset)), "3"),
    key("server_lifetime", None, Same(Own, "server_lifetime", Seconds(Unset)), "30"),
    key("client_encoding", None, Acts("one of `parameters`"), "UTF8"),
    key("datestyle", None, Acts("one of `parameters`"), "ISO"),
    key("timezone", None, Acts("one of `parameters`"), "UTC"),
    key("application_name", None, Same(Own, "application_name", Text), "till"),
];

/// The keys of a line in `[users]`.
pub(super) const USER: &[Key] = &[
    key("pool_size", None, Same(Own, "pool_size", Count(ALL)), "3"),
    key("reserve_pool_size", None, Same(Own, "reserve_pool_size", Count(Stays)), "2"),
    key("pool_mode", None, Same(Own, "pool_mode", Word), "Statement"),
    key("max_user_connections", None, Same(Own, "max_connections", Count(Unset)), "3"),
    key("query_timeout", None, Same(Own, "query_timeout", Seconds(Unset)), "3"),
    key("query_wait_timeout", None, Same(Own, "query_wait_timeout", Seconds(NEVER)), "3"),
    key(
        "idle_transaction_timeout",
        None,
        Same(Own, "idle_transaction_timeout", Seconds(Unset)),
        "3",
    ),
    key("transaction_timeout", None, Same(Own, "transaction_timeout", Seconds(Unset)), "3"),
    key("client_idle_timeout", None, Same(Own, "client_idle_timeout", Seconds(Unset)), "3"),
    key(
        "max_user_client_connections",
        None,
        Same(Own, "max_client_connections", Count(Unset)),
        "3",
    ),
];

/// The keys of a line in `[peers]`.
pub(super) const PEER: &[Key] = &[
    key("host", None, Same(Own, "host", Text), "/tmp/p"),
    key("port", None, Same(Own, "port", Count(Stays)), "6433"),
    key("pool_size", None, Needless("each cancel request has a connection of its own"), "3"),
];

/// Returns the key of this name.
pub(super) fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}
