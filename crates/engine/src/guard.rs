//! Whether a statement is faster prepared than as it was sent.
//!
//! A plan that is kept fits all values alike; one made for a value may be far better. PostgreSQL compares what the
//! planner expects of both, and the planner may be wrong. Here the time is compared that executions took. When
//! prepared ones seem slow, the next executions go either way in turns, so that both have values of the same
//! kind; what they then took decides.

/// Prepared executions after which their time is looked at.
const WINDOW: u64 = 16;
/// Executions of either kind in a trial.
const TRIAL: u64 = 8;
/// A difference that is less than this for each execution is noise, in microseconds.
const NOISE_US: u64 = 200;

/// Which way an execution goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Prepared.
    Prepared,
    /// As it was sent.
    Simple,
}

/// Executions and the time they took.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    us: u64,
}

impl Sum {
    fn add(&mut self, us: u64) {
        self.count += 1;
        self.us += us;
    }

    fn mean(self) -> u64 {
        self.us.checked_div(self.count).unwrap_or(0)
    }
}

/// What executions of a statement took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    simple: Sum,
    prepared: Sum,
    /// Whether executions go either way in turns.
    trial: bool,
    /// Prepared executions in all.
    pub(crate) hits: u64,
    /// Time that they took less than others on average, in microseconds.
    pub(crate) saved_us: u64,
}

impl Guard {
    /// Which way the next execution goes.
    #[inline]
    pub(crate) fn turn(&self) -> Turn {
        if self.trial && self.simple.count < self.prepared.count {
            Turn::Simple
        } else {
            Turn::Prepared
        }
    }

    /// An execution took so long. Says whether the statement is better not prepared.
    pub(crate) fn took(&mut self, turn: Turn, us: u64) -> bool {
        match turn {
            Turn::Simple => self.simple.add(us),
            Turn::Prepared => {
                self.prepared.add(us);
                self.hits += 1;
                self.saved_us += self.simple.mean().saturating_sub(us);
            }
        }
        if self.trial { self.trial_ends() } else { self.window_ends() }
    }

    /// At the end of a window, begins a trial where prepared executions were slow.
    fn window_ends(&mut self) -> bool {
        if self.prepared.count >= WINDOW {
            self.trial = self.prepared.mean() > 2 * self.simple.mean() + NOISE_US;
            self.prepared = Sum::default();
            if self.trial {
                self.simple = Sum::default();
            }
        }
        false
    }

    fn trial_ends(&mut self) -> bool {
        if self.simple.count.min(self.prepared.count) < TRIAL {
            return false;
        }
        self.trial = false;
        let slow = self.prepared.mean() > self.simple.mean() * 3 / 2 + NOISE_US;
        self.prepared = Sum::default();
        slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(guard: &mut Guard, executions: usize, time: impl Fn(Turn, usize) -> u64) -> bool {
        (0..executions).any(|index| {
            let turn = guard.turn();
            guard.took(turn, time(turn, index))
        })
    }

    fn after_five_simple(us: u64) -> Guard {
        let mut guard = Guard::default();
        (0..5).for_each(|_| assert!(!guard.took(Turn::Simple, us)));
        guard
    }

    #[test]
    fn a_kept_plan_that_does_not_fit_is_found_out() {
        let mut guard = after_five_simple(100);
        let time = |turn, index| match (turn, index % 3) {
            (Turn::Prepared, 0) => 40_000,
            (Turn::Simple, 0) => 12_000,
            _ => 90,
        };
        assert!(run(&mut guard, 100, time));
    }

    #[test]
    fn values_that_are_slow_either_way_are_no_reason() {
        let mut guard = after_five_simple(100);
        assert!(!run(&mut guard, 1000, |_, index| if index % 3 == 0 { 12_000 } else { 90 }));
        assert!(guard.hits > 500);
    }

    #[test]
    fn what_is_fast_is_not_tried_otherwise() {
        let mut guard = after_five_simple(100);
        let simple = |turn, _| if turn == Turn::Simple { u64::MAX } else { 60 };
        assert!(!run(&mut guard, 1000, simple));
        assert_eq!((guard.hits, guard.saved_us), (1000, 40_000));
    }
}
