//! The comparison of a statement's times: is it faster prepared or as the client sent it?
//!
//! A generic plan serves all values alike; a custom plan may be far better for one value.
//! PostgreSQL compares the planner's estimates of both, and the planner may be wrong. Refrain
//! compares the measured times of executions, in three ways:
//!
//! - Now and then an execution is drawn: a coin decides whether it runs by the simple protocol or
//!   prepared. Two drawn executions, one each way, make a pair ([`pairs`]).
//! - The time that very long executions take beyond a limit is added up for either way
//!   ([`losses`]).
//! - A text that takes many times the average is compared with itself ([`suspects`]).
//!
//! Nearly all executions run prepared as long as nothing speaks against it. If something does, each
//! execution is drawn, and half of them go either way: for a doubt until a small part of all
//! executions is used up, for evidence until it is settled. The limit for doubts is there because a
//! busy machine raises doubts all the time, and a statement that is no worse prepared should not
//! pay for them.

mod losses;
mod pairs;
mod suspects;

use self::losses::Losses;
use self::pairs::Pairs;
use self::suspects::Suspects;

/// Prepared executions before any is drawn.
const FIRST: u64 = 64;
/// Average number of executions from one that is drawn to the next.
const SPACE: u32 = 128;
/// Limits of simple executions because of a mere doubt: `DOUBT_MIN`, or `DOUBT_MUCH` if the loss
/// may be large, plus one in `DOUBT_SHARE` of all prepared executions.
const DOUBT_MIN: u64 = 256;
const DOUBT_MUCH: u64 = 1536;
const DOUBT_SHARE: u64 = 128;
/// Prepared executions after which one runs by the simple protocol if none has: without any there
/// is nothing to compare with.
const BLIND_MAX: u64 = 16;
/// Number of simple executions after which earlier ones count half.
const SIMPLE_MAX: u64 = 256;
/// Executions on servers that are new to the statement that are not compared, since they cost more
/// than those that follow. Beyond this number they are compared if they are more than half of all.
const NEW_MAX: u64 = 512;
/// An execution that takes more than this multiple of the average makes its text suspect.
const SUSPECT: f64 = 8.0;
/// Longest suspect text, in bytes: longer ones are hardly ever sent twice.
const TEXT_MAX: usize = 4096;

/// The way in which an execution runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Prepared.
    Prepared,
    /// As the client sent it: by the simple protocol, or as the unnamed statement.
    Simple,
}

/// The reason why an execution goes its way. It comes back with the time of the execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Draw {
    /// There was no choice, or it goes the usual way.
    #[default]
    None,
    /// Its way was drawn.
    Chance,
    /// The server is new to the statement and still makes custom plans for it. The flag says
    /// whether the way was drawn.
    New(bool),
    /// Its text is suspect, and has this hash.
    Text(u64),
}

/// The number of executions and their total time, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    us: u64,
}

impl Sum {
    /// Adds an execution. Once there are `most`, the earlier ones count half.
    fn add(&mut self, us: u64, most: u64) {
        if self.count >= most {
            *self = Self { count: self.count / 2, us: self.us / 2 };
        }
        self.count += 1;
        self.us += us;
    }

    /// Returns the average, if there are executions.
    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.us as f64 / self.count as f64)
    }
}

/// The strength of the evidence against preparing a statement.
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

/// The times of a statement's executions, compared by the way in which they ran.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeComparison {
    simple: Sum,
    pairs: Pairs,
    losses: Losses,
    suspects: Suspects,
    against: Against,
    /// Simple executions because of a doubt.
    doubted: u64,
    /// Executions before the next that is drawn.
    left: u32,
    /// The way of the next drawn execution, the second of two.
    other: Option<Turn>,
    /// Prepared executions on servers that were new to the statement.
    new: u64,
    /// State of the random numbers.
    tossed: u64,
    /// Prepared executions in all.
    pub(crate) hits: u64,
    /// Time that prepared executions saved, in microseconds: the average of simple ones less their
    /// own. Negative if they took longer.
    pub(crate) saved_us: i64,
}

impl TimeComparison {
    /// Forgets which way was faster. Keeps the totals and the average of simple executions.
    pub(crate) fn begin_anew(&mut self) {
        let Self { simple, tossed, hits, saved_us, .. } = *self;
        let doubted = hits / DOUBT_SHARE;
        *self = Self { simple, doubted, tossed, hits, saved_us, ..Self::default() };
    }

    /// Returns which way the next execution, that of `text`, goes. An empty text says nothing of
    /// its values.
    #[inline]
    pub(crate) fn turn(&mut self, text: &[u8]) -> (Turn, Draw) {
        if !self.suspects.is_empty() && may_be_suspect(text) {
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

    /// Whether the next execution, that of `text`, goes the usual way.
    pub(crate) fn goes_the_usual_way(&self, text: &[u8]) -> bool {
        let usual = match self.hits < FIRST {
            true => self.simple.count > 0 || self.hits < BLIND_MAX,
            false => self.left > 0,
        };
        let decided = !self.suspects.is_empty()
            && may_be_suspect(text)
            && self.suspects.decide(suspects::hash(text));
        usual && !decided && !self.draws_all()
    }

    /// Whether all executions are drawn.
    fn draws_all(&self) -> bool {
        match self.against {
            Against::Nothing => self.hits >= FIRST && self.pairs.are_few() && self.may_doubt(),
            Against::Doubt => self.may_doubt(),
            Against::Evidence | Against::Proof => true,
        }
    }

    /// Whether more executions may run by the simple protocol because of a mere doubt.
    fn may_doubt(&self) -> bool {
        let much = self.losses.may_be_much() || self.pairs.may_be_much();
        let least = if much { DOUBT_MUCH } else { DOUBT_MIN };
        self.doubted < least + self.hits / DOUBT_SHARE
    }

    /// Draws the way of an execution: a coin decides the first of two, the second goes the other
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

    /// Returns a random number that does not depend on clients (splitmix64).
    fn toss(&mut self) -> u64 {
        self.tossed = self.tossed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.tossed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Counts the time of an execution; `text` is what has its values if it ran prepared. True if
    /// the statement is better not prepared.
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
                if us as f64 > long && !new && may_be_suspect(text) {
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

    /// Whether an execution that went its way for this reason goes into a pair.
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

    /// Returns the average time of a prepared and of a simple execution in the pairs, in
    /// microseconds.
    pub(crate) fn means(&self) -> (u64, u64) {
        self.pairs.means()
    }

    /// Returns the number of texts that run by the simple protocol because they are slow prepared.
    pub(crate) fn slow_texts(&self) -> u64 {
        self.suspects.slow()
    }
}

/// Whether a text is one that may come again with the same values.
fn may_be_suspect(text: &[u8]) -> bool {
    (1..=TEXT_MAX).contains(&text.len())
}

#[cfg(test)]
mod tests;
