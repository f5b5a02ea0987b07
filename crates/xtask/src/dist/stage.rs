//! The program that is packaged, and what it writes itself: manual pages and completions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command;
use crate::provision;
use crate::workspace;

/// The oldest version of the GNU C library that a release runs with: that of Debian 10 and RHEL 8.
///
/// Not musl: its allocator has one lock, and the program tunes glibc's
/// (`docs/decisions/0120-packages.md`).
pub(super) const GLIBC: (u32, u32) = (2, 28);

/// Returns the folder of everything that this command makes.
pub(super) fn folder() -> PathBuf {
    workspace::root().join("target/dist")
}

/// Returns the folder whose files the packages name, in the manifest of `refrain`.
fn stage() -> PathBuf {
    folder().join("stage")
}

/// Returns the workspace's version.
pub(super) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Returns the machine's architecture, such as `x86_64`.
pub(super) fn architecture() -> &'static str {
    std::env::consts::ARCH
}

/// Builds the program of a release with Zig's linker, and checks which C library it needs.
pub(super) fn release() -> Result<PathBuf> {
    let triple = format!("{}-unknown-linux-gnu", architecture());
    let mut cargo = provision::with_zig(workspace::cargo())?;
    let target = format!("{triple}.{}.{}", GLIBC.0, GLIBC.1);
    cargo.args(["zigbuild", "--release", "--locked", "--target", &target]);
    command::run(cargo.args(["--package", "refrain", "--bin", "refrain"]))?;
    let program = workspace::target().join(triple).join("release/refrain");
    let symbols = command::output(Command::new("objdump").arg("-T").arg(&program))?;
    let newest = newest_glibc(&symbols).context("the program needs no C library")?;
    ensure!(newest <= GLIBC, "the program needs version {newest:?} of the C library");
    Ok(program)
}

/// Returns the newest version of glibc that symbols of `objdump -T` have.
fn newest_glibc(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len());
        let mut numbers = rest[..end].split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max()
}

/// Lays out what the packages hold beside files of the workspace. The program loses its symbols for
/// debuggers, which go into a file of their own.
pub(super) fn lay_out(built: &Path) -> Result<()> {
    let (stage, completions) = (stage(), stage().join("completions"));
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    fs::create_dir_all(&completions)?;
    let program = stage.join("refrain");
    let objcopy = |options: &[&str], to: &Path| {
        command::run(Command::new("objcopy").args(options).arg(built).arg(to))
    };
    objcopy(&["--only-keep-debug"], &folder().join("refrain.debug"))?;
    objcopy(&["--strip-debug"], &program)?;
    command::run(Command::new(&program).arg("man").arg(stage.join("man")))?;
    for (shell, name) in [("bash", "refrain"), ("zsh", "_refrain"), ("fish", "refrain.fish")] {
        let text = command::output(Command::new(&program).args(["completions", shell]))?;
        fs::write(completions.join(name), text)?;
    }
    Ok(())
}

/// Returns the program that was laid out.
pub(super) fn program() -> PathBuf {
    stage().join("refrain")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let symbols = "w DF *UND* 0 (GLIBC_2.9) a\n DF *UND* 0 (GLIBC_2.28) b\n (GLIBC_2.2.5) c";
        assert_eq!(newest_glibc(symbols), Some((2, 28)));
        assert_eq!(newest_glibc("none"), None);
    }
}
