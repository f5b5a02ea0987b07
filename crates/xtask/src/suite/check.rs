//! Checks of a part.

use std::process::Command;

use anyhow::Result;

use crate::command::{self, Tally};

/// Runs a command as one check.
pub(super) fn check(command: &mut Command) -> Result<Tally> {
    command::run(command)?;
    Ok(Tally { passed: 1, failed: 0 })
}

/// Returns a part's counts. A part that could not run counts as one failure.
pub(super) fn or_one_failure(result: Result<Tally>) -> Tally {
    result.unwrap_or_else(|error| {
        command::tell_failure(&format!("{error:#}"));
        Tally { passed: 0, failed: 1 }
    })
}
