//! A run of the suites by `pg_regress`.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::postgres::{Cluster, account};
use crate::provision::{Regression, SUITES, Suite};
use crate::workspace;

/// The most sessions at a time, as in the suite's own makefile.
const SESSIONS_MAX: &str = "--max-concurrent-tests=20";

/// Returns the folder that keeps the results and logs of the run of this name.
pub(super) fn kept(name: &str) -> PathBuf {
    workspace::root().join("target/regress").join(name)
}

/// Runs the suites at this port of 127.0.0.1 and returns the folder of their results.
pub(super) fn run(
    regression: &Regression,
    cluster: &Cluster,
    port: u16,
    name: &str,
) -> Result<PathBuf> {
    let beside = cluster.dir().context("a running server was named: the suites need their own")?;
    let kept = kept(name);
    if kept.exists() {
        fs::remove_dir_all(&kept)?;
    }
    let results = kept.join("results");
    fs::create_dir_all(&results)?;
    // The server reads data and writes results itself, so both are in a folder of its user.
    let suites = beside.join("suites");
    command::run(Command::new("cp").arg("-r").arg(&regression.suites).arg(&suites))?;
    for suite in SUITES {
        let output = beside.join(format!("{}-output", suite.name));
        account::own_dir(&output, "0755")?;
        let started = Instant::now();
        let log = kept.join(format!("{}.log", suite.name));
        let mut command = command(regression, suite, &suites, &output)?;
        let verdict = verdict(command.arg(format!("--port={port}")), &log)?;
        let (suite, took) = (suite.name, started.elapsed().as_secs());
        println!("{name}: {suite} ran for {took} s: {verdict}");
        let all = output.join("results/.");
        command::run(Command::new("cp").arg("-r").arg(all).arg(&results))?;
    }
    Ok(results)
}

/// Returns the command for a suite in the folder `suites`, without the port.
fn command(regression: &Regression, suite: Suite, suites: &Path, output: &Path) -> Result<Command> {
    let folder = suites.join(suite.name);
    let option = |name: &str, value: &Path| format!("--{name}={}", value.display());
    let mut run = account::command(&regression.program);
    run.arg(option("inputdir", &folder)).arg(option("outputdir", output));
    run.arg(option("dlpath", &folder)).arg(option("bindir", &regression.bin));
    run.args(["--host=127.0.0.1", "--user=postgres", SESSIONS_MAX]);
    run.args(["--no-locale", "--encoding=UTF8"]).arg(format!("--dbname={}", suite.database));
    let schedule = folder.join("parallel_schedule");
    if schedule.is_file() {
        run.arg(option("schedule", &schedule));
    } else {
        run.args(tests(&folder)?);
    }
    Ok(run)
}

/// Returns the names of a suite's scripts, for a suite without a schedule.
fn tests(suite: &Path) -> Result<BTreeSet<OsString>> {
    let scripts = fs::read_dir(suite.join("sql"))?;
    let name = |path: PathBuf| path.file_stem().map(OsStr::to_owned);
    Ok(scripts.filter_map(|script| name(script.ok()?.path())).collect())
}

/// Runs `pg_regress` with its output in `log`, and returns its last line with counts.
fn verdict(command: &mut Command, log: &Path) -> Result<String> {
    let output = File::create(log)?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let status = command.status().context("cannot run `pg_regress`")?;
    // Status 1 means that a test's output differs from the expected file.
    let complete = matches!(status.code(), Some(0 | 1));
    ensure!(complete, "a suite did not run: see {}", log.display());
    let text = fs::read_to_string(log)?;
    let counts = |line: &&str| line.contains("tests passed") || line.contains("tests failed");
    let counts = text.lines().rev().find(counts);
    Ok(counts.with_context(|| format!("no verdict in {}", log.display()))?.trim().to_owned())
}
