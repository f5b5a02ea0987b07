//! The environment of a test: PostgreSQL, the program over it, and the console.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use xtask::postgres::Cluster;
pub(crate) use xtask::postgres::Version;
use xtask::provision;
use xtask::proxy::Refrain;

use crate::session::{LIMIT, Session};

/// Returns the cluster of this version, which all tests share. It ends with the process.
pub(crate) fn cluster(version: Version) -> &'static Cluster {
    static V15: OnceLock<Cluster> = OnceLock::new();
    static V18: OnceLock<Cluster> = OnceLock::new();
    static V18_TLS: OnceLock<Cluster> = OnceLock::new();
    let place = match version {
        Version::V15 => &V15,
        Version::V18 => &V18,
        Version::V18Tls => &V18_TLS,
    };
    place.get_or_init(|| Cluster::start(version, &[("max_prepared_transactions", "5")]).unwrap())
}

/// Returns the address at which a cluster listens.
pub(crate) fn addr(cluster: &Cluster) -> SocketAddr {
    (cluster.host(), cluster.port()).to_socket_addrs().unwrap().next().unwrap()
}

/// Makes a new database in the shared PostgreSQL 15, for one test.
pub(crate) fn database(name: &'static str) -> &'static str {
    database_of(Version::V15, name)
}

/// Makes a new database in the shared PostgreSQL of this version, for one test.
pub(crate) fn database_of(version: Version, name: &'static str) -> &'static str {
    let mut session = Session::open(addr(cluster(version)), "postgres");
    session.run(&format!("drop database if exists {name} with (force)"));
    session.run(&format!("create database {name}"));
    name
}

/// A configuration: the text of a TOML file, in parts.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    general: BTreeMap<String, String>,
    pool: BTreeMap<String, String>,
    server: BTreeMap<String, String>,
    name: String,
    more: String,
}

impl Config {
    /// Configures a pool of one server over every database of a cluster, with `trust` for
    /// everybody.
    pub(crate) fn over(cluster: &Cluster) -> Self {
        let empty = BTreeMap::new;
        let (general, pool, server) = (empty(), empty(), empty());
        let config = Self { general, pool, server, name: "*".to_owned(), more: String::new() };
        let config = config.general("auth", "\"trust\"").general("workers", "1");
        // Where there are several workers, each has clients.
        let config = config.general("worker_load", "0");
        let config = config.general("admin_users", "[\"postgres\"]").pool("pool_size", "1");
        let port = cluster.port().to_string();
        config.server("host", &format!("{:?}", cluster.host())).server("port", &port)
    }

    /// Configures SQLite on one file for every database, with `trust` for everybody.
    pub(crate) fn sqlite() -> Self {
        let empty = BTreeMap::new;
        let (general, pool, server) = (empty(), empty(), empty());
        let config = Self { general, pool, server, name: "*".to_owned(), more: String::new() };
        let config = config.general("auth", "\"trust\"").general("workers", "2");
        let config = config.general("worker_load", "0");
        config.server("backend", "\"sqlite\"").server("path", "\"it.db\"")
    }

    /// Sets an option of the program; the value is TOML.
    pub(crate) fn general(mut self, name: &str, value: &str) -> Self {
        self.general.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Sets an option of pools.
    pub(crate) fn pool(mut self, name: &str, value: &str) -> Self {
        self.pool.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Serves this database alone instead of every one.
    pub(crate) fn only(mut self, database: &str) -> Self {
        self.name = database.to_owned();
        self
    }

    /// Sets an option of the one entry under `[databases]`.
    pub(crate) fn server(mut self, name: &str, value: &str) -> Self {
        self.server.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds further tables.
    pub(crate) fn more(mut self, text: &str) -> Self {
        self.more += text;
        self
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let parts = [("", &self.general), ("[pool]", &self.pool)];
        let head = format!("[databases.{:?}]", self.name);
        for (head, rows) in parts.into_iter().chain([(head.as_str(), &self.server)]) {
            writeln!(text, "{head}").unwrap();
            rows.iter().for_each(|(name, value)| writeln!(text, "{name} = {value}").unwrap());
        }
        text + &self.more
    }

    /// Runs the program.
    pub(crate) fn start(self) -> Proxy {
        let text = self.text();
        // Another process may have taken the port since it was found free.
        let tries = (0..3).find_map(|_| Refrain::start(&text).ok());
        Proxy { refrain: tries.unwrap_or_else(|| Refrain::start(&text).unwrap()) }
    }

    /// Runs the program with this variable of the environment.
    pub(crate) fn start_with_variable(self, name: &str, value: &str) -> Proxy {
        Proxy { refrain: Refrain::start_with_variable(name, value, &self.text()).unwrap() }
    }

    /// Runs the program with this maximum number of descriptors.
    pub(crate) fn start_with_descriptors(self, most: u32) -> Proxy {
        Proxy { refrain: Refrain::start_with_descriptors(most, &self.text()).unwrap() }
    }
}

/// The running program. It ends when this is dropped.
pub(crate) struct Proxy {
    refrain: Refrain,
}

impl Proxy {
    /// Returns the address at which it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.refrain.port()).into()
    }

    /// Opens a session through it.
    pub(crate) fn open(&self, database: &str) -> Session {
        Session::open(self.addr(), database)
    }

    /// Opens a session with its console.
    pub(crate) fn console(&self) -> Session {
        self.open("refrain")
    }

    /// Runs a command on its console. The command must succeed.
    pub(crate) fn order(&self, command: &str) {
        self.console().run(command);
    }

    /// Returns the console's listing: rows by column name.
    pub(crate) fn show(&self, what: &str) -> Vec<BTreeMap<String, String>> {
        let reply = self.console().query(&format!("show {what}"));
        let head = reply.frames.iter().find(|frame| frame.tag == b'T').expect("RowDescription");
        let names = column_names(&head.body);
        let rows = reply.rows().into_iter();
        let named = |row: Vec<Option<String>>| {
            let values = row.into_iter().map(Option::unwrap_or_default);
            names.iter().cloned().zip(values).collect()
        };
        rows.map(named).collect()
    }

    /// Returns the rows of a listing that belong to one database.
    pub(crate) fn show_of(&self, what: &str, database: &str) -> Vec<BTreeMap<String, String>> {
        let mut rows = self.show(what);
        rows.retain(|row| row["database"] == database);
        rows
    }

    /// Returns a counter, summed over all pools.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let rows = self.show("counters");
        let mut found = rows.iter().filter(|row| row["counter"] == name).peekable();
        assert!(found.peek().is_some(), "there is no counter {name}");
        found.map(|row| row["value"].parse::<u64>().unwrap()).sum()
    }

    /// Returns the reasons for which clients keep their servers.
    pub(crate) fn pins(&self) -> Vec<String> {
        self.show("pins").into_iter().map(|row| row["reason"].clone()).collect()
    }

    /// Changes its configuration file and reloads it, on the console.
    pub(crate) fn reload(&self, config: &Config) {
        self.rewrite(config);
        self.order("reload");
    }

    /// Changes its configuration file and reloads it by a signal, without the console.
    pub(crate) fn reload_by_signal(&self, config: &Config) {
        let words = "configuration reloaded";
        let before = self.log().matches(words).count();
        self.rewrite(config);
        self.signal("HUP");
        eventually("it is read", || self.log().matches(words).count() > before);
    }

    fn rewrite(&self, config: &Config) {
        let old = fs::read_to_string(self.refrain.config()).unwrap();
        let kept = |line: &&str| line.starts_with("listen =") || line.starts_with("metrics_listen");
        let kept: String = old.lines().filter(kept).map(|line| format!("{line}\n")).collect();
        fs::write(self.refrain.config(), kept + &config.text()).unwrap();
    }

    /// Sends it a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.refrain.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Returns the folder in which it was started.
    pub(crate) fn folder(&self) -> PathBuf {
        self.refrain.config().parent().unwrap().to_owned()
    }

    /// True if it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.refrain.is_running()
    }

    /// Counts its threads.
    pub(crate) fn threads(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.refrain.id())).unwrap().count()
    }

    /// Counts its open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.refrain.id())).unwrap().count()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait_for_end(&mut self) {
        eventually("the program ends", || !self.refrain.is_running());
    }

    /// Returns its peak memory, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.refrain.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kibibytes * 1024
    }

    /// True if it still has the socket of the client at this port.
    pub(crate) fn holds(&self, port: u16) -> bool {
        let (own, peer) = (format!(":{:04X}", self.refrain.port()), format!(":{port:04X}"));
        let sockets = fs::read_to_string("/proc/net/tcp").unwrap();
        sockets.lines().any(|line| {
            let columns: Vec<_> = line.split_whitespace().collect();
            // The kernel keeps a closed socket for a while; that one has no inode.
            columns[1].ends_with(&own) && columns[2].ends_with(&peer) && columns[9] != "0"
        })
    }

    /// Returns its log.
    pub(crate) fn log(&self) -> String {
        self.refrain.log()
    }
}

fn column_names(mut body: &[u8]) -> Vec<String> {
    body = &body[2..];
    let mut names = Vec::new();
    while let Some(end) = body.iter().position(|byte| *byte == 0) {
        names.push(String::from_utf8_lossy(&body[..end]).into_owned());
        body = &body[end + 19..];
    }
    names
}

/// Waits until `holds` returns true.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < LIMIT, "it never comes about that {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Runs SQL with `psql`. Returns the output, or the error text.
pub(crate) fn psql(url: &str, password: &str, sql: &str) -> Result<String, String> {
    let program = provision::postgres(Version::V15).unwrap().join("psql");
    let mut psql = Command::new(program);
    psql.env("PGPASSWORD", password).env("PGCONNECT_TIMEOUT", "30");
    let output = psql.args(["-XAtqw", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]).output();
    let output = output.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
