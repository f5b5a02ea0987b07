//! The rule about the reading tour: few files, and not many lines of code.
//!
//! The tour is the way of one pooled, prepared query. What only a miss, an error or a COPY needs
//! stands in other files, or the tour grows beyond one sitting.

use std::fs;

use super::Tree;
use crate::workspace;

/// The page with the tour. Its table has a row for each file to open.
const PAGE: &str = "docs/LIFE_OF_A_QUERY.md";
/// The most files of the tour.
const TOUR_FILES_MAX: usize = 8;
/// The most lines of code in them, without comments, empty lines and tests.
const TOUR_LINES_MAX: usize = 1_600;

/// Finds a tour that opens too many files, or that has too many lines.
pub(super) fn length(tree: &Tree) -> Vec<String> {
    let page = fs::read_to_string(workspace::root().join(PAGE)).unwrap_or_default();
    let files: Vec<&str> = page.lines().filter_map(file_of_row).collect();
    let of_tour =
        tree.sources().filter(|source| files.iter().any(|file| source.path.ends_with(file)));
    let counts: Vec<usize> =
        of_tour.map(|source| code_lines(&source.text, source.production_lines())).collect();
    let lines: usize = counts.iter().sum();
    let mut found = Vec::new();
    if files.is_empty() || counts.len() != files.len() {
        let (named, exist) = (files.len(), counts.len());
        found.push(format!("{PAGE}: the table names {named} files, and {exist} of them exist"));
    }
    if files.len() > TOUR_FILES_MAX {
        found.push(format!("{PAGE}: {} files, {TOUR_FILES_MAX} at most", files.len()));
    }
    if lines > TOUR_LINES_MAX {
        found.push(format!("{PAGE}: {lines} lines of code, {TOUR_LINES_MAX} at most"));
    }
    found
}

/// Returns the file that a row of the tour's table names.
fn file_of_row(line: &str) -> Option<&str> {
    let file = line.strip_prefix("| ")?.split('|').nth(1)?.trim().trim_matches('`');
    file.ends_with(".rs").then_some(file)
}

/// Counts the lines of code among the first `lines` lines of a file.
fn code_lines(text: &str, lines: usize) -> usize {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    text.lines().take(lines).filter(is_code).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_files_and_code_is_counted_without_comments() {
        assert_eq!(file_of_row("| 1 | `crates/a/src/b.rs` |"), Some("crates/a/src/b.rs"));
        assert_eq!(file_of_row("| | file |"), None);
        assert_eq!(code_lines("//! Doc.\n\nfn a() {\n    // Why.\n}\nfn b() {}\n", 5), 2);
    }
}
