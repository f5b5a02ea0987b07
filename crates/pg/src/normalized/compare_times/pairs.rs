//! The times of prepared and of simple executions, compared in pairs.
//!
//! Times have long tails: one execution in a thousand may take longer than all others together,
//! because of its value or because the machine is busy. So no spread is assumed. Of two executions
//! whose way a coin has chosen, each is as likely to be the slower one if the ways are alike. Then
//! the sum of the differences is rarely more than a few times the root of the sum of their squares,
//! however they are spread (self-normalised sums: de la Peña, Lai, Shao, "Self-Normalized
//! Processes", 2009). A difference that is far larger than all others counts once by this measure;
//! a dozen like it, all on one side, are beyond doubt.
//!
//! Differences are added up twice: as they are, and cut off at the typical time of an execution.
//! The cut differences show a small and steady loss earlier, however busy the machine is; but they
//! are proof only if the whole sum agrees.

use super::{Against, Turn};

/// Limits of a sum of differences, in roots of the sum of squares, for the whole differences and
/// for the cut ones. Above `PROOF` it is no chance that prepared executions are slower, above
/// `EVIDENCE` it is hardly chance, and above `DOUBT` it may be more.
const PROOF: f64 = 4.0;
const EVIDENCE: f64 = 2.5;
const DOUBT: f64 = 1.5;
/// Pairs that are made one after the other when a statement is new. Whole differences count only
/// after them: the first executions under way may all be of one text, which becomes suspect only
/// when one of them has ended.
const PAIRS_FIRST: u32 = 128;
/// The least number of pairs that says anything.
const PAIRS_MIN: u32 = 8;
/// Number of pairs after which earlier ones count half.
const PAIRS_MAX: u32 = 1 << 13;
/// A loss below this part of the typical time (one in so many) is tolerated without proof.
const SMALL: f64 = 32.0;
/// A loss above this part of the typical time (one in so many) justifies more simple executions.
const MUCH: f64 = 20.0;
/// The part of the typical time by which it grows with each execution that takes more, and shrinks
/// with each that takes less.
const STEP: f64 = 1.0 / 16.0;
/// Executions of one way that may wait for one of the other. More wait only if executions fail.
const WAITING_MAX: usize = 16;

/// The sum of differences, positive if prepared executions are slower, and the sum of their
/// squares.
#[derive(Clone, Copy, Debug, Default)]
struct PairSum {
    of: f64,
    squares: f64,
}

impl PairSum {
    fn add(&mut self, difference: f64) {
        self.of += difference;
        self.squares += difference * difference;
    }

    /// Returns the sum in roots of the sum of squares.
    fn roots(self) -> f64 {
        self.of / self.squares.sqrt().max(f64::MIN_POSITIVE)
    }
}

/// Pairs of executions.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    /// Times of executions that wait for one of the other way, all of the same `way`, in
    /// microseconds.
    waiting: Vec<u64>,
    way: Option<Turn>,
    count: u32,
    whole: PairSum,
    cut: PairSum,
    /// The typical time of an execution, an estimate of the median.
    typical: f64,
    /// The sums of the times in the pairs.
    simple_us: f64,
    prepared_us: f64,
}

impl Pairs {
    /// Adds the time of an execution whose way was drawn. Returns the pair that it completes: the
    /// simple and the prepared time.
    pub(super) fn add(&mut self, turn: Turn, us: u64) -> Option<(f64, f64)> {
        let (time, typical) = (us as f64, self.typical);
        self.typical = match typical {
            0.0 => time.max(1.0),
            _ if time > typical => typical * (1.0 + STEP),
            _ => typical / (1.0 + STEP),
        };
        if self.waiting.is_empty() {
            self.way = Some(turn);
        }
        if self.way == Some(turn) {
            if self.waiting.len() == WAITING_MAX {
                self.waiting.remove(0);
            }
            self.waiting.push(us);
            return None;
        }
        let other = self.waiting.remove(0) as f64;
        let (simple, prepared) = match turn {
            Turn::Simple => (time, other),
            Turn::Prepared => (other, time),
        };
        if self.count >= PAIRS_MAX {
            self.halve();
        }
        self.count += 1;
        if self.count > PAIRS_FIRST {
            self.whole.add(prepared - simple);
        }
        self.cut.add((prepared - simple).clamp(-self.typical, self.typical));
        self.simple_us += simple;
        self.prepared_us += prepared;
        Some((simple, prepared))
    }

    fn halve(&mut self) {
        self.count /= 2;
        let sums = [&mut self.whole.of, &mut self.cut.of];
        let others = [&mut self.whole.squares, &mut self.cut.squares];
        let times = [&mut self.simple_us, &mut self.prepared_us];
        sums.into_iter().chain(others).chain(times).for_each(|sum| *sum /= 2.0);
    }

    /// Whether the first pairs ([`PAIRS_FIRST`]) are not complete.
    pub(super) fn are_few(&self) -> bool {
        self.count < PAIRS_FIRST
    }

    /// Returns how much longer a prepared execution typically takes than a simple one, in
    /// microseconds.
    pub(super) fn difference(&self) -> f64 {
        self.cut.of / f64::from(self.count.max(1))
    }

    /// Whether the loss is so large that it justifies more simple executions.
    pub(super) fn may_be_much(&self) -> bool {
        self.difference() * MUCH > self.typical
    }

    /// Returns how strongly the pairs speak against prepared executions.
    pub(super) fn against(&self) -> Against {
        if self.count < PAIRS_MIN {
            return Against::Nothing;
        }
        let (cut, whole) = (self.cut.roots(), self.whole.roots());
        let small = self.difference() * SMALL < self.typical;
        if cut >= PROOF && whole >= 0.0 || whole >= PROOF {
            Against::Proof
        } else if cut >= EVIDENCE && !small || whole >= EVIDENCE {
            Against::Evidence
        } else if cut >= DOUBT && !small || whole >= DOUBT {
            Against::Doubt
        } else {
            Against::Nothing
        }
    }

    /// Returns the average time of a prepared and of a simple execution, in microseconds.
    pub(super) fn means(&self) -> (u64, u64) {
        let mean = |sum: f64| (sum / f64::from(self.count.max(1))) as u64;
        (mean(self.prepared_us), mean(self.simple_us))
    }
}
