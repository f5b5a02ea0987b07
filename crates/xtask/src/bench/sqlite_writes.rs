//! The benchmark of single clients: one client that writes to SQLite through the protocol, beside
//! the library without a server; and clients of a pooled PostgreSQL whose only server moves between
//! cores.
//!
//! All take turns in every round, and ratios are those within a round.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::postgres::{Cluster, Version};
use crate::workspace;

use super::facts::without_pgbouncer;
use super::launch::{self, Contender, Driver, Running, Shape};
use super::pgbench::{DATABASE, Load, Mode, Pgbench, Until, Workload};
use super::report::median;
use super::rounds::SCALE;
use super::session::Session;
use super::sqlite_wire::{Folder, ask};

/// Number of rounds that count.
const ROUNDS: usize = 7;
/// Seconds of each measurement.
const SECONDS: u32 = 2;
/// The script of pgbench: one write with its commit.
const SCRIPT: &str = "\\set v random(1, 1000000)\nINSERT INTO written (v) VALUES (:v);\n";
/// The least share of the library's rate that a client reaches.
const BAR: f64 = 0.8;

/// Time limit of the first client of a pool.
const PATIENCE: Duration = Duration::from_secs(10);
/// Numbers of clients of a pool of one server.
const POOLED: [u32; 2] = [1, 2];

const DRIVERS: [Driver; 2] = [Driver::Uring, Driver::Epoll];
const MODES: [Mode; 3] = [Mode::Simple, Mode::Extended, Mode::Prepared];

/// A line of a table: a contender, and its rate in each round.
struct Line {
    name: String,
    rates: Vec<f64>,
}

/// Runs the benchmark and returns the tables in Markdown.
pub(super) fn run() -> Result<String> {
    launch::prepare(&[Contender::refrain(Driver::Uring, 1)])?;
    let library = Library::build()?;
    let cluster = Cluster::start(Version::V15, &[])?;
    let pgbench = Pgbench::filled(&cluster, SCALE)?;
    let script = pgbench.keep_script("write.sql", SCRIPT)?;
    let folder = Folder::new()?;
    let mut lines = vec![Line { name: "the library".to_owned(), rates: Vec::new() }];
    let mut proxies = Vec::new();
    for driver in DRIVERS {
        let file = folder.path().join(format!("{}.db", driver.name()));
        let proxy = Running::start_file(driver, &file, "")?;
        ask(proxy.port, "CREATE TABLE written (id INTEGER PRIMARY KEY, v INT)")?;
        for mode in MODES {
            let name = format!("{}, {}", driver.name(), mode.name());
            lines.push(Line { name, rates: Vec::new() });
        }
        proxies.push(proxy);
    }
    let shape = Shape { pool_size: 1, more: "", top: "" };
    let mut pooled = Vec::new();
    let mut handed = Vec::new();
    for driver in DRIVERS {
        let proxy = Running::start(Contender::refrain(driver, 2), &cluster, &shape)?;
        for clients in POOLED {
            handed.push(Line { name: format!("{}, {clients}", driver.name()), rates: Vec::new() });
        }
        pooled.push(proxy);
    }
    // The first round fills caches and does not count.
    for round in 0..=ROUNDS {
        let until = Until::Seconds(SECONDS);
        let mut rates = vec![library.run(&folder.path().join("library.db"))?];
        for proxy in &proxies {
            for mode in MODES {
                rates.push(pgbench.run_script_in(proxy.port, &script, mode, 1, until)?.tps);
            }
        }
        println!("{rates:?}");
        let mut fetched = Vec::new();
        for proxy in &pooled {
            for clients in POOLED {
                fetched.push(fetch(&pgbench, proxy.port, clients, until)?);
            }
        }
        if round > 0 {
            handed.iter_mut().zip(fetched).for_each(|(line, rate)| line.rates.push(rate));
            lines.iter_mut().zip(rates).for_each(|(line, rate)| line.rates.push(rate));
        }
    }
    Ok(format!("{}\n{}", without_pgbouncer(&cluster), report(&lines, &handed)))
}

/// Measures the rate of clients of a pool of one server, which another core holds at first.
fn fetch(pgbench: &Pgbench, port: u16, clients: u32, until: Until) -> Result<f64> {
    // This client stays connected, so that the proxy puts the next one on the other core.
    let mut first = Session::open(port, DATABASE, PATIENCE)?;
    ensure!(first.query("SELECT 1")?.errors.is_empty(), "no server");
    let load = Load { workload: Workload::Select, mode: Mode::Prepared, clients };
    Ok(pgbench.run(port, &load, until)?.tps)
}

/// The library without a server, as a program.
struct Library(std::path::PathBuf);

impl Library {
    fn build() -> Result<Library> {
        let mut cargo = workspace::cargo();
        cargo.args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "refrain-sqlite",
            "--example",
            "writes",
        ]);
        command::run(&mut cargo)?;
        Ok(Library(workspace::target().join("release/examples/writes")))
    }

    /// Runs the program and returns its writes per second.
    fn run(&self, file: &Path) -> Result<f64> {
        let text = command::output(Command::new(&self.0).arg(file).arg(SECONDS.to_string()))?;
        text.trim().parse().with_context(|| format!("no number: {text}"))
    }
}

fn report(lines: &[Line], handed: &[Line]) -> String {
    let mut text = format!(
        "One client, one INSERT with its commit on disk (`pgbench -n -c 1`, one worker), beside one \
         connection of the library with `synchronous = full`; {ROUNDS} rounds of {SECONDS} s each \
         in turns. Figures are medians; ratios are medians of ratios within a round; bar ≥ {BAR}.\
         \n\n| | writes a second | of the library |\n|---|--:|--:|\n"
    );
    let library = lines.first().map_or(&[][..], |line| &line.rates);
    for Line { name, rates } in lines {
        let ratios = rates.iter().zip(library).map(|(rate, library)| rate / library).collect();
        let (rate, ratio) = (median(rates.clone()).unwrap_or(0.0), median(ratios).unwrap_or(0.0));
        let _ = writeln!(text, "| {name} | {rate:.0} | {ratio:.2} |");
    }
    text += "\nPooled PostgreSQL, two workers and one server for all (`pgbench -n -S -M prepared`, \
             `pool_size = 1`): one client whose server is on another core, and two clients on two \
             cores, between which the server moves at every other transaction.\n\n\
             | driver, clients | transactions a second |\n|---|--:|\n";
    for Line { name, rates } in handed {
        let _ = writeln!(text, "| {name} | {:.0} |", median(rates.clone()).unwrap_or(0.0));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_rounds() {
        let line =
            |name: &str, rates: &[f64]| Line { name: name.to_owned(), rates: rates.to_vec() };
        let lines =
            [line("the library", &[10.0, 20.0, 40.0]), line("uring, simple", &[9.0, 18.0, 20.0])];
        let text = report(&lines, &[line("epoll, 1", &[7.0])]);
        assert!(text.contains("| the library | 20 | 1.00 |"), "{text}");
        assert!(text.contains("| uring, simple | 18 | 0.90 |"), "{text}");
        assert!(text.contains("| epoll, 1 | 7 |"), "{text}");
    }
}
