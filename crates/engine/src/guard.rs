//! Whether a statement is faster prepared than as it was sent.
//!
//! A plan that is kept fits all values alike; one made for a value may be far better. PostgreSQL compares what the
//! planner expects of both, and the planner may be wrong. Here the time is compared that executions took. When
//! prepared ones seem slow, the next executions go either way in turns, so that both have values of the same
//! kind; what they then took decides, if it is the same several times over: on a busy machine some executions take
//! long for no reason of theirs.

/// Prepared executions after which their time is looked at.
const WINDOW: u64 = 16;
/// Executions of either kind in a trial.
const TRIAL: usize = 16;
/// The slowest of them, which do not count.
const OUTLIERS: usize = 2;
/// Trials in a row in which prepared executions are slow before it is believed.
const TRIALS: u32 = 3;
/// Windows that are not looked at after a trial that found nothing: twice as many after each, up to this many.
const CALM_MAX: u32 = 256;
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

/// Executions either way, in turns.
#[derive(Clone, Debug, Default)]
struct Trial {
    simple: Vec<u64>,
    prepared: Vec<u64>,
    /// How many trials before it found prepared executions slow.
    lost: u32,
}

/// Windows that are not looked at: trials cost what they are to save.
#[derive(Clone, Copy, Debug, Default)]
struct Calm {
    /// After the last trial.
    windows: u32,
    /// Those still to come.
    left: u32,
}

impl Calm {
    /// Whether a window is one of them.
    fn passes(&mut self) -> bool {
        let passes = self.left > 0;
        self.left = self.left.saturating_sub(1);
        passes
    }

    fn grow(&mut self) {
        self.windows = (2 * self.windows).clamp(1, CALM_MAX);
        self.left = self.windows;
    }
}

/// What executions of a statement took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    simple: Sum,
    prepared: Sum,
    trial: Option<Box<Trial>>,
    calm: Calm,
    /// Prepared executions in all.
    pub(crate) hits: u64,
    /// Time that they took less than others on average, in microseconds.
    pub(crate) saved_us: u64,
}

impl Guard {
    /// Forgets what executions took; those there were still count.
    pub(crate) fn begin_anew(&mut self) {
        (self.simple, self.prepared, self.trial, self.calm) = Default::default();
    }

    /// Which way the next execution goes.
    #[inline]
    pub(crate) fn turn(&self) -> Turn {
        match &self.trial {
            Some(trial) if trial.simple.len() < trial.prepared.len() => Turn::Simple,
            _ => Turn::Prepared,
        }
    }

    /// An execution took so long. Says whether the statement is better not prepared.
    pub(crate) fn took(&mut self, turn: Turn, us: u64) -> bool {
        let sum = match turn {
            Turn::Simple => &mut self.simple,
            Turn::Prepared => {
                self.hits += 1;
                self.saved_us += self.simple.mean().saturating_sub(us);
                &mut self.prepared
            }
        };
        sum.add(us);
        match &mut self.trial {
            None => {
                self.window_ends();
                false
            }
            Some(trial) => {
                let lost = trial.took(turn, us);
                lost.is_some_and(|lost| self.trial_ends(lost))
            }
        }
    }

    /// At the end of a window, begins a trial where prepared executions were slow.
    fn window_ends(&mut self) {
        if self.prepared.count >= WINDOW {
            if !self.calm.passes() && is_slower(self.prepared.mean(), 2 * self.simple.mean()) {
                self.trial = Some(Box::default());
            }
            self.prepared = Sum::default();
        }
    }

    fn trial_ends(&mut self, lost: u32) -> bool {
        self.prepared = Sum::default();
        self.trial = match lost {
            0 => {
                self.calm.grow();
                None
            }
            lost => Some(Box::new(Trial { lost, ..Trial::default() })),
        };
        lost >= TRIALS
    }
}

impl Trial {
    /// An execution took so long. At the end says how many trials in a row found prepared executions slow.
    fn took(&mut self, turn: Turn, us: u64) -> Option<u32> {
        match turn {
            Turn::Simple => self.simple.push(us),
            Turn::Prepared => self.prepared.push(us),
        }
        if self.simple.len().min(self.prepared.len()) < TRIAL {
            return None;
        }
        let simple = without_outliers(&mut self.simple);
        let slow = is_slower(without_outliers(&mut self.prepared), simple * 5 / 4);
        Some(if slow { self.lost + 1 } else { 0 })
    }
}

/// The mean of all but the slowest.
fn without_outliers(times: &mut [u64]) -> u64 {
    times.sort_unstable();
    let kept = &times[..times.len().saturating_sub(OUTLIERS)];
    kept.iter().sum::<u64>().checked_div(kept.len() as u64).unwrap_or(0)
}

fn is_slower(us: u64, than: u64) -> bool {
    us > than + NOISE_US
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
        assert!(run(&mut guard, 200, time));
    }

    #[test]
    fn values_that_are_slow_either_way_are_no_reason() {
        let mut guard = after_five_simple(100);
        assert!(!run(&mut guard, 1000, |_, index| if index % 3 == 0 { 12_000 } else { 90 }));
        assert!(guard.hits > 800, "{}", guard.hits);
    }

    #[test]
    fn a_kept_plan_that_fits_somewhat_less_is_found_out() {
        let mut guard = after_five_simple(100);
        let time = |turn, _| if turn == Turn::Prepared { 40_000 } else { 30_000 };
        assert!(run(&mut guard, 200, time));
    }

    #[test]
    fn what_is_no_reason_again_and_again_is_looked_at_less_and_less() {
        let mut guard = after_five_simple(100);
        assert!(!run(&mut guard, 100_000, |_, _| 12_000));
        assert!(guard.hits > 99_000, "{}", guard.hits);
        let time = |turn, _| if turn == Turn::Prepared { 40_000 } else { 12_000 };
        assert!(run(&mut guard, 10_000, time), "it is looked at still");
    }

    #[test]
    fn a_busy_machine_is_no_reason() {
        let mut guard = after_five_simple(100);
        let mut noise = 1_u64;
        for _ in 0..100_000 {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let us = if (noise >> 60) == 0 { 20_000 } else { 90 };
            let turn = guard.turn();
            assert!(!guard.took(turn, us));
        }
    }

    #[test]
    fn what_is_fast_is_not_tried_otherwise() {
        let mut guard = after_five_simple(100);
        let simple = |turn, _| if turn == Turn::Simple { u64::MAX } else { 60 };
        assert!(!run(&mut guard, 1000, simple));
        assert_eq!((guard.hits, guard.saved_us), (1000, 40_000));
    }
}
