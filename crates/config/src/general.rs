//! Options of the program as a whole: the keys at the top of the file.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::table::table;
use crate::value::{Given, Value, choice};

choice! {
    /// How the program talks to the kernel about sockets.
    DriverChoice {
        /// io_uring where the kernel allows it, else epoll.
        Auto = "auto",
        /// io_uring, or do not start.
        Uring = "uring",
        /// epoll.
        Epoll = "epoll",
    }
}

choice! {
    /// The form of a line in the log.
    LogFormat {
        /// For people: words and `key=value`.
        Text = "text",
        /// For machines: an object a line.
        Json = "json",
    }
}

choice! {
    /// The least important lines that are still logged.
    LogLevel {
        /// Something failed that an operator should look at.
        Error = "error",
        /// Something is amiss that the program copes with.
        Warn = "warn",
        /// Start, stop, reload, logins refused.
        Info = "info",
        /// Every connection and its end.
        Debug = "debug",
        /// Every message.
        Trace = "trace",
    }
}

choice! {
    /// How clients prove who they are.
    AuthMethod {
        /// They do not.
        Trust = "trust",
        /// The password in clear text.
        Password = "password",
        /// MD5 with a salt; users whose secret is a SCRAM verifier are asked for SCRAM.
        Md5 = "md5",
        /// SCRAM-SHA-256.
        Scram = "scram",
    }
}

/// How many cores serve connections, each with a thread, an engine and a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// One for each core the process may use.
    Cores,
    /// So many.
    Fixed(u16),
}

impl Value for Workers {
    fn what() -> String {
        "\"cores\" or a whole number".to_owned()
    }

    fn read(given: &Given) -> Option<Self> {
        match given.text() {
            Some("cores") => Some(Self::Cores),
            _ => u16::read(given).map(Self::Fixed),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Cores => "cores".to_owned(),
            Self::Fixed(count) => count.to_string(),
        }
    }

    fn measure(&self) -> Option<u64> {
        match self {
            Self::Cores => None,
            Self::Fixed(count) => Some(u64::from(*count)),
        }
    }
}

table! {
    /// Options of the program as a whole.
    pub struct General;

    /// Addresses on which clients are accepted.
    listen: Vec<SocketAddr> = "127.0.0.1:6432",
        Restart, takes ["0.0.0.0:6432", "127.0.0.1:6432, [::1]:6432"], not ["localhost:6432", "6432"];

    /// Directory of the Unix socket on which clients are accepted.
    ///
    /// The socket is called `.s.PGSQL.` and the port of the first address in `listen`.
    unix_socket_dir: Option<PathBuf> = "off",
        Restart, takes ["/run/refrain"], not ["run/refrain"];

    /// Database of clients that name none.
    ///
    /// Drivers then ask for a database of the user's name, as with PostgreSQL: this counts where there is none of that
    /// name. Unset, such a client is refused.
    default_database: Option<String>,
        Reload, takes ["app"], not [];

    /// Connections the kernel holds until they are accepted.
    ///
    /// The kernel cuts it to `net.core.somaxconn`.
    listen_backlog: u32 = "1024" ["1" to "65535"],
        Restart, takes ["128"], not ["0", "70000"];

    /// Threads that serve connections.
    ///
    /// `cores` is one for each core the process may use.
    workers: Workers = "cores" ["1" to "1024"],
        Restart, takes ["1", "8"], not ["0", "all"];

    /// How the program talks to the kernel about sockets.
    ///
    /// `auto` takes io_uring where the kernel allows it, else epoll; `uring` does not start without it.
    driver: DriverChoice = "auto",
        Restart, takes ["uring", "epoll"], not ["select"];

    /// Address at which metrics are served over HTTP.
    metrics_listen: Option<SocketAddr> = "127.0.0.1:9432",
        Restart, takes ["off", "[::1]:9100"], not ["on", "9432"];

    /// Form of a line in the log.
    log_format: LogFormat = "text",
        Restart, takes ["json"], not ["xml"];

    /// Least important lines that are still logged.
    log_level: LogLevel = "info",
        Reload, takes ["error", "trace"], not ["verbose"];

    /// Users who may give commands on the admin console.
    ///
    /// They may also see what `stats_users` see.
    admin_users: Vec<String> = "",
        Reload, takes ["root", "ann, bob"], not [];

    /// Users who may look, but not touch, on the admin console.
    stats_users: Vec<String> = "",
        Reload, takes ["exporter"], not [];

    /// How clients prove who they are.
    ///
    /// `trust` lets everybody in under any name. The others admit the users of the file alone. `md5` asks users
    /// whose secret is a SCRAM verifier for SCRAM. `password` sends the password in clear text.
    ///
    /// Started with a URL that has no password, the program trusts its clients. They have to be on the same machine then, unless
    /// `insecure_trust` is set.
    auth: AuthMethod = "scram",
        NewConnections, takes ["trust", "password", "md5"], not ["none", "SCRAM"];

    /// Whether clients may be trusted that come from other machines.
    ///
    /// Without it, `trust` is refused where `listen` has an address that is not a loopback address. A Unix socket does not
    /// count: who may reach it is a matter of its directory.
    insecure_trust: bool = "false",
        Reload, takes ["true"], not ["yes", "1"];

    /// Clients connected at a time, over all databases; one more is refused.
    ///
    /// Connections that have not logged in are not counted here but in `max_login_conn`, and those of the admin
    /// console apart. Each takes a file descriptor: where the process may not have so many, there are fewer.
    max_client_conn: u32 = "10000" ["1" to "10000000"],
        Reload, takes ["1", "500000"], not ["0", "unlimited"];

    /// Connections at a time that have not logged in yet.
    ///
    /// One more is accepted, and the oldest of the address that has the most of them is closed. An IPv6 network of
    /// 64 bits is one address, and so is a user of the Unix socket. At most a quarter of the file descriptors that
    /// clients may have.
    max_login_conn: u32 = "1000" ["1" to "10000000"],
        Reload, takes ["1", "100000"], not ["0", "unlimited"];

    /// Time a client has to log in.
    ///
    /// Whoever has sent no startup packet by then is disconnected without a word, as PostgreSQL's
    /// `authentication_timeout` has it.
    client_login_timeout: Option<Duration> = "15s" ["1ms" to "1d"],
        NewConnections, takes ["5s", "never"], not ["0s", "60", "2d"];

    /// Time a cancel request may wait for a connection to its server.
    cancel_timeout: Option<Duration> = "10s" ["1ms" to "1d"],
        NewConnections, takes ["1s", "never"], not ["0s", "10"];

    /// Time clients are given to finish after a request to shut down.
    ///
    /// Then those left are disconnected; with `never` the program waits for the last one.
    shutdown_timeout: Option<Duration> = "30s" ["0ms" to "7d"],
        Reload, takes ["0s", "never"], not ["30"];

    /// Bytes of statement text kept for sharing, over all pools.
    ///
    /// Texts that no client and no server has any more are dropped when this is exceeded.
    max_statement_bytes: usize = "64MiB" ["64KiB" to "64GiB"],
        Reload, takes ["1GiB", "1048576"], not ["1KiB", "64MB"];
}

impl General {
    /// Rules beyond bounds: the option that breaks a rule, and the rule.
    pub(crate) fn conflicts(&self) -> Vec<(&'static str, &'static str)> {
        let nowhere = self.listen.is_empty();
        nowhere.then_some(("listen", "must name at least one address")).into_iter().collect()
    }
}
