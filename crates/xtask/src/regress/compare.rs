//! The comparison of two folders of results, and the differences that are allowed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// An allowed difference: a file, the lines that differ as `diff` prints them, and the reason.
///
/// Other lines of the same file may not differ.
struct Allowed {
    file: &'static str,
    lines: &'static [&'static str],
    reason: &'static str,
}

/// All allowed differences. In each a client sees that its server is not new, as in any pool that
/// lends a server to one session after another with `DISCARD ALL` between.
const ALLOWED: &[Allowed] = &[
    Allowed {
        file: "guc.out",
        lines: &[
            "+ERROR:  invalid configuration parameter name \"plpgsql.extra_foo_warnings\"",
            "+DETAIL:  \"plpgsql\" is a reserved prefix.",
            "-WARNING:  invalid configuration parameter name \"plpgsql.extra_foo_warnings\", \
             removing it",
            "-DETAIL:  \"plpgsql\" is now a reserved prefix.",
        ],
        reason: "the server loaded plpgsql in an earlier session, and nothing unloads a library",
    },
    Allowed {
        file: "stats.out",
        lines: &["- t", "+ f"],
        reason: "a client that connects again gets a used server: PostgreSQL counts no new session",
    },
    Allowed {
        file: "temp.out",
        lines: &["-ERROR:  cannot PREPARE a transaction that has operated on temporary objects"],
        reason: "the server has its temporary schema from an earlier session: none is created",
    },
];

/// Files that show `pg_prepared_statements`. That view has the statements of autoprepare, and they
/// depend on which tests run at the same time.
const SHOWING_STATEMENTS: [&str; 3] = ["guc.out", "prepare.out", "sysviews.out"];

/// A file of results that is not the same in both folders.
pub(super) struct Difference {
    /// The file's name.
    pub(super) file: String,
    /// The unified diff.
    pub(super) diff: String,
}

impl Difference {
    /// Returns the reason why the file may differ in this way, or `None` if it may not.
    pub(super) fn reason(&self, autoprepare: bool) -> Option<&'static str> {
        if autoprepare && SHOWING_STATEMENTS.contains(&&*self.file) {
            return Some(
                "it shows all prepared statements of the session, autoprepare's among them",
            );
        }
        let heads = 2;
        let body = self.diff.lines().skip(heads);
        let changed: Vec<_> = body.filter(|line| line.starts_with(['+', '-'])).collect();
        let allowed = ALLOWED.iter().find(|row| row.file == self.file && row.lines == changed);
        allowed.map(|row| row.reason)
    }
}

/// Returns the files that differ, sorted by name. A file that one side lacks counts as empty there.
pub(super) fn differences(direct: &Path, proxied: &Path) -> Result<Vec<Difference>> {
    let mut files = names(direct)?;
    files.extend(names(proxied)?);
    let mut found = Vec::new();
    for file in files {
        let diff = diff(&direct.join(&file), &proxied.join(&file))
            .with_context(|| format!("comparing {file}"))?;
        if !diff.is_empty() {
            found.push(Difference { file, diff });
        }
    }
    Ok(found)
}

fn names(dir: &Path) -> Result<BTreeSet<String>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Returns the output of `diff -u`, which is empty if the files are the same.
fn diff(direct: &Path, proxied: &Path) -> Result<String> {
    let mut diff = Command::new("diff");
    let output = diff.args(["--unified", "--new-file", "--text"]).arg(direct).arg(proxied).output();
    let output = output.context("cannot run `diff`")?;
    let compared = matches!(output.status.code(), Some(0 | 1));
    ensure!(compared, "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two folders of results, removed when dropped.
    struct Folders(std::path::PathBuf);

    impl Folders {
        fn new(name: &str) -> Folders {
            let name = format!("refrain-compare-{}-{name}", std::process::id());
            let base = std::env::temp_dir().join(name);
            for side in ["direct", "proxied"] {
                fs::create_dir_all(base.join(side)).unwrap();
            }
            Folders(base)
        }

        fn write(&self, side: &str, file: &str, text: &str) {
            fs::write(self.0.join(side).join(file), text).unwrap();
        }

        fn differences(&self) -> Vec<Difference> {
            differences(&self.0.join("direct"), &self.0.join("proxied")).unwrap()
        }
    }

    impl Drop for Folders {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_that_differ_or_are_missing_are_found() {
        let folders = Folders::new("found");
        for side in ["direct", "proxied"] {
            folders.write(side, "same.out", "1\n");
            folders.write(side, "changed.out", &format!("{side}\n"));
        }
        folders.write("proxied", "more.out", "1\n");
        folders.write("direct", "missing.out", "1\n");
        let found = folders.differences();
        let files: Vec<_> = found.iter().map(|one| one.file.as_str()).collect();
        assert_eq!(files, ["changed.out", "missing.out", "more.out"]);
        assert!(found.iter().all(|one| one.reason(false).is_none()));
        assert!(found[0].diff.contains("\n-direct\n+proxied\n"), "{}", found[0].diff);
    }

    #[test]
    fn only_the_lines_of_a_row_are_allowed() {
        let folders = Folders::new("allowed");
        folders.write("direct", "stats.out", "a\n t\nb\n c\n");
        folders.write("proxied", "stats.out", "a\n f\nb\n c\n");
        assert!(folders.differences()[0].reason(false).is_some());
        folders.write("proxied", "stats.out", "a\n f\nb\n d\n");
        assert!(folders.differences()[0].reason(false).is_none());
        folders.write("direct", "other.out", " t\n");
        folders.write("proxied", "other.out", " f\n");
        assert!(folders.differences()[0].reason(false).is_none());
    }
}
