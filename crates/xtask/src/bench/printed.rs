//! Benchmarks of single crates: programs of those crates that print Markdown.

use anyhow::Result;

use crate::command;
use crate::workspace;

use super::facts;

/// Runs benchmarks, each named by its package and its own name, and returns their output.
pub(super) fn run(benchmarks: &[(&str, &str)]) -> Result<String> {
    let mut text = facts::machine();
    for (package, name) in benchmarks {
        let mut cargo = workspace::cargo();
        cargo.args(["bench", "--quiet", "--package", package, "--bench", name]);
        let tables = command::output(&mut cargo)?;
        text.push('\n');
        text.push_str(tables.trim());
        text.push('\n');
    }
    Ok(text)
}
