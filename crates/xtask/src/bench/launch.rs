//! The contenders of a benchmark: the proxy built for release, in several shapes, and PgBouncer.
//!
//! All have a transaction pool of the same size over the same cluster, trust their clients and log
//! next to nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::leash::Leash;
use crate::ports::{self, free_port};
use crate::postgres::{Cluster, account};
use crate::provision;
use crate::workspace;

/// The longest that a contender may take until it listens.
const START_MAX: Duration = Duration::from_secs(10);
/// The limit of clients in all configurations: more than any measurement has.
const CLIENTS_MAX: u32 = 30_000;
/// The path of PgBouncer in Debian's package.
const PGBOUNCER: &str = "/usr/sbin/pgbouncer";

/// A program between clients and PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// No program: clients connect to PostgreSQL.
    Direct,
    /// The proxy.
    Refrain {
        /// The proxy's kernel driver.
        driver: Driver,
        /// Number of worker threads.
        workers: u32,
    },
    /// Debian's PgBouncer.
    Pgbouncer,
}

/// A kernel driver of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// io_uring, which reports completions.
    Uring,
    /// epoll, which reports readiness.
    Epoll,
}

impl Driver {
    /// Parses a name as [`Driver::name`] returns it.
    pub fn parse(name: &str) -> Result<Driver, String> {
        let known = [Driver::Uring, Driver::Epoll].into_iter().find(|d| d.name() == name);
        known.ok_or_else(|| "expected uring or epoll".to_owned())
    }

    /// Returns the value of the option `driver`.
    pub fn name(self) -> &'static str {
        match self {
            Driver::Uring => "uring",
            Driver::Epoll => "epoll",
        }
    }
}

impl Contender {
    /// Returns the proxy with this driver and number of threads.
    pub const fn refrain(driver: Driver, workers: u32) -> Contender {
        Contender::Refrain { driver, workers }
    }

    /// Parses a name as [`Contender::name`] returns it.
    pub fn parse(name: &str) -> Result<Contender, String> {
        let (driver, workers) = match name {
            "direct" => return Ok(Contender::Direct),
            "pgbouncer" => return Ok(Contender::Pgbouncer),
            _ => name.split_once('-').unwrap_or((name, "1")),
        };
        match (Driver::parse(driver), workers.parse()) {
            (Ok(driver), Ok(workers @ 1..)) => Ok(Contender::Refrain { driver, workers }),
            _ => Err("expected direct, pgbouncer, uring, epoll, uring-2 (two workers), …".into()),
        }
    }

    /// Returns the contender's name on the command line and in tables.
    pub fn name(self) -> String {
        match self {
            Contender::Direct => "direct".to_owned(),
            Contender::Pgbouncer => "pgbouncer".to_owned(),
            Contender::Refrain { driver, workers: 1 } => driver.name().to_owned(),
            Contender::Refrain { driver, workers } => format!("{}-{workers}", driver.name()),
        }
    }

    /// Whether the contender supports prepared statements. PgBouncer does in transaction mode from
    /// 1.21 on, and Debian's is 1.18.
    pub fn prepares(self) -> bool {
        self != Contender::Pgbouncer
    }
}

/// The pool's size and further options.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Number of servers.
    pub pool_size: u32,
    /// More lines for the proxy's table `[pool]`.
    pub more: &'static str,
    /// More lines for the top of the proxy's file.
    pub top: &'static str,
}

/// The users and the names of a database of a contender.
#[derive(Clone, Copy, Debug)]
pub struct Many<'a> {
    /// The users, who log in to PostgreSQL under their own names. Without any, all clients are the
    /// superuser there.
    pub users: &'a [String],
    /// Names of one database. Without any, databases have the names that clients ask for.
    pub names: &'a [String],
    /// The database of these names.
    pub database: &'a str,
    /// The most servers of the database, over all users; `None` without a limit.
    pub room: Option<u32>,
}

impl Many<'_> {
    /// One user, and databases by the names that clients ask for.
    fn one() -> Many<'static> {
        Many { users: &[], names: &[], database: "", room: None }
    }

    /// Returns the proxy's tables of databases, over this server.
    fn refrain_databases(&self, (host, port): (&str, u16)) -> String {
        let room = self.room.map(|most| format!("max_connections = {most}\n")).unwrap_or_default();
        let table = |name: &str, path: &str| {
            // Users log in under their own names if there are several.
            let user = if self.users.is_empty() { "postgres@" } else { "" };
            let url = format!("postgres://{user}{host}:{port}{path}");
            format!("[databases.\"{name}\"]\nurl = \"{url}\"\n{room}")
        };
        let path = format!("/{}", self.database);
        let tables = self.names.iter().map(|name| table(name, &path));
        table("*", "") + &tables.collect::<String>()
    }

    /// Returns PgBouncer's section of databases, over this cluster.
    fn pgbouncer_databases(&self, cluster: &Cluster) -> String {
        let server = format!("host={} port={}", cluster.host(), cluster.port());
        let room = self.room.map(|most| format!(" max_db_connections={most}")).unwrap_or_default();
        let line = |name: &String| format!("{name} = {server} dbname={}{room}\n", self.database);
        let lines: String = self.names.iter().map(line).collect();
        format!("[databases]\n{lines}* = {server}{room}\n\n")
    }

    /// Returns PgBouncer's list of users.
    fn pgbouncer_users(&self) -> String {
        let line = |user: &str| format!("\"{user}\" \"\"\n");
        line("postgres") + &self.users.iter().map(|user| line(user)).collect::<String>()
    }
}

/// A running contender. Dropping this ends its process.
#[derive(Debug)]
pub struct Running {
    /// The contender.
    pub contender: Contender,
    /// TCP port of 127.0.0.1 for clients.
    pub port: u16,
    process: Option<Leash>,
    dir: Option<PathBuf>,
}

impl Running {
    /// Starts a contender over `cluster`. For [`Contender::Direct`] there is nothing to start.
    pub fn start(contender: Contender, cluster: &Cluster, shape: &Shape) -> Result<Running> {
        Self::start_for(contender, cluster, shape, &Many::one())
    }

    /// Starts a contender over `cluster` for these users and names of a database.
    pub fn start_for(
        contender: Contender,
        cluster: &Cluster,
        shape: &Shape,
        many: &Many<'_>,
    ) -> Result<Running> {
        let port = free_port()?;
        match contender {
            Contender::Direct => {
                Ok(Running { contender, port: cluster.port(), process: None, dir: None })
            }
            Contender::Refrain { driver, workers } => {
                let dir = new_dir()?;
                let server = (cluster.host(), cluster.port());
                let text = refrain_top(port, driver, workers)
                    + &refrain_pool(shape)
                    + &many.refrain_databases(server);
                fs::write(dir.join("config.toml"), text)?;
                let mut program = Command::new(release()?);
                program.arg(dir.join("config.toml")).current_dir(&dir);
                Running { contender, port, process: None, dir: Some(dir) }.run(&program, "TERM")
            }
            Contender::Pgbouncer => {
                let dir = new_dir()?;
                fs::write(dir.join("users.txt"), many.pgbouncer_users())?;
                let text = many.pgbouncer_databases(cluster) + &pgbouncer_config(port, &dir, shape);
                fs::write(dir.join("pgbouncer.ini"), text)?;
                let mut program = account::command(Path::new(PGBOUNCER));
                program.arg(dir.join("pgbouncer.ini"));
                Running { contender, port, process: None, dir: Some(dir) }.run(&program, "INT")
            }
        }
    }

    /// Starts the proxy on these cores, over the server at `server` of 127.0.0.1.
    pub fn start_on(
        cores: &[usize],
        driver: Driver,
        workers: u32,
        server: u16,
        pool_size: u32,
    ) -> Result<Running> {
        let (port, dir) = (free_port()?, new_dir()?);
        let shape = Shape { pool_size, more: "", top: "" };
        let text = refrain_top(port, driver, workers)
            + &refrain_pool(&shape)
            + &Many::one().refrain_databases(("127.0.0.1", server));
        fs::write(dir.join("config.toml"), text)?;
        let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
        let mut program = Command::new("taskset");
        program.args(["--cpu-list", &cores.join(",")]).arg(release()?);
        program.arg(dir.join("config.toml")).current_dir(&dir);
        let contender = Contender::refrain(driver, workers);
        Running { contender, port, process: None, dir: Some(dir) }.run(&program, "TERM")
    }

    /// Starts the proxy over an SQLite file instead of a cluster. `more` has lines for the
    /// database's table.
    pub fn start_file(driver: Driver, file: &Path, more: &str) -> Result<Running> {
        let (port, dir) = (free_port()?, new_dir()?);
        let text = format!(
            "{}[databases.\"*\"]\nbackend = \"sqlite\"\npath = \"{}\"\n{more}\n",
            refrain_top(port, driver, 1),
            file.display(),
        );
        fs::write(dir.join("config.toml"), text)?;
        let mut program = Command::new(release()?);
        program.arg(dir.join("config.toml")).current_dir(&dir);
        let contender = Contender::refrain(driver, 1);
        Running { contender, port, process: None, dir: Some(dir) }.run(&program, "TERM")
    }

    fn run(mut self, program: &Command, signal: &str) -> Result<Running> {
        let dir = self.dir.as_deref().unwrap_or(Path::new("."));
        let log = File::create(dir.join("log"))?;
        let mut process = Leash::start(program, signal, &log)?;
        ports::wait_for(self.port, START_MAX, || process.is_running()).with_context(|| {
            format!("{} does not listen:\n{}", self.contender.name(), self.log())
        })?;
        self.process = Some(process);
        Ok(self)
    }

    /// Returns the id of the contender's process; `None` for [`Contender::Direct`].
    pub fn id(&self) -> Option<u32> {
        self.process.as_ref().map(Leash::id)
    }

    /// Whether the contender's process still runs.
    pub fn is_running(&mut self) -> bool {
        self.process.as_mut().is_none_or(Leash::is_running)
    }

    /// Returns the contender's log.
    pub fn log(&self) -> String {
        let log = self.dir.as_ref().map(|dir| fs::read_to_string(dir.join("log")));
        log.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.process = None;
        if let Some(dir) = &self.dir {
            let _ = fs::remove_dir_all(dir);
        }
    }
}

fn refrain_pool(shape: &Shape) -> String {
    let Shape { pool_size, more, top } = shape;
    format!(
        "{top}\n\
         [pool]\npool_mode = \"transaction\"\npool_size = {pool_size}\n{more}\n\n"
    )
}

fn refrain_top(port: u16, driver: Driver, workers: u32) -> String {
    let driver = driver.name();
    format!(
        "listen = [\"127.0.0.1:{port}\"]\nmetrics_listen = \"off\"\nauth = \"trust\"\n\
         driver = \"{driver}\"\nworkers = {workers}\nmax_client_conn = {CLIENTS_MAX}\n"
    )
}

fn pgbouncer_config(port: u16, dir: &Path, shape: &Shape) -> String {
    format!(
        "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = {}\n\
         max_client_conn = {CLIENTS_MAX}\nlog_connections = 0\nlog_disconnections = 0\n",
        dir.join("users.txt").display(),
        shape.pool_size,
    )
}

/// Builds the proxy and installs PgBouncer if `contenders` need them.
pub fn prepare(contenders: &[Contender]) -> Result<()> {
    if contenders.iter().any(|contender| matches!(contender, Contender::Refrain { .. })) {
        let mut cargo = workspace::cargo();
        cargo.args(["build", "--quiet", "--release", "--package", "refrain"]);
        command::run(&mut cargo)?;
    }
    if contenders.contains(&Contender::Pgbouncer) {
        provision::program(PGBOUNCER, "pgbouncer")?;
    }
    Ok(())
}

/// Returns the path of the proxy's release build.
fn release() -> Result<PathBuf> {
    let program = workspace::target().join("release/refrain");
    ensure!(program.is_file(), "{} is not built", program.display());
    Ok(program)
}

/// Returns the version that PgBouncer reports.
pub fn pgbouncer_version() -> Option<String> {
    let text = command::output(Command::new(PGBOUNCER).arg("--version")).ok()?;
    text.lines().next().map(str::to_owned)
}

fn new_dir() -> Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("refrain-bench-{}-{number}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for name in ["direct", "uring", "epoll", "uring-2", "epoll-16", "pgbouncer"] {
            assert_eq!(Contender::parse(name).unwrap().name(), name);
        }
        assert!(Contender::parse("kqueue").is_err());
        assert!(Contender::parse("uring-0").is_err());
    }
}
