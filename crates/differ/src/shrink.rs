//! The search for a shorter episode: leaves out steps, then messages, while the rest still fails in
//! the same way.

use crate::client::{Difference, Stop};
use crate::episode::replay;
use crate::plan::{Plan, Step};
use crate::setup::{Admin, Servers};
use std::time::{Duration, Instant};

/// The most replays of a search.
const TRIES: usize = 1000;
/// The longest that a search may take.
const TIME: Duration = Duration::from_secs(60);

struct Search<'a> {
    plan: Plan,
    admin: &'a mut Admin,
    seed: u64,
    what: String,
    tries: usize,
    until: Instant,
    best: Vec<Step>,
    found: Option<Difference>,
}

/// Returns the shortest failing sequence found, with its difference. `None` if it does not fail
/// again.
pub fn shrink(
    plan: &Plan,
    admin: &mut Admin,
    seed: u64,
    steps: &[Step],
    what: &str,
) -> Option<(Vec<Step>, Difference)> {
    let mut plan = plan.clone();
    plan.peers.limit = plan.peers.limit.min(Duration::from_secs(2));
    let mut search = Search {
        plan,
        admin,
        seed,
        what: what.to_owned(),
        tries: 0,
        until: Instant::now() + TIME,
        best: steps.to_vec(),
        found: None,
    };
    // A sequence that needs nothing from earlier episodes is the most useful one.
    search.plan.servers = Servers::Fresh;
    if !search.fails(steps.to_vec()) {
        search.plan.servers = Servers::Used;
        if !(0..3).any(|_| search.fails(steps.to_vec())) {
            return None;
        }
    }
    search.drop_steps();
    search.drop_sends();
    while search.drop_messages() && search.drop_steps() {}
    search.found.map(|found| (search.best, found))
}

impl Search<'_> {
    fn exhausted(&self) -> bool {
        self.tries >= TRIES || Instant::now() > self.until
    }

    /// Runs `steps`, a second time if they do not fail, as the outcome may depend on which server
    /// the proxy chooses. If they fail in the same way, they become the best.
    fn fails(&mut self, steps: Vec<Step>) -> bool {
        self.fails_once(steps.clone()) || self.fails_once(steps)
    }

    fn fails_once(&mut self, steps: Vec<Step>) -> bool {
        self.tries += 1;
        let Ok(outcome) = replay(&self.plan, self.admin, self.seed, &steps) else {
            return false;
        };
        match outcome.stop {
            Some(Stop::Differs(difference)) if difference.what == self.what => {
                self.best = outcome.steps;
                self.found = Some(*difference);
                true
            }
            _ => false,
        }
    }

    /// Leaves out runs of steps, long runs first. Returns true if it left out any.
    fn drop_steps(&mut self) -> bool {
        let mut any = false;
        let mut size = self.best.len() / 2;
        while size > 0 {
            let mut end = self.best.len();
            while end > 0 && !self.exhausted() {
                let start = end.saturating_sub(size);
                let mut steps = self.best.clone();
                steps.drain(start.min(steps.len())..end.min(steps.len()));
                any |= self.fails(steps);
                end = start.min(self.best.len());
            }
            size /= 2;
        }
        any
    }

    /// Leaves out single clients of a burst. Returns true if it left out any.
    fn drop_sends(&mut self) -> bool {
        let mut any = false;
        for step in (0..self.best.len()).rev() {
            let count = match self.best.get(step) {
                Some(Step::Send(sends)) if sends.len() > 1 => sends.len(),
                _ => continue,
            };
            for send in (0..count).rev() {
                let mut steps = self.best.clone();
                if let Some(Step::Send(sends)) = steps.get_mut(step)
                    && send < sends.len()
                {
                    sends.remove(send);
                }
                any |= !self.exhausted() && self.fails(steps);
            }
        }
        any
    }

    /// Leaves out single messages. Returns true if it left out any.
    fn drop_messages(&mut self) -> bool {
        let mut any = false;
        for step in (0..self.best.len()).rev() {
            let sends = match self.best.get(step) {
                Some(Step::Send(sends)) => sends.clone(),
                _ => continue,
            };
            for (send, (_, msgs)) in sends.iter().enumerate() {
                for msg in (0..msgs.len()).rev() {
                    any |= !self.exhausted() && self.fails_without(step, send, msg);
                }
            }
        }
        any
    }

    fn fails_without(&mut self, step: usize, send: usize, msg: usize) -> bool {
        let mut steps = self.best.clone();
        let Some(Step::Send(sends)) = steps.get_mut(step) else { return false };
        let Some((_, msgs)) = sends.get_mut(send) else { return false };
        if msg >= msgs.len() {
            return false;
        }
        msgs.remove(msg);
        self.fails(steps)
    }
}
