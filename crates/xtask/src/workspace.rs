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

/// Crates that simulators run for nearly all of their time. Cargo optimises them for simulators.
const SIMULATED: &[&str] = &[
    "cache",
    "grammar",
    "mysql",
    "mysql-wire",
    "pg",
    "pg-wire",
    "pool",
    "sim",
    "sim-mysql",
    "sql",
];
/// Arguments with which cargo optimises all code, without the release build's long link.
const QUICK: &[&str] = &[
    "--profile=quick",
    "--config=profile.quick.inherits='release'",
    "--config=profile.quick.lto=false",
    "--config=profile.quick.codegen-units=16",
];

/// A way in which cargo builds code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Profile {
    /// As for tests.
    Plain,
    /// As for tests, but for the crates that simulators run. Third-party code is the same.
    Simulated,
    /// Optimised.
    Quick,
}

impl Profile {
    fn arguments(self) -> Vec<String> {
        let optimised = |name| format!("--config=profile.dev.package.refrain-{name}.opt-level=2");
        match self {
            Self::Plain => Vec::new(),
            Self::Simulated => SIMULATED.iter().map(optimised).collect(),
            Self::Quick => QUICK.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the folder of the programs. Cargo would have one for the first two profiles.
    fn folder(self) -> PathBuf {
        target().join(match self {
            Self::Plain => "debug",
            Self::Simulated => "simulators",
            Self::Quick => "quick",
        })
    }
}

/// Programs that cargo builds by one command.
///
/// The command names the whole workspace: with fewer packages some third-party code would have
/// other features, and cargo would build that code, and all above it, once more.
pub struct Build {
    programs: &'static [&'static str],
    /// Arguments that choose what is built.
    targets: &'static [&'static str],
    profile: Profile,
}

/// The program, and the programs that compare it with servers: as tests are built, with which they
/// have all crates in common. Programs of this workspace that are built beside them cost little.
pub const PROGRAMS: Build = Build {
    programs: &["refrain", "differ", "differ-mysql"],
    targets: &["--bins"],
    profile: Profile::Plain,
};
/// The simulators, and the tests that are too slow in a debug build: those of planted bugs, and of
/// normalized queries.
pub const SIMULATORS: Build = Build {
    programs: &["sim", "sim-mysql"],
    targets: &["--bin=sim", "--bin=sim-mysql", "--test=seeds", "--test=grammar"],
    profile: Profile::Simulated,
};
/// This program, which benchmarks run.
const OWN: Build =
    Build { programs: &["xtask"], targets: &["--bin=xtask"], profile: Profile::Quick };

impl Build {
    /// Returns a command of cargo for code of this profile.
    pub fn cargo(&self, name: &str) -> Command {
        let mut cargo = cargo();
        cargo.args([name, "--quiet", "--locked", "--workspace"]).args(self.profile.arguments());
        cargo
    }

    /// Builds the programs.
    ///
    /// # Errors
    /// Cargo cannot build them, or they cannot be put into their folder.
    pub fn build(&self) -> Result<()> {
        command::run(self.cargo("build").args(self.targets))?;
        if self.profile == Profile::Simulated {
            self.put_aside()?;
        }
        Ok(())
    }

    /// Moves the programs out of the folder in which cargo puts those of tests as well.
    fn put_aside(&self) -> Result<()> {
        let (made, own) = (Profile::Plain.folder(), self.profile.folder());
        fs::create_dir_all(&own)?;
        for name in self.programs {
            fs::rename(made.join(name), own.join(name)).with_context(|| format!("no {name}"))?;
        }
        Ok(())
    }
}

/// Builds a program of the workspace, unless the suite has done so, and returns its path.
///
/// # Errors
/// There is no such program, or cargo cannot build it.
pub fn built(name: &str) -> Result<PathBuf> {
    let all = [PROGRAMS, SIMULATORS, OWN];
    let build = all.into_iter().find(|some| some.programs.contains(&name));
    let build = build.with_context(|| format!("no build has {name}"))?;
    if !is_built() {
        build.build()?;
    }
    Ok(build.profile.folder().join(name))
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
