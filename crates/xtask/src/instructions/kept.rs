//! The counts that the repository keeps, and what may change without a word.
//!
//! A count of instructions stays within [`PERCENT`] of the kept one, up and down: the commit that
//! changes it more writes the file anew, and says why. What the reading tour is measured by only
//! falls.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace;

/// Most percent by which a count of instructions may differ from the kept one.
const PERCENT: u64 = 1;
/// The beginning of the name of a count that may fall and not rise.
pub(super) const CEILING: &str = "tour: ";
/// The line with the compiler that made the counts.
const COMPILER: &str = "compiler";

const HEAD: &str = "\
# The engine's instructions per transaction of each script, and the lines of its own code that a
# prepared query runs, counted by callgrind. `cargo xtask test --only instructions` fails where a
# count has changed by more than one percent, or where the tour has grown. `cargo xtask bench
# instructions --write` writes this file, in the commit that explains the change.
";

/// Counts, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// The compiler that built the program.
    pub(super) compiler: String,
    /// Names and numbers, in the order in which they are shown.
    pub(super) rows: Vec<(String, u64)>,
}

impl Counts {
    /// Reads the counts that the repository keeps in a file.
    pub(super) fn kept(file: &str) -> Result<Self> {
        let path = workspace::root().join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {file}"))?;
        parse(&text).with_context(|| file.to_owned())
    }

    /// Makes these the counts that the repository keeps in a file.
    pub(super) fn keep(&self, file: &str) -> Result<()> {
        let rows = self.rows.iter().map(|(name, count)| format!("{name}: {count}\n"));
        let text = format!("{HEAD}{COMPILER}: {}\n{}", self.compiler, rows.collect::<String>());
        fs::write(workspace::root().join(file), text).with_context(|| format!("writing {file}"))
    }

    fn get(&self, name: &str) -> Option<u64> {
        self.rows.iter().find(|(other, _)| other == name).map(|(_, count)| *count)
    }

    /// Returns a sentence for each count that has changed too much since `kept`.
    pub(super) fn changes_since(&self, kept: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, count) in &self.rows {
            match kept.get(name) {
                None => found.push(format!("{name}: {count}, and no such row is kept")),
                Some(before) if has_changed(name, before, *count) => {
                    found.push(format!("{name}: {count}, and {before} is kept"));
                }
                Some(_) => {}
            }
        }
        let gone = kept.rows.iter().filter(|(name, _)| self.get(name).is_none());
        found.extend(gone.map(|(name, _)| format!("{name}: kept, and not counted")));
        found
    }
}

fn has_changed(name: &str, before: u64, now: u64) -> bool {
    if name.starts_with(CEILING) {
        now > before
    } else {
        before.abs_diff(now) * 100 > before * PERCENT
    }
}

fn parse(text: &str) -> Result<Counts> {
    let mut counts = Counts { compiler: String::new(), rows: Vec::new() };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(": ").with_context(|| line.to_owned())?;
        if name == COMPILER {
            counts.compiler = value.to_owned();
        } else {
            counts.rows.push((name.to_owned(), value.parse().context(line.to_owned())?));
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rows: &[(&str, u64)]) -> Counts {
        let rows = rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        Counts { compiler: "rustc 1".to_owned(), rows }
    }

    #[test]
    fn a_change_of_more_than_one_percent_is_told_in_both_directions() {
        let kept = counts(&[("copy in", 1_000), ("tour: files", 40)]);
        let told = |count, files| {
            counts(&[("copy in", count), ("tour: files", files)]).changes_since(&kept).len()
        };
        assert_eq!((told(1_010, 40), told(990, 39)), (0, 0));
        assert_eq!((told(1_011, 40), told(989, 40), told(1_000, 41)), (1, 1, 1));
    }

    #[test]
    fn a_script_without_a_row_and_a_row_without_a_script_are_told() {
        let (one, two) = (counts(&[("a", 1)]), counts(&[("a", 1), ("b", 2)]));
        assert_eq!((one.changes_since(&two).len(), two.changes_since(&one).len()), (1, 1));
    }

    #[test]
    fn the_file_is_read() {
        let text = format!("{HEAD}compiler: rustc 1\ncopy in: 7\ntour: files: 9\n");
        assert_eq!(parse(&text).unwrap(), counts(&[("copy in", 7), ("tour: files", 9)]));
        assert!(parse("copy in 7\n").is_err() && parse("copy in: many\n").is_err());
    }
}
