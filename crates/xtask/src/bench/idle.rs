//! The benchmark of idle clients: memory per client, and CPU time while all are idle.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::postgres::{Cluster, Version};

use super::launch::{self, Contender, Driver, Running, Shape};
use super::process;
use super::report::table;
use super::session::{Session, parse, run as run_statement};

/// The most clients: each takes one of the machine's 28,000 ephemeral ports.
const CLIENTS_MAX: i64 = 25_000;
/// Time limit of a read.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time in which the proxy finishes its work for a client.
const SETTLE: Duration = Duration::from_secs(1);

/// The statement that each client prepares after its login.
const STATEMENT: &str = "SELECT abs($1::int4)";

/// Returns the parser of the number of clients on the command line.
pub(super) fn clients() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=CLIENTS_MAX)
}

/// Runs the benchmark and returns the table in Markdown.
pub(super) fn run(clients: u32) -> Result<String> {
    // The proxy keeps some for servers, logins and itself.
    process::allow_open_files(clients + 3000)?;
    let contenders = [
        Contender::refrain(Driver::Uring, 1),
        Contender::refrain(Driver::Epoll, 1),
        Contender::Pgbouncer,
    ];
    launch::prepare(&contenders)?;
    let cluster = Cluster::start(Version::V15, &[])?;
    let mut lines = Vec::new();
    for contender in contenders {
        let cells = measure(contender, &cluster, clients).with_context(|| contender.name())?;
        println!("{}: {cells:?}", contender.name());
        lines.push((contender.name(), cells.into_iter().map(Some).collect()));
    }
    let heads = [
        "before",
        "logged in",
        "bytes each",
        "each ran a statement",
        "bytes each",
        "all left",
        "CPU while idle, of one core",
    ];
    let mut text = String::new();
    let title = format!("Memory (VmRSS) with {clients} idle clients");
    table(&mut text, &title, "", &heads.map(str::to_owned), lines.into_iter());
    Ok(text)
}

fn measure(contender: Contender, cluster: &Cluster, clients: u32) -> Result<Vec<String>> {
    let shape = Shape { pool_size: 20, more: "", top: "" };
    let running = Running::start(contender, cluster, &shape)?;
    let process = running.id().context("no process")?;
    let resident = || {
        thread::sleep(SETTLE);
        process::resident_bytes(process)
    };
    let mut first = Session::open(running.port, "postgres", PATIENCE)?;
    first.query("SELECT 1")?;
    let before = resident()?;
    let mut sessions = Vec::new();
    for _ in 0..clients {
        sessions.push(Session::open(running.port, "postgres", PATIENCE)?);
    }
    let logged_in = resident()?;
    for session in &mut sessions {
        // PgBouncer 1.18 does not support prepared statements in transaction mode.
        let name = if contender.prepares() { "s1" } else { "" };
        session.send(&[parse(name, STATEMENT), run_statement(name, &["-7"])].concat())?;
        let answer = session.answer()?;
        anyhow::ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
    }
    let prepared = resident()?;
    let busy = process::cpu_ns(process)?;
    thread::sleep(SETTLE);
    let busy = (process::cpu_ns(process)? - busy) as f64 / SETTLE.as_nanos() as f64;
    drop(sessions);
    let left = resident()?;
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / 1024.0 / 1024.0);
    let each = |bytes: u64| format!("{}", bytes.saturating_sub(before) / u64::from(clients));
    let cells = [
        mib(before),
        mib(logged_in),
        each(logged_in),
        mib(prepared),
        each(prepared),
        mib(left),
        format!("{:.2} %", busy * 100.0),
    ];
    Ok(cells.to_vec())
}
