//! The search for a shorter episode: leaves out steps, then messages, while the rest still fails in
//! the same way.

use crate::setup::Servers;
use std::time::{Duration, Instant};

/// The most replays of a search.
const TRIES: usize = 1000;
/// The longest that a search may take.
const TIME: Duration = Duration::from_secs(60);

/// A step, as far as a search takes it apart: messages of some clients.
pub trait Parts: Clone {
    /// Returns the number of messages of each client.
    fn counts(&self) -> Vec<usize>;

    /// Leaves out a client.
    fn drop_client(&mut self, at: usize);

    /// Leaves out a message of a client.
    fn drop_message(&mut self, client: usize, at: usize);
}

/// An episode that failed, and can be run again.
pub trait Failed {
    /// The steps of episodes.
    type Step: Parts;
    /// What differed.
    type Difference;

    /// Runs these steps. If they fail in the same way as at first, returns those that ran, and the
    /// difference.
    fn again(
        &mut self,
        steps: &[Self::Step],
        servers: Servers,
    ) -> Option<(Vec<Self::Step>, Self::Difference)>;
}

struct Search<'a, F: Failed> {
    failed: &'a mut F,
    servers: Servers,
    tries: usize,
    until: Instant,
    best: Vec<F::Step>,
    found: Option<F::Difference>,
}

/// Returns the shortest failing sequence found, with its difference. `None` if it does not fail
/// again.
pub fn shrink<F: Failed>(
    failed: &mut F,
    steps: &[F::Step],
) -> Option<(Vec<F::Step>, F::Difference)> {
    let mut search = Search {
        failed,
        // A sequence that needs nothing from earlier episodes is the most useful one.
        servers: Servers::Fresh,
        tries: 0,
        until: Instant::now() + TIME,
        best: steps.to_vec(),
        found: None,
    };
    if !search.fails(steps) {
        search.servers = Servers::Used;
        if !(0..3).any(|_| search.fails(steps)) {
            return None;
        }
    }
    search.drop_steps();
    search.drop_clients();
    while search.drop_messages() && search.drop_steps() {}
    search.found.map(|found| (search.best, found))
}

impl<F: Failed> Search<'_, F> {
    fn exhausted(&self) -> bool {
        self.tries >= TRIES || Instant::now() > self.until
    }

    /// Runs `steps`, a second time if they do not fail, as the outcome may depend on which server
    /// the proxy chooses. If they fail in the same way, they become the best.
    fn fails(&mut self, steps: &[F::Step]) -> bool {
        self.fails_once(steps) || self.fails_once(steps)
    }

    fn fails_once(&mut self, steps: &[F::Step]) -> bool {
        self.tries += 1;
        let Some((ran, difference)) = self.failed.again(steps, self.servers) else { return false };
        self.best = ran;
        self.found = Some(difference);
        true
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
                any |= self.fails(&steps);
                end = start.min(self.best.len());
            }
            size /= 2;
        }
        any
    }

    /// Leaves out single clients of a burst.
    fn drop_clients(&mut self) {
        for step in (0..self.best.len()).rev() {
            let clients = self.counts(step).len();
            for client in (0..clients).rev().filter(|_| clients > 1) {
                self.fails_with(step, |step| {
                    if client < step.counts().len() {
                        step.drop_client(client);
                    }
                });
            }
        }
    }

    /// Leaves out single messages. Returns true if it left out any.
    fn drop_messages(&mut self) -> bool {
        let mut any = false;
        for step in (0..self.best.len()).rev() {
            for (client, count) in self.counts(step).into_iter().enumerate() {
                for at in (0..count).rev() {
                    any |= self.fails_with(step, |step| {
                        if step.counts().get(client).is_some_and(|count| at < *count) {
                            step.drop_message(client, at);
                        }
                    });
                }
            }
        }
        any
    }

    fn counts(&self, step: usize) -> Vec<usize> {
        self.best.get(step).map(Parts::counts).unwrap_or_default()
    }

    /// Runs the best steps with one of them changed, while time is left.
    fn fails_with(&mut self, at: usize, change: impl Fn(&mut F::Step)) -> bool {
        let mut steps = self.best.clone();
        let Some(step) = steps.get_mut(at).filter(|_| !self.exhausted()) else { return false };
        let before = step.counts();
        change(step);
        before != step.counts() && self.fails(&steps)
    }
}
