//! `cargo xtask`: builds the program `xtask`, and becomes that program.
//!
//! `cargo run --package xtask` would give third-party code only the features that `xtask` asks for.
//! The builds of the suite name the whole workspace, so cargo would compile much of that code, and
//! `xtask` itself, a second time. `cargo run` cannot name the whole workspace; this program can.
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "a command-line tool tells why it ends")]

use std::env;
use std::io::{Error, Result};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let told = match launch() {
        Ok(code) => return code,
        Err(error) => error,
    };
    eprintln!("xtask does not start: {told}");
    ExitCode::FAILURE
}

/// Builds `xtask` and replaces this process by it. Returns only if the build fails.
fn launch() -> Result<ExitCode> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Cargo puts programs of one profile into one folder, and names it after the profile.
    let program = env::current_exe()?.with_file_name("xtask");
    let folder = program.parent().and_then(Path::file_name).unwrap_or_default();
    let profile = if folder == "debug" { "dev".as_ref() } else { folder };
    let mut build = Command::new(cargo);
    build.args(["build", "--workspace", "--bin=xtask", "--profile"]).arg(profile);
    if !build.status()?.success() {
        return Ok(ExitCode::FAILURE);
    }
    let failure: Error = Command::new(program).args(env::args_os().skip(1)).exec();
    Err(failure)
}
