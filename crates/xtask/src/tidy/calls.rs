//! The rule against circles of files and of folders, by imports and by method calls.
//!
//! A method of a type may stand in any file of its crate, and a method call names no file: two
//! files may need each other although neither imports from the other. This rule therefore resolves
//! calls whose type is in the syntax: methods of `self`, and functions after `Self::` or a type's
//! name. It guesses nothing: a call has no arrow if its receiver is another expression, or if two
//! files define the method for types of one name.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::Visit;

use super::modules::{self, ModulePath};
use super::tree::{Member, attributes, is_for_tests};
use super::{Source, Tree};

/// The most circles that [`CIRCLES`] may list.
const CIRCLES_MAX: usize = 3;

/// The circles of files that stay. The rule holds each exactly, so a circle can only shrink or go.
const CIRCLES: &[Circle] = &[
    Circle {
        of: "pg",
        files: &["pipeline/outstanding", "pipeline/outstanding/syncs"],
        because: "a COPY's Syncs are a part of the queue of outstanding requests, kept in a file",
    },
    Circle {
        of: "sqlite-pg",
        files: &[
            "dialect/calls",
            "dialect/expr",
            "dialect/from",
            "dialect/select",
            "dialect/sets",
            "dialect/sublinks",
            "dialect/windows",
            "dialect/with",
        ],
        because: "in SQL an expression holds queries, and a query holds expressions",
    },
];

/// The circles of the folders of a crate that stay.
const FOLDERS: &[Circle] = &[];

const _: () = assert!(CIRCLES.len() <= CIRCLES_MAX, "too many circles are listed");

/// A circle of files that stays.
struct Circle {
    /// The crate.
    of: &'static str,
    /// The files by their modules, or the folders, sorted.
    files: &'static [&'static str],
    /// The reason why the circle stays.
    because: &'static str,
}

impl Circle {
    fn is(&self, files: &[String]) -> bool {
        files.iter().eq(self.files)
    }
}

/// A method: the name of its type and its own name.
pub(super) type Method = (String, String);

/// Pairs of files, each by its module: the first needs the second.
type Arrows = BTreeSet<(ModulePath, ModulePath)>;

/// Finds circles that [`CIRCLES`] or [`FOLDERS`] does not list, and rows of them without a circle.
pub(super) fn circles(tree: &Tree) -> Vec<String> {
    let tables: [(&[Circle], Name); 2] = [(CIRCLES, file), (FOLDERS, folder)];
    let found = tree.crates.iter().flat_map(|member| {
        tables.into_iter().flat_map(move |(table, name)| {
            let listed = table.iter().filter(|circle| circle.of == member.name).collect::<Vec<_>>();
            let found = compare(&circles_of(member, name), &listed);
            found.into_iter().map(|words| format!("{}: {words}", member.name))
        })
    });
    found.collect()
}

/// Returns what a module counts as: its file or its folder.
type Name = fn(&ModulePath) -> String;

fn file(path: &ModulePath) -> String {
    path.join("/")
}

fn folder(path: &ModulePath) -> String {
    path.first().cloned().unwrap_or_default()
}

/// Compares the circles of a crate with its rows in the table.
fn compare(circles: &[Vec<String>], listed: &[&Circle]) -> Vec<String> {
    let gone = listed.iter().filter(|row| !circles.iter().any(|found| row.is(found)));
    let gone = gone.map(|row| {
        let (files, because) = (row.files.join(", "), row.because);
        format!("CIRCLES lists a circle that the code has not: {files} ({because})")
    });
    let others = circles.iter().filter(|found| !listed.iter().any(|row| row.is(found)));
    let others = others.map(|circle| format!("these form a circle: {}", circle.join(", ")));
    gone.chain(others).collect()
}

/// Returns the circles of a crate's files or folders, each as a sorted list of names.
fn circles_of(member: &Member, name: Name) -> Vec<Vec<String>> {
    let mut arrows = call_arrows(member);
    arrows.extend(modules::imports(member));
    let names: BTreeSet<String> = arrows.iter().flat_map(|(a, b)| [name(a), name(b)]).collect();
    let number = |path: &ModulePath| names.iter().position(|other| *other == name(path));
    let edges = arrows.iter().filter_map(|(from, to)| Some((number(from)?, number(to)?)));
    let graph: DiGraphMap<usize, ()> = edges.map(|(from, to)| (from, to, ())).collect();
    let mut circles: Vec<Vec<String>> = tarjan_scc(&graph)
        .into_iter()
        .filter(|circle| circle.len() > 1)
        .map(|circle| {
            let files = circle.into_iter().filter_map(|file| names.iter().nth(file).cloned());
            files.collect::<BTreeSet<_>>().into_iter().collect()
        })
        .collect();
    circles.sort();
    circles
}

/// Returns pairs of files of which the first calls a method in the second.
fn call_arrows(member: &Member) -> Arrows {
    let sources = member.sources.iter().filter(|source| !source.is_test());
    let walks = sources.filter_map(|source| {
        let mut walk = Walk::default();
        walk.visit_file(&source.syntax);
        Some((modules::module_of(&source.path)?, walk))
    });
    let walks: Vec<_> = walks.collect();
    let mut homes: BTreeMap<&Method, BTreeSet<&ModulePath>> = BTreeMap::new();
    for (file, walk) in &walks {
        for method in &walk.defined {
            homes.entry(method).or_default().insert(file);
        }
    }
    let mut arrows = Arrows::new();
    for (file, walk) in &walks {
        for method in &walk.called {
            let Some(home) = homes.get(method).filter(|homes| homes.len() == 1) else { continue };
            let other = home.iter().filter(|home| **home != file);
            arrows.extend(other.map(|home| (file.clone(), (*home).clone())));
        }
    }
    arrows
}

/// Returns the methods that a file defines outside of tests and of traits' implementations, each
/// with the name of its type.
pub(super) fn methods(source: &Source) -> BTreeSet<Method> {
    let mut walk = Walk::default();
    walk.visit_file(&source.syntax);
    walk.defined
}

/// Collects the methods that one file defines and calls.
#[derive(Default)]
struct Walk {
    /// The type of the current `impl`.
    of: Option<String>,
    defined: BTreeSet<Method>,
    called: BTreeSet<Method>,
}

impl Walk {
    /// Notes a call, if the type is known.
    fn call(&mut self, of: Option<String>, name: &syn::Ident) {
        self.called.extend(of.map(|of| (of, name.to_string())));
    }
}

impl<'ast> Visit<'ast> for Walk {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_for_tests(attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let before = std::mem::replace(&mut self.of, type_name(&item.self_ty));
        if item.trait_.is_none()
            && let Some(of) = &self.of
        {
            let functions = item.items.iter().filter_map(|item| match item {
                syn::ImplItem::Fn(function) => Some(function.sig.ident.to_string()),
                _ => None,
            });
            self.defined.extend(functions.map(|name| (of.clone(), name)));
        }
        syn::visit::visit_item_impl(self, item);
        self.of = before;
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if matches!(&*call.receiver, syn::Expr::Path(receiver) if receiver.path.is_ident("self")) {
            self.call(self.of.clone(), &call.method);
        }
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let mut names = path.path.segments.iter().rev().map(|segment| &segment.ident);
        if let (Some(name), Some(of)) = (names.next(), names.next()) {
            let of = if of == "Self" { self.of.clone() } else { Some(of.to_string()) };
            self.call(of, name);
        }
        syn::visit::visit_expr_path(self, path);
    }
}

/// Returns the written name of a type without its path.
fn type_name(written: &syn::Type) -> Option<String> {
    match written {
        syn::Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_seen_where_their_type_is_written() {
        let text = "impl Link<'_> { fn a(&self) { self.b(); Self::c(); self.pool.d(); Other::e(); } } \
                    impl Drop for Link<'_> { fn drop(&mut self) { self.f(); } } \
                    #[cfg(test)] mod tests { impl Link<'_> { fn g(&self) { self.h() } } }";
        let mut walk = Walk::default();
        walk.visit_file(&syn::parse_file(text).unwrap());
        let names = |methods: &BTreeSet<Method>| -> Vec<String> {
            methods.iter().map(|(of, name)| format!("{of}::{name}")).collect()
        };
        assert_eq!(names(&walk.defined), ["Link::a"]);
        assert_eq!(names(&walk.called), ["Link::b", "Link::c", "Link::f", "Other::e"]);
    }

    #[test]
    fn two_files_that_call_each_other_are_a_circle() {
        let source = |name: &str, text: &str| Source {
            path: format!("crates/x/src/{name}.rs").into(),
            text: text.to_owned(),
            syntax: syn::parse_file(text).unwrap(),
        };
        let member = |last: &str| Member {
            name: "x".to_owned(),
            manifest: toml::Table::new(),
            sources: vec![
                source("a", "impl T { fn a(&self) { self.b() } }"),
                source("b", "impl T { fn b(&self) { self.c() } }"),
                source("c", last),
            ],
        };
        let circles = |last| circles_of(&member(last), file);
        assert!(circles("impl T { fn c(&self) {} }").is_empty());
        assert_eq!(circles("impl T { fn c(&self) { self.a() } }"), [["a", "b", "c"]]);
        assert_eq!(circles("use crate::a::T; impl U { fn c(&self) {} }"), [[""; 0]; 0]);
    }

    #[test]
    fn two_folders_of_which_each_calls_the_other_are_a_circle_though_no_files_are() {
        let source = |name: &str, text: &str| Source {
            path: format!("crates/x/src/{name}.rs").into(),
            text: text.to_owned(),
            syntax: syn::parse_file(text).unwrap(),
        };
        let sources = vec![
            source("a/one", "impl T { fn one(&self) { self.two() } }"),
            source("b/two", "impl T { fn two(&self) {} }"),
            source("b/three", "impl T { fn three(&self) { self.four() } }"),
            source("a/four", "impl T { fn four(&self) {} }"),
        ];
        let member = Member { name: "x".to_owned(), manifest: toml::Table::new(), sources };
        assert!(circles_of(&member, file).is_empty());
        assert_eq!(circles_of(&member, folder), [["a", "b"]]);
    }

    #[test]
    fn circles_are_those_of_the_table() {
        let circle = |files: &str| files.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let row = Circle { of: "x", files: &["a", "b"], because: "they do" };
        assert_eq!(compare(&[circle("a b")], &[&row]), [""; 0]);
        assert_eq!(compare(&[circle("a b"), circle("c d e")], &[&row]).len(), 1);
        let larger = compare(&[circle("a b c")], &[&row]);
        assert_eq!(larger.len(), 2, "{larger:?}");
        assert_eq!(compare(&[], &[&row]).len(), 1);
    }
}
