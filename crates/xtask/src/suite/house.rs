//! Parts about the code: builds, format, lints, documentation.
//!
//! A build is a part of its own, so that it serves all parts that need it, and is in no other's
//! time.

use anyhow::Result;

use crate::command::{self, Tally};
use crate::instructions;
use crate::pooler;
use crate::provision;
use crate::workspace::{self, PROGRAMS, SIMULATORS};

use super::check::check;

/// Fetches the servers that parts need.
pub(super) fn servers() -> Result<Tally> {
    Ok(fetched(provision::servers()))
}

/// Fetches the client libraries that parts need.
pub(super) fn libraries() -> Result<Tally> {
    Ok(fetched(provision::libraries()))
}

/// Returns the counts of a fetch. A failure is no part's: each part fetches what is missing.
fn fetched(result: Result<()>) -> Tally {
    if let Err(error) = result {
        println!("not all is there yet: {error:#}");
    }
    Tally::default()
}

/// Builds the program without SQLite.
pub(super) fn build_pooler() -> Result<Tally> {
    built(pooler::build().map(drop))
}

/// Builds all tests, and the program that they run.
pub(super) fn build_tests() -> Result<Tally> {
    let mut tests = workspace::cargo();
    tests.args(["test", "--quiet", "--workspace", "--tests", "--no-run", "--locked"]);
    built(command::run(&mut tests))
}

/// Builds the program and the differential tests.
pub(super) fn build_programs() -> Result<Tally> {
    built(PROGRAMS.build())
}

/// Builds the simulators and the tests that need optimised code.
pub(super) fn build_simulators() -> Result<Tally> {
    built(SIMULATORS.build())
}

/// Builds the programs whose instructions count.
pub(super) fn build_release() -> Result<Tally> {
    built(instructions::build())
}

/// Returns the counts of a build, which is no check unless it fails.
fn built(result: Result<()>) -> Result<Tally> {
    result.map(|()| Tally::default())
}

/// Checks the format of the code.
pub(super) fn fmt() -> Result<Tally> {
    check(workspace::cargo().args(["fmt", "--all", "--check"]))
}

/// Checks the code by lints.
pub(super) fn clippy() -> Result<Tally> {
    let mut clippy = workspace::cargo();
    clippy.args(["clippy", "--quiet", "--workspace", "--all-targets", "--locked"]);
    check(clippy.args(["--", "--deny", "warnings"]))
}

/// Builds the documentation with private items: most of what a link leads to is private.
pub(super) fn doc() -> Result<Tally> {
    let mut doc = workspace::cargo();
    doc.args(["doc", "--quiet", "--workspace", "--no-deps", "--locked"]);
    check(doc.arg("--document-private-items").env("RUSTDOCFLAGS", "-D warnings"))
}
