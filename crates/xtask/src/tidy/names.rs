//! The rule against names that stand for several types of one crate.
//!
//! A reader who meets a name looks up the type once. If two types of a crate have the name, each
//! place has to be read together with its imports.

use std::collections::BTreeMap;

use super::Tree;
use super::tree::{Member, attributes, is_for_tests};

/// The crates with names that stand for several types. A row says exactly how many, so the number
/// can only fall.
const SHARED: &[Shared] = &[
    Shared { of: "cache", names: 1 },
    Shared { of: "config", names: 7 },
    Shared { of: "drive", names: 2 },
    Shared { of: "grammar", names: 1 },
    Shared { of: "mysql", names: 3 },
    Shared { of: "mysql-wire", names: 2 },
    Shared { of: "pool", names: 1 },
    Shared { of: "refrain", names: 16 },
    Shared { of: "sim", names: 2 },
    Shared { of: "sql", names: 4 },
    Shared { of: "sqlite-pg", names: 2 },
    Shared { of: "xtask", names: 25 },
];

/// A crate with names that stand for several types.
struct Shared {
    /// The crate.
    of: &'static str,
    /// The number of names.
    names: usize,
}

/// Finds crates in which more names stand for several types than [`SHARED`] says, and rows that the
/// code has left behind.
pub(super) fn types(tree: &Tree) -> Vec<String> {
    let found = tree.crates.iter().filter_map(|member| {
        let listed = SHARED.iter().find(|row| row.of == member.name).map_or(0, |row| row.names);
        compare(&shared(member), listed).map(|words| format!("{}: {words}", member.name))
    });
    found.collect()
}

/// Compares the names that stand for several types of a crate with their listed number.
fn compare(names: &[String], listed: usize) -> Option<String> {
    let number = names.len();
    match number.cmp(&listed) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Less => {
            Some(format!("{number} names stand for several types: lower the row of SHARED"))
        }
        std::cmp::Ordering::Greater => Some(format!(
            "{number} names stand for several types, and SHARED says {listed}: {}",
            names.join(", ")
        )),
    }
}

/// Returns the names that stand for several types of a crate, sorted. Types of tests do not count.
fn shared(member: &Member) -> Vec<String> {
    let mut types: BTreeMap<String, usize> = BTreeMap::new();
    for source in member.sources.iter().filter(|source| !source.is_test()) {
        count(&source.syntax.items, &mut types);
    }
    types.into_iter().filter(|(_, number)| *number > 1).map(|(name, _)| name).collect()
}

/// Counts the types and traits that these items define. An alias is no type of its own.
fn count(items: &[syn::Item], types: &mut BTreeMap<String, usize>) {
    for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
        let name = match item {
            syn::Item::Struct(item) => &item.ident,
            syn::Item::Enum(item) => &item.ident,
            syn::Item::Union(item) => &item.ident,
            syn::Item::Trait(item) => &item.ident,
            syn::Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    count(items, types);
                }
                continue;
            }
            _ => continue,
        };
        *types.entry(name.to_string()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::*;

    #[test]
    fn names_of_several_types_are_found() {
        let source = |name: &str, text: &str| Source {
            path: format!("crates/x/src/{name}.rs").into(),
            text: text.to_owned(),
            syntax: syn::parse_file(text).unwrap(),
        };
        let sources = vec![
            source("a", "struct T; enum U {} mod inner { trait V {} } type W = T;"),
            source("b", "struct V; struct W; #[cfg(test)] mod tests { struct T; struct U; }"),
            source("c", "enum T {} fn f() {}"),
        ];
        let member = Member { name: "x".to_owned(), manifest: toml::Table::new(), sources };
        assert_eq!(shared(&member), ["T", "V"]);
    }

    #[test]
    fn a_row_holds_a_crate_exactly() {
        let names = |number: usize| vec!["T".to_owned(); number];
        assert_eq!(compare(&names(2), 2), None);
        assert!(compare(&names(3), 2).is_some_and(|words| words.ends_with("T, T, T")));
        assert!(compare(&names(1), 2).is_some_and(|words| words.contains("lower")));
    }
}
