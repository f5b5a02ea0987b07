//! The watchers beside the clients: one measures the proxy's memory, one ends servers.

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bench::process;
use crate::bench::session::Session;

use super::dice::Dice;
use super::tally::{Tally, count};

/// Time between two measurements of the memory.
const LOOK: Duration = Duration::from_millis(500);
/// The longest time between the ends of two servers, in milliseconds.
const KILL_MS: u64 = 1_000;

const KILL: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
                    ORDER BY random() LIMIT 1";

/// Measures the memory of a process until the run is over.
pub(super) fn memory(process: u32, tally: &Tally) -> Vec<u64> {
    let mut seen = Vec::new();
    while !tally.is_over() {
        thread::sleep(LOOK);
        seen.extend(process::resident_bytes(process).ok());
    }
    seen
}

/// Ends one of PostgreSQL's sessions now and then until the run is over.
pub(super) fn kill(port: u16, seed: u64, tally: &Tally) -> Result<()> {
    let mut dice = Dice::new(seed);
    let mut session = Session::open(port, "postgres", Duration::from_secs(30))?;
    while !tally.is_over() {
        thread::sleep(Duration::from_millis(dice.below(KILL_MS)));
        let answer = session.query(KILL)?;
        ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
        if !answer.rows.is_empty() {
            count(&tally.kills);
        }
    }
    Ok(())
}

/// Returns the median memory in the second third of the run, and in the last. In the first third
/// tables and buffers grow to their sizes.
pub(super) fn middle_and_last(seen: &[u64]) -> (u64, u64) {
    let third = seen.len() / 3;
    let median = |part: &[u64]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part.get(part.len() / 2).copied().unwrap_or(0)
    };
    let (_, rest) = seen.split_at(third);
    let (middle, last) = rest.split_at(rest.len() / 2);
    (median(middle), median(last))
}

/// Returns the memory at the end of each tenth of the run, in MiB.
pub(super) fn tenths(seen: &[u64]) -> String {
    let at = |tenth: usize| seen.get((seen.len() * tenth / 10).saturating_sub(1));
    let words = (1..=10).filter_map(at).map(|bytes| format!("{:.1}", *bytes as f64 / 1048576.0));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_medians_of_the_middle_and_the_last_third_are_returned() {
        assert_eq!(middle_and_last(&[]), (0, 0));
        assert_eq!(middle_and_last(&[1, 9, 2, 50, 50, 50, 7, 7, 8]), (50, 7));
    }
}
