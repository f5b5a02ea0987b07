//! Runs of other programs, and counts of the tests that they report.

use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};

/// The failures so far.
static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints a line about a check that failed, and keeps it for the end of the run: the output of a
/// whole suite is long, and a log may hold its last part alone.
pub fn tell_failure(line: &str) {
    println!("{line}");
    keep_failure(line);
}

/// Keeps a line about a check that failed for the end of the run.
pub(crate) fn keep_failure(line: impl AsRef<str>) {
    FAILURES.lock().unwrap_or_else(PoisonError::into_inner).push(line.as_ref().to_owned());
}

/// Returns the lines about checks that failed.
pub fn failures() -> Vec<String> {
    FAILURES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Numbers of checks that passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Checks that passed.
    pub passed: u32,
    /// Checks that failed.
    pub failed: u32,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl Tally {
    /// One check that passed.
    pub const PASSED: Tally = Tally { passed: 1, failed: 0 };
    /// One check that failed.
    pub const FAILED: Tally = Tally { passed: 0, failed: 1 };

    /// Reads one line of a test runner's output: cargo's `test result: …`, or `N passed, N failed`.
    /// Any other line counts as zero.
    pub fn of_line(line: &str) -> Tally {
        let line = line.trim();
        let counts = line.strip_prefix("test result:").and_then(|rest| rest.split_once(". "));
        let counts = counts.map_or(line, |(_, counts)| counts);
        let mut words = counts.split([' ', ',', ';']).filter(|word| !word.is_empty());
        let mut count_of = |name| {
            let count = words.next()?.parse().ok()?;
            (words.next()? == name).then_some(count)
        };
        match (count_of("passed"), count_of("failed")) {
            (Some(passed), Some(failed)) => Tally { passed, failed },
            _ => Tally::default(),
        }
    }
}

/// Counts a check, and tells why it failed.
pub fn counted(name: &str, outcome: Result<()>) -> Tally {
    match outcome {
        Ok(()) => Tally::PASSED,
        Err(why) => failed(&format!("FAILED {name}: {why:#}")),
    }
}

/// Counts a check that failed, and tells it by a line.
pub(crate) fn failed(line: &str) -> Tally {
    tell_failure(line);
    Tally::FAILED
}

/// Returns the command as in a shell, for messages.
pub fn words(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Runs a command to its end, with its output on the terminal. Fails if the command fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run `{}`", words(command)))?;
    ensure!(status.success(), "`{}` failed: {status}", words(command));
    Ok(())
}

/// Runs a command to its end and returns its standard output. Fails if the command fails.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output();
    let output = output.with_context(|| format!("cannot run `{}`", words(command)))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", words(command), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("output is not UTF-8")
}

/// Runs a test runner, prints its output, and adds up the counts in it.
///
/// A run that exits with failure has at least one failed check, even if its output has none.
pub fn tally(command: &mut Command) -> Result<Tally> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("cannot run `{}`", words(command)))?;
    let mut total = Tally::default();
    let mut told = Told::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            println!("{line}");
            if told.takes(&line) {
                keep_failure(&line);
            }
            total += Tally::of_line(&line);
        }
    }
    if !child.wait()?.success() && total.failed == 0 {
        total.failed = 1;
    }
    Ok(total)
}

/// Tells which lines of a test runner's output are about failures.
#[derive(Default)]
struct Told {
    /// Lines of a panic's message that may still follow.
    of_panic: usize,
}

impl Told {
    /// Lines of a panic's message that are kept: a comparison prints as many.
    const MESSAGE_MAX: usize = 3;

    /// Whether a line names a failed test, or tells of its panic.
    fn takes(&mut self, line: &str) -> bool {
        if line.starts_with("thread '") && line.contains(" panicked at ") {
            self.of_panic = Self::MESSAGE_MAX;
            return true;
        }
        let ends = line.is_empty() || line == "stack backtrace:" || line.starts_with("note: ");
        let is_message = self.of_panic > 0 && !ends;
        self.of_panic = if is_message { self.of_panic - 1 } else { 0 };
        is_message || line.ends_with("... FAILED") || line.starts_with("FAILED ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_kept_with_the_messages_of_their_panics() {
        let output = "\
test a::b ... ok
test a::c ... FAILED
---- a::c stdout ----

thread 'a::c' (25234) panicked at tests/it/a.rs:8:5:
assertion `left == right` failed
  left: 1
 right: 2
stack backtrace:
   0: __rustc::rust_begin_unwind
note: run with more

FAILED b: 3 differences
test result: FAILED. 1 passed; 1 failed; 0 ignored";
        let mut told = Told::default();
        let kept: Vec<_> = output.lines().filter(|line| told.takes(line)).collect();
        let expected = [
            "test a::c ... FAILED",
            "thread 'a::c' (25234) panicked at tests/it/a.rs:8:5:",
            "assertion `left == right` failed",
            "  left: 1",
            " right: 2",
            "FAILED b: 3 differences",
        ];
        assert_eq!(kept, expected);
    }

    #[test]
    fn counts_what_runners_print() {
        let cases = [
            ("test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured", 7, 0),
            ("test result: FAILED. 5 passed; 2 failed; 0 ignored", 5, 2),
            ("12 passed, 3 failed", 12, 3),
            ("running 7 tests", 0, 0),
            ("7 passed in 0.1s", 0, 0),
        ];
        for (line, passed, failed) in cases {
            assert_eq!(Tally::of_line(line), Tally { passed, failed }, "{line}");
        }
    }

    #[test]
    fn failure_without_counts_is_one_failure() {
        let tally = tally(Command::new("sh").args(["-c", "exit 3"])).unwrap();
        assert_eq!(tally, Tally::FAILED);
    }
}
