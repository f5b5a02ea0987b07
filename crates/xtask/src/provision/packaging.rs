//! Tools that make and check packages: those of cargo from crates.io, Zig from PyPI, Helm's engine
//! as a Go module.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{dir, fetch_once, go_built, is_root, program, python_site};
use crate::command;
use crate::workspace;

/// A program of crates.io, with the options of its build.
struct Tool {
    name: &'static str,
    version: &'static str,
    options: &'static [&'static str],
}

const CARGO_DEB: Tool = Tool { name: "cargo-deb", version: "3.8.0", options: &[] };
/// Hashes of unoptimized code would take ten seconds for each package.
const CARGO_GENERATE_RPM: Tool = Tool {
    name: "cargo-generate-rpm",
    version: "0.21.1",
    options: &["--config", "profile.dev.package.sha2.opt-level=3"],
};
/// Without its server for writers and its search.
const MDBOOK: Tool = Tool { name: "mdbook", version: "0.5.4", options: &["--no-default-features"] };

/// The release of Debian in which packages are tried.
const DEBIAN: &str = "bookworm";
/// The archive of its files.
const FILES: &str = "root.tar";

/// Pins of Python's packages with Zig's linker, and with the subcommand of cargo that uses it.
const ZIG: &str = "\
ziglang==0.17.1 \
--hash=sha256:ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54
cargo-zigbuild==0.24.1 \
--hash=sha256:238a1ab54a95053a4eadc34775c81f795a8ad75f80bfed63f3f445f518102375
";

/// Returns the program of cargo-deb.
pub fn cargo_deb() -> Result<PathBuf> {
    installed(&CARGO_DEB)
}

/// Returns the program of cargo-generate-rpm.
pub fn cargo_generate_rpm() -> Result<PathBuf> {
    installed(&CARGO_GENERATE_RPM)
}

/// Returns the program of mdBook.
pub fn mdbook() -> Result<PathBuf> {
    installed(&MDBOOK)
}

/// Returns the folder with the Python packages of Zig and cargo-zigbuild.
fn zig() -> Result<PathBuf> {
    python_site("zig", ZIG)
}

/// The variable of the environment that asks for a fresh Debian, which takes a mirror of Debian and
/// root: not every machine that runs the suite shall have its devices made.
const FRESH: &str = "REFRAIN_FRESH_DEBIAN";

/// Makes a device, as the files of a Debian have them, to see whether this process may.
///
/// # Errors
/// It may not, or nobody has asked for a fresh Debian.
pub fn may_make_devices() -> Result<()> {
    ensure!(std::env::var_os(FRESH).is_some(), "{FRESH} is not set");
    ensure!(is_root(), "that takes root");
    let device = dir().join(format!("device-{}", std::process::id()));
    fs::create_dir_all(dir())?;
    let made = command::run(Command::new("mknod").arg(&device).args(["c", "1", "3"]));
    made.context("that takes root, who may make devices")?;
    Ok(fs::remove_file(device)?)
}

/// Makes an archive of the files of a fresh Debian, and returns its path.
///
/// # Errors
/// The files cannot be made, or not by this user.
pub fn fresh_debian() -> Result<PathBuf> {
    // Not `debian`: under the lock of that name Debian's packages are installed.
    let dir = dir().join("debian-root");
    fetch_once(&dir, DEBIAN, |dir| {
        program("/usr/sbin/debootstrap", "debootstrap")?;
        let root = dir.join("root");
        let mut bootstrap = Command::new("debootstrap");
        bootstrap.args(["--variant=minbase", DEBIAN]).arg(&root).stdout(Stdio::null());
        command::run(&mut bootstrap)?;
        let mut pack = Command::new("tar");
        pack.args(["--numeric-owner", "--exclude=./var/cache/apt/archives/*.deb", "-cf"]);
        pack.arg(dir.join(FILES)).arg("-C").arg(&root).arg(".");
        command::run(&mut pack)?;
        Ok(fs::remove_dir_all(root)?)
    })?;
    Ok(dir.join(FILES))
}

/// Builds the program that checks Helm's chart, and returns its path.
pub fn chart() -> Result<PathBuf> {
    go_built("go-chart", &workspace::root().join("crates/xtask/helm"), ".")
}

/// Builds a tool quickly, for it runs briefly, and returns its path.
fn installed(tool: &Tool) -> Result<PathBuf> {
    let dir = dir().join(tool.name);
    let pin = format!("{} {:?}", tool.version, tool.options);
    fetch_once(&dir, &pin, |dir| {
        let mut cargo = workspace::cargo();
        cargo.args(["install", "--quiet", "--locked", "--debug", "--root"]).arg(dir);
        cargo.args(["--version", tool.version, tool.name]).args(tool.options);
        cargo.env("CARGO_TARGET_DIR", dir.join("target")).env("CARGO_PROFILE_DEV_DEBUG", "0");
        // The workspace's own overrides are not for other programs.
        command::run(cargo.current_dir(dir))?;
        Ok(fs::remove_dir_all(dir.join("target"))?)
    })?;
    Ok(dir.join("bin").join(tool.name))
}

/// Returns the command of a tool of Python's package, which finds Zig.
pub fn with_zig(mut command: Command) -> Result<Command> {
    let site = zig()?;
    let mut path = vec![site.join("bin")];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    command.env("PATH", std::env::join_paths(path)?).env("PYTHONPATH", site);
    Ok(command)
}
