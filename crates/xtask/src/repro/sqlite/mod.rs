//! SQLite and a pooled PostgreSQL on one core: what one client does there with SQLite may not make any other wait.
//!
//! Beside each case somebody looks rows up in both databases, a thousand times a second, and in PostgreSQL directly. The
//! last says how long the machine itself makes anybody wait, which is not the proxy's doing.

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

/// The name of the file's database, and of the pooled one.
const FILE: &str = "file";
const POOLED: &str = "pooled";
/// What another client may wait for, in milliseconds, beyond what the machine makes it wait.
const WAIT_MS: f64 = 20.0;
/// A case takes no longer.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a client does; how long what counts of it took.
type Work = Box<dyn Fn(&House) -> Result<Duration>>;

/// Something that one client does.
struct Case {
    name: String,
    work: Work,
}

/// All that runs.
struct House {
    cluster: Cluster,
    proxy: Refrain,
    folder: PathBuf,
}

/// Runs the cases whose time is to grow with the size and no faster.
pub(super) fn sizes(plan: &Plan) -> Result<Verdict> {
    run(plan, cases::sizes())
}

/// Runs the cases that last, whatever their size.
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

    /// Ports and databases where rows are looked up: two of the proxy's, and PostgreSQL's own.
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

    /// A session with the file.
    fn session(&self) -> Result<Client> {
        session(self.proxy.port(), FILE)
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A session whose errors are errors.
struct Client(Session);

fn session(port: u16, database: &str) -> Result<Client> {
    Session::open(port, database, PATIENCE).map(Client)
}

impl Client {
    /// Runs a text; an error of the server's is one.
    fn ask(&mut self, sql: &str) -> Result<Duration> {
        self.send(&crate::bench::session::query(sql))
    }

    /// Sends messages, and reads what answers them.
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
