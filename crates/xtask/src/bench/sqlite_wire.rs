//! The benchmark of lookups in SQLite through the protocol, beside PostgreSQL on the same machine.
//!
//! PostgreSQL without a proxy, the proxy with SQLite and its statement cache, and the proxy without
//! the cache take turns in every round. A disturbance of the machine so affects all three, and only
//! ratios within a round count.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result};

use crate::command;
use crate::postgres::{Cluster, Version};
use crate::provision;

use super::facts::without_pgbouncer;
use super::launch::{self, Contender, Driver, Running};
use super::pgbench::{Load, Mode, Pgbench, Until, Workload};
use super::process;
use super::report::median;
use super::rounds::{REAPED, SCALE};

/// Number of rounds that count.
const ROUNDS: usize = 9;
/// Seconds of each measurement.
const SECONDS: u32 = 2;
/// The load of each measurement.
const LOAD: Load = Load { workload: Workload::Select, mode: Mode::Prepared, clients: 16 };
/// The most CPU time of the proxy, as a share of PostgreSQL's.
const BAR_POSTGRES: f64 = 0.3;
/// The most CPU time of the proxy, as a share of the proxy's without its cache.
const BAR_UNCACHED: f64 = 0.75;

/// CPU time per query in one round, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Round {
    postgres: f64,
    cached: f64,
    uncached: f64,
}

/// Runs the benchmark and returns the tables in Markdown.
pub(super) fn run() -> Result<String> {
    launch::prepare(&[Contender::refrain(Driver::Uring, 1)])?;
    let cluster = Cluster::start(Version::V15, &[("shared_buffers", "512MB")])?;
    let pgbench = Pgbench::filled(&cluster, SCALE)?;
    let folder = Folder::new()?;
    let file = folder.path().join("bench.db");
    let cached = Running::start_file(Driver::Uring, &file, "")?;
    fill(cached.port)?;
    let uncached = Running::start_file(Driver::Uring, &file, "stmt_cache_size = 0")?;
    let postmaster = cluster.postmaster().context("the cluster is not ours")?;
    let of_postgres = || process::family_cpu_ns(postmaster);
    let of_proxy = |running: &Running| process::cpu_ns(running.id().context("it has ended")?);
    let mut rounds = Vec::new();
    // The first round fills caches and does not count.
    for _ in 0..=ROUNDS {
        let round = Round {
            postgres: measure(&pgbench, cluster.port(), of_postgres)?,
            cached: measure(&pgbench, cached.port, || of_proxy(&cached))?,
            uncached: measure(&pgbench, uncached.port, || of_proxy(&uncached))?,
        };
        println!("{round:?}");
        rounds.push(round);
    }
    let facts = without_pgbouncer(&cluster);
    Ok(format!("{facts}\n{}", report(rounds.get(1..).unwrap_or_default())))
}

/// Measures the CPU time of one run, in microseconds per query.
fn measure(pgbench: &Pgbench, port: u16, cpu_ns: impl Fn() -> Result<u64>) -> Result<f64> {
    let before = cpu_ns()?;
    let outcome = pgbench.run(port, &LOAD, Until::Seconds(SECONDS))?;
    thread::sleep(REAPED);
    let spent = cpu_ns()?.saturating_sub(before);
    Ok(spent as f64 / 1000.0 / outcome.transactions as f64)
}

/// Creates the tables that pgbench reads, through the proxy.
fn fill(port: u16) -> Result<()> {
    let rows = SCALE * 100_000;
    let sql = format!(
        "CREATE TABLE pgbench_branches (bid INTEGER PRIMARY KEY, bbalance INT, filler CHAR(88)); \
         CREATE TABLE pgbench_accounts \
         (aid INTEGER PRIMARY KEY, bid INT, abalance INT, filler CHAR(84)); \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {SCALE}) \
         INSERT INTO pgbench_branches SELECT i, 0, NULL FROM n; \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
         INSERT INTO pgbench_accounts \
         SELECT i, (i - 1) / 100000 + 1, 0, printf('%84s', '') FROM n"
    );
    ask(port, &sql)
}

/// Runs statements through the proxy by psql.
pub(super) fn ask(port: u16, sql: &str) -> Result<()> {
    let url = format!("postgres://postgres@127.0.0.1:{port}/bench");
    let mut psql = Command::new(provision::postgres(Version::V15)?.join("psql"));
    command::output(psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c", sql])).map(drop)
}

fn report(rounds: &[Round]) -> String {
    let of = |pick: fn(&Round) -> f64| median(rounds.iter().map(pick).collect()).unwrap_or(0.0);
    let to_postgres = of(|round| round.cached / round.postgres);
    let to_uncached = of(|round| round.cached / round.uncached);
    let mut text = format!(
        "`pgbench -n -S -M prepared -c {}`, scale {SCALE}, {ROUNDS} rounds of {SECONDS} s each in \
         turns. CPU time per query of all processes of PostgreSQL without a proxy, and of the \
         proxy's process with SQLite (one worker, io_uring), in microseconds. Figures are medians; \
         ratios are medians of the ratios within a round.\n\n\
         | | CPU µs per query |\n|---|--:|\n",
        LOAD.clients
    );
    let lines = [
        ("PostgreSQL", of(|round| round.postgres)),
        ("Refrain, SQLite", of(|round| round.cached)),
        ("Refrain, SQLite, `stmt_cache_size = 0`", of(|round| round.uncached)),
    ];
    for (name, figure) in lines {
        let _ = writeln!(text, "| {name} | {figure:.1} |");
    }
    let _ = writeln!(text, "\n| ratio | measured | bar |\n|---|--:|--:|");
    let ratios = [
        ("to PostgreSQL", to_postgres, BAR_POSTGRES),
        ("cached to uncached", to_uncached, BAR_UNCACHED),
    ];
    for (name, ratio, bar) in ratios {
        let _ = writeln!(text, "| {name} | {ratio:.2} | ≤ {bar} |");
    }
    text
}

/// A temporary folder. Dropping this removes it.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Result<Folder> {
        let name = format!("refrain-bench-file-{}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(folder.path())?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_rounds() {
        let round = |postgres, cached, uncached| Round { postgres, cached, uncached };
        let rounds = [round(50.0, 10.0, 20.0), round(100.0, 30.0, 40.0), round(60.0, 15.0, 20.0)];
        let text = report(&rounds);
        assert!(text.contains("| PostgreSQL | 60.0 |"), "{text}");
        assert!(text.contains("| to PostgreSQL | 0.25 | ≤ 0.3 |"), "{text}");
        assert!(text.contains("| cached to uncached | 0.75 | ≤ 0.75 |"), "{text}");
    }
}
