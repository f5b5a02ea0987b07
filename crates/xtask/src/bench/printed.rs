//! Benchmarks that are programs of the crate they measure, and print Markdown.

use anyhow::Result;

use crate::command;
use crate::workspace;

use super::facts;

/// Runs them, each named by its crate's package and its own name, and returns what they print.
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
