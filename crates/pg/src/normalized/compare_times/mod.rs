//! Whether a statement is faster prepared than as it was sent.
//!
//! A plan that is kept fits all values alike; one made for a value may be far better. PostgreSQL
//! compares what the planner expects of both, and the planner may be wrong. Here the time is
//! compared that executions took, all of them, in three ways:
//!
//! - Now and then one goes as it was sent, and another, drawn likewise, prepared ([`pairs`]).
//! - What prepared executions lose altogether is added up: their longest, all of them, beside those
//!   of texts as they were sent ([`losses`]).
//! - A text that takes many times the average is compared with itself ([`suspects`]).
//!
//! Nearly all executions go prepared as long as nothing speaks against it. Where something does,
//! all are drawn, and half go either way: for a doubt until a small part of all executions is used
//! up, for evidence until it is settled. A machine that is busy raises doubts all the time, and
//! what is no worse prepared is not to pay for that.
//!
//! To be wrong about a statement that is faster prepared costs what one in a hundred of its
//! executions would have saved; to be wrong about one that is slower, some dozen of its slowest, or
//! a small part of the time.

mod losses;
mod pairs;
mod suspects;

use self::losses::Losses;
use self::pairs::Pairs;
use self::suspects::Suspects;

/// Prepared executions before any is drawn.
const FIRST: u64 = 64;
/// Executions from one that is drawn to the next, on average.
const SPACE: u32 = 128;
/// Executions that go as they were sent for nothing but a doubt: so many, more where much may be
/// lost, and one in so many of all.
const DOUBT_MIN: u64 = 256;
const DOUBT_MUCH: u64 = 1536;
const DOUBT_SHARE: u64 = 128;
/// Prepared executions after which one goes as it was sent, if none has: without any there is
/// nothing to compare with.
const BLIND_MAX: u64 = 16;
/// Executions as they were sent after which earlier ones count half.
const SIMPLE_MAX: u64 = 256;
/// Executions on servers that are new to the statement, which cost more than those that follow,
/// before they are compared like all others; then they are if they are the greater part.
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
    /// The server is new to the statement and plans it for its values still. Says whether it was
    /// left to chance.
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

/// What speaks against preparing a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Against {
    /// Nothing.
    #[default]
    Nothing,
    /// Something that may be chance.
    Doubt,
    /// Something that is hardly chance.
    Evidence,
    /// Something that is no chance.
    Proof,
}

/// What executions of a statement took.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeComparison {
    simple: Sum,
    pairs: Pairs,
    losses: Losses,
    suspects: Suspects,
    against: Against,
    /// Executions that went as they were sent for a doubt.
    doubted: u64,
    /// Executions before the next that is drawn.
    left: u32,
    /// The next that is drawn goes this way.
    other: Option<Turn>,
    /// Prepared executions on servers that were new to the statement.
    new: u64,
    /// Coins that were tossed.
    tossed: u64,
    /// Prepared executions in all.
    pub(crate) hits: u64,
    /// Time that they took less than others on average, in microseconds; below zero if they took
    /// more.
    pub(crate) saved_us: i64,
}

impl TimeComparison {
    /// Forgets which way was faster; what was counted stays, and the average of those that went as
    /// they were sent.
    pub(crate) fn begin_anew(&mut self) {
        let Self { simple, tossed, hits, saved_us, .. } = *self;
        let doubted = hits / DOUBT_SHARE;
        *self = Self { simple, doubted, tossed, hits, saved_us, ..Self::default() };
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
        let all = self.draws_all();
        if !all && self.left > 0 {
            self.left -= 1;
            return (Turn::Prepared, Draw::None);
        }
        if !all && self.hits < FIRST {
            let blind = self.simple.count == 0 && self.hits >= BLIND_MAX;
            return (if blind { Turn::Simple } else { Turn::Prepared }, Draw::None);
        }
        let turn = self.draw();
        if all {
            self.doubted += u64::from(turn == Turn::Simple);
        } else {
            self.left = SPACE / 2 + self.toss() as u32 % SPACE;
        }
        (turn, Draw::Chance)
    }

    /// Whether all executions are drawn.
    fn draws_all(&self) -> bool {
        match self.against {
            Against::Nothing => self.hits >= FIRST && self.pairs.are_few() && self.may_doubt(),
            Against::Doubt => self.may_doubt(),
            Against::Evidence | Against::Proof => true,
        }
    }

    /// Whether more may go as they were sent for nothing but a doubt.
    fn may_doubt(&self) -> bool {
        let much = self.losses.may_be_much() || self.pairs.may_be_much();
        let least = if much { DOUBT_MUCH } else { DOUBT_MIN };
        self.doubted < least + self.hits / DOUBT_SHARE
    }

    /// The way of one that is drawn: the first of two is left to a coin, the second goes the other
    /// way.
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

    /// An execution took so long; `text` is what was sent, if it ran prepared. Says whether the
    /// statement is better not prepared.
    pub(crate) fn took(&mut self, turn: Turn, draw: Draw, text: &[u8], us: u64) -> bool {
        let usual = self.simple.mean();
        if turn == Turn::Prepared {
            self.hits += 1;
            self.saved_us += usual.map_or(0, |usual| usual as i64 - us as i64);
        }
        let long = (SUSPECT * usual.unwrap_or(us as f64)).max(1.0);
        if let Draw::Text(hash) = draw {
            if let Some(lost) = self.suspects.took(hash, turn, us, long) {
                self.losses.forgive(lost, long);
            }
            return false;
        }
        match turn {
            Turn::Simple => {
                self.simple.add(us, SIMPLE_MAX);
                self.losses.simple(us as f64, long);
            }
            Turn::Prepared if usual.is_some() => {
                let new = matches!(draw, Draw::New(_));
                if us as f64 > long && !new && text.len() <= TEXT_MAX {
                    self.suspects.suspect(suspects::hash(text), us);
                }
                self.losses.prepared(us as f64, long, self.pairs.difference());
            }
            Turn::Prepared => return false,
        }
        let pair = if self.compares(draw) { self.pairs.add(turn, us) } else { None };
        if let Some((simple, prepared)) = pair {
            self.losses.pair(simple, prepared, self.pairs.difference(), long);
        }
        self.against = self.losses.against().max(self.pairs.against());
        pair.is_some() && self.against == Against::Proof
    }

    /// Whether an execution that went its way for this is compared with one of the other way.
    fn compares(&mut self, draw: Draw) -> bool {
        match draw {
            Draw::None | Draw::Text(_) => false,
            Draw::Chance => true,
            Draw::New(drawn) => {
                self.new += 1;
                drawn && self.new > NEW_MAX.max(self.hits / 2)
            }
        }
    }

    /// What a prepared execution took on average, and one as it was sent, of those that were
    /// compared.
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
