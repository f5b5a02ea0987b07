//! One run of the suite.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::postgres::{Cluster, account};
use crate::provision::Regression;
use crate::workspace;

/// Sessions at a time, as in the suite's own makefile.
const SESSIONS_MAX: &str = "--max-concurrent-tests=20";

/// Folder in which what is left of the run of this name is kept.
pub(super) fn kept(name: &str) -> PathBuf {
    workspace::root().join("target/regress").join(name)
}

/// Runs the suite by way of this port of 127.0.0.1; returns the folder of what it printed.
///
/// Scripts and results are beside the cluster's data meanwhile: the server reads and writes them.
pub(super) fn run(
    regression: &Regression,
    cluster: &Cluster,
    port: u16,
    name: &str,
) -> Result<PathBuf> {
    let beside = cluster.dir().context("a running server was named: the suite needs its own")?;
    let (suite, output) = (beside.join("suite"), beside.join("regress"));
    command::run(Command::new("cp").arg("-r").arg(&regression.suite).arg(&suite))?;
    account::own_dir(&output, "0755")?;
    let kept = kept(name);
    if kept.exists() {
        fs::remove_dir_all(&kept)?;
    }
    fs::create_dir_all(&kept)?;
    let log = File::create(kept.join("pg_regress.log"))?;
    let started = Instant::now();
    let mut run = command(regression, &suite, &output, port);
    let status = run.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).status()?;
    let (results, to) = (output.join("results"), kept.join("results"));
    // One means that some test printed what its authors did not expect.
    let complete = matches!(status.code(), Some(0 | 1)) && results.is_dir();
    let log = kept.join("pg_regress.log");
    ensure!(complete, "the suite did not run, {name}: see {}", log.display());
    command::run(Command::new("cp").arg("-r").arg(results).arg(&to))?;
    println!("the suite ran, {name}, in {} s: {}", started.elapsed().as_secs(), verdict(&log)?);
    Ok(to)
}

fn command(regression: &Regression, suite: &Path, output: &Path, port: u16) -> Command {
    let option = |name: &str, value: &Path| format!("--{name}={}", value.display());
    let mut run = account::command(&regression.program);
    run.arg(option("inputdir", suite)).arg(option("outputdir", output));
    run.arg(option("dlpath", suite)).arg(option("bindir", &regression.bin));
    run.args(["--host=127.0.0.1", "--user=postgres", SESSIONS_MAX]);
    run.args(["--no-locale", "--encoding=UTF8"]).arg(format!("--port={port}"));
    run.arg(option("schedule", &suite.join("parallel_schedule")));
    run
}

/// What the suite says of itself near its end.
fn verdict(log: &Path) -> Result<String> {
    let text = fs::read_to_string(log)?;
    let counts = |line: &&str| line.contains("tests passed") || line.contains("tests failed");
    Ok(text.lines().rev().find(counts).unwrap_or_default().trim().to_owned())
}
