//! House rules that the compiler does not check.
//!
//! Each rule reads the same [`Tree`] and returns its findings, one line each with the place. A rule
//! that is wrong is changed here. Two rules have lists of places that still break the rule
//! (`CIRCLES` in `calls.rs`, `SHARED` in `names.rs`), which must not grow.

mod tree;
mod words;
mod retired;
mod prose;
mod manifests;
mod modules;
mod calls;
mod spread;
mod names;
mod code;
mod conversations;
mod pages;
mod decisions;

pub use self::tree::{Source, Tree};

use anyhow::{Result, bail};

/// A rule and its name.
pub struct Rule {
    /// The rule in a few words.
    pub name: &'static str,
    /// Finds the places that break the rule.
    pub find: fn(&Tree) -> Vec<String>,
}

/// All rules.
pub const RULES: &[Rule] = &[
    Rule { name: "modules begin with a doc comment", find: words::first_lines },
    Rule { name: "files are short", find: words::file_lengths },
    Rule { name: "lines are short", find: words::line_widths },
    Rule { name: "no note about work for later", find: words::leftovers },
    Rule { name: "retired words stay retired", find: retired::words },
    Rule { name: "doc comments begin with a thing", find: prose::openings },
    Rule { name: "comments and pages wrap", find: prose::widths },
    Rule { name: "no path of one machine", find: words::machine_paths },
    Rule { name: "no word of PostgreSQL's where no protocol is known", find: words::protocols },
    Rule { name: "crates use only the crates that they may", find: manifests::rooms },
    Rule { name: "crates inherit the lints", find: manifests::lints },
    Rule { name: "crates forbid unsafe code", find: manifests::unsafe_code },
    Rule { name: "modules use only earlier modules", find: modules::order },
    Rule { name: "files form no circles", find: calls::circles },
    Rule { name: "types have their methods in few files", find: spread::files },
    Rule { name: "one name stands for one type of a crate", find: names::types },
    Rule { name: "no async where decisions are made", find: code::async_functions },
    Rule { name: "only wire spells message tags", find: code::tags },
    Rule { name: "files that decide have conversations", find: conversations::modules },
    Rule { name: "files named in the docs exist", find: pages::names },
    Rule { name: "listings and options of the docs are those of the code", find: pages::lists },
    Rule { name: "the page on the architecture has all modules", find: pages::modules },
    Rule { name: "decisions have their numbers", find: decisions::numbers },
    Rule { name: "dependencies have a reason", find: decisions::dependencies },
    Rule { name: "generated pages are current", find: pages::generated },
];

/// Checks every rule, and prints the findings and the size of each crate.
pub fn run() -> Result<()> {
    let tree = Tree::read()?;
    let mut found = 0;
    for rule in RULES {
        for finding in (rule.find)(&tree) {
            println!("{}: {finding}", rule.name);
            found += 1;
        }
    }
    budgets(&tree);
    if found > 0 {
        bail!("{found} breaches of the house rules");
    }
    Ok(())
}

fn budgets(tree: &Tree) {
    println!("{:>10} {:>7} {:>7}", "crate", "lines", "tests");
    for member in &tree.crates {
        let (production, all) = member.sources.iter().fold((0, 0), |(production, all), source| {
            (production + source.production_lines(), all + source.text.lines().count())
        });
        println!("{:>10} {production:>7} {:>7}", member.name, all - production);
    }
}
