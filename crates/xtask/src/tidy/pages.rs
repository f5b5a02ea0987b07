//! Rules about the pages of `docs/`.

use std::fs;
use std::path::Path;

use super::Tree;
use super::tree::is_for_tests;
use crate::docs;
use crate::workspace;

/// Pages that people write: they name files of the code, and wrap. Those not there are passed over.
const PAGES: &[&str] = &[
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs/ARCHITECTURE.md",
    "docs/LIFE_OF_A_QUERY.md",
    "docs/PAST_BUGS.md",
    "docs/autoprepare.md",
    "docs/limits.md",
    "docs/sqlite.md",
];
/// The longest a line of a page may be, in characters. Tables, code and headings may be longer.
const PAGE_WIDTH_MAX: usize = 100;
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

/// Paragraphs and lists wrap.
pub(super) fn widths(_: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for page in PAGES {
        let Ok(text) = fs::read_to_string(workspace::root().join(page)) else { continue };
        found.extend(wide(&text).map(|number| format!("{page}:{number}")));
    }
    found
}

/// The numbers of a page's lines that should wrap and do not.
fn wide(page: &str) -> impl Iterator<Item = usize> {
    let mut in_code = false;
    page.lines().zip(1..).filter_map(move |(line, number)| {
        in_code ^= line.starts_with("```");
        let wraps = !in_code && !line.starts_with(['|', '#']);
        (wraps && line.chars().count() > PAGE_WIDTH_MAX).then_some(number)
    })
}

/// The table of modules has each folder of the crate that decides, and each module in it, in their order.
pub(super) fn modules(tree: &Tree) -> Vec<String> {
    let Ok(page) = fs::read_to_string(workspace::root().join(MAP.page)) else { return Vec::new() };
    let rows: Vec<_> = rows(&page).collect();
    let folders = declared_in(tree, "src/lib.rs");
    let told: Vec<_> = rows.iter().flat_map(|row| column(row, 1)).collect();
    let mut found: Vec<_> = differs(&told, &folders).into_iter().collect();
    for row in rows {
        let Some(folder) = column(row, 1).next() else { continue };
        let declared = declared_in(tree, &format!("src/{folder}/mod.rs"));
        let told: Vec<_> = column(row, 2).collect();
        found.extend(differs(&told, &declared).map(|words| format!("{folder}: {words}")));
    }
    found.into_iter().map(|words| format!("{}: {words}", MAP.page)).collect()
}

/// Says where two lists of modules differ.
fn differs(told: &[&str], declared: &[String]) -> Option<String> {
    let differs = declared.iter().zip(told).find(|(module, word)| module != word);
    match differs {
        Some((module, word)) => Some(format!("`{word}` stands where `{module}` is")),
        None if declared.len() == told.len() => None,
        None => Some(format!("{} modules of {}", told.len(), declared.len())),
    }
}

/// The modules that a file of the crate declares, those for tests left out.
fn declared_in(tree: &Tree, file: &str) -> Vec<String> {
    let sources = tree.code_of(&[MAP.of]);
    let sources = sources.filter(|source| source.path.ends_with(format!("{}/{file}", MAP.of)));
    let items = sources.flat_map(|source| &source.syntax.items);
    let modules = items.filter_map(|item| match item {
        syn::Item::Mod(module) if !is_for_tests(&module.attrs) => Some(module.ident.to_string()),
        _ => None,
    });
    modules.collect()
}

/// The rows of the page's table in its chapter, without its head.
fn rows(page: &str) -> impl Iterator<Item = &str> {
    let chapter = page.lines().skip_while(|line| *line != MAP.chapter);
    let table = chapter.skip_while(|line| !line.starts_with('|'));
    table.take_while(|line| line.starts_with('|')).skip(2)
}

/// The words in backticks in a column of a row; the first column is 1.
fn column(row: &str, number: usize) -> impl Iterator<Item = &str> {
    quoted(row.split('|').nth(number).unwrap_or_default())
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
    fn a_table_tells_folders_and_their_modules() {
        let page = "# A\n| `x` | `y` |\n## Inside the engine\n\n| a | modules |\n|---|---|\n\
                    | `b` | `c`, `d` |\n\n| `e` | `f` |\n";
        let rows: Vec<_> = rows(page).collect();
        assert_eq!(rows.len(), 1);
        assert_eq!(column(rows[0], 1).collect::<Vec<_>>(), ["b"]);
        assert_eq!(column(rows[0], 2).collect::<Vec<_>>(), ["c", "d"]);
    }

    #[test]
    fn lists_of_modules_differ_by_order_and_by_number() {
        let declared = ["c".to_owned(), "d".to_owned()];
        assert_eq!(differs(&["c", "d"], &declared), None);
        assert_eq!(differs(&["d", "c"], &declared).unwrap(), "`d` stands where `c` is");
        assert_eq!(differs(&["c"], &declared).unwrap(), "1 modules of 2");
    }

    #[test]
    fn tables_and_code_need_not_wrap() {
        let long = "x".repeat(PAGE_WIDTH_MAX + 1);
        let page = format!("{long}\n| {long} |\n```sh\n{long}\n```\n- {long}\n# {long}\n");
        assert_eq!(wide(&page).collect::<Vec<_>>(), [1, 6]);
    }

    #[test]
    fn words_that_name_files() {
        let words: Vec<_> =
            quoted("see `crates/wire` and `lib.rs`, not `Vec` or `a b.rs`").collect();
        let files: Vec<_> = words.into_iter().filter(|word| is_file_name(word)).collect();
        assert_eq!(files, ["crates/wire", "lib.rs"]);
    }
}
