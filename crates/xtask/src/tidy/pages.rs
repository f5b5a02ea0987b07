//! Rules about the pages of `docs/`.

use std::fs;
use std::path::Path;

use super::Tree;
use crate::docs;
use crate::workspace;

/// Pages that name files of the code. Those not written yet are passed over.
const PAGES: &[&str] = &["docs/ARCHITECTURE.md", "docs/LIFE_OF_A_QUERY.md", "CONTRIBUTING.md"];
/// How a word ends that can only be a file's name.
const FILE_ENDINGS: &[&str] = &[".rs", ".md", ".toml"];

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
    fn words_that_name_files() {
        let words: Vec<_> =
            quoted("see `crates/wire` and `lib.rs`, not `Vec` or `a b.rs`").collect();
        let files: Vec<_> = words.into_iter().filter(|word| is_file_name(word)).collect();
        assert_eq!(files, ["crates/wire", "lib.rs"]);
    }
}
