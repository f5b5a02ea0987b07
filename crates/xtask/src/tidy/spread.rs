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

/// Finds types whose methods stand in more files than they may.
pub(super) fn files(tree: &Tree) -> Vec<String> {
    let of_member = |member| {
        let spread = files_of(member).into_iter().filter(|(_, files)| *files > FILES_MAX);
        spread.map(|(name, files)| {
            let of = &member.name;
            format!("{of}: {name} has methods in {files} files, and at most {FILES_MAX} may")
        })
    };
    tree.crates.iter().flat_map(of_member).collect()
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
}
