//! Rules about `docs/decisions`: numbers of pages, and the reason for each dependency.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::Tree;
use super::tree::Member;
use crate::workspace;

const FOLDER: &str = "docs/decisions";
/// The page with a line for each crate that a manifest names.
const DEPENDENCIES: &str = "docs/decisions/dependencies.md";

/// Finds pages whose heading has another number than their name, and numbers of two pages.
pub(super) fn numbers(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    let mut pages: BTreeMap<u32, &Path> = BTreeMap::new();
    for path in tree.tracked.iter().filter(|path| path.starts_with(FOLDER)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(number) = number_of_name(&name) else { continue };
        let text = fs::read_to_string(workspace::root().join(path)).unwrap_or_default();
        let heading = text.lines().next().unwrap_or_default();
        if number_of_heading(heading) != Some(number) {
            found.push(format!("{}: {heading}", path.display()));
        }
        if let Some(other) = pages.insert(number, path) {
            found.push(format!("{} and {}", other.display(), path.display()));
        }
    }
    found
}

/// Returns the number of a page: `0042-a-subject.md`. Pages without a number are no decisions.
fn number_of_name(name: &str) -> Option<u32> {
    name.split_once('-').filter(|_| name.ends_with(".md"))?.0.parse().ok()
}

/// Returns the number of a heading: `# 42. A subject`.
fn number_of_heading(heading: &str) -> Option<u32> {
    heading.strip_prefix("# ")?.split_once(". ")?.0.parse().ok()
}

/// Finds dependencies of manifests that have no row in their crate's chapter of the page.
pub(super) fn dependencies(tree: &Tree) -> Vec<String> {
    let page = fs::read_to_string(workspace::root().join(DEPENDENCIES)).unwrap_or_default();
    let mut found = Vec::new();
    for member in &tree.crates {
        let rows = words_of_chapter(&page, &member.name);
        let without = foreign(tree, member).filter(|name| !rows.contains(name));
        found.extend(without.map(|name| format!("{DEPENDENCIES}: {} uses {name}", member.name)));
    }
    found
}

/// Returns the crates that a manifest names and that are none of the workspace.
fn foreign<'a>(tree: &'a Tree, member: &'a Member) -> impl Iterator<Item = &'a str> {
    let sections = ["dependencies", "build-dependencies", "dev-dependencies"];
    let tables =
        sections.into_iter().filter_map(|section| member.manifest.get(section)?.as_table());
    let names = tables.flat_map(toml::Table::keys).map(String::as_str);
    names.filter(|name| {
        let own = name.strip_prefix("refrain-").unwrap_or(name);
        !tree.crates.iter().any(|other| other.name == own)
    })
}

/// Returns the words in backticks of the chapter whose heading names a crate.
fn words_of_chapter<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let chapters = page.split("\n## ");
    let heading = |chapter: &str| chapter.lines().next().unwrap_or_default().to_owned();
    let of_crate = chapters.filter(|chapter| heading(chapter).contains(&format!("`{name}`")));
    of_crate.flat_map(|chapter| chapter.split('`').skip(1).step_by(2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_headings_have_numbers() {
        assert_eq!(number_of_name("0042-a-subject.md"), Some(42));
        assert_eq!(number_of_name("dependencies.md"), None);
        assert_eq!(number_of_heading("# 42. A subject"), Some(42));
        assert_eq!(number_of_heading("# A subject"), None);
    }

    #[test]
    fn a_crate_has_the_words_of_its_chapter() {
        let page = "# Page\n\n## `a`, `b`\n\n| `x` | why |\n\n## `c`\n\n`y`, `z`\n";
        assert_eq!(words_of_chapter(page, "b"), ["a", "b", "x"]);
        assert_eq!(words_of_chapter(page, "c"), ["c", "y", "z"]);
        assert!(words_of_chapter(page, "d").is_empty());
    }
}
