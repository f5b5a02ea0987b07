//! The benchmark of the engine's instructions: valgrind counts them for each script of the engine's
//! harness (`crates/pg/tests/common`).
//!
//! Only functions of the engine are counted. The figure is the difference between two runs, the
//! second twice as long, so the start of the program is not in it, and the same code always has the
//! same figure.

use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::provision;
use crate::workspace;

use super::facts;
use super::pgbench::has_program;
use super::report::table;

/// Repetitions of a script in the shorter run.
const RUNS: u64 = 1_000;
/// Pattern of the functions of the harness whose callees valgrind counts.
const MEASURED: &str = "*measured_*";

/// Runs the benchmark and returns the table in Markdown.
pub(super) fn run() -> Result<String> {
    if !has_program("valgrind") {
        provision::debian(&["valgrind"])?;
    }
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet", "--release", "--package", "refrain-pg"]);
    command::run(cargo.args(["--example", "scripts"]))?;
    let program = workspace::target().join("release/examples/scripts");
    let listing = command::output(&mut Command::new(&program))?;
    let mut lines = Vec::new();
    for line in listing.lines() {
        let mut fields = line.split('\t');
        let name = fields.next().unwrap_or_default();
        let transactions: u64 = fields.next().context("no number of transactions")?.parse()?;
        let counted = |runs: u64| {
            let mut valgrind = Command::new("valgrind");
            valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
            valgrind.arg(format!("--toggle-collect={MEASURED}")).arg("--log-fd=1");
            valgrind.arg(&program).arg(name).arg(runs.to_string());
            collected(&command::output(&mut valgrind)?)
        };
        let each = (counted(2 * RUNS)? - counted(RUNS)?) / (RUNS * transactions);
        println!("{name}: {each}");
        lines.push((name.to_owned(), vec![Some(each.to_string())]));
    }
    let mut text = facts::code();
    let heads = ["instructions".to_owned()];
    table(&mut text, "Instructions of the engine per transaction", "", &heads, lines.into_iter());
    Ok(text)
}

/// Reads the count from callgrind's last lines.
fn collected(text: &str) -> Result<u64> {
    let count = text.lines().find_map(|line| line.split_once("Collected :"));
    let (_, count) = count.with_context(|| format!("valgrind counted nothing:\n{text}"))?;
    Ok(count.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read() {
        assert_eq!(collected("==7== Events : Ir\n==7== Collected : 3968018\n").unwrap(), 3_968_018);
        assert!(collected("valgrind: no such file").is_err());
    }
}
