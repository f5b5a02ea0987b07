//! The benchmark of autoprepare: what it saves if texts differ only in their literals, and what it
//! costs if no text comes twice.
//!
//! PostgreSQL alone, the proxy without autoprepare and the proxy with autoprepare take turns in
//! every round, and only ratios within a round count. Each part starts its own proxies, so that no
//! part finds prepared statements of another.

mod workload;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::postgres::{Cluster, Version};

use super::facts::without_pgbouncer;
use super::launch::{self, Contender, Driver, Running, Shape};
use super::pgbench::{self, Load, Mode, Outcome, Pgbench, Until};
use super::report::{CPU, Figures, SERVER_CPU, TPS, table};
use super::rounds::{POOL_SIZE, SCALE, measured};
use super::session::Session;
use super::turns::Turns;

use self::workload::Workload;

/// Number of clients in the parts about throughput.
const CLIENTS: u32 = 10;
/// Number of clients in the part about the server's CPU time.
const CLIENTS_FEW: u32 = 4;
/// Transactions of each client in the run that counts how many of them ran prepared.
const TRANSACTIONS_COUNTED: u32 = 250;
/// The least share of the TPS of prepared statements that simple queries with autoprepare reach.
const BAR_PREPARED: f64 = 0.95;
/// The share of the TPS of simple queries without a proxy that simple queries with autoprepare
/// exceed.
const BAR_DIRECT: f64 = 1.0;
/// The most TPS that autoprepare may cost if no text comes twice, as a share.
const BAR_NOVEL: f64 = 0.03;
/// Factor on the number of rounds of that part: 3 % is less than a machine's own variation.
const NOVEL_ROUNDS: u32 = 3;
/// PostgreSQL's background work is off: its CPU time would count for the way whose turn it is.
const SETTINGS: [(&str, &str); 5] = [
    ("shared_buffers", "512MB"),
    ("autovacuum", "off"),
    ("bgwriter_lru_maxpages", "0"),
    ("checkpoint_timeout", "1d"),
    ("max_wal_size", "16GB"),
];

/// How often and how long the benchmark measures.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Number of rounds, after a first one that does not count; the report has medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(3..))]
    rounds: u32,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
}

/// How queries reach PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Direct,
    /// Through the proxy with its defaults.
    Off,
    /// Through the proxy with autoprepare.
    On,
}

/// The ways through the proxy.
const PROXIES: [Way; 2] = [Way::Off, Way::On];

/// The lines of the first table: name, way and mode.
const LINES: [(&str, Way, Mode); 7] = [
    ("direct, simple", Way::Direct, Mode::Simple),
    ("direct, extended", Way::Direct, Mode::Extended),
    ("direct, prepared", Way::Direct, Mode::Prepared),
    ("Refrain, simple", Way::Off, Mode::Simple),
    ("Refrain, extended", Way::Off, Mode::Extended),
    ("Refrain, prepared", Way::Off, Mode::Prepared),
    ("Refrain, simple, `autoprepare = \"on\"`", Way::On, Mode::Simple),
];

impl Plan {
    /// Runs the benchmark and returns the tables in Markdown.
    pub(super) fn run(self) -> Result<String> {
        launch::prepare(&[Contender::refrain(Driver::Uring, 1)])?;
        let cluster = Cluster::start(Version::V15, &SETTINGS)?;
        let pgbench = Pgbench::filled(&cluster, SCALE)?;
        cluster.psql(pgbench::DATABASE, &workload::tables())?;
        let Plan { rounds, seconds } = self;
        let mut text = format!(
            "{}\npgbench, scale {SCALE}, pool of {POOL_SIZE} servers, one worker, io_uring; \
             {rounds} rounds of {seconds} s each in turns, after one that does not count. Figures \
             are medians; ratios are medians of the ratios within a round. CPU is microseconds per \
             transaction, connecting included: of the proxy's process, and of all processes of \
             PostgreSQL. \"Run prepared\" is the share of {TRANSACTIONS_COUNTED} transactions of \
             each client after the last round.\n",
            without_pgbouncer(&cluster)
        );
        let start = || Bench::start(self, &cluster, &pgbench);
        start()?.ways(&mut text)?;
        start()?.workloads(&mut text)?;
        start()?.novel(&mut text)?;
        Ok(text)
    }
}

/// The cluster, pgbench, and the proxies that the benchmark compares.
struct Bench<'a> {
    plan: Plan,
    cluster: &'a Cluster,
    pgbench: &'a Pgbench,
    direct: Running,
    off: Running,
    on: Running,
}

impl<'a> Bench<'a> {
    fn start(plan: Plan, cluster: &'a Cluster, pgbench: &'a Pgbench) -> Result<Bench<'a>> {
        let off = Shape { pool_size: POOL_SIZE, more: "", top: "" };
        let on = Shape {
            more: "autoprepare = \"on\"",
            // The user who reads the counters.
            top: "admin_users = [\"postgres\"]",
            ..off
        };
        let refrain = Contender::refrain(Driver::Uring, 1);
        Ok(Bench {
            plan,
            cluster,
            pgbench,
            direct: Running::start(Contender::Direct, cluster, &off)?,
            off: Running::start(refrain, cluster, &off)?,
            on: Running::start(refrain, cluster, &on)?,
        })
    }

    /// Measures one lookup by every protocol and every way.
    fn ways(&self, text: &mut String) -> Result<()> {
        let load = |mode| Load { workload: pgbench::Workload::Select, mode, clients: CLIENTS };
        let variants = LINES.map(|(_, way, mode)| (way, mode));
        let turns = Turns::taken(self.plan.rounds, &variants, |(way, mode)| {
            let run = |port, until| self.pgbench.run(port, &load(*mode), until);
            self.measured(*way, run)
        })?;
        let run = |port, until| self.pgbench.run(port, &load(Mode::Simple), until);
        let prepared = self.prepared(run)?;
        let lines = LINES.map(|(name, way, mode)| {
            let of = |pick, digits| cell(turns.median(&(way, mode), pick), digits);
            (name.to_owned(), vec![of(TPS, 0), of(CPU, 1), of(SERVER_CPU, 1)])
        });
        let title = format!("A row by its key (`pgbench -S`), {CLIENTS} clients");
        let heads = ["TPS", "CPU of Refrain", "CPU of PostgreSQL"].map(str::to_owned);
        table(text, &title, "", &heads, lines.into_iter());
        let _ = writeln!(text, "\nRun prepared, of simple queries with autoprepare: {prepared}.");
        let on = (Way::On, Mode::Simple);
        let ratio = |to| turns.ratio(&on, &to, TPS);
        let ratios = [
            ("prepared through Refrain", ratio((Way::Off, Mode::Prepared)), BAR_PREPARED, "≥"),
            ("simple direct", ratio((Way::Direct, Mode::Simple)), BAR_DIRECT, ">"),
        ];
        let lines = ratios.map(|(name, ratio, bar, sign)| {
            (name.to_owned(), vec![cell(ratio, 2), Some(format!("{sign} {bar}"))])
        });
        let heads = ["measured", "bar"].map(str::to_owned);
        table(
            text,
            "TPS of simple queries with autoprepare, by those of",
            "",
            &heads,
            lines.into_iter(),
        );
        Ok(())
    }

    /// Measures PostgreSQL's CPU time for statements of several kinds, without and with
    /// autoprepare.
    fn workloads(&self, text: &mut String) -> Result<()> {
        let mut lines = Vec::new();
        for (number, workload) in workload::workloads().into_iter().enumerate() {
            let Workload { name, bar, script, before } = workload;
            let script = self.pgbench.keep_script(&format!("workload-{number}.sql"), &script)?;
            let run = |port, until| self.run_script(&script, CLIENTS_FEW, port, until);
            let turns = Turns::taken(self.plan.rounds, &PROXIES, |way| {
                before.map(|sql| self.cluster.psql(pgbench::DATABASE, sql)).transpose()?;
                self.measured(*way, run)
            })?;
            let of = |way, pick| cell(turns.median(&way, pick), 1);
            let cells = vec![
                of(Way::Off, SERVER_CPU),
                of(Way::On, SERVER_CPU),
                cell(turns.ratio(&Way::Off, &Way::On, SERVER_CPU), 2),
                Some(format!("≥ {bar}")),
                of(Way::Off, CPU),
                of(Way::On, CPU),
                Some(self.prepared(run)?),
            ];
            lines.push((name.to_owned(), cells));
        }
        let title = format!(
            "Simple queries through Refrain, {CLIENTS_FEW} clients, with autoprepare off and on: CPU of \
             PostgreSQL, and that of Refrain"
        );
        let heads =
            ["PostgreSQL off", "on", "off / on", "bar", "Refrain off", "on", "run prepared"];
        table(text, &title, "", &heads.map(str::to_owned), lines.into_iter());
        Ok(())
    }

    /// Measures what autoprepare costs if no text comes twice.
    fn novel(&self, text: &mut String) -> Result<()> {
        let script = self.pgbench.keep_script("novel.sql", &workload::novel())?;
        let run = |port, until| self.run_script(&script, CLIENTS, port, until);
        let rounds = self.plan.rounds * NOVEL_ROUNDS;
        let turns = Turns::taken(rounds, &PROXIES, |way| self.measured(*way, run))?;
        let lines = [
            ("TPS", TPS, 0, Some(format!("≥ {}", 1.0 - BAR_NOVEL))),
            ("CPU of Refrain", CPU, 2, None),
            ("CPU of PostgreSQL", SERVER_CPU, 1, None),
        ];
        let lines = lines.map(|(name, pick, digits, bar)| {
            let of = |way| cell(turns.median(&way, pick), digits);
            let ratio = cell(turns.ratio(&Way::On, &Way::Off, pick), 3);
            (name.to_owned(), vec![of(Way::Off), of(Way::On), ratio, bar])
        });
        let prepared = self.prepared(run)?;
        let title = format!(
            "No normalized query twice (a row by its key, with a new name for its column each \
             time), {CLIENTS} clients, \
             {rounds} rounds, run prepared: {prepared}"
        );
        let heads = ["off", "on", "on / off", "bar"].map(str::to_owned);
        table(text, &title, "", &heads, lines.into_iter());
        Ok(())
    }

    /// Measures `run`, which gets a port and a duration, by one way.
    fn measured(&self, way: Way, run: impl Fn(u16, Until) -> Result<Outcome>) -> Result<Figures> {
        let running = match way {
            Way::Direct => &self.direct,
            Way::Off => &self.off,
            Way::On => &self.on,
        };
        let until = Until::Seconds(self.plan.seconds);
        measured(running, self.cluster.postmaster(), || run(running.port, until))
    }

    fn run_script(&self, script: &Path, clients: u32, port: u16, until: Until) -> Result<Outcome> {
        self.pgbench.run_script(port, script, clients, until)
    }

    /// Returns the share of the transactions of `run` that autoprepare runs prepared, in percent.
    fn prepared(&self, run: impl Fn(u16, Until) -> Result<Outcome>) -> Result<String> {
        let before = self.hits()?;
        let outcome = run(self.on.port, Until::Transactions(TRANSACTIONS_COUNTED))?;
        let share = (self.hits()? - before) as f64 / outcome.transactions as f64;
        Ok(format!("{:.0} %", share * 100.0))
    }

    /// Returns the number of simple queries that have run prepared so far.
    fn hits(&self) -> Result<u64> {
        let mut console = Session::open(self.on.port, "refrain", Duration::from_secs(30))?;
        let answer = console.query("SHOW COUNTERS")?;
        ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
        hits_in(&answer.rows).context("auto_hits is no number")
    }
}

/// Returns the sum of `auto_hits` over all pools. The last column of a row is its value.
fn hits_in(counters: &[Vec<Vec<u8>>]) -> Option<u64> {
    let named = |row: &&Vec<Vec<u8>>| row.iter().any(|value| value == b"auto_hits");
    let value = |row: &Vec<Vec<u8>>| std::str::from_utf8(row.last()?).ok()?.parse::<u64>().ok();
    counters.iter().filter(named).map(value).sum()
}

fn cell(value: Option<f64>, digits: usize) -> Option<String> {
    Some(format!("{:.digits$}", value?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_those_of_all_pools() {
        let row = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let rows = [
            row(&["bench", "postgres", "auto_hits", "40"]),
            row(&["bench", "postgres", "auto_refusals", "7"]),
            row(&["other", "postgres", "auto_hits", "2"]),
        ];
        assert_eq!(hits_in(&rows), Some(42));
        assert_eq!(hits_in(&[]), Some(0));
        assert_eq!(hits_in(&[row(&["bench", "postgres", "auto_hits", "many"])]), None);
    }
}
