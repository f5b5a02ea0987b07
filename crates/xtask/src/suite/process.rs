//! The processes of a part.
//!
//! Each part has a process of its own, so that parts side by side share no state, and the output of
//! one is in no other's. A second process watches it: the system gives the watcher each process
//! that the part leaves behind, such as a server, so that the part's time is the time of all of
//! them, and none outlives the part.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

#[cfg(test)]
use crate::command;
use crate::leash::Leash;
use crate::workspace;

use super::report::{PartReport, Spent};

/// The command that watches a part.
const WATCH: &str = "watch-part";
/// The command that runs a part.
const RUN: &str = "run-part";
/// The longest that processes of a part may take to end after it, and once more when killed.
const END_MAX: Duration = Duration::from_secs(30);

/// The program, and the folder of outputs and reports.
pub(super) struct Place {
    program: PathBuf,
    folder: PathBuf,
}

impl Place {
    /// Makes the folder, and copies this program into it: cargo replaces the program that it has
    /// built when it builds the tests.
    pub(super) fn new() -> Result<Self> {
        let folder = workspace::target().join("suite");
        fs::create_dir_all(&folder)?;
        let program = folder.join("xtask");
        // Another suite may run the copy that is there.
        let new = program.with_extension(process::id().to_string());
        fs::copy(std::env::current_exe()?, &new).context("cannot copy this program")?;
        fs::rename(&new, &program)?;
        Ok(Self { program, folder })
    }

    /// Returns a place in a new folder whose program is this script of the shell.
    #[cfg(test)]
    pub(super) fn with(folder: &Path, script: &str) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let program = folder.join("xtask");
        // This process must not have the file open: another thread's child would have it as well.
        let mut write = Command::new("sh");
        write.args(["-c", "printf '#!/bin/sh\n%s' \"$1\" > \"$2\" && chmod +x \"$2\"", "sh"]);
        command::run(write.arg(script).arg(&program))?;
        Ok(Self { program, folder: folder.to_owned() })
    }

    /// Returns the file that has a part's output.
    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.folder.join(name).with_extension("log")
    }

    /// Returns the report of a part that does not run, since a build that it needs has failed. The
    /// output says so, in the part's file or in that of this process.
    pub(super) fn refuse(&self, name: &str, build: &str, is_logged: bool) -> PartReport {
        let why = format!("{build} failed");
        if !is_logged {
            println!("{why}");
        } else if let Err(error) = fs::write(self.log(name), format!("{why}\n")) {
            println!("{why}, and the output of {name} cannot be written: {error}");
        }
        PartReport::of_failure(&why)
    }

    /// Runs a part in a process of its own, to its end. The output goes to the part's file, or to
    /// that of this process.
    pub(super) fn run(&self, name: &str, yields: bool, is_logged: bool) -> PartReport {
        let started = Instant::now();
        let report = self.watched(name, yields, is_logged);
        let mut report = report.unwrap_or_else(|why| PartReport::of_failure(&format!("{why:#}")));
        report.spent.wall = started.elapsed();
        report
    }

    fn watched(&self, name: &str, yields: bool, is_logged: bool) -> Result<PartReport> {
        let report = self.folder.join(name).with_extension("report");
        let _ = fs::remove_file(&report);
        let mut command = Command::new("nice");
        command.args(["-n", if yields { "19" } else { "0" }]);
        command.arg(&self.program).args([WATCH, name]).arg(&report);
        let log = match is_logged {
            true => File::create(self.log(name))?,
            false => output()?,
        };
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        let mut watcher = command.spawn().context("cannot run `nice`")?;
        // The watcher ends when this pipe closes, which it also does if this process is killed.
        let pipe = watcher.stdin.take();
        let is_fine = watcher.wait()?.success();
        drop(pipe);
        let told = PartReport::read(&report);
        if !is_fine {
            let mut told = told.unwrap_or_default();
            told.fail(&format!("the part {name} could not be watched"));
            return Ok(told);
        }
        let mut told = told.with_context(|| format!("the part {name} has no report"))?;
        told.spent = spent_of(&fs::read_to_string(times_of(&report))?)?;
        Ok(told)
    }
}

/// Returns the path of the copy that runs this part: the file may be another by now.
pub(super) fn copy() -> Result<PathBuf> {
    Ok(std::env::args_os().next().context("no program")?.into())
}

/// Returns the standard output of this process.
fn output() -> Result<File> {
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Returns the file in which the watcher notes the time.
fn times_of(report: &Path) -> PathBuf {
    report.with_extension("times")
}

/// Runs a part in another process, waits for all processes that the part leaves behind, and notes
/// their time beside the report. Those that go on are killed.
///
/// # Errors
/// The part cannot be started, a process cannot be killed, or the time cannot be noted.
pub fn watch(name: &str, report: &Path) -> Result<()> {
    set_child_subreaper(Some(getpid()))?;
    // Not a leash for this process as well: its helper would be a child that does not end.
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        process::exit(1);
    });
    let mut command = Command::new(copy()?);
    command.args([RUN, name]).arg(report).env(workspace::BUILT, "1");
    let part = Leash::start(&command, "TERM", &output()?)?;
    let id = i32::try_from(part.id())?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, _))) if ended.as_raw_nonzero().get() == id => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("the part has no process"),
        }
    }
    drop(part);
    for (id, left) in ended(END_MAX)? {
        // No failure: a server on a slow machine may still be ending.
        println!("the part {name} has left a process behind, which is killed: {left}, {id}");
    }
    fs::copy("/proc/self/stat", times_of(report)).context("the time is not there")?;
    Ok(())
}

/// Waits until this process has no children. Kills those that are there after so long, and the
/// children that they leave, and returns the ids and names of all these.
///
/// # Errors
/// The system has no list of the children, or a killed one does not end.
fn ended(limit: Duration) -> Result<BTreeMap<i32, String>> {
    let began = Instant::now();
    let mut killed = BTreeMap::new();
    loop {
        match wait(WaitOptions::NOHANG) {
            Err(Errno::CHILD) => return Ok(killed),
            Ok(Some(_)) | Err(_) => continue,
            Ok(None) => {}
        }
        if began.elapsed() > limit {
            ensure!(began.elapsed() < limit + END_MAX, "{killed:?} do not end");
            for child in children()? {
                let id = child.as_raw_nonzero().get();
                let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
                killed.entry(id).or_insert_with(|| name.trim_end().to_owned());
                // No other process has the id before this one has waited for the child.
                kill_process(child, Signal::KILL)?;
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the children of all threads of this process, in which those left behind are.
fn children() -> Result<Vec<Pid>> {
    let mut found = Vec::new();
    for thread in fs::read_dir("/proc/self/task")? {
        let list = fs::read_to_string(thread?.path().join("children"));
        let list = list.context("the system lists no children")?;
        let ids = list.split_whitespace().filter_map(|id| id.parse().ok());
        found.extend(ids.filter_map(Pid::from_raw));
    }
    Ok(found)
}

/// Reads the time of a process's children from its line in `/proc`.
fn spent_of(stat: &str) -> Result<Spent> {
    // The name in parentheses may have anything in it.
    let (_, fields) = stat.rsplit_once(") ").context("no name")?;
    let mut ticks = fields.split(' ').skip(13).map(str::parse::<u64>);
    let mut next = || -> Result<Duration> {
        let ticks = ticks.next().context("no time of children")??;
        Ok(Duration::from_millis(ticks * 1000 / clock_ticks_per_second()))
    };
    Ok(Spent { wall: Duration::ZERO, user: next()?, system: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Tally;
    use crate::scratch;

    #[test]
    fn a_watcher_that_fails_leaves_the_report() {
        let folder = scratch::unused().unwrap();
        let script = "echo 3 1 > $3\necho FAILED a >> $3\nexit 1";
        let report = Place::with(&folder, script).unwrap().run("fmt", false, true);
        assert_eq!(report.tally, Tally { passed: 3, failed: 2 });
        assert_eq!(report.failures, ["FAILED a", "the part fmt could not be watched"]);
        let report = Place::with(&folder, "rm -f $3\nexit 1").unwrap().run("fmt", false, true);
        assert_eq!(report.tally, Tally::FAILED);
        fs::remove_dir_all(folder).unwrap();
    }

    /// Runs itself in a process of its own, which has no children but those of this test.
    #[test]
    fn processes_that_are_left_behind_are_killed() {
        const INSIDE: &str = "REFRAIN_TEST_OF_CHILDREN";
        if std::env::var_os(INSIDE).is_none() {
            let mut own = Command::new(std::env::current_exe().unwrap());
            own.args([
                "--exact",
                "suite::process::tests::processes_that_are_left_behind_are_killed",
            ]);
            let output = command::output(own.env(INSIDE, "1")).unwrap();
            assert!(output.contains("1 passed"), "{output}");
            return;
        }
        set_child_subreaper(Some(getpid())).unwrap();
        // One is a child of the other. Both run when neither has the pipe of the output.
        let script = "(sleep 600 >/dev/null 2>&1 & exec sleep 600 >/dev/null 2>&1) &";
        command::output(Command::new("sh").args(["-c", script])).unwrap();
        let killed = ended(Duration::ZERO).unwrap();
        assert_eq!(killed.len(), 2, "{killed:?}");
        assert_eq!(wait(WaitOptions::NOHANG).unwrap_err(), Errno::CHILD);
    }

    #[test]
    fn the_time_of_children_is_read() {
        let stat = "8 (a ) b) S 1 8 8 0 -1 4194304 90 14711 0 55 3 4 1250 725 39 19 1 0 500 7 9";
        let spent = spent_of(stat).unwrap();
        let tick = Duration::from_millis(1000 / clock_ticks_per_second());
        assert_eq!((spent.user, spent.system), (tick * 1250, tick * 725));
        assert!(spent_of("8 (a) S 1").is_err());
    }
}
