//! `cargo xtask soak`: clients of all kinds at once, for any length of time.
//!
//! Clients connect and disconnect, prepare, copy, cancel, make mistakes and vanish, over few
//! servers and two workers, while the run ends servers without the proxy's knowledge. The run
//! passes if no client got a row that was not its own; no more sessions were lost than servers
//! ended; no client is stuck; no server and no descriptor is left over; and memory did not grow.

pub(crate) mod tally;
pub(crate) mod dice;
mod client;
mod watch;

use std::fs;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Args;

use crate::bench::launch::{self, Contender, Running, Shape};
use crate::bench::session::Session;
use crate::postgres::{Cluster, Version};

use self::tally::Tally;

/// Number of servers of the pool.
const POOL_SIZE: u32 = 5;
/// The most that memory may grow, besides a tenth.
const GROWTH_BYTES: u64 = 1024 * 1024;
/// Number of descriptors that the proxy may open for itself.
const DESCRIPTORS_SLACK: usize = 4;
/// Time in which the proxy finishes its work for the last clients.
const SETTLE: Duration = Duration::from_secs(3);

/// The arguments of `cargo xtask soak`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Length of the run in minutes; fractions are allowed.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Number of clients at a time.
    #[arg(long, default_value_t = 24)]
    clients: u32,
    /// The proxy's kernel driver and workers: uring-2, epoll-2, uring, ….
    #[arg(long, value_parser = Contender::parse, default_value = "uring-2")]
    proxy: Contender,
    /// Seed of random choices; the run also depends on the machine's timing.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Do not end servers.
    #[arg(long)]
    no_kills: bool,
    /// Use PostgreSQL 18 rather than 15.
    #[arg(long)]
    new: bool,
}

/// Runs the clients. Returns true if no check failed.
pub fn run(arguments: &Arguments) -> Result<bool> {
    launch::prepare(&[arguments.proxy])?;
    let version = if arguments.new { Version::V18 } else { Version::V15 };
    let cluster = Cluster::start(version, &[])?;
    cluster.psql("postgres", "CREATE DATABASE soak")?;
    cluster.psql("soak", "CREATE TABLE soak (tag text, n int)")?;
    let shape = Shape {
        pool_size: POOL_SIZE,
        more: "",
        // Little room for statements, so that the proxy has to drop unused ones.
        top: "admin_users = [\"postgres\"]\nmax_statement_bytes = \"256KiB\"",
    };
    let mut proxy = Running::start(arguments.proxy, &cluster, &shape)?;
    let descriptors = descriptors(&proxy)?;
    let tally = Tally::default();
    let memory = all_at_once(arguments, &cluster, &proxy, &tally)?;
    thread::sleep(SETTLE);
    let mut bad = Vec::new();
    if !proxy.is_running() {
        bad.push(format!("the proxy has ended:\n{}", proxy.log()));
    } else if let Err(error) = after(&cluster, &proxy, descriptors, &mut bad) {
        bad.push(format!("checks at the end: {error:#}"));
    }
    judge(&tally, &memory, &proxy.log(), &mut bad);
    for finding in &bad {
        println!("{finding}");
    }
    println!("memory over time, in MiB: {}", watch::tenths(&memory));
    summary(arguments, &tally, &memory, bad.is_empty());
    Ok(bad.is_empty())
}

/// Runs clients and watchers for the given time. Returns the proxy's memory over time.
fn all_at_once(
    arguments: &Arguments,
    cluster: &Cluster,
    proxy: &Running,
    tally: &Tally,
) -> Result<Vec<u64>> {
    let process = proxy.id().context("no process")?;
    let seed = arguments.seed << 32;
    thread::scope(|scope| {
        for number in 0..arguments.clients {
            scope.spawn(move || client::run(proxy.port, seed + u64::from(number), tally));
        }
        let memory = scope.spawn(move || watch::memory(process, tally));
        let killer = (!arguments.no_kills)
            .then(|| scope.spawn(move || watch::kill(cluster.port(), !seed, tally)));
        thread::sleep(Duration::from_secs_f64(arguments.minutes * 60.0));
        tally.over.store(true, Relaxed);
        let panicked = |_| anyhow!("a watcher panicked");
        if let Some(killer) = killer {
            killer.join().map_err(panicked)??;
        }
        memory.join().map_err(panicked)
    })
}

/// Checks sessions and descriptors of the proxy and of PostgreSQL after all clients have left.
fn after(
    cluster: &Cluster,
    proxy: &Running,
    descriptors_before: usize,
    bad: &mut Vec<String>,
) -> Result<()> {
    let sessions = cluster.psql(
        "postgres",
        "SELECT coalesce(state, '?'), count(*) FROM pg_stat_activity \
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() GROUP BY 1",
    )?;
    let count = |line: &str| line.rsplit('|').next().and_then(|count| count.parse::<usize>().ok());
    let in_postgres: usize = sessions.lines().filter_map(count).sum();
    if in_postgres > POOL_SIZE as usize || sessions.lines().any(|line| !line.starts_with("idle|")) {
        bad.push(format!("sessions left in PostgreSQL (pool of {POOL_SIZE}): {sessions:?}"));
    }
    let descriptors_now = descriptors(proxy)?;
    if descriptors_now > descriptors_before + in_postgres + DESCRIPTORS_SLACK {
        bad.push(format!("{descriptors_before} descriptors before, {descriptors_now} after"));
    }
    let mut console = Session::open(proxy.port, "refrain", Duration::from_secs(10))?;
    for (text, expected) in [("SHOW SERVERS", in_postgres), ("SHOW CLIENTS", 1)] {
        let answer = console.query(text)?;
        if answer.rows.len() != expected || !answer.errors.is_empty() {
            let lines: Vec<_> = answer.rows.iter().map(|row| words(row)).collect();
            let errors = answer.errors;
            bad.push(format!("{text} has not {expected} rows: {lines:#?} {errors:?}"));
        }
    }
    Ok(())
}

fn words(row: &[Vec<u8>]) -> String {
    row.iter().map(|value| String::from_utf8_lossy(value)).collect::<Vec<_>>().join(" ")
}

/// Checks the clients' counts, the memory and the log.
fn judge(tally: &Tally, memory: &[u64], log: &str, bad: &mut Vec<String>) {
    let kills = tally.kills.load(Relaxed);
    let lost_max = (tally.lost.count() > kills).then_some(&tally.lost);
    let mishaps = [
        ("wrong", Some(&tally.wrong)),
        ("stuck", Some(&tally.stuck)),
        ("lost, more than servers were ended", lost_max),
    ];
    for (name, mishaps) in mishaps {
        let Some(mishaps) = mishaps.filter(|mishaps| mishaps.count() > 0) else { continue };
        bad.push(format!("{} {name}, the first:", mishaps.count()));
        bad.extend(mishaps.words());
    }
    let (middle, last) = watch::middle_and_last(memory);
    if last > middle + middle / 10 + GROWTH_BYTES {
        bad.push(format!("memory grew from {middle} to {last} bytes"));
    }
    let unexpected: Vec<&str> = log
        .lines()
        .filter(|line| ["server_protocol", "panic"].iter().any(|w| line.contains(w)))
        .collect();
    if let Some(first) = unexpected.first() {
        bad.push(format!("{} unexpected log lines, the first: {first}", unexpected.len()));
    }
}

fn summary(arguments: &Arguments, tally: &Tally, memory: &[u64], passed: bool) {
    let (middle, last) = watch::middle_and_last(memory);
    let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    println!(
        "soak {}, {} min, {} clients: {} sessions, {} units, {} rows, {} wrong, {} stuck, \
         {} cancels, {} vanished, {} servers ended, {} sessions lost, memory {:.1} to {:.1} MiB: {}",
        arguments.proxy.name(),
        arguments.minutes,
        arguments.clients,
        tally.sessions.load(Relaxed),
        tally.units.load(Relaxed),
        tally.rows.load(Relaxed),
        tally.wrong.count(),
        tally.stuck.count(),
        tally.cancels.load(Relaxed),
        tally.vanished.load(Relaxed),
        tally.kills.load(Relaxed),
        tally.lost.count(),
        mib(middle),
        mib(last),
        if passed { "passed" } else { "FAILED" },
    );
}

fn descriptors(proxy: &Running) -> Result<usize> {
    let process = proxy.id().context("no process")?;
    Ok(fs::read_dir(format!("/proc/{process}/fd"))?.count())
}
