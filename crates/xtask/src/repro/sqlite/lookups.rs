//! Clients that look up a row again and again, and the times of their lookups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::machine::{self, MachineWaits};
use super::session;
use super::waits::Waits;
use crate::bench::session::Session;

/// Time between two lookups of a client.
const REST: Duration = Duration::from_millis(1);

/// The running clients, one for each way.
pub(super) struct Lookups {
    over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Result<Waits>>>,
    machine: JoinHandle<Result<MachineWaits>>,
}

impl Lookups {
    /// Starts a client for each of these ports and databases, and a thread that measures the
    /// machine beside the loop of `proxy` and the pooled server.
    pub(super) fn start(proxy: u32, server: u32, ways: &[(u16, &'static str)]) -> Result<Lookups> {
        let over = Arc::new(AtomicBool::new(false));
        let mut clients = Vec::new();
        for (port, database) in ways {
            let session = session(*port, database)?.0;
            let over = over.clone();
            clients.push(thread::spawn(move || look_up(session, &over)));
        }
        let measured_until = over.clone();
        let machine = thread::spawn(move || machine::watch(proxy, server, &measured_until));
        Ok(Lookups { over, clients, machine })
    }

    /// Ends the threads. Returns the times of each client's lookups, and the machine's delays.
    pub(super) fn stop(self) -> Result<(Vec<Waits>, MachineWaits)> {
        self.over.store(true, Relaxed);
        let waits = self.clients.into_iter().map(join).collect::<Result<_>>()?;
        Ok((waits, join(self.machine)?))
    }
}

fn join<T>(thread: JoinHandle<Result<T>>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("a thread panicked"))?
}

fn look_up(mut session: Session, over: &AtomicBool) -> Result<Waits> {
    let mut waits = Waits::default();
    while !over.load(Relaxed) {
        let asked = Instant::now();
        let answer = session.query("SELECT v FROM lookups WHERE id = 1")?;
        waits.add(asked, asked.elapsed());
        ensure!(answer.errors.is_empty(), "{:?}", answer.errors);
        let found = answer.rows.first().and_then(|row| row.first()).context("no row")?;
        ensure!(found == b"one", "another row");
        thread::sleep(REST);
    }
    Ok(waits)
}
