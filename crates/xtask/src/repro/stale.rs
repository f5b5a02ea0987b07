//! A column's type changes under clients that described nothing but portals (A1): pgjdbc as it is by default.

use anyhow::{Context, Result};

use crate::command;
use crate::drivers;
use crate::postgres::Cluster;
use crate::proxy::{self, Refrain};

use super::Plan;
use super::verdict::Verdict;

/// Servers of the pool: fewer than connections, so that those move between them.
const POOL_SIZE: u32 = 10;
/// Milliseconds that the clients read before the change, and after.
const BEFORE: &str = "3000";
const AFTER: &str = "3000";

/// Reads directly and through the proxy, and counts those that are wrong.
pub(super) fn run(plan: &Plan) -> Result<Verdict> {
    let program = plan.program()?;
    let cluster = Cluster::start(plan.version(), &[])?;
    let proxy = Refrain::start_as(&program, &proxy::over(&cluster, "transaction", POOL_SIZE))?;
    let mut verdict = Verdict::default();
    for (way, port) in [("direct", cluster.port()), ("through", proxy.port())] {
        let said = read(port)?;
        println!("{way}: {said}");
        let count = |name: &str| count(&said, name).with_context(|| said.clone());
        let right = count("wrong")? == 0 && count("failed")? == 0 && count("reads")? > 0;
        verdict.check(format!("{way}: nothing is wrong and nothing fails"), right);
    }
    Ok(verdict)
}

fn read(port: u16) -> Result<String> {
    let mut java = drivers::java("Stale.java")?;
    java.args([BEFORE, AFTER]).env("PGPORT", port.to_string());
    java.env("PGUSER", "postgres").env("PGDATABASE", "postgres");
    Ok(command::output(&mut java)?.trim().to_owned())
}

/// The number before a word.
fn count(said: &str, name: &str) -> Option<u64> {
    let words: Vec<_> = said.split_whitespace().collect();
    let place = words.iter().position(|word| *word == name)?;
    words.get(place.checked_sub(1)?)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_stands_before_its_word() {
        let said = "18046 reads 6534 wrong 0 failed";
        assert_eq!(count(said, "wrong"), Some(6534));
        assert_eq!(count(said, "reads"), Some(18046));
        assert_eq!(count(said, "lost"), None);
        assert_eq!(count("reads", "reads"), None);
    }
}
