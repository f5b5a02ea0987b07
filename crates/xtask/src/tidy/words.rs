//! Rules about lines of text.

use std::fs;

use super::{Source, Tree};
use crate::workspace;

/// The most lines of a file, without its tests.
const FILE_LINES_MAX: usize = 500;
/// The widest line of code, in characters.
const LINE_WIDTH_MAX: usize = 160;

/// Finds files without a doc comment on their first line.
pub(super) fn first_lines(tree: &Tree) -> Vec<String> {
    let undocumented = tree.sources().filter(|source| !source.text.starts_with("//! "));
    undocumented.map(|source| source.at(1)).collect()
}

/// Finds files with more than [`FILE_LINES_MAX`] lines.
pub(super) fn file_lengths(tree: &Tree) -> Vec<String> {
    let lengths = tree.sources().map(|source| (source, source.production_lines()));
    let long = lengths.filter(|(_, lines)| *lines > FILE_LINES_MAX);
    long.map(|(source, lines)| format!("{} has {lines}", source.path.display())).collect()
}

/// Finds lines with more than [`LINE_WIDTH_MAX`] characters.
pub(super) fn line_widths(tree: &Tree) -> Vec<String> {
    let wide = |source: &Source| -> Vec<String> {
        let lines = source.text.lines().zip(1..);
        let wide = lines.filter(|(line, _)| line.chars().count() > LINE_WIDTH_MAX);
        wide.map(|(_, number)| source.at(number)).collect()
    };
    tree.sources().flat_map(wide).collect()
}

/// Finds words that promise work for later.
pub(super) fn leftovers(tree: &Tree) -> Vec<String> {
    // The words are spelled in parts, so that this file does not have them.
    let words = [concat!("FIX", "ME"), concat!("X", "XX"), concat!("TO", "DO")];
    lines_with(tree, |line| {
        let mut tokens = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        tokens.any(|token| words.contains(&token))
    })
}

/// Finds paths that exist only on one developer's machine.
pub(super) fn machine_paths(tree: &Tree) -> Vec<String> {
    let paths = [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];
    lines_with(tree, |line| paths.iter().any(|path| line.contains(path)))
}

/// Crates that know no protocol, so that another may use them.
const OF_NO_PROTOCOL: &[&str] = &["cache", "drive", "pool"];
/// Words of PostgreSQL's alone, in small letters.
const OF_POSTGRES: [&str; 3] = ["postgres", "sqlstate", "pg_"];
/// The file that says what the pool leaves out.
const SAYS_SO: &str = "crates/pool/src/lib.rs";

/// Finds words of PostgreSQL's in crates that know no protocol.
pub(super) fn protocols(tree: &Tree) -> Vec<String> {
    let sources = tree.code_of(OF_NO_PROTOCOL).filter(|source| !source.path.ends_with(SAYS_SO));
    sources.flat_map(of_postgres).collect()
}

fn of_postgres(source: &Source) -> Vec<String> {
    let lines = source.text.lines().map(str::to_lowercase).zip(1..);
    let found = lines.filter(|(line, _)| OF_POSTGRES.iter().any(|word| line.contains(word)));
    found.map(|(_, number)| source.at(number)).collect()
}

/// Returns the lines of all tracked texts for which `found` is true. Files that are not text are
/// skipped.
fn lines_with(tree: &Tree, found: impl Fn(&str) -> bool) -> Vec<String> {
    let mut places = Vec::new();
    for name in &tree.tracked {
        let Ok(text) = fs::read_to_string(workspace::root().join(name)) else { continue };
        let lines = text.lines().zip(1..).filter(|(line, _)| found(line));
        places.extend(lines.map(|(_, number)| format!("{}:{number}", name.display())));
    }
    places
}
