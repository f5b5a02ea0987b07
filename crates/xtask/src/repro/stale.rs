//! A change of a column's type under clients that describe only portals (A1), as pgjdbc does by
//! default.

use anyhow::{Context, Result};

use crate::command;
use crate::drivers;
use crate::postgres::Cluster;
use crate::proxy::{self, Refrain};

use super::Plan;
use super::verdict::Verdict;

/// The pool's size: fewer servers than connections, so that clients move between servers.
const POOL_SIZE: u32 = 10;
/// Time in which the clients read before the change, in milliseconds.
const BEFORE: &str = "3000";
/// Time in which the clients read after the change, in milliseconds.
const AFTER: &str = "3000";

/// Reads directly and through the proxy, and checks that no read is wrong and none fails.
pub(super) fn run(plan: &Plan) -> Result<Verdict> {
    let program = plan.program()?;
    let cluster = Cluster::start(plan.version(), &[])?;
    let proxy = Refrain::start_as(&program, &proxy::over(&cluster, "transaction", POOL_SIZE))?;
    let mut verdict = Verdict::default();
    for (way, port) in [("direct", cluster.port()), ("through", proxy.port())] {
        let output = read(port)?;
        println!("{way}: {output}");
        let count = |name: &str| count(&output, name).with_context(|| output.clone());
        let right = count("wrong")? == 0 && count("failed")? == 0 && count("reads")? > 0;
        verdict.check(format!("{way}: no read is wrong and none fails"), right);
    }
    Ok(verdict)
}

fn read(port: u16) -> Result<String> {
    let mut java = drivers::java("Stale.java")?;
    java.args([BEFORE, AFTER]).env("PGPORT", port.to_string());
    java.env("PGUSER", "postgres").env("PGDATABASE", "postgres");
    Ok(command::output(&mut java)?.trim().to_owned())
}

/// Returns the number before a word.
fn count(output: &str, name: &str) -> Option<u64> {
    let words: Vec<_> = output.split_whitespace().collect();
    let place = words.iter().position(|word| *word == name)?;
    words.get(place.checked_sub(1)?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_stands_before_its_word() {
        let output = "18046 reads 6534 wrong 0 failed";
        assert_eq!(count(output, "wrong"), Some(6534));
        assert_eq!(count(output, "reads"), Some(18046));
        assert_eq!(count(output, "lost"), None);
        assert_eq!(count("reads", "reads"), None);
    }
}
