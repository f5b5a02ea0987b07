//! Times of prepared executions and of texts run as they were sent, compared two by two.
//!
//! Times have long tails: one execution in a thousand may take longer than all others together,
//! because of its value or because the machine is busy. So no spread is assumed. Of two executions
//! whose way a coin has chosen, each is as likely to be the slower one if the ways are alike. Then
//! the sum of the differences is rarely more than a few times the root of the sum of their squares,
//! however they are spread (self-normalised sums: de la Peña, Lai, Shao, "Self-Normalized
//! Processes", 2009). A difference that is far larger than all others counts once by this measure;
//! a dozen like it, all on one side, are beyond doubt.
//!
//! Differences are added up as they are, and once more cut off at what an execution typically
//! takes. By those a small and steady loss is seen earlier, however busy the machine is; but they
//! decide only if the whole sum agrees.

use super::{Against, Turn};

/// Roots of the sum of squares beyond which it is no chance that prepared executions are slower,
/// beyond which it is hardly chance, and beyond which it may be none: of the differences as they
/// are, and of those that are cut off.
const PROOF: f64 = 4.0;
const EVIDENCE: f64 = 2.5;
const DOUBT: f64 = 1.5;
/// Pairs that are made one behind the other when a statement is new. Differences as they are count
/// from then on: all that is under way at first may be about one text, which nobody suspects before
/// it is through.
const PAIRS_FIRST: u32 = 128;
/// Pairs of which fewer say nothing.
const PAIRS_MIN: u32 = 8;
/// Pairs after which earlier ones count half.
const PAIRS_MAX: u32 = 1 << 13;
/// A loss that is a smaller part of what an execution typically takes is borne without proof.
const SMALL: f64 = 32.0;
/// One that is a larger part is worth to be known of.
const MUCH: f64 = 20.0;
/// The part of what an execution typically takes by which that changes for each that takes more, or
/// less.
const STEP: f64 = 1.0 / 16.0;
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

    /// The sum, in roots of the sum of squares.
    fn roots(self) -> f64 {
        self.of / self.squares.sqrt().max(f64::MIN_POSITIVE)
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
    /// What an execution typically takes: half of them take more.
    typical: f64,
    /// Times that went into the pairs.
    simple_us: f64,
    prepared_us: f64,
}

impl Pairs {
    /// An execution whose way was left to chance took so long. Says whether it makes another pair.
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

    /// Whether the first of them are still to be made.
    pub(super) fn are_few(&self) -> bool {
        self.count < PAIRS_FIRST
    }

    /// What a prepared execution takes more than another, typically, in microseconds.
    pub(super) fn difference(&self) -> f64 {
        self.cut.of / f64::from(self.count.max(1))
    }

    /// Whether so much may be lost that it is worth to know.
    pub(super) fn may_be_much(&self) -> bool {
        self.difference() * MUCH > self.typical
    }

    /// What they say against prepared executions.
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

    /// What a prepared execution took on average, and one of a text as it was sent.
    pub(super) fn means(&self) -> (u64, u64) {
        let mean = |sum: f64| (sum / f64::from(self.count.max(1))) as u64;
        (mean(self.prepared_us), mean(self.simple_us))
    }
}
