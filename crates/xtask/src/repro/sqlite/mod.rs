//! SQLite and a pooled PostgreSQL on one core: the work of one client of SQLite may not make
//! another client wait.
//!
//! Beside each case three clients look up rows, up to a thousand times a second: in SQLite, in the
//! pooled PostgreSQL, and in PostgreSQL directly. The last shows how long the machine itself delays
//! a client.

mod cases;
mod lookups;
mod memory;

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::bench::session::Session;
use crate::postgres::Cluster;
use crate::proxy::Refrain;

use super::Plan;
use super::verdict::Verdict;
use lookups::{Lookups, Waits};
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
        let lookups = Lookups::start(&self.ways())?;
        let peak = Peak::of(self.proxy.id())?;
        let done = (case.work)(self);
        let peak = peak.bytes()?;
        let waits = lookups.stop()?;
        let took = match done {
            Ok(took) => took,
            Err(error) => {
                verdict.check(format!("{}: {error:#}", case.name), false);
                Duration::ZERO
            }
        };
        let [file, pooled, direct] = &waits[..] else { return Ok(()) };
        println!(
            "{:<34} {:>9.3} {:>9}  file {file}  pooled {pooled}  direct {direct}",
            case.name,
            took.as_secs_f64(),
            peak >> 20,
        );
        let most = direct.longest_ms() + WAIT_MS;
        for (name, waits) in [(FILE, file), (POOLED, pooled)] {
            let what = format!("{}: longest wait of {name}, ms", case.name);
            verdict.at_most(&what, waits.longest_ms(), most);
        }
        Ok(())
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

impl Display for Waits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} {:.1}", self.longest_ms(), self.p99_ms())
    }
}
