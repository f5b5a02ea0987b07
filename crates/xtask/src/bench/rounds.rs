//! The comparison: every contender at every load, in turns, in several rounds.
//!
//! All contenders run from the beginning to the end, so that their pools are full; an idle
//! contender uses no CPU time. Within a round they take turns at each load, and each round begins
//! with another contender. A disturbance of the machine so affects all contenders, and a ratio
//! within a round says more than figures of different rounds.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::postgres::{Cluster, Version};

use super::facts::facts;
use super::launch::{self, Contender, Running, Shape};
use super::pgbench::{Load, Mode, Outcome, Pgbench, Until, Workload};
use super::process;
use super::report::{Figures, Report, Row};

/// Servers of each pool.
pub(super) const POOL_SIZE: u32 = 20;
/// Number of clients of the workloads that have a fixed number.
const CLIENTS_MIDDLE: u32 = 16;
/// The scale of pgbench: the table has a hundred thousand times as many rows.
pub(super) const SCALE: u32 = 10;

/// The rate at which PostgreSQL accepts connections. `pgbench` counts connecting as running.
const CONNECTS_PER_SECOND: u32 = 250;
/// Time in which PostgreSQL waits for its processes that have ended.
pub(super) const REAPED: Duration = Duration::from_millis(200);

/// The options of the comparison.
#[derive(Args, Clone, Debug)]
pub(super) struct Plan {
    /// Number of rounds; the report has medians.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Seconds of each measurement; more with many clients, since connecting takes time.
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 16, 64, 256, 1000])]
    clients: Vec<u32>,
    /// Protocols of the queries.
    #[arg(long, value_delimiter = ',', default_values = ["simple", "extended", "prepared"])]
    modes: Vec<Mode>,
    /// Workloads; `statements` and `connect` always have 16 clients.
    #[arg(long, value_delimiter = ',', default_values = ["select", "statements", "connect"])]
    workloads: Vec<Workload>,
    /// Contenders: direct, uring, epoll, uring-2 (two workers), epoll-2, …, pgbouncer.
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = Contender::parse,
        default_values = ["direct", "uring", "epoll", "uring-2", "pgbouncer"]
    )]
    contenders: Vec<Contender>,
}

impl Plan {
    fn loads(&self) -> Vec<Load> {
        let mut loads = Vec::new();
        for workload in self.workloads.iter().copied() {
            let load = |mode, clients| Load { workload, mode, clients };
            match workload {
                Workload::Select => {
                    for mode in &self.modes {
                        loads.extend(self.clients.iter().map(|clients| load(*mode, *clients)));
                    }
                }
                Workload::Statements => loads.push(load(Mode::Prepared, CLIENTS_MIDDLE)),
                Workload::Connect => loads.push(load(Mode::Simple, CLIENTS_MIDDLE)),
            }
        }
        loads
    }

    /// Runs the comparison and returns the report in Markdown.
    pub(super) fn run(&self) -> Result<String> {
        let clients_max = self.clients.iter().copied().max().unwrap_or(0).max(CLIENTS_MIDDLE);
        process::allow_open_files((clients_max * 2).max(20_000))?;
        launch::prepare(&self.contenders)?;
        let servers = self.contenders.len() as u32 * 2 * POOL_SIZE;
        let connections = (clients_max + servers + 20).to_string();
        let settings = [("max_connections", connections.as_str()), ("shared_buffers", "512MB")];
        let cluster = Cluster::start(Version::V15, &settings)?;
        let pgbench = Pgbench::filled(&cluster, SCALE)?;
        let bench = Bench::start(&cluster, pgbench, &self.contenders)?;
        let mut rows = Vec::new();
        for round in 0..self.rounds {
            for load in self.loads() {
                bench.all_at(round, &load, self.seconds, &mut rows);
            }
        }
        let report = Report { rows: &rows, clients: &self.clients, rounds: self.rounds };
        Ok(format!("{}\n{}", facts(&cluster), report.text(self.seconds)))
    }
}

/// The running contenders.
struct Bench {
    pgbench: Pgbench,
    /// PostgreSQL's first process, if this program started the cluster.
    postmaster: Option<u32>,
    usual: Vec<Running>,
    /// Contenders that support prepared statements, with a limit on each server's statements.
    limited: Vec<Running>,
}

impl Bench {
    fn start(cluster: &Cluster, pgbench: Pgbench, contenders: &[Contender]) -> Result<Bench> {
        let shape = Shape { pool_size: POOL_SIZE, more: "", top: "" };
        let limit = Shape { more: "max_server_statements = 100", ..shape };
        let start = |shape, contenders: &mut dyn Iterator<Item = &Contender>| -> Result<Vec<_>> {
            contenders.map(|contender| Running::start(*contender, cluster, shape)).collect()
        };
        let usual = start(&shape, &mut contenders.iter())?;
        let limited = start(&limit, &mut contenders.iter().filter(|c| c.prepares()))?;
        let bench = Bench { pgbench, postmaster: cluster.postmaster(), usual, limited };
        let warm = Load { workload: Workload::Select, mode: Mode::Simple, clients: POOL_SIZE };
        for running in bench.usual.iter().chain(&bench.limited) {
            bench.pgbench.run(running.port, &warm, Until::Transactions(100))?;
        }
        Ok(bench)
    }

    /// Measures one load with every contender.
    fn all_at(&self, round: u32, load: &Load, seconds: u32, rows: &mut Vec<Row>) {
        let contenders = match load.workload {
            Workload::Statements => &self.limited,
            Workload::Select | Workload::Connect => &self.usual,
        };
        let fit = |running: &&Running| load.mode != Mode::Prepared || running.contender.prepares();
        let mut turn: Vec<&Running> = contenders.iter().filter(fit).collect();
        let first = round as usize % turn.len().max(1);
        turn.rotate_left(first);
        for running in turn {
            let contender = running.contender;
            let name = contender.name();
            let figures = self.measure(running, load, seconds).with_context(|| name.clone());
            match &figures {
                Ok(figures) => println!("{round} {load:?} {name}: {figures:?}"),
                Err(error) => println!("{round} {load:?} {name}: {error:#}"),
            }
            rows.push(Row { round, load: *load, contender, figures: figures.ok() });
        }
    }

    fn measure(&self, running: &Running, load: &Load, seconds: u32) -> Result<Figures> {
        let seconds = seconds + load.clients / CONNECTS_PER_SECOND;
        let run = || self.pgbench.run(running.port, load, Until::Seconds(seconds));
        measured(running, self.postmaster, run)
    }
}

/// Measures a run through `running`: its figures, and the CPU time of the contender and of
/// PostgreSQL.
pub(super) fn measured(
    running: &Running,
    postmaster: Option<u32>,
    run: impl FnOnce() -> Result<Outcome>,
) -> Result<Figures> {
    let proxy = || running.id().map(process::cpu_ns).transpose();
    let server = || postmaster.map(process::family_cpu_ns).transpose();
    let (proxy_before, server_before) = (proxy()?, server()?);
    let outcome = run()?;
    // The CPU time of a server process that has ended counts once PostgreSQL has waited for it.
    thread::sleep(REAPED);
    let (proxy_after, server_after) = (proxy()?, server()?);
    let each = |before: Option<u64>, after: Option<u64>| {
        let spent = after?.saturating_sub(before?);
        Some(spent as f64 / 1000.0 / outcome.transactions as f64)
    };
    Ok(Figures {
        tps: outcome.tps,
        latency_ms: outcome.latency_ms,
        cpu_us: each(proxy_before, proxy_after),
        server_cpu_us: each(server_before, server_after),
    })
}
