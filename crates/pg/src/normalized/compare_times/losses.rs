//! What prepared executions lose by those of them that take very long.
//!
//! A pair in hundreds of executions finds too late a value whose plan takes a thousand times the
//! average. So of all prepared executions the time counts that is beyond what is long, and is held
//! against the same of texts that go as they were sent: a busy machine delays both. Time is counted
//! in times of what is long when it is spent, since load comes and goes.
//!
//! As few texts go as they were sent, they may not have seen yet what happens to all, be it rare or
//! the machine's. So a loss is evidence only if it is beyond what either kind spreads by (what a
//! machine may delay at once counts as one, see [`TOGETHER`]). And evidence has to happen again, in
//! a trial of executions that are all drawn: it decides, or the loss is forgotten.
//!
//! What a prepared execution typically saves is taken off: a rare loss that it makes up for is
//! none.

use super::Against;

/// What may be lost: as many times what is long, and one part in so many of the time spent.
const LOSS_LONG: f64 = 8.0;
const LOSS_SHARE: f64 = 64.0;
/// Roots of the sum of squares beyond which it is hardly chance that prepared executions take
/// longer, below which it may be chance again, and beyond which a trial decides.
const EVIDENCE: f64 = 3.0;
const CHANCE: f64 = 2.0;
const PROOF: f64 = 3.5;
/// A loss of a larger part of the time spent than one in so many is worth to be known of.
const MUCH: f64 = 8.0;
/// Executions that a machine may delay together.
const TOGETHER: u32 = 32;
/// So many losses have to be due in a trial before it is over; then one part in so many has to have
/// come.
const AGAIN: f64 = 4.0;
/// Executions of texts as they were sent after which earlier ones count half.
const SIMPLE_MAX: f64 = 4096.0;
/// Time of prepared executions after which earlier ones count half, in times of what is long.
const SPENT_MAX: f64 = 8192.0;

/// Executions, and their time beyond what is long.
#[derive(Clone, Copy, Debug, Default)]
struct Beyond {
    count: f64,
    of: f64,
    squares: f64,
    /// Of the last of them, which count as one.
    last: f64,
    lasts: u32,
}

impl Beyond {
    fn add(&mut self, us: f64, long: f64) {
        let beyond = (us / long - 1.0).max(0.0);
        self.count += 1.0;
        self.of += beyond;
        self.squares += beyond * (beyond + 2.0 * self.last);
        self.last += beyond;
        self.lasts += 1;
        if self.lasts == TOGETHER {
            (self.last, self.lasts) = (0.0, 0);
        }
    }

    fn halve(&mut self) {
        self.count /= 2.0;
        self.of /= 2.0;
        self.squares /= 2.0;
    }

    /// What the long ones are beyond it, the longer ones more than others.
    fn size(&self) -> f64 {
        self.squares / self.of.max(f64::MIN_POSITIVE)
    }
}

/// What was evidence has to happen again where executions are drawn.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    /// What is due to be lost by a prepared execution: the least that there is evidence for.
    rate: f64,
    /// What was lost by those drawn since, and what they took altogether more than others,
    /// typically.
    of: f64,
    squares: f64,
    typical: f64,
    count: f64,
}

/// What prepared executions lost since they last had lost nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    simple: Beyond,
    prepared: Beyond,
    /// What they took altogether more than others, typically.
    typical: f64,
    /// Time of all prepared executions.
    spent: f64,
    trial: Option<Trial>,
}

impl Losses {
    /// A text that went as it was sent took so long.
    pub(super) fn simple(&mut self, us: f64, long: f64) {
        if self.simple.count >= SIMPLE_MAX {
            self.simple.halve();
        }
        self.simple.add(us, long);
    }

    /// A prepared execution took so long; typically it takes `difference` more than another.
    pub(super) fn prepared(&mut self, us: f64, long: f64, difference: f64) {
        if self.spent > SPENT_MAX {
            self.spent /= 2.0;
        }
        self.spent += us / long;
        self.prepared.add(us, long);
        self.typical += difference / long;
        if self.lost() <= 0.0 {
            self.forget();
        }
    }

    /// Two were drawn.
    pub(super) fn pair(&mut self, simple: f64, prepared: f64, typical: f64, long: f64) {
        let size = self.prepared.size();
        let Some(trial) = &mut self.trial else { return };
        trial.count += 1.0;
        let difference = (prepared.max(long) - simple.max(long)) / long;
        trial.of += difference;
        trial.squares += difference * difference;
        trial.typical += typical / long;
        let due = trial.count * trial.rate;
        if due > AGAIN * size && (trial.of < due / AGAIN || trial.of + trial.typical <= 0.0) {
            self.forget();
        }
    }

    fn forget(&mut self) {
        (self.prepared, self.typical, self.trial) = Default::default();
    }

    /// What the longest prepared executions lost.
    fn excess(&self) -> f64 {
        let usual = self.simple.of / self.simple.count.max(1.0);
        self.prepared.of - self.prepared.count * usual
    }

    /// What prepared executions lost.
    fn lost(&self) -> f64 {
        self.excess() + self.typical
    }

    /// What a text took is no reason any more to think ill of the others.
    pub(super) fn forgive(&mut self, lost: u64, long: f64) {
        let lost = lost as f64 / long;
        self.prepared.of = (self.prepared.of - lost).max(0.0);
        self.prepared.squares = (self.prepared.squares - lost * lost).max(0.0);
    }

    /// Whether so much may be lost that it is worth to know.
    pub(super) fn may_be_much(&self) -> bool {
        self.lost() > self.spent / MUCH
    }

    /// What that says against prepared executions.
    pub(super) fn against(&mut self) -> Against {
        let bearable = self.lost() <= LOSS_LONG + self.spent / LOSS_SHARE;
        if bearable && self.trial.is_none() {
            return Against::Nothing;
        }
        let times = self.prepared.count / self.simple.count.max(1.0);
        let squares = self.prepared.squares + self.simple.squares * times * times;
        let (excess, root) = (self.excess(), squares.sqrt());
        if let Some(trial) = self.trial {
            if excess < CHANCE * root {
                self.trial = None;
            } else if !bearable && trial.of > PROOF * trial.squares.sqrt() {
                return Against::Proof;
            } else {
                return Against::Evidence;
            }
        }
        if bearable {
            return Against::Nothing;
        }
        if excess < EVIDENCE * root {
            return Against::Doubt;
        }
        let rate = (excess - CHANCE * root) / self.prepared.count;
        self.trial = Some(Trial { rate, ..Trial::default() });
        Against::Evidence
    }
}
