//! `cargo xtask regress`: compares the output of PostgreSQL's own regression suites, directly and
//! through the proxy.
//!
//! The suites (the server's and PL/pgSQL's) run twice, each time by `pg_regress` and `psql` over a
//! fresh cluster: once directly, once through a session pool. Then the files under `results/` are
//! compared with each other. The suites' expected files do not matter: a test that fails both ways
//! is as good as a test that passes. No part of the output is masked, since two direct runs print
//! the same bytes. If a file differs, the suites run directly again, and the file counts as
//! different only if it differs from both direct runs.
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

use crate::ports::free_port;
use crate::postgres::{Cluster, Version};
use crate::provision::{self, Regression};
use crate::proxy::{self, Refrain};
use crate::workspace;

use self::compare::{Difference, differences};

/// The pool's size: more servers than a suite has sessions at a time.
const POOL_SIZE: u32 = 50;
/// Further options of the pool with `--autoprepare`.
const AUTOPREPARE: &str = "autoprepare = \"on\"\nautoprepare_threshold = 1\n";
/// Settings that the suites need, and settings with which two runs print the same.
const SETTINGS: &[(&str, &str)] = &[
    ("max_prepared_transactions", "2"),
    // Statistics, and so plans, would depend on when autovacuum runs.
    ("autovacuum", "off"),
];

/// The setting with which the server makes only generic plans.
const GENERIC_PLANS: (&str, &str) = ("plan_cache_mode", "force_generic_plan");

/// The arguments of `cargo xtask regress`.
#[derive(Args, Clone, Copy, Debug)]
pub struct Arguments {
    /// Prepare every simple query from its first use on.
    #[arg(long)]
    autoprepare: bool,
    /// Set `plan_cache_mode = force_generic_plan` at the server, directly and through the proxy.
    #[arg(long)]
    generic_plans: bool,
}

impl Arguments {
    /// Returns the settings of the servers.
    fn settings(self) -> Vec<(&'static str, &'static str)> {
        let more = self.generic_plans.then_some(GENERIC_PLANS);
        SETTINGS.iter().copied().chain(more).collect()
    }
}

/// Runs the suites both ways. Returns true if all differences are allowed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let regression = provision::regression()?;
    let program = workspace::built("refrain")?;
    let direct = direct(&regression, arguments, "direct")?;
    let proxied = proxied(&regression, &program, arguments)?;
    let autoprepare = arguments.autoprepare;
    let mut found = differences(&direct, &proxied)?;
    if found.iter().any(|difference| difference.reason(autoprepare).is_none()) {
        let again = differences(&self::direct(&regression, arguments, "direct-again")?, &proxied)?;
        found.retain(|difference| again.iter().any(|other| other.file == difference.file));
    }
    Ok(report(fs::read_dir(direct)?.count(), &found, autoprepare))
}

/// Runs the suites directly and returns the folder of results.
fn direct(regression: &Regression, arguments: &Arguments, name: &str) -> Result<PathBuf> {
    let cluster = Cluster::start(Version::V15, &arguments.settings())?;
    pg_regress::run(regression, &cluster, cluster.port(), name)
}

/// Runs the suites through the proxy and returns the folder of results.
fn proxied(regression: &Regression, program: &Path, arguments: &Arguments) -> Result<PathBuf> {
    let cluster = Cluster::start(Version::V15, &arguments.settings())?;
    let metrics = free_port()?;
    let options = if arguments.autoprepare { AUTOPREPARE } else { "" };
    let configuration = proxy::over_with(&cluster, "session", POOL_SIZE, options);
    let configuration = format!("metrics_listen = \"127.0.0.1:{metrics}\"\n{configuration}");
    let proxy = Refrain::start_as(program, &configuration)?;
    let results = pg_regress::run(regression, &cluster, proxy.port(), "proxied");
    let log = pg_regress::kept("proxied").join("proxy.log");
    fs::write(log, proxy.log())?;
    if arguments.autoprepare {
        print_counters(metrics)?;
    }
    results
}

/// Prints the counters of autoprepare, summed over the pools.
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

/// Prints the differences. Returns true if all of them are allowed.
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
