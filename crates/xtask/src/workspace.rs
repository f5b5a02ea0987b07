//! Paths of the workspace: its root, its crates, its tracked files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command;

/// Returns the root of the workspace in which this crate was built.
pub fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest).to_path_buf()
}

/// Returns the folder of cargo's build results.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns a command of the cargo that runs this program, in the root folder.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Arguments with which cargo optimises, without the release build's long link.
pub const QUICK: [&str; 8] = [
    "--profile",
    "quick",
    "--config",
    "profile.quick.inherits='release'",
    "--config",
    "profile.quick.lto=false",
    "--config",
    "profile.quick.codegen-units=16",
];

/// Builds a program of the workspace with [`QUICK`] and returns its path.
pub fn built(package: &str, name: &str) -> Result<PathBuf> {
    let mut cargo = cargo();
    cargo.args(["build", "--quiet", "--locked", "--package", package, "--bin", name]);
    command::run(cargo.args(QUICK))?;
    Ok(target().join("quick").join(name))
}

/// A crate's folder under `crates/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    /// The folder's name, such as `wire`.
    pub name: String,
    /// The folder itself.
    pub dir: PathBuf,
}

/// Returns every crate under `crates/`, sorted by name.
pub fn crates() -> Result<Vec<Crate>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("crates")).context("no crates/ folder")? {
        let dir = entry?.path();
        if dir.join("Cargo.toml").is_file() {
            let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push(Crate { name, dir });
        }
    }
    found.sort();
    Ok(found)
}

/// Returns every `.rs` file under `dir`, sorted; empty if there is no such folder.
pub fn rust_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns every file that git tracks and that exists, relative to [`root`].
pub fn tracked_files() -> Result<Vec<PathBuf>> {
    let listing =
        command::output(Command::new("git").args(["ls-files", "-z"]).current_dir(root()))?;
    let names = listing.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    Ok(names.filter(|name| root().join(name).is_file()).collect())
}
