//! The load: clients that send one request after another for some time.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::bench::session::{Answer, Session};

use super::figures::{Figures, Outcome};
use crate::soak::dice::Dice;

/// Time without a reply after which a client gives its session up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between a lost session and the next login.
const REST: Duration = Duration::from_millis(20);

/// A function that sends one request and reads the reply. An error means that the session is lost:
/// it counts as a failure, and the client logs in again.
pub(super) type Request<'a> = dyn Fn(&mut Session, &mut Dice) -> Result<Outcome> + Sync + 'a;

/// Clients and their requests.
pub(super) struct Load<'a> {
    /// The database of the clients.
    pub(super) database: &'a str,
    /// Number of clients.
    pub(super) clients: u32,
    /// Length of the load.
    pub(super) time: Duration,
    /// Seed of random choices, another one in each round.
    pub(super) seed: u64,
    /// The request that each client sends again and again.
    pub(super) request: &'a Request<'a>,
}

impl Load<'_> {
    /// Runs the clients. `meanwhile` runs once beside them, and the clients go on at least until it
    /// has ended.
    pub(super) fn run(&self, port: u16, meanwhile: impl FnOnce() -> Result<()>) -> Result<Figures> {
        let over = AtomicBool::new(false);
        let started = Instant::now();
        thread::scope(|scope| {
            let clients: Vec<_> = (0..self.clients)
                .map(|number| {
                    let dice = Dice::new((self.seed << 32) + u64::from(number));
                    let over = &over;
                    scope.spawn(move || self.client(port, dice, over))
                })
                .collect();
            let done = meanwhile();
            thread::sleep(self.time.saturating_sub(started.elapsed()));
            over.store(true, Relaxed);
            let mut all = Figures::default();
            for client in clients {
                all.beside(client.join().map_err(|_| anyhow!("a client panicked"))??);
            }
            done.map(|()| all)
        })
    }

    fn client(&self, port: u16, mut dice: Dice, over: &AtomicBool) -> Result<Figures> {
        let mut figures = Figures::default();
        let mut session = Session::open(port, self.database, PATIENCE)?;
        let started = Instant::now();
        while !over.load(Relaxed) {
            let asked = Instant::now();
            let outcome = (self.request)(&mut session, &mut dice);
            let lost = outcome.is_err();
            let outcome = outcome.unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
            figures.count(outcome, asked.elapsed());
            while lost && !over.load(Relaxed) {
                thread::sleep(REST);
                if let Ok(new) = Session::open(port, self.database, PATIENCE) {
                    session = new;
                    break;
                }
            }
        }
        Ok(figures.lasted(started.elapsed()))
    }
}

/// Returns the outcome of an answer that must begin with the value `first`, or have no row.
pub(super) fn outcome(answer: &Answer, first: Option<&str>) -> Outcome {
    if let Some((sqlstate, words)) = answer.errors.first() {
        return Outcome::Failed(format!("{sqlstate} {words}"));
    }
    let found = answer.rows.first().and_then(|row| row.first());
    if found.map(Vec::as_slice) == first.map(str::as_bytes) {
        return Outcome::Right;
    }
    let found = found.map(|value| String::from_utf8_lossy(value).into_owned());
    Outcome::Wrong(format!("{found:?} instead of {first:?}"))
}
