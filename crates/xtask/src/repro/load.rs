//! Clients that ask one thing after another, for some time.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::bench::session::{Answer, Session};

use super::figures::{Figures, Outcome};
use crate::soak::dice::Dice;

/// A client that hears nothing for so long has lost its session.
const PATIENCE: Duration = Duration::from_secs(30);
/// Rest after a session that was lost.
const REST: Duration = Duration::from_millis(20);

/// One request, begun and ended within a call. An error means that the session is lost: it counts as a failure, and the
/// client logs in anew.
pub(super) type Request<'a> = dyn Fn(&mut Session, &mut Dice) -> Result<Outcome> + Sync + 'a;

/// Clients, and what they do.
pub(super) struct Load<'a> {
    /// The database that they log in to.
    pub(super) database: &'a str,
    /// How many there are.
    pub(super) clients: u32,
    /// How long.
    pub(super) time: Duration,
    /// What they choose from: another one in each round.
    pub(super) seed: u64,
    /// What each does, over and over.
    pub(super) request: &'a Request<'a>,
}

impl Load<'_> {
    /// Has the clients do it; `meanwhile` is done beside them, once, and the clients go on until it is over at least.
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

/// What an answer comes to that has to begin with this value, or with no row.
pub(super) fn outcome(answer: &Answer, first: Option<&str>) -> Outcome {
    if let Some((sqlstate, words)) = answer.errors.first() {
        return Outcome::Failed(format!("{sqlstate} {words}"));
    }
    let found = answer.rows.first().and_then(|row| row.first());
    if found.map(Vec::as_slice) == first.map(str::as_bytes) {
        return Outcome::Right;
    }
    let found = found.map(|value| String::from_utf8_lossy(value).into_owned());
    Outcome::Wrong(format!("{found:?} where {first:?} has to be"))
}
