//! Clients that look up a row again and again, and the times of their lookups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::session;
use crate::bench::session::Session;

/// Time between two lookups of a client.
const REST: Duration = Duration::from_millis(1);

/// The running clients, one for each way.
pub(super) struct Lookups {
    over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Result<Waits>>>,
}

/// The times of a client's lookups, sorted.
#[derive(Debug)]
pub(super) struct Waits(Vec<Duration>);

impl Lookups {
    /// Starts a client for each of these ports and databases.
    pub(super) fn start(ways: &[(u16, &'static str)]) -> Result<Lookups> {
        let over = Arc::new(AtomicBool::new(false));
        let mut clients = Vec::new();
        for (port, database) in ways {
            let session = session(*port, database)?.0;
            let over = over.clone();
            clients.push(thread::spawn(move || look_up(session, &over)));
        }
        Ok(Lookups { over, clients })
    }

    /// Ends the clients and returns the times of each.
    pub(super) fn stop(self) -> Result<Vec<Waits>> {
        self.over.store(true, Relaxed);
        let waited =
            |client: JoinHandle<_>| client.join().map_err(|_| anyhow!("a client panicked"))?;
        self.clients.into_iter().map(waited).collect()
    }
}

fn look_up(mut session: Session, over: &AtomicBool) -> Result<Waits> {
    let mut all = Vec::new();
    while !over.load(Relaxed) {
        let asked = Instant::now();
        let answer = session.query("SELECT v FROM lookups WHERE id = 1")?;
        all.push(asked.elapsed());
        ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
        let found = answer.rows.first().and_then(|row| row.first()).context("no row")?;
        ensure!(found == b"one", "another row");
        thread::sleep(REST);
    }
    all.sort_unstable();
    Ok(Waits(all))
}

impl Waits {
    pub(super) fn longest_ms(&self) -> f64 {
        self.0.last().map_or(0.0, |wait| wait.as_secs_f64() * 1e3)
    }

    pub(super) fn p99_ms(&self) -> f64 {
        self.0.get(self.0.len() * 99 / 100).map_or(0.0, |wait| wait.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_is_the_last_of_those_in_order() {
        let waits = Waits((1..=200).map(Duration::from_millis).collect());
        assert_eq!((waits.longest_ms(), waits.p99_ms()), (200.0, 199.0));
    }
}
