//! Times of statements: those of `SHOW STATEMENTS` beside those that `pgbench` writes into its log.
//!
//! `pgbench` measures from the moment when it begins a transaction to the moment when it has read
//! the reply. In between are its own work, the wait until Refrain reads the request, the wait until
//! `pgbench` is given a processor and reads the reply: nothing in a pooler sees these. So each case
//! is run directly as well: Refrain measures at its server what a client measures there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::bench::session::Session;
use crate::command;
use crate::postgres::{Cluster, Version};
use crate::provision;
use crate::proxy::{self, Refrain};
use crate::workspace;

use super::Plan;
use super::verdict::Verdict;

/// Servers of the pool: more than there are clients, so that none waits for one.
const POOL_SIZE: u32 = 100;
/// Times in microseconds that the statements sleep.
const SLEEPS_US: [u32; 6] = [0, 500, 1_000, 2_000, 5_000, 20_000];
/// The shortest sleep for which there is a bar on the difference to the log.
const LOG_FROM_US: u32 = 20_000;
/// The shortest sleep for which there is a bar on the difference to a client that is connected
/// directly.
const DIRECT_FROM_US: u32 = 500;
/// The greatest difference, as a part of that of `pgbench`.
const BAR: f64 = 0.05;
/// Time limit of the console's replies.
const PATIENCE: Duration = Duration::from_secs(30);

/// Quantiles of the times of a statement, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Times {
    p50: f64,
    p99: f64,
}

/// Compares the times of each case.
pub(super) fn run(plan: &Plan) -> Result<Verdict> {
    let program = plan.program()?;
    let cluster = Cluster::start(plan.version(), &[])?;
    let top = "admin_users = [\"postgres\"]\n";
    let config = proxy::over(&cluster, "transaction", POOL_SIZE);
    let refrain = Refrain::start_as(&program, &(top.to_owned() + &config))?;
    let pgbench = LoggedRuns::new(plan)?;
    let mut verdict = Verdict::default();
    println!("{:>8} {:>7}   {HEAD:>15}   {HEAD:>15}   {HEAD:>15}", "sleep", "clients");
    let heads = ["directly", "pgbench --log", "SHOW STATEMENTS"].map(|head| format!("{head:>15}"));
    println!("{:>16}   {}   shown/log, shown/directly", "", heads.join("   "));
    for clients in [1, plan.clients] {
        for sleep_us in SLEEPS_US {
            let name = format!("slept_{sleep_us}_us_{clients}_clients");
            let sleep = f64::from(sleep_us) / 1e6;
            let script = match sleep_us {
                0 => format!("SELECT 1 AS {name};\n"),
                _ => format!("SELECT pg_sleep({sleep}) AS {name};\n"),
            };
            let direct = pgbench.run(cluster.port(), clients, &script)?;
            let log = pgbench.run(refrain.port(), clients, &script)?;
            let shown = shown(&refrain, &name)?;
            let of = |other: Times| (shown.p50 / other.p50, shown.p99 / other.p99);
            let ((p50, p99), (p50_direct, p99_direct)) = (of(log), of(direct));
            println!(
                "{sleep_us:>5} us {clients:>7}   {}   {}   {}   p50 {p50:.2} {p50_direct:.2}   \
                 p99 {p99:.2} {p99_direct:.2}",
                direct.cell(),
                log.cell(),
                shown.cell(),
            );
            let case = format!("{clients} clients, {sleep_us} us");
            if sleep_us >= LOG_FROM_US {
                verdict.at_most(&format!("1 - shown/log, p99 of {case}"), f64::abs(1.0 - p99), BAR);
            }
            if sleep_us >= DIRECT_FROM_US {
                let what = format!("1 - shown/directly, p50 of {case}");
                verdict.at_most(&what, f64::abs(1.0 - p50_direct), BAR);
            }
        }
    }
    Ok(verdict)
}

/// The head of a column.
const HEAD: &str = "p50/us   p99/us";

impl Times {
    fn cell(self) -> String {
        format!("{:>6.0}   {:>6.0}", self.p50, self.p99)
    }
}

/// Runs of `pgbench` with a log.
struct LoggedRuns {
    program: PathBuf,
    dir: PathBuf,
    seconds: f64,
}

impl LoggedRuns {
    fn new(plan: &Plan) -> Result<LoggedRuns> {
        let program = provision::postgres(Version::V15)?.join("pgbench");
        let dir = workspace::target().join(format!("repro/latency-{}", std::process::id()));
        fs::create_dir_all(&dir)?;
        Ok(LoggedRuns { program, dir, seconds: plan.seconds })
    }

    /// Runs a script at a port, and returns the times that the log has.
    fn run(&self, port: u16, clients: u32, script: &str) -> Result<Times> {
        let (file, prefix) = (self.dir.join("script"), self.dir.join("log"));
        fs::write(&file, script)?;
        self.forget_logs()?;
        let mut pgbench = Command::new(&self.program);
        pgbench.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()]);
        pgbench.args(["-n", "-M", "prepared", "--log"]);
        pgbench.arg(format!("--log-prefix={}", prefix.display()));
        pgbench.args(["-c", &clients.to_string(), "-j", &clients.min(2).to_string()]);
        pgbench.args(["-T", &(self.seconds.ceil() as u64).max(1).to_string()]);
        command::output(pgbench.arg("-f").arg(&file).arg("postgres"))?;
        let mut times = Vec::new();
        for log in self.logs()? {
            times.extend(times_of(&fs::read_to_string(log)?)?);
        }
        ensure!(!times.is_empty(), "the log has no transaction");
        times.sort_unstable();
        let at = |part: f64| f64::from(times[(times.len() as f64 * part) as usize]);
        Ok(Times { p50: at(0.5), p99: at(0.99) })
    }

    fn logs(&self) -> Result<Vec<PathBuf>> {
        let is_log = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log."))
        };
        let all = fs::read_dir(&self.dir)?.map(|entry| Ok(entry?.path()));
        let all: Vec<PathBuf> = all.collect::<Result<_>>()?;
        Ok(all.into_iter().filter(is_log).collect())
    }

    fn forget_logs(&self) -> Result<()> {
        self.logs()?.iter().try_for_each(|log| Ok(fs::remove_file::<&Path>(log)?))
    }
}

impl Drop for LoggedRuns {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Reads the times of a log, in microseconds: the third word of each line.
fn times_of(log: &str) -> Result<Vec<u32>> {
    let time = |line: &str| -> Result<u32> {
        let word = line.split(' ').nth(2).with_context(|| format!("no time in {line:?}"))?;
        word.parse().with_context(|| format!("the time in {line:?}"))
    };
    log.lines().map(time).collect()
}

/// Returns the times that the console shows of the statement with a name in its text.
fn shown(refrain: &Refrain, name: &str) -> Result<Times> {
    let mut console = Session::open(refrain.port(), "refrain", PATIENCE)?;
    let answer = console
        .query(&format!("SELECT p50_us, p99_us FROM statements WHERE text LIKE '% {name}%'"))?;
    ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
    let [row] = &answer.rows[..] else { anyhow::bail!("{} statements", answer.rows.len()) };
    let value = |at: usize| -> Result<f64> {
        let value = row.get(at).context("a column is missing")?;
        Ok(String::from_utf8_lossy(value).parse()?)
    };
    Ok(Times { p50: value(0)?, p99: value(1)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_third_words() {
        let log = "0 1 4912 0 1764378120 123456\n1 1 77 0 1764378120 123460\n";
        assert_eq!(times_of(log).unwrap(), [4912, 77]);
        assert!(times_of("0 1\n").is_err());
    }
}
