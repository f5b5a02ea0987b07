//! Rule about conversations in memory: each file that decides something has a module of them.
//!
//! The rule compares names of files and nothing else. A file `src/relay/errors.rs` has the module
//! `tests/conversations/relay/errors.rs`. If a file is renamed or moves to another folder, its
//! module is renamed with it.

use std::path::Path;

use super::{Source, Tree};

/// The crate whose files have conversations, and that has the conversations.
const CRATE: &str = "pg";
/// The folders of `src` whose files decide something.
const FOLDERS: &[&str] = &["messages", "relay", "autoprepare", "login", "step"];

/// A file of these folders that needs no conversations.
struct Exception {
    file: &'static str,
    #[expect(dead_code, reason = "the reason is for people who read or change the table")]
    why: &'static str,
}

const fn exception(file: &'static str, why: &'static str) -> Exception {
    Exception { file, why }
}

/// All exceptions.
const EXCEPTIONS: &[Exception] = &[
    exception("relay/link", "the type that all other files of the folder work on"),
    exception("relay/pipe", "the part of that type which the server has"),
    exception("relay/message", "the reader of a message: its callers decide"),
    exception("relay/resend", "the reader of messages that are sent again: its callers decide"),
    exception("step/check", "the invariants, which every conversation checks after each step"),
    exception(
        "step/protocol",
        "the answers to the pool, one line each: every conversation uses it",
    ),
];

/// Finds files without conversations, conversations without a file, and needless exceptions.
pub(super) fn modules(tree: &Tree) -> Vec<String> {
    let files = names(tree.sources(), "src");
    let deciding = names(tree.code_of(&[CRATE]), "src");
    let own = tree.crates.iter().filter(|member| member.name == CRATE);
    let told = own.flat_map(|member| &member.sources).filter(|source| has_test(source));
    let told = names(told, "tests/conversations");
    compare(&deciding, &files, &told, EXCEPTIONS)
}

/// Compares the names of files that decide something, of all files, and of conversations.
fn compare(
    deciding: &[String],
    files: &[String],
    told: &[String],
    exceptions: &[Exception],
) -> Vec<String> {
    let is_exception = |name: &String| exceptions.iter().any(|it| it.file == name.as_str());
    let untold = deciding.iter().filter(|name| !told.contains(name) && !is_exception(name));
    let untold = untold.map(|name| {
        format!(
            "crates/{CRATE}/src/{name}.rs has no conversation: write one in \
             crates/{CRATE}/tests/conversations/{name}.rs, or rename the module of the file's old \
             name, or add the file to EXCEPTIONS in conversations.rs with the reason"
        )
    });
    let orphans = told.iter().filter(|name| !files.contains(name)).map(|name| {
        format!(
            "crates/{CRATE}/tests/conversations/{name}.rs is about no file: rename it as \
             src/{name}.rs was renamed"
        )
    });
    let needless = exceptions.iter().filter(|it| {
        let name = it.file.to_owned();
        !deciding.contains(&name) || told.contains(&name)
    });
    let needless = needless.map(|it| format!("EXCEPTIONS in conversations.rs: drop {}", it.file));
    untold.chain(orphans).chain(needless).collect()
}

/// Returns the names of files in [`FOLDERS`] below `above`, as `folder/file` without its ending.
fn names<'a>(sources: impl Iterator<Item = &'a Source>, above: &str) -> Vec<String> {
    sources.filter_map(|source| name(&source.path, above)).collect()
}

fn name(path: &Path, above: &str) -> Option<String> {
    let inner = path.strip_prefix("crates").ok()?;
    let mut folders = inner.iter();
    folders.next()?;
    let inside = folders.as_path().strip_prefix(above).ok()?.with_extension("");
    let (folder, file) = inside.to_str()?.split_once('/')?;
    let counts = FOLDERS.contains(&folder) && file != "mod" && !file.contains('/');
    counts.then(|| format!("{folder}/{file}"))
}

fn has_test(source: &Source) -> bool {
    source.text.contains("#[test]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_name_is_that_of_folder_and_file() {
        let of = |path, above| name(Path::new(path), above);
        assert_eq!(of("crates/pg/src/relay/errors.rs", "src"), Some("relay/errors".to_owned()));
        let told = "crates/pg/tests/conversations/relay/errors.rs";
        assert_eq!(of(told, "tests/conversations"), Some("relay/errors".to_owned()));
        for other in [
            "crates/pg/src/relay/mod.rs",
            "crates/pg/src/relay/errors/deep.rs",
            "crates/pg/src/state/pool.rs",
            "crates/pg/src/engine.rs",
            "docs/src/relay/errors.rs",
        ] {
            assert_eq!(of(other, "src"), None, "{other}");
        }
    }

    #[test]
    fn files_conversations_and_exceptions_fit_each_other() {
        let files = owned(&["relay/errors", "relay/link", "step/tick"]);
        let exceptions = [exception("relay/link", "a type")];
        let found = |deciding: &[&str], told: &[&str]| {
            compare(&owned(deciding), &files, &owned(told), &exceptions)
        };
        let (errors, link) = ("relay/errors", "relay/link");
        assert_eq!(found(&[errors, link], &[errors]), owned(&[]));
        assert_eq!(found(&[errors, link], &[errors, "step/tick"]), owned(&[]), "another crate's");
        assert!(found(&[errors, link], &[])[0].contains("has no conversation"));
        assert!(found(&[errors, link], &[errors, "relay/old"])[0].contains("is about no file"));
        assert!(found(&[errors], &[errors])[0].contains("drop relay/link"));
    }
}
