//! The report of a part: what the part's process tells the suite at its end.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::command::Tally;

/// The time that a part took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// From its start to its end.
    pub(super) wall: Duration,
    /// Of processors, in programs: of the part's process and of all that it has started.
    pub(super) user: Duration,
    /// Of processors, in the kernel.
    pub(super) system: Duration,
}

/// The outcome of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PartReport {
    /// The checks.
    pub(super) tally: Tally,
    /// Lines about checks that failed.
    pub(super) failures: Vec<String>,
    /// The time.
    pub(super) spent: Spent,
}

impl PartReport {
    /// Returns the report of a part that could not run, or that did not tell.
    pub(super) fn of_failure(why: &str) -> Self {
        let mut report = Self::default();
        report.fail(why);
        report
    }

    /// Adds a failure.
    pub(super) fn fail(&mut self, why: &str) {
        self.tally += Tally::FAILED;
        self.failures.push(why.to_owned());
    }

    /// Writes the report, without the time, into a file.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let mut text = format!("{} {}\n", self.tally.passed, self.tally.failed);
        for failure in &self.failures {
            // A failure may have several lines.
            text.push_str(&failure.escape_default().to_string());
            text.push('\n');
        }
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads what [`PartReport::write`] has written.
    pub(super) fn read(path: &Path) -> Result<Self> {
        Self::of_text(&fs::read_to_string(path)?).context("the report of a part is not whole")
    }

    fn of_text(text: &str) -> Option<Self> {
        let (counts, failures) = text.split_once('\n')?;
        let (passed, failed) = counts.split_once(' ')?;
        let tally = Tally { passed: passed.parse().ok()?, failed: failed.parse().ok()? };
        let failures = failures.lines().map(unescaped).collect();
        Some(Self { tally, failures, spent: Spent::default() })
    }
}

/// Returns a text as it was before `escape_default`.
fn unescaped(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line.chars();
    while let Some(letter) = rest.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match rest.next() {
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('u') => {
                let digits: String = rest.by_ref().skip(1).take_while(|it| *it != '}').collect();
                text.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
            }
            Some(other) => text.push(other),
            None => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("refrain-report-{}", std::process::id()));
        let failures = vec!["FAILED a: \"b\"\n\tis: ü\\n".to_owned(), String::new()];
        let tally = Tally { passed: 7, failed: 2 };
        let report = PartReport { tally, failures, spent: Spent::default() };
        report.write(&path).unwrap();
        assert_eq!(PartReport::read(&path).unwrap(), report);
        fs::write(&path, "7\n").unwrap();
        assert!(PartReport::read(&path).is_err());
        fs::remove_file(&path).unwrap();
        assert!(PartReport::read(&path).is_err());
    }
}
