//! Checks of a part.

use std::process::Command;

use anyhow::Result;

use crate::command::{self, Tally};

/// Runs a command as one check.
pub(super) fn check(command: &mut Command) -> Result<Tally> {
    command::run(command)?;
    Ok(Tally::PASSED)
}

/// Returns a part's counts. A part that could not run counts as one failure.
pub(super) fn or_one_failure(result: Result<Tally>) -> Tally {
    result.unwrap_or_else(|error| command::failed(&format!("{error:#}")))
}
