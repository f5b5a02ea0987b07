//! Packages: `cargo xtask dist` makes those of a release, and `cargo xtask test --only packages`
//! tries quick ones.
//!
//! Nothing here needs an engine that builds images or a cluster: the deb is unpacked and its
//! program serves, systemd's own tool verifies the units, Helm's own engine renders the chart.

mod stage;
mod artifacts;
mod contents;
mod unit;
mod serving;
mod fresh;
mod image;
mod book;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use self::artifacts::{Artifacts, Packing};
use crate::command::{self, Tally, counted};
use crate::provision;
use crate::scratch;
use crate::workspace::{self, built};

/// Makes the packages of a release in `target/dist`, tries them, and returns true if all is well.
///
/// # Errors
/// The changelog has no entry for the version, or something cannot be built.
pub fn run() -> Result<bool> {
    let changelog = fs::read_to_string(workspace::root().join("CHANGELOG.md"))?;
    let heading = format!("## {}", stage::version());
    let told = changelog.lines().any(|line| line.starts_with(&heading));
    ensure!(told, "CHANGELOG.md has no heading `{heading}`");
    fs::create_dir_all(stage::folder())?;
    stage::lay_out(&stage::release()?)?;
    let made = artifacts::make(Packing::Small)?;
    let tally = checks(&made)?;
    let archive = artifacts::archive()?;
    let debug = stage::folder().join("refrain.debug");
    let files = [made.deb, made.rpm, archive, debug];
    let sums = artifacts::sums(&files)?;
    files.iter().chain([&sums]).for_each(|file| println!("made {}", file.display()));
    Ok(tally.failed == 0)
}

/// Makes packages of the program of the tests and tries them.
///
/// # Errors
/// Something cannot be built.
pub fn check() -> Result<Tally> {
    fs::create_dir_all(stage::folder())?;
    stage::lay_out(&built("refrain")?)?;
    let mut tally = checks(&artifacts::make(Packing::Quick)?)?;
    tally += counted("cargo install", cargo_install());
    Ok(tally)
}

/// Installs the program by `cargo install`, which takes what is built already.
fn cargo_install() -> Result<()> {
    let root = scratch::unused()?;
    let mut cargo = workspace::cargo();
    cargo.args([
        "install",
        "--quiet",
        "--locked",
        "--debug",
        "--no-track",
        "--path",
        "crates/refrain",
    ]);
    cargo.arg("--target-dir").arg(workspace::target()).arg("--root").arg(&root);
    command::run(&mut cargo)?;
    let version = command::output(Command::new(root.join("bin/refrain")).arg("--version"))?;
    remove(&root);
    ensure!(version.trim() == format!("refrain {}", stage::version()), "it is {version}");
    Ok(())
}

fn checks(made: &Artifacts) -> Result<Tally> {
    let scratch = scratch::unused()?;
    let folder = |name: &str| -> Result<PathBuf> {
        let folder = scratch.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    let root = folder("root")?;
    command::run(Command::new("dpkg-deb").arg("-x").arg(&made.deb).arg(&root))?;
    let program = root.join("usr/bin/refrain");
    let mut outcomes = vec![
        ("the deb is complete", contents::deb(&made.deb)),
        ("the rpm is complete", contents::rpm(&made.rpm)),
        ("the units are sound", unit::verify(&root)),
        ("the unpacked program serves", serving::as_installed(&root)),
        ("the program under PgBouncer's name", serving::as_pgbouncer(&root)),
        ("the Dockerfile names what is there", image::dockerfile()),
        ("Zalando's operator", image::for_zalando(&program, &folder("zalando")?)),
        ("CloudNativePG", image::for_cloudnative_pg(&program, &folder("cnpg")?)),
        ("the chart renders", chart()),
        ("the book", book::make().map(drop)),
    ];
    let in_fresh_debian = || fresh::comes_and_goes(&made.deb, &folder("fresh")?);
    let may = provision::may_make_devices();
    outcomes.extend(where_possible("a fresh Debian", may, in_fresh_debian));
    remove(&scratch);
    let mut tally = Tally::default();
    outcomes.into_iter().for_each(|(name, outcome)| tally += counted(name, outcome));
    Ok(tally)
}

/// Runs a check if that is possible here, and returns its outcome. What does not run has none, and
/// is told with the reason.
fn where_possible(
    name: &str,
    may: Result<()>,
    check: impl FnOnce() -> Result<()>,
) -> Option<(&str, Result<()>)> {
    match may {
        Ok(()) => Some((name, check())),
        Err(why) => {
            println!("left out: {name} ({why:#})");
            None
        }
    }
}

/// Renders Helm's chart with the sample of the configuration.
fn chart() -> Result<()> {
    let contrib = workspace::root().join("contrib");
    let mut chart = Command::new(provision::chart()?);
    chart.arg(contrib.join("helm/refrain")).arg(stage::version());
    command::run(chart.arg(contrib.join("config/refrain.toml")))
}

/// Removes a folder. One that stays is removed by a later run.
fn remove(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn what_does_not_run_has_no_outcome() {
        let fails = || Err(anyhow!("it fails"));
        assert!(where_possible("a check", Err(anyhow!("no root")), || Ok(())).is_none());
        assert!(where_possible("a check", Ok(()), fails).is_some_and(|(_, done)| done.is_err()));
    }
}
