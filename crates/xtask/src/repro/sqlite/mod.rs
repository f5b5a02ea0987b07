//! SQLite and a pooled PostgreSQL on one core: the work of one client of SQLite may not make
//! another client wait.
//!
//! Beside each case three clients look up rows, up to a thousand times a second: in SQLite, in the
//! pooled PostgreSQL, and in PostgreSQL directly. The machine itself delays clients as well:
//! another virtual machine runs, or the kernel writes pages to the disk. The direct client shows
//! that, and so does a thread that just sleeps. The pooled server shows it too: the kernel counts
//! how long its process was ready to run and another one ran. Each wait counts without the longest
//! wait that one of these had at the same time.
//!
//! `ready` is the same time of the loop's thread. It is not subtracted, because a thread of the
//! proxy may have run instead.

mod cases;
mod waits;
mod machine;
mod lookups;
mod memory;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::bench::session::Session;
use crate::postgres::Cluster;
use crate::proxy::Refrain;

use super::Plan;
use super::verdict::Verdict;
use lookups::Lookups;
use memory::Peak;

/// The name of the SQLite database.
const FILE: &str = "file";
/// The name of the pooled PostgreSQL database.
const POOLED: &str = "pooled";
/// The most that another client may wait beyond the machine's own delay, in milliseconds.
const WAIT_MS: f64 = 20.0;
/// The time limit of a case.
const PATIENCE: Duration = Duration::from_secs(600);

/// A function that does the work of a case and returns the time of the part that counts.
type Work = Box<dyn Fn(&House) -> Result<Duration>>;

/// A case: work of one client.
struct Case {
    name: String,
    work: Work,
}

/// The running servers.
struct House {
    cluster: Cluster,
    proxy: Refrain,
    folder: PathBuf,
}

/// Runs the cases whose time should grow with their size and no faster.
pub(super) fn sizes(plan: &Plan) -> Result<Verdict> {
    run(plan, cases::sizes())
}

/// Runs the cases that take long.
pub(super) fn lasting(plan: &Plan) -> Result<Verdict> {
    run(plan, cases::lasting())
}

fn run(plan: &Plan, cases: Vec<Case>) -> Result<Verdict> {
    let house = House::start(plan)?;
    let mut verdict = Verdict::default();
    println!("{:<34} {:>9} {:>9}  longest wait, p99 (ms):", "", "seconds", "peak MiB");
    for case in cases {
        house.measure(&case, &mut verdict).with_context(|| case.name.clone())?;
    }
    Ok(verdict)
}

impl House {
    fn start(plan: &Plan) -> Result<House> {
        let program = plan.program()?;
        let cluster = Cluster::start(plan.version(), &[])?;
        let folder = std::env::temp_dir().join(format!("refrain-repro-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let (host, port) = (cluster.host(), cluster.port());
        let config = format!(
            "auth = \"trust\"\nworkers = 1\n\
             [databases.{FILE}]\nbackend = \"sqlite\"\npath = \"{}\"\n\
             [databases.{POOLED}]\nurl = \"postgres://postgres@{host}:{port}/postgres\"\n",
            folder.join("file.db").display()
        );
        let proxy = Refrain::start_as(&program, &config)?;
        let house = House { cluster, proxy, folder };
        let lookups = "CREATE TABLE lookups (id INTEGER PRIMARY KEY, v TEXT); \
                       INSERT INTO lookups VALUES (1, 'one')";
        for (port, name) in house.ways() {
            if name != POOLED {
                session(port, name)?.ask(lookups)?;
            }
        }
        Ok(house)
    }

    /// Returns the ports and databases of the lookups: two of the proxy's, and PostgreSQL's own.
    fn ways(&self) -> [(u16, &'static str); 3] {
        let proxy = self.proxy.port();
        [(proxy, FILE), (proxy, POOLED), (self.cluster.port(), "postgres")]
    }

    fn measure(&self, case: &Case, verdict: &mut Verdict) -> Result<()> {
        let lookups = Lookups::start(self.proxy.id(), self.server()?, &self.ways())?;
        let peak = Peak::of(self.proxy.id())?;
        let done = (case.work)(self);
        let peak = peak.bytes()?;
        let (waits, machine) = lookups.stop()?;
        let took = match done {
            Ok(took) => took,
            Err(error) => {
                verdict.check(format!("{}: {error:#}", case.name), false);
                Duration::ZERO
            }
        };
        let [file, pooled, direct] = &waits[..] else { return Ok(()) };
        println!(
            "{:<34} {:>9.3} {:>9}  file {file}  pooled {pooled}  direct {direct}  \
             sleep {}  ready {:.1}  server {:.1}",
            case.name,
            took.as_secs_f64(),
            peak >> 20,
            machine.sleep,
            machine.ready.longest_ms(),
            machine.server.longest_ms(),
        );
        let own = [
            (FILE, file.beyond_ms(&[direct, &machine.sleep])),
            (POOLED, pooled.beyond_ms(&[direct, &machine.sleep, &machine.server])),
        ];
        for (name, wait) in own {
            let what = format!("{}: longest wait of {name} beyond the machine's, ms", case.name);
            verdict.at_most(&what, wait, WAIT_MS);
        }
        Ok(())
    }

    /// Returns the process of the pooled server, the only one of its pool.
    fn server(&self) -> Result<u32> {
        let mut client = session(self.proxy.port(), POOLED)?.0;
        let answer = client.query("SELECT pg_backend_pid()")?;
        let pid = answer.rows.first().and_then(|row| row.first()).context("no row")?;
        Ok(std::str::from_utf8(pid)?.parse()?)
    }

    /// Opens a session with the SQLite database.
    fn session(&self) -> Result<Client> {
        session(self.proxy.port(), FILE)
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A session that turns error messages of the server into errors.
struct Client(Session);

fn session(port: u16, database: &str) -> Result<Client> {
    Session::open(port, database, PATIENCE).map(Client)
}

impl Client {
    /// Runs a text and returns its time.
    fn ask(&mut self, sql: &str) -> Result<Duration> {
        self.send(&crate::bench::session::query(sql))
    }

    /// Sends messages, reads the replies and returns the time of both.
    fn send(&mut self, bytes: &[u8]) -> Result<Duration> {
        let begun = Instant::now();
        self.0.send(bytes)?;
        match self.0.answer()?.errors.first() {
            None => Ok(begun.elapsed()),
            Some((sqlstate, words)) => anyhow::bail!("{sqlstate} {words}"),
        }
    }
}
