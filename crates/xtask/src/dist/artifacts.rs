//! The packages: a deb, an rpm and an archive, from the tables of `crates/refrain/Cargo.toml`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use super::stage;
use crate::command;
use crate::provision;
use crate::workspace;

/// How much time packing takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// As small as the formats allow.
    Small,
    /// As quick as possible, for packages that are only looked at.
    Quick,
}

/// The packages.
#[derive(Debug)]
pub(super) struct Artifacts {
    pub(super) deb: PathBuf,
    pub(super) rpm: PathBuf,
}

/// Makes the packages of what [`stage::lay_out`] has laid out.
pub(super) fn make(packing: Packing) -> Result<Artifacts> {
    Ok(Artifacts { deb: deb(packing)?, rpm: rpm(packing)? })
}

fn deb(packing: Packing) -> Result<PathBuf> {
    let file = stage::folder().join("refrain.deb");
    let mut cargo = Command::new(provision::cargo_deb()?);
    // It warns that the program lies elsewhere than cargo would put it.
    cargo.args(["--no-build", "--no-strip", "--quiet", "--package", "refrain"]);
    match packing {
        Packing::Small => cargo.args(["-Z", "xz", "--compress-system"]),
        Packing::Quick => cargo.args(["-Z", "gz", "--compress-system", "--fast"]),
    };
    cargo.arg("--output").arg(&file).current_dir(workspace::root());
    command::output(dated(&mut cargo)?)?;
    // The name that Debian's tools give it.
    let field = |name| command::output(Command::new("dpkg-deb").arg("-f").arg(&file).arg(name));
    let (version, machine) = (field("Version")?, field("Architecture")?);
    let named = format!("refrain_{}_{}.deb", version.trim(), machine.trim());
    let named = stage::folder().join(named);
    fs::rename(&file, &named)?;
    Ok(named)
}

fn rpm(packing: Packing) -> Result<PathBuf> {
    let name = format!("refrain-{}-1.{}.rpm", stage::version(), stage::architecture());
    let file = stage::folder().join(name);
    let compression = if packing == Packing::Small { "zstd" } else { "none" };
    let mut cargo = Command::new(provision::cargo_generate_rpm()?);
    cargo.args(["generate-rpm", "--package", "crates/refrain", "--auto-req", "builtin"]);
    cargo.args(["--payload-compress", compression]).arg("--output").arg(&file);
    command::run(dated(cargo.current_dir(workspace::root()))?)?;
    Ok(file)
}

/// Makes an archive for every other system: the program and the files of `contrib`.
pub(super) fn archive() -> Result<PathBuf> {
    let name = format!("refrain-{}-{}-linux", stage::version(), stage::architecture());
    let folder = stage::folder().join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let root = workspace::root();
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(stage::program()).arg(stage::folder().join("stage/man"));
    copy.arg(stage::folder().join("stage/completions")).arg(root.join("contrib"));
    for text in ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        copy.arg(root.join(text));
    }
    command::run(copy.arg(&folder))?;
    let file = stage::folder().join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", commit_time()?)).arg("-czf").arg(&file);
    command::run(tar.arg("-C").arg(stage::folder()).arg(&name))?;
    fs::remove_dir_all(folder)?;
    Ok(file)
}

/// Writes the sums of files in the form of `sha256sum`, and returns the file that has them.
pub(super) fn sums(files: &[PathBuf]) -> Result<PathBuf> {
    let mut sums = Command::new("sha256sum");
    for file in files {
        sums.arg(file.file_name().context("a file has a name")?);
    }
    let text = command::output(sums.current_dir(stage::folder()))?;
    let file = stage::folder().join("SHA256SUMS");
    fs::write(&file, text)?;
    Ok(file)
}

/// Gives a tool the time of the last commit: the same sources make the same packages.
fn dated(command: &mut Command) -> Result<&mut Command> {
    Ok(command.env("SOURCE_DATE_EPOCH", commit_time()?))
}

fn commit_time() -> Result<String> {
    let mut git = Command::new("git");
    let time =
        command::output(git.args(["log", "-1", "--format=%ct"]).current_dir(workspace::root()))?;
    Ok(time.trim().to_owned())
}
