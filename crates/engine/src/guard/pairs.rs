//! Times of prepared executions and of texts run as they were sent, compared two by two.
//!
//! Times have long tails: one execution in a thousand may take longer than all others together, because of its value or
//! because the machine is busy. So no spread is assumed. Of two executions whose way a coin has chosen, each is as
//! likely to be the slower one if the ways are alike. Then the sum of the differences is rarely more than a few
//! times the root of the sum of their squares, however they are spread (self-normalised sums: de la Peña, Lai,
//! Shao, "Self-Normalized Processes", 2009). A difference that is far larger than all others counts once by this
//! measure; a dozen like it, all on one side, are beyond doubt.
//!
//! Differences are added up as they are, and once more cut off at some times what an execution takes. By those a small and
//! steady loss is seen earlier; but they decide only if the whole sum agrees.

use super::Turn;

/// Roots of the sum of squares beyond which it is no chance that prepared executions are slower.
const WORSE: f64 = 3.5;
/// The same for faster ones: to be wrong costs less, since all are watched.
const BETTER: f64 = 2.0;
/// What is less than that is not known to be faster any more.
const UNCLEAR: f64 = 1.0;
/// Pairs of which fewer say nothing.
const PAIRS_MIN: u32 = 8;
/// Times that an execution usually takes, beyond which a difference is cut off.
const CUT: f64 = 4.0;
/// Executions one way that wait for one the other way. More come of failures only.
const WAITING_MAX: usize = 16;

/// A sum of differences, positive where prepared executions are slower, and that of their squares.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    of: f64,
    squares: f64,
}

impl Sum {
    fn add(&mut self, difference: f64) {
        self.of += difference;
        self.squares += difference * difference;
    }

    /// The sum, in roots of the sum of squares; `more` is added to it.
    fn roots(self, more: f64) -> f64 {
        (self.of + more) / self.squares.sqrt().max(f64::MIN_POSITIVE)
    }
}

/// Pairs of executions.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    /// Executions that wait for another, all of them one way, in microseconds.
    waiting: Vec<u64>,
    way: Option<Turn>,
    count: u32,
    whole: Sum,
    cut: Sum,
    /// Times that went into the pairs.
    simple_us: f64,
    prepared_us: f64,
}

impl Pairs {
    /// An execution whose way was left to chance took so long; one usually takes `usual`. Beyond `most` pairs those there are
    /// count half. Says whether it makes another.
    pub(super) fn add(&mut self, turn: Turn, us: u64, usual: f64, most: u32) -> bool {
        if self.waiting.is_empty() {
            self.way = Some(turn);
        }
        if self.way == Some(turn) {
            if self.waiting.len() == WAITING_MAX {
                self.waiting.remove(0);
            }
            self.waiting.push(us);
            return false;
        }
        let other = self.waiting.remove(0) as f64;
        let (simple, prepared) = match turn {
            Turn::Simple => (us as f64, other),
            Turn::Prepared => (other, us as f64),
        };
        if self.count >= most {
            self.halve();
        }
        let most = CUT * usual.max(1.0);
        self.count += 1;
        self.whole.add(prepared - simple);
        self.cut.add((prepared - simple).clamp(-most, most));
        self.simple_us += simple;
        self.prepared_us += prepared;
        true
    }

    fn halve(&mut self) {
        self.count /= 2;
        let sums = [&mut self.whole.of, &mut self.cut.of];
        let others = [&mut self.whole.squares, &mut self.cut.squares];
        let times = [&mut self.simple_us, &mut self.prepared_us];
        sums.into_iter().chain(others).chain(times).for_each(|sum| *sum /= 2.0);
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Whether prepared executions are slower.
    pub(super) fn is_worse(&self) -> bool {
        let cut = self.cut.roots(0.0) >= WORSE && self.whole.of > 0.0;
        self.count >= PAIRS_MIN && (cut || self.whole.roots(0.0) >= WORSE)
    }

    /// Whether prepared executions are faster, by more than `debt` that they have lost before.
    pub(super) fn is_better(&self, debt: f64) -> bool {
        let clear = self.cut.roots(0.0) <= -BETTER;
        self.count >= PAIRS_MIN && clear && self.whole.of + debt <= 0.0
    }

    /// Which way seems to be faster, if prepared executions have lost `debt` before.
    pub(super) fn leaning(&self, debt: f64) -> Option<Turn> {
        let worse = self.whole.of + debt > 0.0;
        let turn = if worse { Turn::Simple } else { Turn::Prepared };
        (self.count >= PAIRS_MIN).then_some(turn)
    }

    /// Whether it cannot be said any more that prepared executions are faster.
    pub(super) fn is_unclear(&self) -> bool {
        self.count >= PAIRS_MIN && self.cut.roots(0.0) > -UNCLEAR
    }

    /// What a prepared execution took on average, and one of a text as it was sent.
    pub(super) fn means(&self) -> (u64, u64) {
        let mean = |sum: f64| (sum / f64::from(self.count.max(1))) as u64;
        (mean(self.prepared_us), mean(self.simple_us))
    }
}
