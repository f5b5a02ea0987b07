//! The differences that are expected, from `crates/xtask/vendor/expected.txt`.

use anyhow::{Context, Result, ensure};

/// The file of expected differences.
const TEXT: &str = include_str!("../../vendor/expected.txt");
/// The file of the tests that the suite of this repository runs.
const SAMPLE: &str = include_str!("../../vendor/sample.txt");

/// An expected difference.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expected {
    /// The mode of the pool, or `both`.
    mode: &'static str,
    /// The test's name.
    pub(super) test: &'static str,
    /// Why the test's result differs.
    pub(super) reason: &'static str,
}

impl Expected {
    /// Whether a test with a pool of this mode is meant.
    pub(super) fn is_of(&self, mode: &str, test: &str) -> bool {
        (self.mode == mode || self.mode == "both") && self.test == test
    }
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns every expected difference.
pub(super) fn all() -> Result<Vec<Expected>> {
    let row = |line: &'static str| {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().map(str::trim).filter(|part| !part.is_empty());
        let (mode, test, reason) = (part(), part(), part());
        let why = || format!("not `mode test reason`: {line}");
        let (mode, test) = (mode.with_context(why)?, test.with_context(why)?);
        ensure!(["both", "session", "transaction"].contains(&mode), why());
        Ok(Expected { mode, test, reason: reason.with_context(why)? })
    };
    lines(TEXT).map(row).collect()
}

/// Returns the names of the tests that the suite of this repository runs.
pub(super) fn sample() -> Vec<String> {
    lines(SAMPLE).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most expected differences of transaction mode.
    const TRANSACTION_MAX: usize = 25;

    #[test]
    fn the_files_are_sorted_and_short() {
        let all = all().unwrap();
        assert!(all.is_sorted_by_key(|one| one.test), "sort the tests of expected.txt");
        assert!(
            all.iter().filter(|one| one.is_of("transaction", one.test)).count() <= TRANSACTION_MAX
        );
        let sample = sample();
        assert!(sample.is_sorted(), "sort sample.txt");
        assert!(sample.iter().all(|test| !all.iter().any(|one| one.test == test)));
    }
}
