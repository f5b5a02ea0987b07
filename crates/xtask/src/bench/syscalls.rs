//! The benchmark of system calls: `strace` counts those of the proxy.
//!
//! Each count is the difference between two runs, the second with twice the transactions, so that
//! starting and connecting are not in it. `strace` slows the proxy down many times, and so changes
//! how much the proxy does in one turn of its loop: the figures for one client are exact, those for
//! many clients are not.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::command;
use crate::postgres::{Cluster, Version};
use crate::provision;

use super::launch::{self, Contender, Driver, Running, Shape};
use super::pgbench::{Load, Mode, Pgbench, Until, Workload};
use super::report::table;

/// Transactions of each client in the shorter run with one client.
const TRANSACTIONS_ALONE: u32 = 1_000;
/// Transactions of each client in the shorter run with many clients.
const TRANSACTIONS_MANY: u32 = 1_000;
/// Number of clients of that run.
const CLIENTS_MANY: u32 = 64;
/// Time in which `strace` attaches to all threads.
const ATTACH: Duration = Duration::from_millis(500);

/// Names of system calls that send.
const SENDS: &[&str] = &["sendto", "sendmsg", "sendmmsg", "write", "writev"];
/// Names of system calls that receive.
const RECEIVES: &[&str] = &["recvfrom", "recvmsg", "read", "readv"];
/// Names of system calls that wait.
const WAITS: &[&str] = &["io_uring_enter", "epoll_wait", "epoll_pwait", "epoll_pwait2"];

/// The number of calls by the name of the system call.
type Calls = BTreeMap<String, u64>;

/// Runs the benchmark and returns the tables in Markdown.
pub(super) fn run() -> Result<String> {
    provision::program("/usr/bin/strace", "strace")?;
    let contender = |driver, workers| Contender::refrain(driver, workers);
    let alone = [contender(Driver::Uring, 1), contender(Driver::Epoll, 1), Contender::Pgbouncer];
    let pairs = [contender(Driver::Uring, 2), contender(Driver::Epoll, 2)];
    launch::prepare(&[&alone[..], &pairs].concat())?;
    let cluster = Cluster::start(Version::V15, &[])?;
    let bench = Counting { pgbench: Pgbench::filled(&cluster, 1)?, cluster };
    let mut text = String::new();
    bench.alone(&mut text, &alone)?;
    bench.many(&mut text, &pairs)?;
    Ok(text)
}

struct Counting {
    pgbench: Pgbench,
    cluster: Cluster,
}

impl Counting {
    /// Appends the table of one client.
    fn alone(&self, text: &mut String, contenders: &[Contender]) -> Result<()> {
        let mut lines = Vec::new();
        for contender in contenders {
            let mode = if contender.prepares() { Mode::Prepared } else { Mode::Extended };
            let load = Load { workload: Workload::Select, mode, clients: 1 };
            let calls = self.calls(*contender, &load, TRANSACTIONS_ALONE, None)?;
            let each = |names: &[&str]| {
                let count: u64 = names.iter().filter_map(|name| calls.get(*name)).sum();
                Some(format!("{:.2}", count as f64 / f64::from(TRANSACTIONS_ALONE)))
            };
            let all: Vec<&str> = calls.keys().map(String::as_str).collect();
            let cells =
                vec![each(SENDS), each(RECEIVES), each(WAITS), each(&all), Some(list(&calls))];
            lines.push((format!("{} {}", contender.name(), mode.name()), cells));
        }
        let heads = ["sends", "receives", "waits", "all", "in 1000 transactions"];
        let heads = heads.map(str::to_owned);
        let title = "System calls of the proxy per transaction, one client";
        table(text, title, "", &heads, lines.into_iter());
        Ok(())
    }

    /// Appends the table of many clients and two workers.
    fn many(&self, text: &mut String, contenders: &[Contender]) -> Result<()> {
        let load = Load { workload: Workload::Select, mode: Mode::Prepared, clients: CLIENTS_MANY };
        let mut lines = Vec::new();
        for contender in contenders {
            let only = Some("futex,write");
            let calls = self.calls(*contender, &load, TRANSACTIONS_MANY, only)?;
            let thousands = f64::from(TRANSACTIONS_MANY * CLIENTS_MANY) / 1000.0;
            let cell = |name: &str| {
                let count = calls.get(name).copied().unwrap_or(0);
                Some(format!("{:.1}", count as f64 / thousands))
            };
            lines.push((contender.name(), vec![cell("futex"), cell("write")]));
        }
        let heads = ["futex", "write"].map(str::to_owned);
        let title = format!(
            "System calls that wake other threads per 1000 transactions, {CLIENTS_MANY} clients"
        );
        table(text, &title, "", &heads, lines.into_iter());
        Ok(())
    }

    /// Counts the system calls for `transactions` of each client.
    fn calls(
        &self,
        contender: Contender,
        load: &Load,
        transactions: u32,
        only: Option<&str>,
    ) -> Result<Calls> {
        let shape = Shape { pool_size: 20, more: "", top: "" };
        let running = Running::start(contender, &self.cluster, &shape)?;
        let mut runs = Vec::new();
        self.pgbench.run(running.port, load, Until::Transactions(transactions))?;
        for times in [1, 2] {
            let trace = Trace::start(running.id().context("no process")?, only)?;
            let until = Until::Transactions(transactions * times);
            self.pgbench.run(running.port, load, until)?;
            runs.push(trace.end()?);
        }
        let mut more = runs.pop().unwrap_or_default();
        for (name, count) in runs.pop().unwrap_or_default() {
            let both = more.entry(name).or_default();
            *both = both.saturating_sub(count);
        }
        more.retain(|_, count| *count > 0);
        Ok(more)
    }
}

/// Returns the most frequent calls in words.
fn list(calls: &Calls) -> String {
    let mut calls: Vec<_> = calls.iter().collect();
    calls.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let words = calls.iter().take(6).map(|(name, count)| {
        let each = **count * 1000 / u64::from(TRANSACTIONS_ALONE);
        format!("{name} {each}")
    });
    words.collect::<Vec<_>>().join(", ")
}

/// A running `strace`.
struct Trace {
    child: Child,
    file: PathBuf,
}

impl Trace {
    fn start(process: u32, only: Option<&str>) -> Result<Trace> {
        let name = format!("refrain-strace-{}-{process}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let mut strace = Command::new("strace");
        strace.args(["-c", "-f", "-q", "-p", &process.to_string(), "-o"]).arg(&file);
        if let Some(only) = only {
            strace.arg(format!("-etrace={only}"));
        }
        let child = strace.stdin(Stdio::null()).stderr(Stdio::null()).spawn().context("strace")?;
        thread::sleep(ATTACH);
        Ok(Trace { child, file })
    }

    fn end(mut self) -> Result<Calls> {
        command::run(Command::new("kill").args(["-INT", &self.child.id().to_string()]))?;
        self.child.wait()?;
        let text = fs::read_to_string(&self.file)?;
        fs::remove_file(&self.file)?;
        Ok(counts(&text))
    }
}

/// Reads the table of `strace -c`: share, seconds, microseconds, calls, errors if any, name.
fn counts(text: &str) -> Calls {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = *words.last()?;
        let count = words.get(3)?.parse().ok()?;
        (name != "total").then(|| (name.to_owned(), count))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
                    ------ ----------- ----------- --------- --------- ----------------\n \
                    99.00    0.000400         100         4         1 recvfrom\n  \
                    1.00    0.000010          10         1           sendto\n\
                    ------ ----------- ----------- --------- --------- ----------------\n\
                    100.00    0.000410                     5         1 total\n";
        let expected = Calls::from([("recvfrom".to_owned(), 4), ("sendto".to_owned(), 1)]);
        assert_eq!(counts(text), expected);
    }
}
