//! Rules of prose that a program can check (CONTRIBUTING, "Rules of prose", 1 and 8).
//!
//! Texts older than these rules break some of them. [`CEILINGS`] has the number of such places in
//! each part of the repository, and the rules hold that number exactly: a change may add none, and
//! a change that mends some lowers the ceiling. So the numbers only shrink.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::Tree;
use crate::workspace;

/// The widest line of a comment or of a page, in columns.
const WIDTH_MAX: usize = 100;

/// Words that no doc comment begins with: its subject is a thing with a name (rule 1).
const OPENINGS: &[&str] = &["What", "Who", "Whoever", "Whose", "Those", "Nobody"];

/// The numbers of places of a part of the repository that still break each rule.
#[derive(Clone, Copy)]
struct Ceiling {
    /// A crate by its folder's name, or [`PAGES`].
    of: &'static str,
    /// Doc comments that begin with one of [`OPENINGS`].
    openings: usize,
    /// Lines wider than [`WIDTH_MAX`].
    widths: usize,
}

const fn ceiling(of: &'static str, openings: usize, widths: usize) -> Ceiling {
    Ceiling { of, openings, widths }
}

/// The part of all Markdown outside of the crates.
const PAGES: &str = "pages";

/// The parts with places that break a rule. Other parts have none.
const CEILINGS: &[Ceiling] = &[ceiling("pool", 71, 0)];

/// Finds doc comments that begin with one of [`OPENINGS`].
pub(super) fn openings(tree: &Tree) -> Vec<String> {
    let places = tree.sources().flat_map(|source| {
        let lines = strange_openings(&source.text).into_iter();
        lines.map(|line| (part(&source.path), source.at(line)))
    });
    held(places, "openings", |ceiling| ceiling.openings)
}

/// Finds lines of comments and of pages that are wider than [`WIDTH_MAX`].
pub(super) fn widths(tree: &Tree) -> Vec<String> {
    let comments = tree.sources().flat_map(|source| {
        let lines = wide_code(&source.text).into_iter();
        lines.map(|line| (part(&source.path), source.at(line)))
    });
    let pages = tree.tracked.iter().filter(|name| name.extension().is_some_and(|it| it == "md"));
    let pages = pages.flat_map(|name| {
        let text = fs::read_to_string(workspace::root().join(name)).unwrap_or_default();
        let lines = wide_page(&text).into_iter();
        lines.map(move |line| (part(name), format!("{}:{line}", name.display())))
    });
    held(comments.chain(pages), "widths", |ceiling| ceiling.widths)
}

/// Returns the part of the repository that a file belongs to: its crate, or the pages.
fn part(file: &Path) -> String {
    let mut folders = file.iter().map(|part| part.to_string_lossy().into_owned());
    let crate_folder = (folders.next().as_deref() == Some("crates")).then(|| folders.next());
    crate_folder.flatten().unwrap_or_else(|| PAGES.to_owned())
}

/// Compares the places in each part with its ceiling. Returns advice for parts that differ from it.
fn held(
    places: impl Iterator<Item = (String, String)>,
    rule: &str,
    most: fn(&Ceiling) -> usize,
) -> Vec<String> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (part, place) in places {
        found.entry(part).or_default().push(place);
    }
    for ceiling in CEILINGS {
        found.entry(ceiling.of.to_owned()).or_default();
    }
    let allowed = |part: &str| CEILINGS.iter().find(|it| it.of == part).map_or(0, most);
    let differing = found.iter().filter(|(part, places)| places.len() != allowed(part));
    differing.map(|(part, places)| advice(part, places, rule, allowed(part))).collect()
}

/// Returns advice for a part that has more or fewer places than its ceiling.
fn advice(part: &str, places: &[String], rule: &str, allowed: usize) -> String {
    let count = places.len();
    if count < allowed {
        return format!("{part} has {count}: lower its `{rule}` in tidy/prose.rs from {allowed}");
    }
    format!("{part} has {count}, {allowed} at most; one of these is new: {}", places.join(", "))
}

/// Returns the lines on which a doc comment begins with one of [`OPENINGS`].
fn strange_openings(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut before = false;
    for (line, number) in text.lines().zip(1..) {
        let doc = doc_comment(line);
        let first = doc.and_then(|doc| doc.split_whitespace().next());
        if !before && first.is_some_and(|word| OPENINGS.contains(&word)) {
            found.push(number);
        }
        before = doc.is_some();
    }
    found
}

/// Returns the words of a line of a doc comment.
fn doc_comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
}

/// Returns the lines of Rust that are too wide, without those that have a string literal: `rustfmt`
/// breaks code, but not around string literals.
fn wide_code(text: &str) -> Vec<usize> {
    let is_exempt =
        |line: &str| !line.trim_start().starts_with("//") && line.contains('"') || is_url(line);
    wide(text.lines().zip(1..).filter(|(line, _)| !is_exempt(line)))
}

/// Returns the lines of a page that are too wide. A row of a table and a line of code cannot be
/// broken without a change of their meaning, and a URL not at all.
fn wide_page(text: &str) -> Vec<usize> {
    let mut in_code = false;
    wide(text.lines().zip(1..).filter(|(line, _)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !line.starts_with('|') && !is_url(line)
    }))
}

fn is_url(line: &str) -> bool {
    line.contains("://")
}

fn wide<'a>(lines: impl Iterator<Item = (&'a str, usize)>) -> Vec<usize> {
    let wide = lines.filter(|(line, _)| line.chars().count() > WIDTH_MAX);
    wide.map(|(_, number)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doc_comment_begins_with_a_thing() {
        let text = "//! What it is.\n//! Who.\n\n/// The pool.\n/// Those it has.\nfn a() {}\n\
                    // What a comment says.\n/// Whatever.\n/// Nobody.\n\n/// Nobody has it.\n";
        assert_eq!(strange_openings(text), [1, 11]);
    }

    #[test]
    fn wide_lines_are_found_outside_of_tables_urls_and_strings() {
        let long = "x".repeat(WIDTH_MAX);
        let code = format!("// {long}\n    f(\"{long}\");\n// https://{long}\n{long}\n{long}y\n");
        assert_eq!(wide_code(&code), [1, 5]);
        let page = format!("a {long}\n| {long} |\n```\n{long} b\n```\nhttp://{long}\n- {long}\n");
        assert_eq!(wide_page(&page), [1, 7]);
    }

    #[test]
    fn a_ceiling_only_shrinks() {
        let places = ["a.rs:1".to_owned(), "a.rs:2".to_owned()];
        let fewer = advice("pg", &places, "widths", 3);
        assert_eq!(fewer, "pg has 2: lower its `widths` in tidy/prose.rs from 3");
        let more = advice("pg", &places, "widths", 1);
        assert_eq!(more, "pg has 2, 1 at most; one of these is new: a.rs:1, a.rs:2");
        assert_eq!(part(Path::new("crates/pg/src/lib.rs")), "pg");
        assert_eq!(part(Path::new("docs/config.md")), PAGES);
    }
}
