//! `cargo xtask regress`: what PostgreSQL's own regression suites print, straight and through the
//! proxy.
//!
//! The suites (the server's and PL/pgSQL's) run twice, each time by `pg_regress` and `psql` over a
//! fresh cluster: once with nothing between, once through a session pool. The files they leave under
//! `results/` are then compared with each other. What their authors expected does not come into it:
//! a test that fails both ways is as good as one that passes. Nothing is masked, since two straight
//! runs print the same to the byte. Should they once not, a file differs only if it differs from
//! both.
//!
//! The results stay in `target/regress`, with the proxy's log.

mod compare;
mod pg_regress;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::postgres::{Cluster, Version, free_port};
use crate::provision::{self, Regression};
use crate::proxy::{self, Refrain};
use crate::workspace;

use self::compare::{Difference, differences};

/// Servers of the pool: more than a suite has sessions at a time.
const POOL_SIZE: u32 = 50;
/// What begins the pool's options where simple queries are prepared.
const AUTOPREPARE: &str = "[pool]\nautoprepare = \"on\"\nautoprepare_threshold = 1\n";
/// What the suites want beyond a cluster's defaults, and what keeps two runs the same.
const SETTINGS: &[(&str, &str)] = &[
    ("max_prepared_transactions", "2"),
    // Statistics, and plans with them, would depend on when it comes by.
    ("autovacuum", "off"),
];

/// What has the server do without plans for values.
const GENERIC_PLANS: (&str, &str) = ("plan_cache_mode", "force_generic_plan");

/// How.
#[derive(Args, Clone, Copy, Debug)]
pub struct Arguments {
    /// Have every simple query prepared, from its first time on.
    #[arg(long)]
    autoprepare: bool,
    /// Have the server keep a plan for all values of each statement, from its first execution on: straight and through
    /// the proxy.
    #[arg(long)]
    generic_plans: bool,
}

impl Arguments {
    /// The settings of the servers.
    fn settings(self) -> Vec<(&'static str, &'static str)> {
        let more = self.generic_plans.then_some(GENERIC_PLANS);
        SETTINGS.iter().copied().chain(more).collect()
    }
}

/// Runs the suites both ways; whether nothing differs that may not.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let regression = provision::regression()?;
    let program = workspace::built("refrain", "refrain")?;
    let straight = straight(&regression, arguments, "direct")?;
    let proxied = proxied(&regression, &program, arguments)?;
    let autoprepare = arguments.autoprepare;
    let mut found = differences(&straight, &proxied)?;
    if found.iter().any(|difference| difference.reason(autoprepare).is_none()) {
        let again =
            differences(&self::straight(&regression, arguments, "direct-again")?, &proxied)?;
        found.retain(|difference| again.iter().any(|other| other.file == difference.file));
    }
    Ok(report(fs::read_dir(straight)?.count(), &found, autoprepare))
}

/// Results of the suites with nothing between.
fn straight(regression: &Regression, arguments: &Arguments, name: &str) -> Result<PathBuf> {
    let cluster = Cluster::start(Version::V15, &arguments.settings())?;
    pg_regress::run(regression, &cluster, cluster.port(), name)
}

/// Results of the suites through the proxy.
fn proxied(regression: &Regression, program: &Path, arguments: &Arguments) -> Result<PathBuf> {
    let cluster = Cluster::start(Version::V15, &arguments.settings())?;
    let metrics = free_port()?;
    let mut configuration = proxy::over(&cluster, "session", POOL_SIZE);
    configuration.insert_str(0, &format!("metrics_listen = \"127.0.0.1:{metrics}\"\n"));
    if arguments.autoprepare {
        configuration = configuration.replacen("[pool]\n", AUTOPREPARE, 1);
    }
    let proxy = Refrain::start_as(program, &configuration)?;
    let results = pg_regress::run(regression, &cluster, proxy.port(), "proxied");
    let log = pg_regress::kept("proxied").join("proxy.log");
    fs::write(log, proxy.log())?;
    if arguments.autoprepare {
        print_counters(metrics)?;
    }
    results
}

/// Prints what autoprepare did, summed over the pools.
fn print_counters(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut metrics = String::new();
    stream.read_to_string(&mut metrics)?;
    let mut sums = BTreeMap::<String, u64>::new();
    for line in metrics.lines().filter(|line| line.starts_with("refrain_auto_")) {
        let (name, value) = line.rsplit_once(' ').context("a metric has a value")?;
        let name = name.split('{').next().unwrap_or(name).to_owned();
        *sums.entry(name).or_default() += value.parse::<u64>()?;
    }
    sums.iter().for_each(|(name, sum)| println!("{name} {sum}"));
    Ok(())
}

/// Prints what was found; whether all of it is allowed.
fn report(files: usize, found: &[Difference], autoprepare: bool) -> bool {
    let (allowed, wrong): (Vec<_>, Vec<_>) =
        found.iter().partition(|difference| difference.reason(autoprepare).is_some());
    for difference in &allowed {
        let reason = difference.reason(autoprepare).unwrap_or_default();
        println!("{} differs as it may: {reason}", difference.file);
    }
    for difference in &wrong {
        println!("{}", difference.diff);
    }
    let equal = files - found.len();
    println!("{files} files: {equal} equal, {} as they may differ", allowed.len());
    println!("{} passed, {} failed", files - wrong.len(), wrong.len());
    wrong.is_empty()
}
