//! The verdict of a reproduction: which bars hold.

use std::fmt::{self, Display, Formatter};

/// The results of all checks, line by line.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    lines: Vec<(bool, String)>,
}

impl Verdict {
    /// Notes a check and whether it holds.
    pub(super) fn check(&mut self, what: impl Into<String>, holds: bool) {
        self.lines.push((holds, what.into()));
    }

    /// Checks that a figure is not more than `most`.
    pub(super) fn at_most(&mut self, what: &str, value: f64, most: f64) {
        self.check(format!("{what}: {value:.3}, at most {most}"), value <= most);
    }

    /// Whether there is at least one check and all checks hold.
    pub(super) fn holds(&self) -> bool {
        !self.lines.is_empty() && self.lines.iter().all(|(holds, _)| *holds)
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (holds, what) in &self.lines {
            writeln!(f, "{} {what}", if *holds { "holds:        " } else { "DOES NOT HOLD:" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_holds_if_each_of_its_bars_holds() {
        let mut verdict = Verdict::default();
        assert!(!verdict.holds(), "nothing was looked at");
        verdict.at_most("mean", 1.05, 1.05);
        assert!(verdict.holds());
        verdict.at_most("p99", f64::NAN, 1.2);
        assert!(!verdict.holds());
        assert!(verdict.to_string().contains("DOES NOT HOLD: p99"), "{verdict}");
    }
}
