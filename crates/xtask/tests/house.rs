//! The rules of the house hold, each as a test of its own name.

use xtask::tidy::{RULES, Tree};

#[test]
fn the_sources_keep_the_house_rules() {
    let tree = Tree::read().unwrap();
    let breaches: Vec<_> = RULES
        .iter()
        .flat_map(|rule| {
            let found = (rule.find)(&tree);
            found.into_iter().map(move |place| format!("{}: {place}", rule.name))
        })
        .collect();
    assert!(breaches.is_empty(), "\n{}", breaches.join("\n"));
}
