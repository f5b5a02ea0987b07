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

/// The variable of the environment that says that all is built: the suite builds first, and a part
/// that asked cargo again would wait for the builds of others.
pub const BUILT: &str = "REFRAIN_BUILT";

/// Arguments with which cargo optimises, without the release build's long link. A panic unwinds, as
/// tests need it; in Refrain it ends the process all the same.
const QUICK: &[&str] = &[
    "--profile=quick",
    "--config=profile.quick.inherits='release'",
    "--config=profile.quick.lto=false",
    "--config=profile.quick.codegen-units=16",
    "--config=profile.quick.panic='unwind'",
];
/// Arguments with which this workspace's crates check themselves as in a debug build.
const ASSERTING: &[&str] = &[
    "--config=profile.quick.debug-assertions=true",
    "--config=profile.quick.overflow-checks=true",
    "--config=profile.quick.package.'*'.debug-assertions=false",
    "--config=profile.quick.package.'*'.overflow-checks=false",
];

/// Packages that cargo builds by one command, optimised: packages that are built apart from each
/// other may get the same crates with other features.
pub struct Quick {
    packages: &'static [&'static str],
    more: &'static [&'static str],
}

/// The program, and the programs that compare it with servers. They check themselves, as do the
/// simulators, so that cargo builds the crates of both once.
pub const PROGRAMS: Quick =
    Quick { packages: &["refrain", "refrain-differ", "refrain-differ-mysql"], more: ASSERTING };
/// The simulators, and the tests that are too slow in a debug build: those of planted bugs, and of
/// normalized queries.
pub const SIMULATORS: Quick =
    Quick { packages: &["refrain-sim", "refrain-sim-mysql", "refrain-grammar"], more: ASSERTING };
/// This program, which benchmarks run.
const OWN: Quick = Quick { packages: &["xtask"], more: &[] };

impl Quick {
    /// Returns a command of cargo for these packages.
    pub fn cargo(&self, name: &str) -> Command {
        let mut cargo = cargo();
        cargo.args([name, "--quiet", "--locked"]);
        self.flavour(&mut cargo);
        cargo.args(self.packages.iter().flat_map(|package| ["--package", package]));
        cargo
    }

    /// Adds the arguments with which cargo takes what is built already.
    pub fn flavour(&self, cargo: &mut Command) {
        cargo.args(QUICK).args(self.more);
    }

    /// Returns the features of each package that cargo builds by these commands, as lines.
    #[cfg(test)]
    fn features(&self, edges: &str) -> Vec<String> {
        let mut cargo = cargo();
        cargo.args(["tree", "--locked", "--prefix=none", "--format={p}: {f}", "--edges", edges]);
        cargo.args(self.packages.iter().flat_map(|package| ["--package", package]));
        let told = command::output(&mut cargo).unwrap();
        told.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
    }

    /// Builds the programs of these packages.
    pub fn build(&self) -> Result<()> {
        command::run(self.cargo("build").arg("--bins"))
    }
}

/// Builds a program of the workspace, optimised, and returns its path.
pub fn built(package: &str, name: &str) -> Result<PathBuf> {
    if !is_built() {
        let all = [PROGRAMS, SIMULATORS, OWN];
        let its = all.into_iter().find(|some| some.packages.contains(&package));
        its.with_context(|| format!("no build has {package}"))?.build()?;
    }
    Ok(target().join("quick").join(name))
}

/// Whether all that a part needs is built.
pub fn is_built() -> bool {
    std::env::var_os(BUILT).is_some()
}

/// A crate's folder under `crates/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crate {
    /// The folder's name, such as `pg-wire`.
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// With other features, cargo would build the packages of both a second time. The manifest of
    /// `sim` asks for the features that are missing.
    #[test]
    fn packages_of_simulators_have_the_features_of_the_program() {
        let programs = PROGRAMS.features("normal,build");
        let split = |line: &str| -> (String, String) {
            let (package, features) = line.split_once(": ").unwrap_or((line, ""));
            (package.to_owned(), features.to_owned())
        };
        // A package may be there twice: for the program, and for macros.
        let mut known: HashMap<_, Vec<_>> = HashMap::new();
        for line in &programs {
            let (package, features) = split(line);
            known.entry(package).or_default().push(features);
        }
        for line in SIMULATORS.features("normal,build,dev") {
            let (package, features) = split(&line);
            if let Some(same) = known.get(&package) {
                assert!(
                    same.contains(&features),
                    "{package} has {features:?}, and not one of {same:?}"
                );
            }
        }
    }
}
