//! Rules about the content of code: async functions and letters of messages.

use proc_macro2::Span;
use syn::visit::Visit;

use super::Tree;
use super::tree::{attributes, is_for_tests};

/// Crates that decide and so never wait.
const DECIDING: &[&str] = &["pg-wire", "mysql-wire", "sql", "pool", "pg", "mysql"];
/// Crates that handle messages but leave their letters to `pg-wire`.
const TAGLESS: &[&str] = &["pool", "pg", "refrain"];
/// Files of those crates that match letters other than message tags.
const OTHER_LETTERS: &[&str] = &["crates/pg/src/auth/scram.rs"];

/// Finds async functions and blocks in [`DECIDING`] crates.
pub(super) fn async_functions(tree: &Tree) -> Vec<String> {
    found_in(tree, DECIDING, |walk| &walk.waits)
}

/// Finds arms of a `match` on a letter in [`TAGLESS`] crates.
pub(super) fn tags(tree: &Tree) -> Vec<String> {
    let found = found_in(tree, TAGLESS, |walk| &walk.letters);
    let known = |place: &String| OTHER_LETTERS.iter().any(|file| place.starts_with(file));
    found.into_iter().filter(|place| !known(place)).collect()
}

fn found_in(tree: &Tree, crates: &[&str], what: fn(&Walk) -> &[Span]) -> Vec<String> {
    let mut found = Vec::new();
    for source in tree.code_of(crates) {
        let mut walk = Walk::default();
        walk.visit_file(&source.syntax);
        found.extend(what(&walk).iter().map(|span| source.at(span.start().line)));
    }
    found
}

/// Collects the places of interest in one file, tests left out.
#[derive(Default)]
struct Walk {
    waits: Vec<Span>,
    letters: Vec<Span>,
}

impl<'ast> Visit<'ast> for Walk {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_for_tests(attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.waits.extend(signature.asyncness.map(|word| word.span));
        syn::visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.waits.push(block.async_token.span);
        syn::visit::visit_expr_async(self, block);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        self.letters.extend(letters(&arm.pat));
        syn::visit::visit_arm(self, arm);
    }
}

/// Returns the letters among the alternatives of a pattern. Letters within a slice are no tags.
fn letters(pattern: &syn::Pat) -> Vec<Span> {
    match pattern {
        syn::Pat::Or(either) => either.cases.iter().flat_map(letters).collect(),
        syn::Pat::Lit(literal) => match &literal.lit {
            syn::Lit::Byte(byte) if byte.value().is_ascii_alphabetic() => vec![byte.span()],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_waits_are_found_outside_tests() {
        let text = "async fn f(x: u8) { match x { b'Z' | b'T' => {} b'\\n' => {} _ => {} } }\n\
                    #[cfg(test)] mod tests { async fn g() {} }";
        let mut walk = Walk::default();
        walk.visit_file(&syn::parse_file(text).unwrap());
        assert_eq!((walk.waits.len(), walk.letters.len()), (1, 2));
    }
}
