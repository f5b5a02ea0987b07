//! Counts by callgrind: instructions per transaction of each script of the crate `scripts`, and the
//! lines of code that one of them runs.
//!
//! Only functions of the engine are counted. A count is the difference between two runs, the
//! second twice as long, so the start of the program is not in it, and the same code always has the
//! same count.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;
use crate::provision;
use crate::workspace;

use super::lines::{self, FileLines};

/// Repetitions of a script in the shorter run.
const RUNS: u64 = 1_000;
/// Pattern of the functions of the harness whose callees valgrind counts.
const MEASURED: &str = "*measured_*";

/// The program that runs the scripts.
pub(super) struct Scripts {
    /// As a release is built: its instructions count.
    program: PathBuf,
    /// Not optimised, so that each line that runs has instructions of its own.
    plain: PathBuf,
}

impl Scripts {
    /// Builds the program both ways, and installs valgrind if it is missing.
    pub(super) fn build() -> Result<Self> {
        provision::valgrind()?;
        Ok(Self { program: built(&["--release"], "release")?, plain: built(&[], "debug")? })
    }

    /// Returns each script's name, and the instructions that one transaction of it takes.
    pub(super) fn instructions(&self, protocol: &str) -> Result<Vec<(String, u64)>> {
        let listing = command::output(Command::new(&self.program).arg(protocol))?;
        let mut counts = Vec::new();
        for line in listing.lines() {
            let mut fields = line.split('\t');
            let name = fields.next().unwrap_or_default();
            let transactions: u64 = fields.next().context("no number of transactions")?.parse()?;
            let more =
                self.collected(protocol, name, 2 * RUNS)? - self.collected(protocol, name, RUNS)?;
            let each = more / (RUNS * transactions);
            println!("{name}: {each}");
            counts.push((name.to_owned(), each));
        }
        Ok(counts)
    }

    /// Returns the instructions of so many runs of a script.
    fn collected(&self, protocol: &str, name: &str, runs: u64) -> Result<u64> {
        let mut valgrind = callgrind("/dev/null");
        valgrind.arg(&self.program).args([protocol, name, &runs.to_string()]);
        collected(&command::output(&mut valgrind)?)
    }

    /// Returns the lines of code that a script runs, file by file.
    pub(super) fn lines(&self, protocol: &str, name: &str) -> Result<Vec<FileLines>> {
        let path = workspace::target().join("callgrind.out");
        let mut valgrind = callgrind(&path.to_string_lossy());
        valgrind.args(["--dump-instr=yes", "--compress-strings=no", "--compress-pos=no"]);
        command::output(valgrind.arg(&self.plain).args([protocol, name, &RUNS.to_string()]))?;
        let text = fs::read_to_string(&path).context("callgrind wrote no file")?;
        // A line that fewer runs reach serves the first of them: a map that grows, a first use.
        lines::run(&self.plain, &text, RUNS / 2)
    }
}

/// Builds the program with these arguments of cargo, and returns its path.
///
/// The package is built by itself: with the whole workspace, engines would have planted bugs.
fn built(arguments: &[&str], folder: &str) -> Result<PathBuf> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--quiet", "--locked", "--package=refrain-scripts", "--example=scripts"]);
    command::run(cargo.args(arguments))?;
    Ok(workspace::target().join(folder).join("examples/scripts"))
}

/// Returns a callgrind that counts what the harness measures.
fn callgrind(out_file: &str) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("--tool=callgrind").arg(format!("--callgrind-out-file={out_file}"));
    valgrind.arg(format!("--toggle-collect={MEASURED}")).arg("--log-fd=1");
    valgrind
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
