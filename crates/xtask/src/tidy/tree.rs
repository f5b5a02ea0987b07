//! The tree that rules read: every crate's sources, parsed, and the names of all tracked files.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use syn::spanned::Spanned;

use crate::workspace;

/// The workspace.
pub struct Tree {
    /// Every crate under `crates/`.
    pub crates: Vec<Member>,
    /// Every file that git tracks, relative to the root.
    pub tracked: Vec<PathBuf>,
}

/// A crate.
pub struct Member {
    /// The folder's name.
    pub name: String,
    /// The crate's `Cargo.toml`.
    pub manifest: toml::Table,
    /// Every `.rs` file of the crate.
    pub sources: Vec<Source>,
}

/// A `.rs` file.
pub struct Source {
    /// The path relative to the root.
    pub path: PathBuf,
    /// The file's text.
    pub text: String,
    /// The parsed file.
    pub syntax: syn::File,
}

impl Tree {
    /// Reads the workspace from disk.
    pub fn read() -> Result<Tree> {
        let crates = workspace::crates()?.iter().map(Member::read).collect::<Result<_>>()?;
        Ok(Tree { crates, tracked: workspace::tracked_files()? })
    }

    /// Returns every source of every crate.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.crates.iter().flat_map(|member| &member.sources)
    }

    /// Sources under `src/` of the crates of these names.
    pub fn code_of<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a Source> {
        let members = self.crates.iter().filter(|member| names.contains(&member.name.as_str()));
        members.flat_map(|member| &member.sources).filter(|source| !source.is_test())
    }
}

impl Member {
    fn read(at: &workspace::Crate) -> Result<Member> {
        let manifest = fs::read_to_string(at.dir.join("Cargo.toml"))?.parse()?;
        let files = workspace::rust_files(&at.dir)?;
        let sources = files.iter().map(|file| Source::read(file)).collect::<Result<_>>()?;
        Ok(Member { name: at.name.clone(), manifest, sources })
    }

    /// Returns the crate's roots: `src/lib.rs`, `src/main.rs` or both.
    pub fn roots(&self) -> impl Iterator<Item = &Source> {
        let is_root = |path: &Path| path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
        self.sources.iter().filter(move |source| is_root(&source.path))
    }
}

impl Source {
    fn read(file: &Path) -> Result<Source> {
        let text = fs::read_to_string(file)?;
        let syntax = syn::parse_file(&text).with_context(|| format!("{}", file.display()))?;
        let path = file.strip_prefix(workspace::root())?.to_path_buf();
        Ok(Source { path, text, syntax })
    }

    /// Whether the whole file is tests or benchmarks.
    pub fn is_test(&self) -> bool {
        let mut folders = self.path.iter().map(|part| part.to_string_lossy());
        folders.any(|part| ["tests", "tests.rs", "benches"].contains(&part.as_ref()))
    }

    /// Returns the number of lines without those of tests.
    pub fn production_lines(&self) -> usize {
        if self.is_test() {
            return 0;
        }
        let tests = self.test_ranges().map(|range| range.count()).sum::<usize>();
        self.text.lines().count() - tests
    }

    /// Returns the ranges of lines, from 1, of items that are compiled only for tests.
    fn test_ranges(&self) -> impl Iterator<Item = RangeInclusive<usize>> {
        let tests = self.syntax.items.iter().filter(|item| is_for_tests(attributes(item)));
        tests.map(|item| {
            let first = attributes(item).first().map_or(item.span(), Spanned::span);
            first.start().line..=item.span().end().line
        })
    }

    /// Returns `path:line`, for messages.
    pub fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}

/// Whether the attributes have `#[cfg(test)]`.
pub(super) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.parse_args::<syn::Path>();
        attribute.path().is_ident("cfg") && condition.is_ok_and(|path| path.is_ident("test"))
    })
}

/// Returns the attributes of an item, or none for kinds of items without code.
pub(super) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Const(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_not_production() {
        let text = "//! Doc.\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        let syntax = syn::parse_file(text).unwrap();
        let source = Source { path: "crates/x/src/y.rs".into(), text: text.into(), syntax };
        assert_eq!(source.production_lines(), 3);
    }
}
