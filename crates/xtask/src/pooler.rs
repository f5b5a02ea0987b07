//! The program without the embedded database, for `cargo xtask test --only pooler`.
//!
//! The build has no warning, pools PostgreSQL's connections, and refuses a file with a reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{self, Tally, counted};
use crate::postgres::Cluster;
use crate::provision::{self, Version};
use crate::proxy::{self, Refrain};
use crate::workspace;

/// Arguments of cargo for the build as users make it.
const WITHOUT: [&str; 4] = ["--locked", "--package", "refrain", "--no-default-features"];
/// Arguments of cargo for the program that is tested: third-party code has the features that the
/// whole workspace asks for, as in all other builds of the suite, so cargo compiles it once.
const TESTED: [&str; 4] = ["--locked", "--workspace", "--no-default-features", "--bin=refrain"];

/// Makes the build and checks it.
///
/// # Errors
///
/// The program cannot be built, or PostgreSQL does not start.
pub fn run() -> Result<Tally> {
    let mut clippy = workspace::cargo();
    clippy.args(["clippy", "--quiet"]).args(WITHOUT).args(["--lib", "--bins"]);
    command::run(clippy.args(["--", "--deny", "warnings"]))?;
    let program = if workspace::is_built() { aside() } else { build()? };
    let checks = [
        ("a pool of one server has two clients", pools(&program)),
        ("a file is refused", is_refused(&program, &["sqlite:pooler.db"], "has no SQLite")),
        ("a server has to be named", is_refused(&program, &[], "no server is named")),
    ];
    let mut tally = Tally::default();
    checks.into_iter().for_each(|(name, outcome)| tally += counted(name, outcome));
    Ok(tally)
}

/// Returns the path of the program: cargo has one place for both builds, and tests run the whole
/// program from there.
fn aside() -> PathBuf {
    workspace::target().join("pooler/refrain")
}

/// Builds the program without SQLite, puts it aside, and returns its path.
///
/// # Errors
/// The program cannot be built.
pub fn build() -> Result<PathBuf> {
    let (own, aside) = (workspace::target().join("debug/refrain"), aside());
    let whole = own.with_extension("whole");
    let is_there = fs::rename(&own, &whole).is_ok();
    command::run(workspace::cargo().args(["build", "--quiet"]).args(TESTED))?;
    fs::create_dir_all(aside.parent().context("no parent folder")?)?;
    // A program that runs cannot be written to.
    let _ = fs::remove_file(&aside);
    fs::rename(&own, &aside)?;
    if is_there {
        fs::rename(&whole, &own)?;
    }
    Ok(aside)
}

fn pools(program: &Path) -> Result<()> {
    let cluster = Cluster::start(Version::V15, &[])?;
    let refrain = Refrain::start_as(program, &proxy::over(&cluster, "transaction", 1))?;
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", refrain.port());
    let server = || {
        let mut psql = Command::new(provision::postgres(Version::V15)?.join("psql"));
        command::output(psql.args(["-XAtqw", "-d", &url, "-c", "select pg_backend_pid()"]))
    };
    let (one, other) = (server()?, server()?);
    anyhow::ensure!(one == other && !one.is_empty(), "the servers {one:?} and {other:?}");
    Ok(())
}

fn is_refused(program: &Path, arguments: &[&str], reason: &str) -> Result<()> {
    let output = Command::new(program).args(arguments).env_remove("REFRAIN_URL").output();
    let output = output.context("the program does not start")?;
    let told = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(!output.status.success() && told.contains(reason), "{told:?}");
    Ok(())
}
