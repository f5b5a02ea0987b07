//! The benchmark of the library `lite`: its own program measures, and prints Markdown.

use std::process::Command;

use anyhow::Result;

use crate::command;
use crate::workspace;

use super::facts;

/// Measures, and returns the tables in Markdown.
pub(super) fn run() -> Result<String> {
    let mut cargo = Command::new("cargo");
    cargo.args(["bench", "--quiet", "--package", "refrain-lite", "--bench", "statements"]);
    let tables = command::output(cargo.current_dir(workspace::root()))?;
    Ok(format!("{}\n{}", facts::machine(), tables.trim()))
}
