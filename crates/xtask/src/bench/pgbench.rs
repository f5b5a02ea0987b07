//! Runs of `pgbench`, and its reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::command;
use crate::postgres::{Cluster, Version};
use crate::provision;

/// The database that `pgbench` fills.
pub(super) const DATABASE: &str = "bench";
/// Number of distinct statements of [`Workload::Statements`].
pub(super) const STATEMENTS: usize = 500;
/// Number of statements in one script file. `pgbench` accepts at most 128 files.
const STATEMENTS_PER_FILE: usize = 5;

/// The protocol of the queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Mode {
    /// One Query message each.
    Simple,
    /// Parse, Bind, Describe, Execute, Sync each.
    Extended,
    /// Parse once, then Bind, Describe, Execute, Sync.
    Prepared,
}

impl Mode {
    /// Returns the name for `pgbench -M`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::Simple => "simple",
            Mode::Extended => "extended",
            Mode::Prepared => "prepared",
        }
    }
}

/// The queries of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Workload {
    /// Lookups of one row by its key.
    Select,
    /// Lookups in hundreds of texts, more than a server may keep.
    Statements,
    /// Lookups, each on a new connection.
    Connect,
}

/// The load of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) workload: Workload,
    pub(super) mode: Mode,
    pub(super) clients: u32,
}

/// The length of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    Seconds(u32),
    /// Number of transactions of each client.
    Transactions(u32),
}

/// The figures that `pgbench` reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcome {
    pub(super) transactions: u64,
    pub(super) tps: f64,
    pub(super) latency_ms: f64,
}

/// The program, and the folder of its scripts.
pub(super) struct Pgbench {
    program: PathBuf,
    scripts: PathBuf,
}

impl Pgbench {
    /// Fills `cluster` with pgbench's own tables.
    pub(super) fn filled(cluster: &Cluster, scale: u32) -> Result<Pgbench> {
        let program = provision::postgres(Version::V15)?.join("pgbench");
        let name = format!("refrain-bench-scripts-{}", std::process::id());
        let scripts = std::env::temp_dir().join(name);
        fs::create_dir_all(&scripts)?;
        let pgbench = Pgbench { program, scripts };
        for file in 0..STATEMENTS / STATEMENTS_PER_FILE {
            fs::write(pgbench.script(file), script(file, scale))?;
        }
        cluster.psql("postgres", &format!("CREATE DATABASE {DATABASE}"))?;
        let mut fill = pgbench.command(cluster.port());
        fill.args(["-i", "-q", "-s", &scale.to_string(), DATABASE]);
        command::output(&mut fill)?;
        cluster.psql(DATABASE, "VACUUM ANALYZE")?;
        cluster.psql(DATABASE, "CHECKPOINT")?;
        Ok(pgbench)
    }

    fn script(&self, file: usize) -> PathBuf {
        self.scripts.join(format!("{file}.sql"))
    }

    fn command(&self, port: u16) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()]);
        command
    }

    /// Runs `load` against the server at `port`. A transaction is one statement.
    pub(super) fn run(&self, port: u16, load: &Load, until: Until) -> Result<Outcome> {
        let mut command = self.timed(port, load.mode, load.clients, until);
        let mut statements = 1;
        match load.workload {
            Workload::Select => drop(command.arg("-S")),
            Workload::Connect => drop(command.args(["-S", "-C"])),
            Workload::Statements => {
                statements = STATEMENTS_PER_FILE;
                for file in 0..STATEMENTS / STATEMENTS_PER_FILE {
                    command.arg("-f").arg(self.script(file));
                }
            }
        }
        let text = command::output(command.arg(DATABASE))?;
        let mut outcome = Outcome::parse(&text)?;
        outcome.transactions *= statements as u64;
        outcome.tps *= statements as f64;
        outcome.latency_ms /= statements as f64;
        Ok(outcome)
    }

    /// Writes a script of one statement for [`Pgbench::run_script`], and returns its path.
    pub(super) fn keep_script(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.scripts.join(name);
        fs::write(&file, text)?;
        Ok(file)
    }

    /// Runs a script of one statement, sent as one Query message, against the server at `port`.
    pub(super) fn run_script(
        &self,
        port: u16,
        script: &Path,
        clients: u32,
        until: Until,
    ) -> Result<Outcome> {
        self.run_script_in(port, script, Mode::Simple, clients, until)
    }

    /// Runs a script of one statement in any mode against the server at `port`.
    pub(super) fn run_script_in(
        &self,
        port: u16,
        script: &Path,
        mode: Mode,
        clients: u32,
        until: Until,
    ) -> Result<Outcome> {
        let mut command = self.timed(port, mode, clients, until);
        Outcome::parse(&command::output(command.arg("-f").arg(script).arg(DATABASE))?)
    }

    /// Returns the command without its script.
    fn timed(&self, port: u16, mode: Mode, clients: u32, until: Until) -> Command {
        let mut command = self.command(port);
        command.args(["-n", "-M", mode.name()]);
        command.args(["-c", &clients.to_string(), "-j", &clients.min(2).to_string()]);
        match until {
            Until::Seconds(seconds) => command.args(["-T", &seconds.to_string()]),
            Until::Transactions(count) => command.args(["-t", &count.to_string()]),
        };
        command
    }
}

impl Drop for Pgbench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scripts);
    }
}

/// Returns a script whose statements differ in a comment, so that a server prepares each of them.
fn script(file: usize, scale: u32) -> String {
    let first = file * STATEMENTS_PER_FILE;
    let rows = scale * 100_000;
    let mut text = format!("\\set aid random(1, {rows})\n");
    for number in first..first + STATEMENTS_PER_FILE {
        let line =
            format!("SELECT abalance /* {number} */ FROM pgbench_accounts WHERE aid = :aid;\n");
        text.push_str(&line);
    }
    text
}

impl Outcome {
    fn parse(text: &str) -> Result<Outcome> {
        let after = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
        let number = |start: &str| -> Result<f64> {
            let rest = after(start).with_context(|| format!("no `{start}` in:\n{text}"))?;
            let word = rest.trim().split([' ', '/']).next().unwrap_or("");
            word.parse().with_context(|| format!("`{start}` in:\n{text}"))
        };
        let failed = number("number of failed transactions:")?;
        ensure!(failed == 0.0, "{failed} transactions failed");
        let transactions = number("number of transactions actually processed:")?;
        ensure!(transactions > 0.0, "there was no time for a transaction");
        let latency_ms = number("latency average =")?;
        Ok(Outcome { transactions: transactions as u64, tps: number("tps =")?, latency_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read() {
        let text = "number of transactions actually processed: 25024/30000\n\
                    number of failed transactions: 0 (0.000%)\n\
                    latency average = 0.799 ms\n\
                    initial connection time = 9.0 ms\n\
                    tps = 20030.5 (without initial connection time)\n";
        let outcome = Outcome { transactions: 25024, tps: 20030.5, latency_ms: 0.799 };
        assert_eq!(Outcome::parse(text).unwrap(), outcome);
        assert!(Outcome::parse(&text.replace(": 0 (", ": 3 (")).is_err());
    }
}
