//! Rules of prose that a program can check (CONTRIBUTING, "Rules of prose", 1 and 8).

use std::fs;

use super::Tree;
use crate::workspace;

/// The widest line of a comment or of a page, in columns.
const WIDTH_MAX: usize = 100;

/// Words that no doc comment begins with: its subject is a thing with a name (rule 1).
const OPENINGS: &[&str] = &["What", "Who", "Whoever", "Whose", "Those", "Nobody"];

/// Finds doc comments that begin with one of [`OPENINGS`].
pub(super) fn openings(tree: &Tree) -> Vec<String> {
    let places = tree
        .sources()
        .flat_map(|source| strange_openings(&source.text).into_iter().map(|line| source.at(line)));
    places.collect()
}

/// Finds lines of comments and of pages that are wider than [`WIDTH_MAX`].
pub(super) fn widths(tree: &Tree) -> Vec<String> {
    let comments = tree
        .sources()
        .flat_map(|source| wide_code(&source.text).into_iter().map(|line| source.at(line)));
    let pages = tree.tracked.iter().filter(|name| name.extension().is_some_and(|it| it == "md"));
    let pages = pages.flat_map(|name| {
        let text = fs::read_to_string(workspace::root().join(name)).unwrap_or_default();
        let lines = wide_page(&text).into_iter();
        lines.map(move |line| format!("{}:{line}", name.display()))
    });
    comments.chain(pages).collect()
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
}
