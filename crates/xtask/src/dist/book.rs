//! The book of `docs/`, which mdBook makes.
//!
//! It is made from copies, beside which its table of contents is written: a new decision needs no
//! entry anywhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::stage;
use crate::command;
use crate::provision;
use crate::workspace;

/// The pages, in the order in which they are read. Decisions follow.
const PARTS: &[(&str, &[&str])] = &[
    ("Beginning", &["install.md", "coming-from.md", "pgbouncer.md"]),
    (
        "Running it",
        &[
            "config.md",
            "statements.md",
            "security.md",
            "users.md",
            "hba.md",
            "hosts.md",
            "replication.md",
            "restart.md",
            "dashboard.md",
        ],
    ),
    ("What it does", &["autoprepare.md", "sharing.md", "cache.md", "mysql.md", "sqlite.md"]),
    ("What it does not", &["differences.md", "limits.md"]),
    ("The project", &["CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "BENCHMARKS.md"]),
    ("How it works", &["ARCHITECTURE.md", "LIFE_OF_A_QUERY.md", "drivers.md", "PAST_BUGS.md"]),
];

/// Pages of the workspace's root, with the names that they have in the book.
const ROOT: &[(&str, &str)] = &[
    ("README.md", "index.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("SECURITY.md", "SECURITY.md"),
    ("CONTRIBUTING.md", "CONTRIBUTING.md"),
    ("BENCHMARKS.md", "BENCHMARKS.md"),
    ("drivers/README.md", "drivers.md"),
];

/// The heading of the last part, and the folder of its pages.
const DECISIONS: (&str, &str) = ("Why it is so", "decisions");

/// mdBook's configuration.
const BOOK: &str = "\
[book]
title = \"Refrain\"
language = \"en\"
src = \"src\"

[build]
build-dir = \"html\"
create-missing = false

[output.html]
no-section-label = true
";

/// Makes the book and returns its folder. Fails at the first warning of mdBook, for a page of
/// `docs/` that is in no part, and for a link that leads to no page of the book.
pub(super) fn make() -> Result<PathBuf> {
    let book = stage::folder().join("book");
    let source = book.join("src");
    if book.exists() {
        fs::remove_dir_all(&book)?;
    }
    fs::create_dir_all(&book)?;
    command::run(Command::new("cp").arg("-r").arg(workspace::root().join("docs")).arg(&source))?;
    for (from, to) in ROOT {
        let text = fs::read_to_string(workspace::root().join(from))?;
        fs::write(source.join(to), moved(&text))?;
    }
    for page in markdown(&source)? {
        let text = fs::read_to_string(source.join(&page))?;
        fs::write(source.join(&page), moved(&text))?;
    }
    fs::write(source.join("SUMMARY.md"), summary(&source)?)?;
    lead_somewhere(&source)?;
    fs::write(book.join("book.toml"), BOOK)?;
    let output = Command::new(provision::mdbook()?).arg("build").arg(&book).output();
    let output = output.context("cannot run mdbook")?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let warned = told.lines().any(|line| line.contains("WARN") || line.contains("ERROR"));
    ensure!(output.status.success() && !warned, "mdbook says:\n{told}");
    let html = book.join("html");
    ensure!(html.join("index.html").is_file(), "the book has no first page");
    Ok(html)
}

/// Returns a page whose links lead to where the book has their pages.
fn moved(text: &str) -> String {
    text.replace("](docs/", "](").replace("](../drivers/README.md)", "](drivers.md)")
}

/// Fails if a link within the book leads nowhere.
fn lead_somewhere(source: &Path) -> Result<()> {
    for folder in [source.to_owned(), source.join(DECISIONS.1)] {
        for page in markdown(&folder)? {
            let text = fs::read_to_string(folder.join(&page))?;
            let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
                let path = link.split('#').next().unwrap_or_default();
                ensure!(folder.join(path).exists(), "{page} links to {link}, which is not there");
            }
        }
    }
    Ok(())
}

/// Returns the table of contents of these pages.
fn summary(source: &Path) -> Result<String> {
    let mut text = "# Contents\n\n[Refrain](index.md)\n".to_owned();
    let mut parts: Vec<_> = PARTS
        .iter()
        .map(|(part, pages)| (*part, pages.iter().map(|page| (*page).to_owned()).collect()))
        .collect();
    let top = markdown(source)?;
    let listed: Vec<_> = parts.iter().flat_map(|(_, pages): &(_, Vec<String>)| pages).collect();
    let own = ["index.md", "SUMMARY.md"];
    if let Some(page) = top.iter().find(|page| !listed.contains(page) && !own.contains(&&***page)) {
        bail!("docs/{page} is in no part of the book: PARTS in crates/xtask/src/dist/book.rs");
    }
    let (part, folder) = DECISIONS;
    let decisions = markdown(&source.join(folder))?;
    parts.push((part, decisions.iter().map(|page| format!("{folder}/{page}")).collect()));
    for (part, pages) in parts {
        text += &format!("\n# {part}\n\n");
        for page in pages {
            let heading = heading(&source.join(&page))?;
            text += &format!("- [{heading}]({page})\n");
        }
    }
    Ok(text)
}

/// Returns the names of a folder's pages, sorted.
fn markdown(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Returns the first heading of a page.
fn heading(page: &Path) -> Result<String> {
    let text = fs::read_to_string(page).with_context(|| page.display().to_string())?;
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    Ok(heading.with_context(|| format!("{} has no heading", page.display()))?.replace('`', ""))
}
