//! Times of statements: those of `SHOW STATEMENTS` beside those that `pgbench` writes into its log.
//!
//! `pgbench` measures from the moment when it begins a transaction to the moment when it has read
//! the reply. In between are its own work, the wait until Refrain reads the request, the wait until
//! `pgbench` is given a processor and reads the reply: nothing in a pooler sees these. So each case
//! is run directly as well: Refrain measures at its server what a client measures there. A client
//! beside PostgreSQL's own log (`log_min_duration_statement`) shows how much of the rest is the
//! client's own.

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

/// A case: a statement that sleeps, and clients that run it.
struct SleepingCase {
    name: String,
    sleep_us: u32,
    clients: u32,
    script: String,
}

/// The times of a case.
struct SleepTimes {
    /// The times of a client that is connected directly.
    direct: Times,
    /// The times of a client of Refrain.
    log: Times,
    /// The times that Refrain shows.
    shown: Times,
    /// The times of a client that is connected directly while PostgreSQL logs its own, and these:
    /// they differ by the client's way and its waits for a processor, with nothing in between.
    beside_server: Times,
    server: Times,
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
    print_heads();
    for clients in [1, plan.clients] {
        for sleep_us in SLEEPS_US {
            let case = SleepingCase::new(sleep_us, clients);
            let direct = pgbench.run(cluster.port(), &case, &[])?;
            let log = pgbench.run(refrain.port(), &case, &[])?;
            let shown = shown(&refrain, &case.name)?;
            let logs = [("PGOPTIONS", "-c log_min_duration_statement=0")];
            let beside_server = pgbench.run(cluster.port(), &case, &logs)?;
            let server = Times::of(durations(&cluster.log(), &case.name)?)?;
            let measured = SleepTimes { direct, log, shown, beside_server, server };
            case.print(&measured);
            case.judge(&measured, &mut verdict);
        }
    }
    Ok(verdict)
}

/// Prints what stands in each column.
fn print_heads() {
    let heads =
        ["directly", "pgbench --log", "SHOW STATEMENTS", "directly, logged", "PostgreSQL's log"];
    let line = |words: [&str; 5]| words.map(|word| format!("{word:>17}")).join("");
    println!("{:>16}{}", "", line(heads));
    println!("{:>16}{}   shown/log   shown/directly   PostgreSQL's/directly", "", line([HEAD; 5]));
}

/// The head of a column.
const HEAD: &str = "p50/us   p99/us";

impl SleepingCase {
    fn new(sleep_us: u32, clients: u32) -> Self {
        let name = format!("slept_{sleep_us}_us_{clients}_clients");
        let sleep = f64::from(sleep_us) / 1e6;
        let script = match sleep_us {
            0 => format!("SELECT 1 AS {name};\n"),
            _ => format!("SELECT pg_sleep({sleep}) AS {name};\n"),
        };
        Self { name, sleep_us, clients, script }
    }

    fn print(&self, measured: &SleepTimes) {
        let SleepTimes { direct, log, shown, beside_server, server } = measured;
        let cells = [direct, log, shown, beside_server, server].map(|times| times.cell());
        let parts = [(shown, log), (shown, direct), (server, beside_server)]
            .map(|(one, other)| format!("{:.2} {:.2}", one.p50 / other.p50, one.p99 / other.p99));
        println!(
            "{:>6} us, {:>4} {}   {}",
            self.sleep_us,
            self.clients,
            cells.join("  "),
            parts.join("   ")
        );
    }

    fn judge(&self, measured: &SleepTimes, verdict: &mut Verdict) {
        let SleepTimes { direct, log, shown, beside_server, server } = measured;
        let off = |one: f64, other: f64| f64::abs(1.0 - one / other);
        let case = format!("{} clients, {} us", self.clients, self.sleep_us);
        if self.sleep_us >= LOG_FROM_US {
            verdict.at_most(&format!("1 - shown/log, p99 of {case}"), off(shown.p99, log.p99), BAR);
        }
        if self.sleep_us >= DIRECT_FROM_US {
            let what = format!("PostgreSQL's/directly - shown/log, p99 of {case}");
            let farther = server.p99 / beside_server.p99 - shown.p99 / log.p99;
            verdict.at_most(&what, farther, BAR);
            let what = format!("1 - shown/directly, p50 of {case}");
            verdict.at_most(&what, off(shown.p50, direct.p50), BAR);
        }
    }
}

impl Times {
    /// Returns the quantiles of times in microseconds.
    fn of(mut times: Vec<f64>) -> Result<Self> {
        ensure!(!times.is_empty(), "there are no times");
        times.sort_by(f64::total_cmp);
        let at = |part: f64| times[(times.len() as f64 * part) as usize];
        Ok(Self { p50: at(0.5), p99: at(0.99) })
    }

    fn cell(&self) -> String {
        format!("{:>7.0} {:>7.0}", self.p50, self.p99)
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
    fn run(&self, port: u16, case: &SleepingCase, environment: &[(&str, &str)]) -> Result<Times> {
        let (file, prefix) = (self.dir.join("script"), self.dir.join("log"));
        let clients = case.clients;
        fs::write(&file, &case.script)?;
        self.forget_logs()?;
        let mut pgbench = Command::new(&self.program);
        pgbench.envs(environment.iter().copied());
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
        Times::of(times).context("the log has no transaction")
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
fn times_of(log: &str) -> Result<Vec<f64>> {
    let time = |line: &str| -> Result<f64> {
        let word = line.split(' ').nth(2).with_context(|| format!("no time in {line:?}"))?;
        word.parse().with_context(|| format!("the time in {line:?}"))
    };
    log.lines().map(time).collect()
}

/// Reads the times of the executions of a statement in PostgreSQL's log, in microseconds.
fn durations(log: &str, name: &str) -> Result<Vec<f64>> {
    let is_it = |line: &&str| line.trim_end_matches(';').ends_with(&format!(" AS {name}"));
    let lines = log.lines().filter(|line| line.contains(" execute ")).filter(is_it);
    let time = |line: &str| -> Result<f64> {
        let rest =
            line.split("duration: ").nth(1).with_context(|| format!("no time in {line:?}"))?;
        let ms: f64 = rest.split(' ').next().unwrap_or_default().parse()?;
        Ok(ms * 1e3)
    };
    lines.map(time).collect()
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
        assert_eq!(times_of(log).unwrap(), [4912.0, 77.0]);
        assert!(times_of("0 1\n").is_err());
    }

    #[test]
    fn durations_are_those_of_executions() {
        let log = "LOG:  duration: 0.020 ms  bind P0_0: SELECT 1 AS a;\n\
                   LOG:  duration: 5.125 ms  execute P0_0: SELECT 1 AS a;\n\
                   LOG:  duration: 7.125 ms  execute P0_0: SELECT 1 AS b;\n";
        assert_eq!(durations(log, "a").unwrap(), [5125.0]);
    }
}
