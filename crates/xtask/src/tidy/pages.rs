//! Rules about pages: the files that they name, the table of modules, generated pages.

use std::fs;
use std::path::Path;

use super::Tree;
use super::tree::is_for_tests;
use crate::docs;
use crate::workspace;

/// Pages that people write and that name files of the code. A page that does not exist is skipped.
const PAGES: &[&str] = &[
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs/ARCHITECTURE.md",
    "docs/LIFE_OF_A_QUERY.md",
    "docs/PAST_BUGS.md",
    "docs/autoprepare.md",
    "docs/differences.md",
    "docs/limits.md",
    "docs/sqlite.md",
];
/// The table of modules of the crate `pg`.
const MAP: Map = Map { of: "pg", page: "docs/ARCHITECTURE.md", chapter: "## Inside `pg`" };
/// The file with the table of the console's listings.
const LISTINGS: &str = "crates/refrain/src/admin/show.rs";
/// The page with a chapter for each option.
const OPTIONS: &str = "docs/config.md";
/// Endings of words that can only be a file's name.
const FILE_ENDINGS: &[&str] = &[".rs", ".md", ".toml"];

/// The place of a table of a crate's modules.
struct Map {
    of: &'static str,
    page: &'static str,
    chapter: &'static str,
}

/// Finds words in backticks that look like a file's name and name no file.
pub(super) fn names(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for page in PAGES {
        let Ok(text) = fs::read_to_string(workspace::root().join(page)) else { continue };
        for (line, number) in text.lines().zip(1..) {
            let missing = quoted(line).filter(|word| is_file_name(word) && !exists(tree, word));
            found.extend(missing.map(|word| format!("{page}:{number}: {word}")));
            let below = workspace::root().join(page);
            let there = |link: &&str| below.parent().is_some_and(|it| it.join(link).exists());
            let missing = links(line).filter(|link| !there(link));
            found.extend(missing.map(|link| format!("{page}:{number}: {link} leads nowhere")));
        }
    }
    found
}

/// Finds listings of the console that a page names and the console lacks, and options that a page
/// says Refrain does not support.
pub(super) fn lists(_: &Tree) -> Vec<String> {
    let read = |path: &str| fs::read_to_string(workspace::root().join(path)).unwrap_or_default();
    let table = read(LISTINGS);
    let listings: Vec<String> = table.lines().filter_map(listing).map(str::to_uppercase).collect();
    let options = read(OPTIONS);
    let has_option = |word: &str| options.lines().any(|line| line == format!("### `{word}`"));
    let mut found = Vec::new();
    for page in PAGES.iter().chain(&["docs/cache.md", "docs/sharing.md", "docs/hba.md"]) {
        // A name may wrap, and so may a sentence.
        let text = read(page).split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = quoted(&text).filter_map(|word| word.strip_prefix("SHOW "));
        let unknown = shown.filter(|name| *name != "HELP" && !listings.iter().any(|it| it == name));
        found.extend(unknown.map(|name| format!("{page}: the console has no SHOW {name}")));
        let without = text.split("Not supported").skip(1).filter_map(|rest| rest.split('.').next());
        let wrong = without.flat_map(quoted).filter(|word| has_option(word));
        found.extend(wrong.map(|word| format!("{page}: {word} is an option, and supported")));
    }
    found
}

/// Returns the name of the listing that a line of the console's table has.
fn listing(line: &str) -> Option<&str> {
    let row = line.trim().strip_prefix("(\"")?;
    row.split_once("\", &").map(|(name, _)| name)
}

/// Finds differences between the table of modules and the crate: the table has each folder of the
/// crate and each module in it, in their order.
pub(super) fn modules(tree: &Tree) -> Vec<String> {
    let Ok(page) = fs::read_to_string(workspace::root().join(MAP.page)) else { return Vec::new() };
    let rows: Vec<_> = rows(&page).collect();
    let folders = declared_in(tree, "src/lib.rs");
    let listed: Vec<_> = rows.iter().flat_map(|row| column(row, 1)).collect();
    let mut found: Vec<_> = differs(&listed, &folders).into_iter().collect();
    for row in rows {
        let Some(folder) = column(row, 1).next() else { continue };
        let declared = declared_in(tree, &format!("src/{folder}/mod.rs"));
        let listed: Vec<_> = column(row, 2).collect();
        found.extend(differs(&listed, &declared).map(|words| format!("{folder}: {words}")));
    }
    found.into_iter().map(|words| format!("{}: {words}", MAP.page)).collect()
}

/// Returns words about the first difference of two lists of modules.
fn differs(listed: &[&str], declared: &[String]) -> Option<String> {
    let differs = declared.iter().zip(listed).find(|(module, word)| module != word);
    match differs {
        Some((module, word)) => Some(format!("`{word}` stands where `{module}` is")),
        None if declared.len() == listed.len() => None,
        None => Some(format!("{} modules of {}", listed.len(), declared.len())),
    }
}

/// Returns the modules that a file of the crate declares, without those for tests.
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

/// Returns the rows of the page's table in its chapter, without its head.
fn rows(page: &str) -> impl Iterator<Item = &str> {
    let chapter = page.lines().skip_while(|line| *line != MAP.chapter);
    let table = chapter.skip_while(|line| !line.starts_with('|'));
    table.take_while(|line| line.starts_with('|')).skip(2)
}

/// Returns the words in backticks in a column of a row; the first column is 1.
fn column(row: &str, number: usize) -> impl Iterator<Item = &str> {
    quoted(row.split('|').nth(number).unwrap_or_default())
}

/// Finds generated pages that differ from what the code would generate.
pub(super) fn generated(_: &Tree) -> Vec<String> {
    let outdated = docs::outdated().into_iter();
    outdated.map(|name| format!("{name}: run `cargo xtask docs`")).collect()
}

/// Returns the texts between backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns the paths to which a line has links.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let paths = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    paths.filter(|path| !path.is_empty() && !path.contains("://"))
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
        let page = "# A\n| `x` | `y` |\n## Inside `pg`\n\n| a | modules |\n|---|---|\n\
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
    fn words_that_name_files() {
        let words: Vec<_> =
            quoted("see `crates/pg-wire` and `lib.rs`, not `Vec` or `a b.rs`").collect();
        let files: Vec<_> = words.into_iter().filter(|word| is_file_name(word)).collect();
        assert_eq!(files, ["crates/pg-wire", "lib.rs"]);
    }
}
