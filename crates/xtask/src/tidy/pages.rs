//! Rules about the pages of `docs/`.

use std::fs;
use std::path::Path;

use super::{Source, Tree};
use crate::docs;
use crate::workspace;

/// Pages that name files of the code. Those not written yet are passed over.
const PAGES: &[&str] = &["docs/ARCHITECTURE.md", "docs/LIFE_OF_A_QUERY.md", "CONTRIBUTING.md"];
/// A table of modules: the crate, and where the table is.
const MAP: Map = Map { of: "pg", page: "docs/ARCHITECTURE.md", chapter: "## Inside the engine" };
/// How a word ends that can only be a file's name.
const FILE_ENDINGS: &[&str] = &[".rs", ".md", ".toml"];

/// Where a page tells the modules of a crate.
struct Map {
    of: &'static str,
    page: &'static str,
    chapter: &'static str,
}

/// Whatever looks like a file's name in backticks is a file.
pub(super) fn names(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for page in PAGES {
        let Ok(text) = fs::read_to_string(workspace::root().join(page)) else { continue };
        for (line, number) in text.lines().zip(1..) {
            let missing = quoted(line).filter(|word| is_file_name(word) && !exists(tree, word));
            found.extend(missing.map(|word| format!("{page}:{number}: {word}")));
        }
    }
    found
}

/// The table of modules has each module of the crate that decides, in its order.
pub(super) fn modules(tree: &Tree) -> Vec<String> {
    let Ok(page) = fs::read_to_string(workspace::root().join(MAP.page)) else { return Vec::new() };
    let roots = tree.code_of(&[MAP.of]).filter(|source| source.path.ends_with("src/lib.rs"));
    let declared: Vec<_> = roots.flat_map(declared).collect();
    let told = told(&page);
    let differs = declared.iter().zip(&told).find(|(module, word)| module != word);
    match differs {
        Some((module, word)) => vec![format!("{}: `{word}` stands where `{module}` is", MAP.page)],
        None if declared.len() == told.len() => Vec::new(),
        None => vec![format!("{}: {} modules of {}", MAP.page, told.len(), declared.len())],
    }
}

/// The modules that a file declares.
fn declared(source: &Source) -> impl Iterator<Item = String> {
    source.syntax.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) => Some(module.ident.to_string()),
        _ => None,
    })
}

/// The modules that the page's table names: the second column of the rows in its chapter.
fn told(page: &str) -> Vec<&str> {
    let chapter = page.lines().skip_while(|line| *line != MAP.chapter);
    let table = chapter.skip_while(|line| !line.starts_with('|'));
    let rows = table.take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| quoted(row.split('|').nth(2).unwrap_or_default())).collect()
}

/// Generated pages say what the code says.
pub(super) fn generated(_: &Tree) -> Vec<String> {
    let outdated = docs::outdated().into_iter();
    outdated.map(|name| format!("docs/{name}: run `cargo xtask docs`")).collect()
}

/// What stands between backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_file_name(word: &str) -> bool {
    let plain = !word.contains([' ', '*', '<', '{', '…']);
    plain && (word.starts_with("crates/") || FILE_ENDINGS.iter().any(|end| word.ends_with(end)))
}

/// Whether a word names a file or folder: from the root, from `crates/`, or by the end of its path.
fn exists(tree: &Tree, word: &str) -> bool {
    let root = workspace::root();
    let by_path = root.join(word).exists() || root.join("crates").join(word).exists();
    by_path || tree.tracked.iter().any(|file| file.ends_with(Path::new(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_told_by_the_second_column() {
        let page = "# A\n| `x` | `y` |\n## Inside the engine\n\n| a | modules |\n|---|---|\n\
                    | `b` | `c`, `d` | `e` |\n\n| f | `g` |\n";
        assert_eq!(told(page), ["c", "d"]);
    }

    #[test]
    fn words_that_name_files() {
        let words: Vec<_> =
            quoted("see `crates/wire` and `lib.rs`, not `Vec` or `a b.rs`").collect();
        let files: Vec<_> = words.into_iter().filter(|word| is_file_name(word)).collect();
        assert_eq!(files, ["crates/wire", "lib.rs"]);
    }
}
