//! The whole suite, for `cargo xtask test` and `.ci/run`.
//!
//! Parts run side by side where none is disturbed by another (`schedule.rs`), each in a process of
//! its own (`process.rs`). The output of a part is printed when the part ends, in one piece. A part
//! that fails does not stop the others. The last printed line is `N passed, N failed` over all
//! parts.

mod report;
mod schedule;
mod process;
mod seconds;
mod check;
mod house;
mod cargo_tests;
mod random;
mod libraries;
mod parts;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::command::{self, Tally};

use self::check::or_one_failure;
use self::parts::{Kind, PARTS, Part};
use self::process::Place;
use self::report::{PartReport, Spent};
use self::schedule::Load;

pub use self::cargo_tests::run_test;
pub use self::libraries::{direct, with_every_mysql};
pub use self::process::watch;

/// The parts that a run has, unless some are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All.
    Whole,
    /// All but the client libraries.
    WithoutDrivers,
    /// Parts that need no servers.
    Quick,
}

/// Returns the names of the parts, for the command line.
pub fn part_names() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(Part::name)
}

/// Runs the suite, or only the parts of these names with the builds that they need. Returns true if
/// all checks passed. If `keep` asks for it, the time of each part goes into the table of
/// `CONTRIBUTING.md`.
///
/// # Errors
/// The folder of the parts' outputs cannot be written, or the table.
pub fn run(only: &[String], extent: Extent, keep: bool) -> Result<bool> {
    let is_in = |part: &&Part| match extent {
        Extent::Whole => true,
        Extent::WithoutDrivers => part.kind != Kind::Drivers,
        Extent::Quick => part.kind == Kind::Quick,
    };
    let chosen = match only {
        [] => PARTS.iter().filter(is_in).collect(),
        names => parts::named(names),
    };
    let place = Place::new()?;
    let mut ended = match only {
        [_] => one_by_one(&chosen, &place),
        _ => side_by_side(chosen, &place)?,
    };
    ended.sort_by_key(|(part, _)| PARTS.iter().position(|other| other.name() == part.name()));
    let timed = ended.iter().filter(|(part, report)| part.is_timed && report.tally.failed == 0);
    let timed: Vec<_> = timed.map(|(part, report)| (part.name(), report.spent)).collect();
    let mut rows: Vec<_> =
        ended.iter().map(|(part, report)| (part.name(), report.tally, report.spent)).collect();
    ended.iter().for_each(|(_, report)| report.failures.iter().for_each(command::keep_failure));
    if keep {
        seconds::keep(&timed_names(), &timed)?;
    } else if let Some(tally) = judged(&timed)? {
        rows.push(("seconds", tally, Spent::default()));
    }
    Ok(is_success(summary(&rows), ended.iter().any(|(part, _)| part.is_check)))
}

/// Whether a run with this sum is a success. One that should check something has checked something.
fn is_success(total: Tally, has_checks: bool) -> bool {
    total.failed == 0 && (total.passed > 0 || !has_checks)
}

/// Runs a part in this process, and writes its report into a file.
///
/// # Errors
/// There is no such part, or the file cannot be written.
pub fn run_part(name: &str, report: &Path) -> Result<()> {
    let part = PARTS.iter().find(|part| part.name() == name).context("there is no such part")?;
    let tally = or_one_failure((part.run)());
    PartReport { tally, failures: command::failures(), spent: Spent::default() }.write(report)
}

fn timed_names() -> Vec<&'static str> {
    PARTS.iter().filter(|part| part.is_timed).map(Part::name).collect()
}

/// Compares the time of parts with the table. Returns nothing if they are too few.
fn judged(timed: &[(&str, Spent)]) -> Result<Option<Tally>> {
    let (slow, compared) = seconds::risen(timed)?;
    slow.iter().for_each(command::keep_failure);
    let failed = u32::try_from(slow.len())?;
    let passed = u32::try_from(compared)? - failed;
    Ok((compared > 0).then_some(Tally { passed, failed }))
}

/// Parts that have ended, each with its report.
type Ended = Vec<(&'static Part, PartReport)>;

/// Returns the first build that a part needs and that has failed: what is there is an older one.
fn failed_build(part: &Part, ended: &Ended) -> Option<&'static str> {
    let has_failed = |name: &str| {
        ended.iter().any(|(part, report)| part.name() == name && report.tally.failed > 0)
    };
    part.needs.builds.iter().copied().find(|name| has_failed(name))
}

/// Runs parts one after another, each with its output as it comes.
fn one_by_one(chosen: &[&'static Part], place: &Place) -> Ended {
    let mut ended = Ended::new();
    for part in chosen {
        println!("=== {}", part.name());
        let report = match failed_build(part, &ended) {
            Some(build) => place.refuse(part.name(), build, false),
            None => place.run(part.name(), false, false),
        };
        ended.push((part, report));
    }
    ended
}

/// Runs parts side by side.
fn side_by_side(mut pending: Vec<&'static Part>, place: &Place) -> Result<Ended> {
    let cores = thread::available_parallelism()?.get();
    let needs = |parts: &[&'static Part]| parts.iter().map(|part| part.needs).collect::<Vec<_>>();
    let (tell, told) = mpsc::channel();
    let (mut running, mut ended) = (Vec::new(), Ended::new());
    thread::scope(|scope| {
        loop {
            while let Some(index) = schedule::next(&needs(&pending), &needs(&running), cores) {
                let (part, tell) = (pending.remove(index), tell.clone());
                if let Some(build) = failed_build(part, &ended) {
                    let report = place.refuse(part.name(), build, true);
                    print(part, &report, place);
                    ended.push((part, report));
                    continue;
                }
                println!("--- {} begins", part.name());
                running.push(part);
                scope.spawn(move || {
                    let yields = part.needs.load == Load::Yielding;
                    let report = place.run(part.name(), yields, true);
                    // The receiver ends after all threads.
                    let _ = tell.send((part, report));
                });
            }
            if running.is_empty() {
                break;
            }
            let Ok((part, report)) = told.recv() else { break };
            running.retain(|other| other.name() != part.name());
            print(part, &report, place);
            ended.push((part, report));
        }
    });
    Ok(ended)
}

/// Prints the output of a part that has ended.
fn print(part: &Part, report: &PartReport, place: &Place) {
    println!("=== {}", part.name());
    let copied = File::open(place.log(part.name()))
        .and_then(|mut log| io::copy(&mut log, &mut io::stdout().lock()));
    if let Err(error) = copied {
        println!("the output of {} is not there: {error}", part.name());
    }
    println!("{}", row(part.name(), report.tally, report.spent));
}

fn row(name: &str, tally: Tally, spent: Spent) -> String {
    let (wall, user) = (spent.wall.as_secs(), spent.user.as_secs());
    let system = spent.system.as_secs();
    let Tally { passed, failed } = tally;
    format!(
        "{name:>17} {passed:>5} ok {failed:>3} bad {wall:>4} s {user:>5} s of processors, \
         {system:>4} s in the kernel"
    )
}

/// Prints the rows and the failures, and returns the sum.
fn summary(rows: &[(&str, Tally, Spent)]) -> Tally {
    let mut total = Tally::default();
    println!("=== summary");
    for (name, tally, spent) in rows {
        println!("{}", row(name, *tally, *spent));
        total += *tally;
    }
    command::failures().iter().for_each(|failure| println!("{failure}"));
    println!("{} passed, {} failed", total.passed, total.failed);
    total
}

/// Prints the summary of runs of client libraries, which took so long. Returns true if all
/// checks passed.
fn summary_of(runs: &[(&str, Tally, Duration)]) -> bool {
    let rows = runs
        .iter()
        .map(|(name, tally, wall)| (*name, *tally, Spent { wall: *wall, ..Spent::default() }));
    is_success(summary(&rows.collect::<Vec<_>>()), true)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::scratch;

    #[test]
    fn builds_alone_pass_without_checks() {
        let counts = |passed, failed| Tally { passed, failed };
        assert!(is_success(counts(0, 0), false) && is_success(counts(1, 0), true));
        assert!(!is_success(counts(0, 0), true));
        assert!(!is_success(counts(0, 1), false) && !is_success(counts(1, 1), true));
        let has_checks = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            parts::named(&names).iter().any(|part| part.is_check)
        };
        assert!(!has_checks(&["build-programs", "provision", "provision-libraries"]));
        assert!(has_checks(&["differ"]) && has_checks(&["clippy"]) && has_checks(&["packages"]));
    }

    #[test]
    fn no_part_runs_whose_build_has_failed() {
        let folder = scratch::unused().unwrap();
        // Stands for the program: notes the part, of which builds fail.
        let place = Place::with(
            &folder,
            "echo $2 >> ${0%/*}/ran\n\
             case $2 in build-*) echo 0 1;; *) echo 1 0;; esac > $3\n\
             cat /proc/self/stat > ${3%.report}.times\n",
        );
        let place = place.unwrap();
        let chosen = parts::named(&["differ".to_owned(), "fmt".to_owned()]);
        let by_turns = one_by_one(&chosen, &place);
        for mut ended in [by_turns, side_by_side(chosen, &place).unwrap()] {
            ended.sort_by_key(|(part, _)| part.name());
            let told: Vec<_> = ended
                .iter()
                .map(|(part, report)| (part.name(), report.tally.failed, &*report.failures))
                .collect();
            let why = ["build-programs failed".to_owned()];
            let expected = [("build-programs", 1, &[][..]), ("differ", 1, &why), ("fmt", 0, &[])];
            assert_eq!(told, expected);
        }
        let ran = fs::read_to_string(folder.join("ran")).unwrap();
        let mut ran: Vec<_> = ran.lines().collect();
        ran.sort_unstable();
        assert_eq!(ran, ["build-programs", "build-programs", "fmt", "fmt"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
