//! The user who runs PostgreSQL, and folders that this user can reach.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::Version;
use crate::command;
use crate::provision;
use crate::scratch;

/// The user who runs PostgreSQL in root's place.
const USER: &str = "postgres";

/// Returns a command that runs `program` as a user whom PostgreSQL accepts.
pub fn command(program: &Path) -> Command {
    if !provision::is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(program);
    command.env("HOME", "/").current_dir("/");
    command
}

/// Creates an empty folder that belongs to that user. `mode` is octal, as for `chmod`.
pub fn own_dir(dir: &Path, mode: &str) -> Result<()> {
    let mut install = Command::new("install");
    install.args(["-d", "-m", mode]);
    if provision::is_root() {
        install.args(["-o", USER, "-g", USER]);
    }
    command::run(install.arg(dir))
}

/// Returns the folder of PostgreSQL's programs, after copying it if that user cannot reach it.
pub(super) fn reachable_bin(version: Version) -> Result<PathBuf> {
    let bin = provision::postgres(version)?;
    if can_run(&bin) {
        return Ok(bin);
    }
    let install = bin.parent().and_then(Path::parent).context("no parent folder")?;
    let copy = scratch::base()?.join(format!("programs.{}", version.name()));
    let bin = copy.join(bin.strip_prefix(install)?);
    if !can_run(&bin) {
        command::run(Command::new("cp").arg("-rT").arg(install).arg(&copy))?;
    }
    Ok(bin)
}

fn can_run(bin: &Path) -> bool {
    command::output(command(&bin.join("postgres")).arg("--version")).is_ok()
}
