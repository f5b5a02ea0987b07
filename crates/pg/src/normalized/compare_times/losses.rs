//! The time that prepared executions lose because some of them take very long.
//!
//! One pair in hundreds of executions finds a value whose plan takes a thousand times the average
//! too late. So each execution, prepared or simple, is compared with a limit, `long`: a multiple of
//! the average of simple executions. The time beyond the limit is added up for either way, and the
//! two sums are compared, since a busy machine delays both. The unit of time is `long` at the
//! moment of the execution, since load comes and goes.
//!
//! Few executions are simple, so they may not have met a rare delay yet that can hit both ways. A
//! loss is therefore evidence only if it exceeds the spread of both sums (executions that the
//! machine may have delayed together count as one, see [`TOGETHER`]). Evidence starts a trial, in
//! which the way of each execution is drawn: the loss happens again there, or it is forgotten.
//!
//! The time that a prepared execution typically saves is subtracted: a rare loss that the savings
//! make up for is no loss.

use super::Against;

/// The loss that is tolerated: `LOSS_LONG`, in units of `long`, and a `LOSS_SHARE`th part of the
/// time spent.
const LOSS_LONG: f64 = 8.0;
const LOSS_SHARE: f64 = 64.0;
/// Limits of the excess, in roots of the sum of squares: above `EVIDENCE` it is hardly chance,
/// below `CHANCE` it may be chance again, and above `PROOF` a trial is decided.
const EVIDENCE: f64 = 3.0;
const CHANCE: f64 = 2.0;
const PROOF: f64 = 3.5;
/// A loss above this part of the time spent (one in so many) justifies more simple executions.
const MUCH: f64 = 8.0;
/// Executions that a machine may delay together.
const TOGETHER: u32 = 32;
/// A trial may end without a loss once this number of losses of average size was due, and less than
/// one in so many of what was due has come.
const AGAIN: f64 = 4.0;
/// Number of simple executions after which earlier ones count half.
const SIMPLE_MAX: f64 = 4096.0;
/// Time of prepared executions after which earlier time counts half, in units of `long`.
const SPENT_MAX: f64 = 8192.0;

/// The executions of one way, and their time beyond `long`.
#[derive(Clone, Copy, Debug, Default)]
struct Beyond {
    count: f64,
    of: f64,
    squares: f64,
    /// The sum of the last `lasts` executions, which count as one in the sum of squares.
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

    /// Returns the average excess of the long executions, weighted by the excess.
    fn size(&self) -> f64 {
        self.squares / self.of.max(f64::MIN_POSITIVE)
    }
}

/// A trial: the loss has to happen again among executions whose way is drawn.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    /// The loss that is due per prepared execution: the least that there is evidence for.
    rate: f64,
    /// The loss of the pairs drawn since the trial began: the sum of their differences.
    of: f64,
    squares: f64,
    /// The sum of the typical differences between a prepared and a simple execution.
    typical: f64,
    count: f64,
}

/// The loss of prepared executions since the last time that they had lost nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    simple: Beyond,
    prepared: Beyond,
    /// The sum of the typical differences between a prepared and a simple execution.
    typical: f64,
    /// Time of all prepared executions.
    spent: f64,
    trial: Option<Trial>,
}

impl Losses {
    /// Counts the time of a simple execution.
    pub(super) fn simple(&mut self, us: f64, long: f64) {
        if self.simple.count >= SIMPLE_MAX {
            self.simple.halve();
        }
        self.simple.add(us, long);
    }

    /// Counts the time of a prepared execution. `difference` is how much longer than a simple one
    /// it typically takes.
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

    /// Counts a pair of drawn executions in the trial. Ends the trial if the loss did not come.
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

    /// Returns how much more time beyond `long` prepared executions took than as many simple ones.
    fn excess(&self) -> f64 {
        let usual = self.simple.of / self.simple.count.max(1.0);
        self.prepared.of - self.prepared.count * usual
    }

    /// Returns the loss of prepared executions: their excess, and their typical difference.
    fn lost(&self) -> f64 {
        self.excess() + self.typical
    }

    /// Subtracts the time of one suspect text, which is no longer evidence against the statement.
    pub(super) fn forgive(&mut self, lost: u64, long: f64) {
        let lost = lost as f64 / long;
        self.prepared.of = (self.prepared.of - lost).max(0.0);
        self.prepared.squares = (self.prepared.squares - lost * lost).max(0.0);
    }

    /// Whether the loss is so large that it justifies more simple executions.
    pub(super) fn may_be_much(&self) -> bool {
        self.lost() > self.spent / MUCH
    }

    /// Returns how strongly the loss speaks against prepared executions. May begin or end a trial.
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
