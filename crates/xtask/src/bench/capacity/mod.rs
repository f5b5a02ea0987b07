//! The benchmark of the proxy's own capacity: how much more two workers carry than one.
//!
//! PostgreSQL would use most of the machine. So a [`Stub`] takes its place, which answers at once,
//! and a [`Load`] that of pgbench, which needs more CPU time than the proxy. The proxy has one core
//! for each worker, and the stub and the load share the machine's other cores. The proxy is the
//! bottleneck if its cores are busy: the table says how busy they were.

mod frames;
mod sockets;
mod stub;
mod load;

pub(super) use self::frames::Incoming;
pub use self::load::{Load, Size};
pub(super) use self::sockets::Sockets;
pub use self::stub::{Stub, VALUE};

use std::env;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, builder::RangedU64ValueParser, value_parser};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::command;
use crate::workspace;

use super::facts;
use super::launch::{self, Contender, Driver, Running};
use super::process;
use super::report::{CPU, Figures, SERVER_CPU, TPS, table};
use super::turns::Turns;

/// The least ratio of what two workers carry to what one does.
const BAR_TWO: f64 = 1.6;
/// Numbers of workers.
const WORKERS: [u32; 2] = [1, 2];
/// Servers of the pool.
const POOL_SIZE: u32 = 20;

/// How often, how long and with what load the benchmark measures.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Number of rounds, after a first one that does not count; the report has medians.
    #[arg(long, default_value_t = 3, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 4, value_parser = value_parser!(u32).range(1..))]
    seconds: u32,
    /// Seconds of load before each measurement. Clients move to a second worker in this time.
    #[arg(long, default_value_t = 5)]
    warmup: u32,
    /// Number of clients.
    #[arg(long, default_value_t = 128, value_parser = at_least_one())]
    clients: usize,
    /// Number of segments that each client has under way. With one, the stub and the clients are
    /// about as busy as two workers, and the proxy waits for them.
    #[arg(long, default_value_t = 2, value_parser = at_least_one().range(..=64))]
    depth: usize,
    /// The proxy's driver: uring or epoll.
    #[arg(long, default_value = "uring", value_parser = Driver::parse)]
    driver: Driver,
}

fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// Runs this program's command line again, with optimised code.
pub(super) fn run_optimised() -> Result<()> {
    let mut again = Command::new(workspace::built("xtask")?);
    command::run(again.args(env::args_os().skip(1)))
}

impl Plan {
    /// Runs the benchmark and returns the table in Markdown.
    pub(super) fn run(self) -> Result<String> {
        launch::prepare(&[Contender::refrain(self.driver, 1)])?;
        let machine = facts::machine();
        let own = sched_getaffinity(None)?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| own.is_set(*core));
        let of_proxy: Vec<usize> = cores.by_ref().take(2).collect();
        let others: Vec<usize> = cores.collect();
        ensure!(!others.is_empty(), "this needs two cores for the proxy and at least one more");
        let mut set = CpuSet::new();
        others.iter().for_each(|core| set.set(*core));
        // The threads that this one starts from now on inherit its cores.
        sched_setaffinity(None, &set)?;
        let threads = others.len();
        let stub = Stub::start(threads)?;
        let turns = Turns::taken(self.rounds, &WORKERS, |workers| {
            let cores = of_proxy.get(..*workers as usize).context("too few cores")?;
            self.measure(&stub, threads, *workers, cores)
        })?;
        Ok(format!("{machine}{}", self.report(&turns)))
    }

    /// Measures a proxy of its own, after a warm-up.
    fn measure(
        self,
        stub: &Stub,
        threads: usize,
        workers: u32,
        cores: &[usize],
    ) -> Result<Figures> {
        let running = Running::start_on(cores, self.driver, workers, stub.port(), POOL_SIZE)?;
        let size = Size { threads, clients: self.clients, depth: self.depth };
        let load = Load::start(running.port, size)?;
        thread::sleep(Duration::from_secs(self.warmup.into()));
        let proxy = running.id().context("no process")?;
        let state = || -> Result<_> {
            let times = (process::cpu_ns(proxy)?, process::cpu_ns(std::process::id())?);
            Ok((Instant::now(), load.answered(), times))
        };
        let before = state()?;
        thread::sleep(Duration::from_secs(self.seconds.into()));
        let after = state()?;
        load.end()?;
        let transactions = (after.1 - before.1) as f64;
        let tps = transactions / (after.0 - before.0).as_secs_f64();
        let each = |after: u64, before: u64| Some((after - before) as f64 / 1000.0 / transactions);
        Ok(Figures {
            tps,
            latency_ms: (self.clients * self.depth) as f64 / tps * 1000.0,
            cpu_us: each(after.2.0, before.2.0),
            server_cpu_us: each(after.2.1, before.2.1),
        })
    }

    fn report(self, turns: &Turns<u32>) -> String {
        let Plan { rounds, seconds, warmup, clients, depth, driver } = self;
        let mut text = format!(
            "\nA stub server that answers at once, {clients} clients, under way by each: {depth}, \
             pool of {POOL_SIZE} servers, {}; the proxy has one core for each worker, \
             the stub and the clients have the others. {rounds} rounds of {seconds} s each in \
             turns, after {warmup} s of warm-up; medians. CPU is microseconds per transaction. \
             \"Busy\" is the CPU time of the proxy as a share of its cores'.\n",
            driver.name()
        );
        let lines = WORKERS.map(|workers| {
            let figure = |pick| turns.median(&workers, pick);
            let number =
                |value: Option<f64>, digits: usize| value.map(|value| format!("{value:.digits$}"));
            let busy = figure(|figures| Some(figures.tps * figures.cpu_us? / 1e4));
            let cells = vec![
                number(figure(TPS), 0),
                number(figure(CPU), 2),
                number(figure(SERVER_CPU), 2),
                busy.map(|busy| format!("{:.0} %", busy / f64::from(workers))),
                number(turns.ratio(&workers, &1, TPS), 2),
            ];
            (workers.to_string(), cells)
        });
        let heads =
            ["TPS", "CPU of Refrain", "CPU of stub and clients", "busy", "TPS by that of one"];
        let title =
            format!("Capacity of the proxy (bar: two workers carry ≥ {BAR_TWO} times one's load)");
        table(&mut text, &title, "workers", &heads.map(str::to_owned), lines.into_iter());
        text
    }
}
