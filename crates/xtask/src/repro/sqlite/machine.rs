//! A thread that measures how long the machine itself delays threads.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::waits::Waits;

/// The name of the loop's thread.
const LOOP: &str = "core-0\n";
/// The time that the thread sleeps, again and again.
const REST: Duration = Duration::from_millis(1);

/// The delays that the machine causes.
#[derive(Debug, Default)]
pub(super) struct MachineWaits {
    /// The delays of a thread that just sleeps: how much later than asked it woke.
    pub(super) sleep: Waits,
    /// The times in which the loop's thread was ready to run and another thread ran.
    pub(super) ready: Waits,
    /// The same of the pooled server, a process of PostgreSQL.
    pub(super) server: Waits,
}

/// The time that a thread of another process has waited for a processor.
struct Schedule {
    file: PathBuf,
    ready: Duration,
}

/// Measures until `over` is true, beside the loop of `proxy` and a server's process.
pub(super) fn watch(proxy: u32, server: u32, over: &AtomicBool) -> Result<MachineWaits> {
    let mut on_loop = Schedule::of(loop_of(proxy)?)?;
    let mut of_server = Schedule::of(format!("/proc/{server}").into())?;
    let mut waits = MachineWaits::default();
    while !over.load(Relaxed) {
        let begin = Instant::now();
        thread::sleep(REST);
        waits.sleep.add(begin, begin.elapsed().saturating_sub(REST));
        on_loop.note(&mut waits.ready)?;
        of_server.note(&mut waits.server)?;
    }
    Ok(waits)
}

/// Returns the folder of the loop's thread.
fn loop_of(proxy: u32) -> Result<PathBuf> {
    for thread in fs::read_dir(format!("/proc/{proxy}/task"))? {
        let thread = thread?.path();
        if fs::read_to_string(thread.join("comm"))? == LOOP {
            return Ok(thread);
        }
    }
    bail!("no thread is a core's loop")
}

impl Schedule {
    fn of(thread: PathBuf) -> Result<Schedule> {
        let mut schedule = Schedule { file: thread.join("schedstat"), ready: Duration::ZERO };
        schedule.ready = schedule.read()?;
        Ok(schedule)
    }

    /// Adds the wait that has ended since the last call.
    fn note(&mut self, waits: &mut Waits) -> Result<()> {
        let ready = self.read()?;
        let wait = ready.saturating_sub(self.ready);
        self.ready = ready;
        let now = Instant::now();
        waits.add(now.checked_sub(wait).unwrap_or(now), wait);
        Ok(())
    }

    /// Returns how long the thread was ready to run and did not, up to the last time that it ran.
    fn read(&self) -> Result<Duration> {
        let numbers = fs::read_to_string(&self.file)?;
        let ready = numbers.split(' ').nth(1).context("no second number")?;
        Ok(Duration::from_nanos(ready.parse()?))
    }
}
