//! Whether a statement is faster prepared than as it was sent.
//!
//! A plan that is kept fits all values alike; one made for a value may be far better. PostgreSQL compares what the
//! planner expects of both, and the planner may be wrong. Here the time is compared that executions took, all of them, in
//! three ways:
//!
//! - Now and then one goes as it was sent, and another, drawn likewise, prepared ([`pairs`]). Where it is not clear that
//!   prepared ones are faster, all are drawn: half of them go either way until it is clear.
//! - What prepared executions take beyond the average of those as they were sent is added up. Beyond a small part of all
//!   time spent, that is a debt: all are drawn until the debt is worked off, or it is clear that they are slower.
//! - A text that takes many times the average is compared with itself ([`suspects`]).
//!
//! To be wrong about a statement that is faster prepared costs what half of its executions would have saved; to be wrong
//! about one that is slower, a dozen of its slowest, or a small part of the time.

mod pairs;
mod suspects;

use self::pairs::Pairs;
use self::suspects::Suspects;

/// Prepared executions before any is drawn.
const FIRST: u64 = 64;
/// Executions from one that is drawn to the next, on average.
const SPACE_MIN: u32 = 32;
/// The same where it has been clear for long which way is faster.
const SPACE_MAX: u32 = 512;
/// One in so many is drawn where it seems which way is faster, but is not clear.
const LEANING: u64 = 2;
/// Pairs after which draws are twice as far apart.
const SPACE_PAIRS: u32 = 64;
/// Prepared executions after which one goes as it was sent, if none has: without any there is nothing to compare with.
const BLIND_MAX: u64 = 16;
/// Pairs after which earlier ones count half: where it is clear which way is faster, that may change; where it is not,
/// it may hang on one execution in thousands.
const PAIRS_CLEAR: u32 = 1 << 12;
const PAIRS_OPEN: u32 = 1 << 16;
/// Executions as they were sent, and prepared, after which earlier ones count half.
const SIMPLE_MAX: u64 = 256;
const PREPARED_MAX: u64 = 1 << 16;
/// What may be lost before it is a debt: as many averages, and one part in so many of the time spent.
const LOSS_AVERAGES: f64 = 64.0;
const LOSS_SHARE: f64 = 64.0;
/// Executions on servers that are new to the statement, which cost more than those that follow, before they are compared
/// like all others; then they are if they are the greater part.
const NEW_MAX: u64 = 512;
/// An execution that takes so many times the average makes its text suspect.
const SUSPECT: f64 = 8.0;
/// Longer texts are not, in bytes: they are hardly sent twice.
const TEXT_MAX: usize = 4096;

/// Which way an execution goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Prepared.
    Prepared,
    /// As it was sent.
    Simple,
}

/// Why an execution goes its way. Comes back with the time that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Draw {
    /// There was no choice, or it goes as most do.
    #[default]
    None,
    /// It was left to chance.
    Chance,
    /// The server is new to the statement and plans it for its values still. Says whether it was left to chance.
    New(bool),
    /// Its text is suspect, and known by this.
    Text(u64),
}

/// Executions and the time they took.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    us: u64,
}

impl Sum {
    /// Adds one; beyond `most` those there are count half.
    fn add(&mut self, us: u64, most: u64) {
        if self.count >= most {
            *self = Self { count: self.count / 2, us: self.us / 2 };
        }
        self.count += 1;
        self.us += us;
    }

    /// The average, if there is any.
    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.us as f64 / self.count as f64)
    }
}

/// What executions of a statement took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    simple: Sum,
    prepared: Sum,
    pairs: Pairs,
    suspects: Suspects,
    /// Whether all are drawn.
    open: bool,
    /// What prepared executions lost before all were drawn, in microseconds.
    debt: f64,
    /// What they took beyond the average of others since it was last not so.
    loss: f64,
    /// Executions before the next that is drawn, and from each to the next.
    left: u32,
    space: u32,
    /// The next that is drawn goes this way.
    other: Option<Turn>,
    /// Prepared executions on servers that were new to the statement.
    new: u64,
    /// Coins that were tossed.
    tossed: u64,
    /// Prepared executions in all.
    pub(crate) hits: u64,
    /// Time that they took less than others on average, in microseconds; below zero if they took more.
    pub(crate) saved_us: i64,
}

impl Guard {
    /// Forgets which way was faster; what was counted stays, and the average of those that went as they were sent.
    pub(crate) fn begin_anew(&mut self) {
        let Self { simple, tossed, hits, saved_us, .. } = *self;
        *self = Self { simple, tossed, hits, saved_us, ..Self::default() };
    }

    /// Which way the next execution goes, that of this text.
    #[inline]
    pub(crate) fn turn(&mut self, text: &[u8]) -> (Turn, Draw) {
        if !self.suspects.is_empty() && text.len() <= TEXT_MAX {
            let hash = suspects::hash(text);
            if let Some(turn) = self.suspects.turn(hash) {
                return (turn, Draw::Text(hash));
            }
        }
        if !self.open && self.left > 0 {
            self.left -= 1;
            return (Turn::Prepared, Draw::None);
        }
        if !self.open && self.hits < FIRST {
            let blind = self.simple.count == 0 && self.hits >= BLIND_MAX;
            return (if blind { Turn::Simple } else { Turn::Prepared }, Draw::None);
        }
        if self.open
            && let Some(turn) = self.pairs.leaning(self.debt)
            && !self.toss().is_multiple_of(LEANING)
        {
            return (turn, Draw::None);
        }
        let space = self.space.max(SPACE_MIN);
        self.left = space / 2 + self.toss() as u32 % space;
        (self.draw(), Draw::Chance)
    }

    /// The way of one that is drawn: the first of two is left to a coin, the second goes the other way.
    #[cold]
    fn draw(&mut self) -> Turn {
        if let Some(turn) = self.other.take() {
            return turn;
        }
        let (turn, other) = match self.toss() & 1 {
            0 => (Turn::Simple, Turn::Prepared),
            _ => (Turn::Prepared, Turn::Simple),
        };
        self.other = Some(other);
        turn
    }

    /// A number that has nothing to do with what clients send (splitmix64).
    fn toss(&mut self) -> u64 {
        self.tossed = self.tossed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.tossed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// An execution took so long; `text` is what was sent, if it ran prepared. Says whether the statement is better not
    /// prepared.
    pub(crate) fn took(&mut self, turn: Turn, draw: Draw, text: &[u8], us: u64) -> bool {
        let usual = self.simple.mean();
        if turn == Turn::Prepared {
            self.hits += 1;
            self.saved_us += usual.map_or(0, |usual| usual as i64 - us as i64);
        }
        if let Draw::Text(hash) = draw {
            if let Some(lost) = self.suspects.took(hash, turn, us) {
                self.forgive(lost);
            }
            return false;
        }
        match turn {
            Turn::Simple => self.simple.add(us, SIMPLE_MAX),
            Turn::Prepared => {
                self.prepared.add(us, PREPARED_MAX);
                if let Some(usual) = usual {
                    self.weigh(text, draw, us, usual);
                }
            }
        }
        let counts = match draw {
            Draw::None | Draw::Text(_) => false,
            Draw::Chance => true,
            Draw::New(drawn) => {
                self.new += 1;
                drawn && self.new > NEW_MAX.max(self.hits / 2)
            }
        };
        let most = if self.open { PAIRS_OPEN } else { PAIRS_CLEAR };
        counts && self.pairs.add(turn, us, usual.unwrap_or(us as f64), most) && self.judge()
    }

    /// What prepared executions may lose before all are drawn, if one usually takes so long.
    fn bearable(&self, usual: f64) -> f64 {
        LOSS_AVERAGES * usual + self.prepared.us as f64 / LOSS_SHARE
    }

    /// Looks at a prepared execution beside what is usual for those as they were sent.
    #[inline]
    fn weigh(&mut self, text: &[u8], draw: Draw, us: u64, usual: f64) {
        let (us, new) = (us as f64, matches!(draw, Draw::New(_)));
        if us > SUSPECT * usual && !new && text.len() <= TEXT_MAX {
            self.suspects.suspect(suspects::hash(text), us as u64);
        }
        if self.open {
            return;
        }
        self.loss = (self.loss + us - usual).max(0.0);
        if self.loss > self.bearable(usual) {
            self.pairs = Pairs::default();
            (self.open, self.debt, self.loss) = (true, self.loss, 0.0);
        }
    }

    /// What a text took is no reason any more to think ill of the others.
    fn forgive(&mut self, lost: u64) {
        self.loss = (self.loss - lost as f64).max(0.0);
        self.debt = (self.debt - lost as f64).max(0.0);
    }

    /// There is another pair. Says whether the statement is better not prepared.
    fn judge(&mut self) -> bool {
        if self.pairs.is_worse() {
            return true;
        }
        if self.open && self.pairs.is_better(self.debt) {
            (self.open, self.debt, self.space) = (false, 0.0, SPACE_MIN);
        } else if !self.open && self.pairs.is_unclear() {
            self.open = true;
        } else if !self.open && self.pairs.count().is_multiple_of(SPACE_PAIRS) {
            self.space = (2 * self.space).clamp(SPACE_MIN, SPACE_MAX);
        }
        false
    }

    /// What a prepared execution took on average, and one as it was sent, of those that were compared.
    pub(crate) fn means(&self) -> (u64, u64) {
        self.pairs.means()
    }

    /// Texts that go as they were sent.
    pub(crate) fn slow_texts(&self) -> u64 {
        self.suspects.slow()
    }
}

#[cfg(test)]
mod tests;
