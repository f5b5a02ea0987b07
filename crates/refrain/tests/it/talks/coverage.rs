//! Every case of the catalogue is tested: here, or in the place that a table names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::talks;

/// Cases of the catalogue.
const CASES: std::ops::RangeInclusive<u32> = 1..=96;

/// Cases that neither a conversation nor a test here is about: where they are tested instead, or
/// why they are not.
const NOT_BY_TALK: &[(u32, &str)] = &[
    (66, "nothing is retried behind the client's back: the error is its own, as in E63"),
    (80, "there is one server for a database: replicas are not there yet"),
    (92, "engine: registry::the_purge_takes_what_nobody_has_and_nothing_else, a shard at a time"),
];

/// Returns the cases in a name such as `e05_close_and_parse`.
fn numbers(name: &str) -> impl Iterator<Item = u32> {
    name.split('_').filter_map(|part| part.strip_prefix('e')?.parse().ok())
}

/// Returns the files of a folder and of the folders in it.
fn files_of(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_of(&path) } else { vec![path] }).collect()
}

fn covered() -> BTreeSet<u32> {
    let files = files_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"));
    let sources = files.into_iter().filter_map(|file| fs::read_to_string(file).ok());
    let sources = sources.collect::<Vec<_>>();
    let functions = sources.iter().flat_map(|source| source.lines()).filter_map(|line| {
        line.strip_prefix("fn ").and_then(|rest| rest.split('(').next()).map(str::to_owned)
    });
    let talks = talks::all().into_iter().map(|(name, _)| name);
    functions.chain(talks).flat_map(|name| numbers(&name).collect::<Vec<_>>()).collect()
}

#[test]
fn every_case_of_the_catalogue_is_tested() {
    let covered = covered();
    let listed = |case: u32| NOT_BY_TALK.iter().any(|(number, _)| *number == case);
    let missing: Vec<_> = CASES.filter(|case| !covered.contains(case) && !listed(*case)).collect();
    let needless: Vec<_> = CASES.filter(|case| covered.contains(case) && listed(*case)).collect();
    assert!(missing.is_empty(), "nowhere: {missing:?}");
    assert!(needless.is_empty(), "in the table, but there is a test: {needless:?}");
}
