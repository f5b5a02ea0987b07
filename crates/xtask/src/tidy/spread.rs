//! The rule against types whose methods stand all over a crate.
//!
//! A method sees all of its type. So a type with methods in many files is a drawer: no file says
//! which part of the type's state it can touch. A function that takes the parts that it needs says
//! so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Tree;
use super::calls;
use super::tree::Member;

/// The most files of a crate in which one type has methods.
const FILES_MAX: usize = 8;

/// The types that have methods in more files. A row says exactly in how many, so the number can
/// only fall.
const SPREAD: &[Spread] = &[
    Spread { of: "sqlite-pg", name: "Machine", files: 10 },
    Spread { of: "sqlite-pg", name: "Translator", files: 32 },
];

/// A type that has methods in more than [`FILES_MAX`] files.
struct Spread {
    /// The crate.
    of: &'static str,
    /// The type.
    name: &'static str,
    /// The number of files.
    files: usize,
}

/// Finds types whose methods stand in more files than they may, and rows of [`SPREAD`] that the
/// code has left behind.
pub(super) fn files(tree: &Tree) -> Vec<String> {
    let found = tree.crates.iter().flat_map(|member| {
        let listed: BTreeMap<&str, usize> = SPREAD
            .iter()
            .filter(|row| row.of == member.name)
            .map(|row| (row.name, row.files))
            .collect();
        let found = compare(&files_of(member), &listed);
        found.into_iter().map(|words| format!("{}: {words}", member.name))
    });
    found.collect()
}

/// Compares a crate's types, and the number of files with methods of each, with the rows.
fn compare(types: &BTreeMap<String, usize>, listed: &BTreeMap<&str, usize>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, files) in types {
        match listed.get(name.as_str()) {
            None if *files > FILES_MAX => found
                .push(format!("{name} has methods in {files} files, and at most {FILES_MAX} may")),
            Some(most) if files > most => {
                found.push(format!("{name} has methods in {files} files, and SPREAD says {most}"));
            }
            Some(most) if files < most => {
                found.push(format!("{name} has methods in {files} files: lower the row of SPREAD"));
            }
            _ => {}
        }
    }
    let gone = listed.keys().filter(|name| !types.contains_key(**name));
    found.extend(gone.map(|name| format!("SPREAD has {name}, which has no methods")));
    found
}

/// Returns the number of files in which each type of a crate has methods.
fn files_of(member: &Member) -> BTreeMap<String, usize> {
    let mut files: BTreeMap<String, BTreeSet<&Path>> = BTreeMap::new();
    for source in member.sources.iter().filter(|source| !source.is_test()) {
        for (of, _) in calls::methods(source) {
            files.entry(of).or_default().insert(&source.path);
        }
    }
    files.into_iter().map(|(of, files)| (of, files.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::*;

    #[test]
    fn files_with_methods_of_a_type_are_counted() {
        let source = |name: &str, text: &str| Source {
            path: format!("crates/x/src/{name}.rs").into(),
            text: text.to_owned(),
            syntax: syn::parse_file(text).unwrap(),
        };
        let sources = vec![
            source("a", "impl T { fn a(&self) {} fn b(&self) {} } impl U { fn a(&self) {} }"),
            source(
                "b",
                "impl<A> T<A> { fn c(&self) {} } impl Drop for U { fn drop(&mut self) {} }",
            ),
            source("c", "#[cfg(test)] mod tests { impl T { fn d(&self) {} } }"),
        ];
        let member = Member { name: "x".to_owned(), manifest: toml::Table::new(), sources };
        let found = files_of(&member).into_iter().collect::<Vec<_>>();
        assert_eq!(found, [("T".to_owned(), 2), ("U".to_owned(), 1)]);
    }

    #[test]
    fn a_row_holds_a_type_exactly() {
        let told = |files: usize, listed: &[(&'static str, usize)]| {
            let types = BTreeMap::from([("T".to_owned(), files)]);
            compare(&types, &listed.iter().copied().collect()).len()
        };
        assert_eq!((told(FILES_MAX, &[]), told(FILES_MAX + 1, &[])), (0, 1));
        assert_eq!(
            (told(12, &[("T", 12)]), told(13, &[("T", 12)]), told(11, &[("T", 12)])),
            (0, 1, 1)
        );
        assert_eq!(told(1, &[("U", 9)]), 1);
    }
}
