//! The rule against circles of files, by imports and by method calls.
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

use super::Tree;
use super::modules::{self, ModulePath};
use super::tree::{Member, attributes, is_for_tests};

/// Crates with circles of files, and the number of files in circles. A crate that is not listed has
/// none. The rule holds each number exactly, so a number can only shrink.
const IN_CIRCLES: &[(&str, usize)] = &[("pg", 15), ("sqlite-pg", 8)];

/// A method: the name of its type and its own name.
type Method = (String, String);

/// Pairs of files, each by its module: the first needs the second.
type Arrows = BTreeSet<(ModulePath, ModulePath)>;

/// Finds the crates in which more or fewer files form circles than the table says.
pub(super) fn circles(tree: &Tree) -> Vec<String> {
    tree.crates.iter().filter_map(|member| compare(member, &circles_of(member))).collect()
}

/// Compares the circles of a crate with the table.
fn compare(member: &Member, circles: &[Vec<String>]) -> Option<String> {
    let found: usize = circles.iter().map(Vec::len).sum();
    let known = IN_CIRCLES.iter().find(|(name, _)| *name == member.name);
    let known = known.map_or(0, |(_, files)| *files);
    let lists: Vec<_> = circles.iter().map(|circle| circle.join(", ")).collect();
    match found.cmp(&known) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Less => Some(format!(
            "{}: only {found} files are in circles; write that number into IN_CIRCLES",
            member.name
        )),
        std::cmp::Ordering::Greater => Some(format!(
            "{}: {found} files are in circles, {known} may be: {}",
            member.name,
            lists.join("; ")
        )),
    }
}

/// Returns the circles of a crate's files, each as a sorted list of names.
fn circles_of(member: &Member) -> Vec<Vec<String>> {
    let mut arrows = call_arrows(member);
    arrows.extend(modules::imports(member));
    let names = arrows.iter().flat_map(|(from, to)| [from, to]).map(|path| path.join("/"));
    let names: BTreeSet<String> = names.collect();
    let number = |path: &ModulePath| names.iter().position(|name| *name == path.join("/"));
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
        let source = |name: &str, text: &str| super::super::Source {
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
        assert!(circles_of(&member("impl T { fn c(&self) {} }")).is_empty());
        assert_eq!(circles_of(&member("impl T { fn c(&self) { self.a() } }")), [["a", "b", "c"]]);
        assert_eq!(circles_of(&member("use crate::a::T; impl U { fn c(&self) {} }")), [[""; 0]; 0]);
    }
}
