//! The rule on the order of modules: a module uses only modules that are declared before it.
//!
//! So imports form no cycles, and a crate can be read from its first module to its last. The rule
//! holds among the children of each module. Tests may use every module.

use std::collections::HashMap;
use std::path::Path;

use proc_macro2::Ident;
use syn::visit::Visit;

use super::Tree;
use super::tree::{Member, Source, attributes, is_for_tests};

/// Names from the crate's root downwards. The root itself has an empty path.
pub(super) type ModulePath = Vec<String>;

/// The children of each module, in the order of their declarations.
type Children = HashMap<ModulePath, Vec<String>>;

/// Finds every use of a module by a module that is declared before it.
pub(super) fn order(tree: &Tree) -> Vec<String> {
    tree.crates.iter().flat_map(order_in).collect()
}

fn order_in(member: &Member) -> Vec<String> {
    let walks = walks(member);
    let mut children = Children::new();
    for (parent, child) in walks.iter().flat_map(|(_, walk)| &walk.declared) {
        children.entry(parent.clone()).or_default().push(child.clone());
    }
    let mut found = Vec::new();
    for (source, walk) in &walks {
        for used in &walk.used {
            if let Some(later) = later_use(&children, &used.by, &used.path) {
                found.push(format!("{} uses {later}, declared later", source.at(used.line)));
            }
        }
    }
    found.dedup();
    found
}

/// Returns each file of a crate but its tests, with the modules that it declares and uses.
fn walks(member: &Member) -> Vec<(&Source, Walk)> {
    let sources = member.sources.iter().filter(|source| !source.is_test());
    let walks = sources.filter_map(|source| {
        let mut walk = Walk::new(module_of(&source.path)?);
        walk.visit_file(&source.syntax);
        Some((source, walk))
    });
    walks.collect()
}

/// Returns pairs of files, each by its module, of which the first imports from the second.
pub(super) fn imports(member: &Member) -> Vec<(ModulePath, ModulePath)> {
    let walks = walks(member);
    let files: Vec<_> = walks.iter().filter_map(|(source, _)| module_of(&source.path)).collect();
    let home = |path: &ModulePath| {
        let above = (0..=path.len()).rev().map(|length| path[..length].to_vec());
        above.into_iter().find(|module| files.contains(module))
    };
    let mut arrows = Vec::new();
    for (source, walk) in &walks {
        let Some(file) = module_of(&source.path) else { continue };
        let used = walk.used.iter().filter_map(|used| home(&used.path));
        // The file of a folder or crate re-exports the modules below it.
        let used = used.filter(|used| *used != file && !file.starts_with(used));
        arrows.extend(used.map(|used| (file.clone(), used)));
    }
    arrows
}

/// Returns the sibling that `used` names if it is declared after `by` or the module above `by`.
fn later_use(children: &Children, by: &ModulePath, used: &ModulePath) -> Option<String> {
    let depth = by.iter().zip(used).take_while(|(own, other)| own == other).count();
    let siblings = children.get(&by[..depth])?;
    let place = |name: Option<&String>| siblings.iter().position(|sibling| Some(sibling) == name);
    let (own, other) = (place(by.get(depth))?, place(used.get(depth))?);
    (other > own).then(|| siblings[other].clone())
}

/// Returns the module of a file under `src/`; `None` for other files.
pub(super) fn module_of(path: &Path) -> Option<ModulePath> {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    let (_, inside) = parts.split_at_checked(3)?;
    if parts[2] != "src" {
        return None;
    }
    let mut module: ModulePath =
        inside.iter().map(|part| part.trim_end_matches(".rs").to_owned()).collect();
    if matches!(module.last()?.as_str(), "lib" | "main" | "mod") {
        module.pop();
    }
    Some(module)
}

/// A path in the code that begins with `crate`, `self` or `super`.
struct Used {
    by: ModulePath,
    path: ModulePath,
    line: usize,
}

/// Collects the modules that one file declares and uses.
struct Walk {
    module: ModulePath,
    declared: Vec<(ModulePath, String)>,
    used: Vec<Used>,
}

impl Walk {
    fn new(module: ModulePath) -> Walk {
        Walk { module, declared: Vec::new(), used: Vec::new() }
    }

    fn note(&mut self, names: &[Ident]) {
        let Some(first) = names.first() else { return };
        let mut path = match first.to_string().as_str() {
            "crate" => ModulePath::new(),
            "self" | "super" => self.module.clone(),
            _ => return,
        };
        for name in names {
            match name.to_string().as_str() {
                "crate" | "self" => {}
                "super" => drop(path.pop()),
                other => path.push(other.to_owned()),
            }
        }
        let line = first.span().start().line;
        self.used.push(Used { by: self.module.clone(), path, line });
    }

    fn note_tree(&mut self, tree: &syn::UseTree, before: &[Ident]) {
        let with = |name: &Ident| [before, std::slice::from_ref(name)].concat();
        match tree {
            syn::UseTree::Path(path) => self.note_tree(&path.tree, &with(&path.ident)),
            syn::UseTree::Name(name) => self.note(&with(&name.ident)),
            syn::UseTree::Rename(rename) => self.note(&with(&rename.ident)),
            syn::UseTree::Glob(_) => self.note(before),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.note_tree(tree, before));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Walk {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_for_tests(attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let name = item.ident.to_string();
        self.declared.push((self.module.clone(), name.clone()));
        self.module.push(name);
        syn::visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.note_tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.clone()).collect();
        self.note(&names);
        syn::visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> ModulePath {
        path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn files_are_modules() {
        let cases = [
            ("crates/x/src/lib.rs", Some("")),
            ("crates/x/src/a.rs", Some("a")),
            ("crates/x/src/a/b.rs", Some("a::b")),
            ("crates/x/src/a/mod.rs", Some("a")),
            ("crates/x/tests/it.rs", None),
        ];
        for (path, module) in cases {
            assert_eq!(module_of(Path::new(path)), module.map(names), "{path}");
        }
    }

    #[test]
    fn only_earlier_siblings_may_be_used() {
        let children = Children::from([
            (names(""), vec!["a".to_owned(), "b".to_owned()]),
            (names("b"), vec!["c".to_owned(), "d".to_owned()]),
        ]);
        let later = |by, used| later_use(&children, &names(by), &names(used));
        assert_eq!(later("b", "a::Thing"), None);
        assert_eq!(later("a", "b::Thing"), Some("b".to_owned()));
        assert_eq!(later("b::c", "b::d::Thing"), Some("d".to_owned()));
        assert_eq!(later("b::d", "b::c"), None);
        assert_eq!(later("b::c", "b::Thing"), None);
        assert_eq!(later("", "b::c"), None);
    }

    #[test]
    fn every_spelling_of_a_use_is_seen() {
        let text = "use crate::{b::C, d}; fn f() { super::e::g(); } \
                    #[cfg(test)] mod tests { use crate::z; }";
        let mut walk = Walk::new(names("a"));
        walk.visit_file(&syn::parse_file(text).unwrap());
        let used: Vec<_> = walk.used.iter().map(|used| used.path.join("::")).collect();
        assert_eq!(used, ["b::C", "d", "e::g"]);
    }
}
