//! Figures of statements on one core: calls, rows, errors, and a histogram of times of each.
//!
//! The figures are plain integers. Only the core writes them, and a reader gets a copy that the
//! core makes between two steps. Figures of several cores are added up when they are looked at
//! ([`SumOfFigures`]).
//!
//! A statement is a number. What is known of the statement is found by one look at a table, nothing
//! is allocated for it, and no other core sees what is written. The number of statements is
//! limited; when one more comes, those that were called least lately make room.
//!
//! A histogram has 32 buckets (`STEPS`) for each power of two, so a quantile is at most 2 % or 1 µs
//! away from the time that was counted. A `Block` has the buckets of one statement and one power of
//! two, and the sums of the calls that are counted there: a call touches one block.

use std::collections::{HashMap, HashSet};

use crate::buckets::{POWERS, STEPS, bounds_of, place_of};
use crate::ids::PoolId;

/// In place of a power of two: the block's first bucket counts errors.
const ERRORS: u64 = 30;
/// The key of no block: there is no such power of two.
const NO_KEY: u64 = u64::MAX;
/// Binary digits of the number of places for blocks.
const PLACES_BITS: u32 = 17;
/// Places for blocks.
const PLACES: usize = 1 << PLACES_BITS;
/// Blocks at most: half of the places stay free, so that a free one is near.
const BLOCKS_MAX: usize = PLACES / 2;
/// One statement in so many makes room when there is none.
const ROOM_PART: usize = 16;

/// Counts of a statement, since the start or since the statement was last seen anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementCounts {
    /// Commands of it that were completed.
    pub calls: u64,
    /// Rows that these returned or changed, as the server said.
    pub rows: u64,
    /// Commands of it that ended in an error.
    pub errors: u64,
    /// Time of the calls, in microseconds.
    pub time_us: u64,
}

impl StatementCounts {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.rows += other.rows;
        self.errors += other.errors;
        self.time_us += other.time_us;
    }
}

/// The calls of a statement on one core whose times are of one power of two.
#[derive(Clone, Debug)]
struct Block {
    /// The statement's number, and in the lowest five digits the power of two.
    key: u64,
    pool: PoolId,
    rows: u64,
    time_us: u64,
    buckets: [u32; STEPS],
    /// Calls that the buckets have no more, because one of them was full.
    halved: u64,
    /// The calls up to when room was last made, and those before that, of which each counts half as
    /// much as one later.
    seen: u64,
    usage: u64,
}

impl Block {
    fn new(key: u64, pool: PoolId) -> Self {
        let [rows, time_us, halved, seen, usage] = [0; 5];
        Self { key, pool, rows, time_us, buckets: [0; STEPS], halved, seen, usage }
    }

    fn calls(&self) -> u64 {
        self.buckets.iter().map(|count| u64::from(*count)).sum::<u64>() + self.halved
    }

    fn statement(&self) -> u64 {
        self.key >> 5
    }
}

/// The figures of a core's statements.
#[derive(Debug, Default)]
pub struct StatementFigures {
    /// The number of a block, at the place that its key says or behind; zero is none. `None` while
    /// nothing is counted.
    places: Option<Box<[u32; PLACES]>>,
    /// The blocks; the first one is none.
    blocks: Vec<Block>,
    statements: usize,
    /// The greatest number of statements.
    most: usize,
    /// The calls of all statements, by the bucket of their time; empty while nothing is counted.
    all: Vec<u64>,
}

impl StatementFigures {
    /// Sets the greatest number of statements; 0 counts nothing.
    pub fn limit(&mut self, most: usize) {
        self.most = most;
        if most == 0 {
            *self = Self::default();
        } else if self.statements > most {
            self.make_room(self.statements - most);
        }
        if self.places.is_none() && most > 0 {
            self.settle_places();
            self.all = vec![0; POWERS * STEPS];
        }
    }

    /// Returns the number of statements that have figures.
    pub fn statements(&self) -> usize {
        self.statements
    }

    /// Returns the numbers of these, by one pass over all figures.
    pub fn ids(&self) -> HashSet<u64> {
        self.blocks.iter().skip(1).map(Block::statement).collect()
    }

    /// Returns a copy to be looked at, without the places of the blocks.
    pub fn copy(&self) -> Self {
        Self { places: None, blocks: self.blocks.clone(), all: Vec::new(), ..*self }
    }

    /// Returns the number of calls of all statements in each bucket ([`times_of_bucket`]), since
    /// the start; nothing if nothing is counted.
    pub fn calls_by_time(&self) -> Vec<u64> {
        self.all.clone()
    }

    /// Counts a call of a statement of a pool that took `us` microseconds and had so many rows. The
    /// number zero stands for all statements of the pool that are not known.
    #[inline]
    pub fn count(&mut self, id: u64, pool: PoolId, us: u64, rows: u64) {
        let (power, step) = place_of(us);
        if let Some(calls) = self.all.get_mut(power as usize * STEPS + step) {
            *calls += 1;
        }
        let Some(block) = self.block(id, pool, power) else { return };
        block.rows += rows;
        block.time_us += us;
        block.buckets[step] = block.buckets[step].wrapping_add(1);
        if block.buckets[step] == 0 {
            let key = block.key;
            self.halve(key, step);
        }
    }

    /// Counts an error of a statement of a pool; the number zero as in [`Self::count`].
    #[cold]
    pub fn count_error(&mut self, id: u64, pool: PoolId) {
        if let Some(block) = self.block(id, pool, ERRORS) {
            block.buckets[0] = block.buckets[0].saturating_add(1);
        }
    }

    /// Returns the block of a statement and a power of two, which is made if there is none. `None`
    /// if nothing is counted.
    #[inline]
    fn block(&mut self, id: u64, pool: PoolId, power: u64) -> Option<&mut Block> {
        let key = (if id == 0 { others_of(pool) } else { id }) << 5 | power;
        let mut at = self.places.as_ref()?[home(key)] as usize;
        if self.blocks.get(at).is_none_or(|block| block.key != key) {
            at = self.find_behind(key, pool);
        }
        self.blocks.get_mut(at)
    }

    /// Returns the place of a block that another block keeps from its place, or makes the block.
    #[inline(never)]
    fn find_behind(&mut self, key: u64, pool: PoolId) -> usize {
        let mut place = match self.probe(key) {
            Ok(at) => return at,
            Err(place) => place,
        };
        let is_new = !self.has_statement(key >> 5);
        if is_new && self.statements >= self.most || self.blocks.len() > BLOCKS_MAX {
            self.make_room((self.statements / ROOM_PART).max(1));
            place = self.probe(key).err().unwrap_or(place);
        }
        // The statement itself may have made room.
        self.statements += usize::from(!self.has_statement(key >> 5));
        self.blocks.push(Block::new(key, pool));
        let at = self.blocks.len() - 1;
        if let Some(places) = &mut self.places {
            places[place] = at as u32;
        }
        at
    }

    /// Returns the number of a block, or else the free place where that is to stand.
    fn probe(&self, key: u64) -> Result<usize, usize> {
        let mut place = home(key);
        loop {
            match self.places.as_ref().map_or(0, |places| places[place]) as usize {
                0 => return Err(place),
                at if self.blocks.get(at).is_some_and(|it| it.key == key) => return Ok(at),
                _ => place = (place + 1) % PLACES,
            }
        }
    }

    /// Whether a statement has any block.
    fn has_statement(&self, statement: u64) -> bool {
        let powers = (0..POWERS as u64).chain([ERRORS]);
        powers.map(|power| statement << 5 | power).any(|key| self.probe(key).is_ok())
    }

    /// Gives all blocks their places anew.
    fn settle_places(&mut self) {
        // Without a look at the memory it is zero, and not there.
        self.places = vec![0; PLACES].into_boxed_slice().try_into().ok();
        if self.blocks.is_empty() {
            self.blocks.push(Block::new(NO_KEY, PoolId::NONE));
        }
        for at in 1..self.blocks.len() {
            if let (Err(place), Some(places)) = (self.probe(self.blocks[at].key), &mut self.places)
            {
                places[place] = at as u32;
            }
        }
    }

    /// Halves all buckets of a statement: one was full, and is zero now. Quantiles stay what they
    /// are.
    #[cold]
    fn halve(&mut self, key: u64, step: usize) {
        let statement = key >> 5;
        for block in self.blocks.iter_mut().filter(|it| it.statement() == statement) {
            let is_full = block.key == key;
            let calls = block.calls() + if is_full { 1 << 32 } else { 0 };
            block.buckets.iter_mut().for_each(|count| *count /= 2);
            if is_full {
                block.buckets[step] = 1 << 31;
            }
            block.halved = 0;
            block.halved = calls - block.calls();
        }
    }

    /// Forgets so many statements: those that were called least lately.
    #[cold]
    fn make_room(&mut self, number: usize) {
        let mut usage: HashMap<u64, u64> = HashMap::new();
        for block in self.blocks.iter_mut().skip(1) {
            let calls = block.calls();
            block.usage = block.usage / 2 + (calls - block.seen);
            block.seen = calls;
            *usage.entry(block.statement()).or_default() += block.usage;
        }
        let mut least: Vec<(u64, u64)> = usage.into_iter().map(|(id, usage)| (usage, id)).collect();
        least.sort_unstable();
        least.truncate(number);
        let gone: HashSet<u64> = least.into_iter().map(|(_, id)| id).collect();
        self.blocks.retain(|block| !gone.contains(&block.statement()));
        self.statements -= gone.len();
        self.settle_places();
    }
}

/// Returns the least time, in microseconds, of calls in a bucket of
/// [`StatementFigures::calls_by_time`], and the least that is longer than all of them.
pub fn times_of_bucket(at: usize) -> (u64, u64) {
    let (least, width) = bounds_of(at / STEPS, at % STEPS);
    (least as u64, (least + width) as u64)
}

/// Returns the place where a block is looked for first.
#[inline]
fn home(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACES_BITS)) as usize
}

/// Returns the number under which the statements of a pool count that are not known.
fn others_of(pool: PoolId) -> u64 {
    // Numbers of statements are counted from 1, and do not come near.
    !pool.0 << 5 >> 5
}

/// Figures of a statement over several cores.
#[derive(Clone, Debug)]
pub struct SumOfFigures {
    /// The pool of the statement.
    pub pool: PoolId,
    /// The counts.
    pub counts: StatementCounts,
    /// The buckets of each power of two that has any.
    buckets: HashMap<u64, [u64; STEPS]>,
}

impl Default for SumOfFigures {
    fn default() -> Self {
        Self { pool: PoolId::NONE, counts: StatementCounts::default(), buckets: HashMap::new() }
    }
}

impl SumOfFigures {
    /// Adds the figures of a core to those of the statements, by their numbers.
    pub fn add_core(sums: &mut HashMap<u64, Self>, core: &StatementFigures) {
        for block in core.blocks.iter().skip(1) {
            let sum = sums.entry(block.statement()).or_default();
            sum.pool = block.pool;
            let (calls, power) = (block.calls(), block.key % 32);
            if power == ERRORS {
                sum.counts.errors += calls;
                continue;
            }
            let (rows, time_us) = (block.rows, block.time_us);
            sum.counts.add(&StatementCounts { calls, rows, errors: 0, time_us });
            sum.add_buckets(power, block.buckets.map(u64::from));
        }
    }

    /// Adds the figures of another statement.
    pub fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        other.buckets.iter().for_each(|(power, buckets)| self.add_buckets(*power, *buckets));
    }

    fn add_buckets(&mut self, power: u64, buckets: [u64; STEPS]) {
        let into = self.buckets.entry(power).or_insert([0; STEPS]);
        into.iter_mut().zip(buckets).for_each(|(into, from)| *into += from);
    }

    /// Returns the mean time of a call, in microseconds.
    pub fn mean_us(&self) -> u64 {
        self.counts.time_us.checked_div(self.counts.calls).unwrap_or(0)
    }

    /// Returns the time in microseconds that this part of the calls, from 0 to 1, did not exceed.
    /// It lies where it would be if the times of its bucket were spread evenly; 0 without a call.
    pub fn quantile_us(&self, part: f64) -> u64 {
        let total: u64 = self.buckets.values().flatten().sum();
        let rank = part * total as f64;
        let mut before = 0.0;
        for power in 0..POWERS {
            let buckets = self.buckets.get(&(power as u64));
            for (step, count) in buckets.into_iter().flatten().enumerate() {
                let count = *count as f64;
                if count > 0.0 && before + count >= rank {
                    let (least, width) = bounds_of(power, step);
                    let within = (rank - before) / count;
                    return (least + (width - 1.0) * within).round() as u64;
                }
                before += count;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: PoolId = PoolId(5);

    fn sums(core: &StatementFigures) -> HashMap<u64, SumOfFigures> {
        let mut sums = HashMap::new();
        SumOfFigures::add_core(&mut sums, core);
        sums
    }

    fn limited(most: usize) -> StatementFigures {
        let mut figures = StatementFigures::default();
        figures.limit(most);
        figures
    }

    #[test]
    fn quantiles_are_near_those_of_the_times() {
        let mut figures = limited(10);
        let mut times: Vec<u64> =
            (1..=10_000).map(|i: u64| 20 + i * i % 7919 * i % 100_003).collect();
        times.iter().for_each(|us| figures.count(7, POOL, *us, 2));
        times.sort_unstable();
        let sum = &sums(&figures)[&7];
        for (part, at) in [(0.5, 4_999), (0.99, 9_899), (0.999, 9_989)] {
            let (exact, found) = (times[at] as f64, sum.quantile_us(part) as f64);
            assert!((found / exact - 1.0).abs() < 0.02, "{part}: {found}, and not {exact}");
        }
        assert_eq!((sum.counts.calls, sum.counts.rows), (10_000, 20_000));
        assert_eq!((sum.pool, sum.mean_us()), (POOL, times.iter().sum::<u64>() / 10_000));
        assert_eq!(SumOfFigures::default().quantile_us(0.5), 0);
    }

    #[test]
    fn times_of_all_statements_are_counted() {
        let mut figures = limited(2);
        for id in 1..=100 {
            figures.count(id, POOL, 1_000 + id, 1);
        }
        let calls = figures.calls_by_time();
        assert_eq!(calls.iter().sum::<u64>(), 100);
        for (at, _) in calls.iter().enumerate().filter(|(_, calls)| **calls > 0) {
            let (from, below) = times_of_bucket(at);
            assert!(from >= 1_000 - 32 && below <= 1_100 + 33, "{from} to {below}");
            assert!(calls[at] <= below - from);
        }
        figures.limit(0);
        assert!(figures.calls_by_time().is_empty() && figures.copy().calls_by_time().is_empty());
    }

    #[test]
    fn cores_add_up() {
        let (mut one, mut other) = (limited(9), limited(9));
        one.count(3, POOL, 10, 1);
        other.count(3, POOL, 20, 1);
        other.count_error(3, POOL);
        other.count(4, POOL, 5, 0);
        let mut sums = sums(&one);
        SumOfFigures::add_core(&mut sums, &other);
        let due = StatementCounts { calls: 2, rows: 2, errors: 1, time_us: 30 };
        assert_eq!((sums.len(), sums[&3].counts), (2, due));
        assert_eq!((sums[&3].quantile_us(0.5), sums[&3].quantile_us(1.0)), (10, 20));
    }

    #[test]
    fn statements_that_want_the_same_place_are_told_apart() {
        let mut figures = limited(5_000);
        let ids: Vec<u64> =
            (1..=1_000).map(|i| i * 4_096).chain((0..50).map(|i| others_of(PoolId(i)))).collect();
        for round in 1..=3 {
            ids.iter().for_each(|id| figures.count(*id, POOL, *id % 900, 1));
            let sums = sums(&figures);
            assert_eq!(sums.len(), ids.len());
            assert!(ids.iter().all(|id| sums[id].counts.calls == round));
        }
    }

    #[test]
    fn those_called_least_make_room() {
        let mut figures = limited(64);
        for id in 1..=1_000 {
            figures.count(id, POOL, 100, 1);
            (0..5).for_each(|_| figures.count(10_000, POOL, 100_000, 1));
        }
        let kept = sums(&figures);
        assert_eq!(kept[&10_000].counts.calls, 5_000);
        assert!((98_000..=102_000).contains(&kept[&10_000].quantile_us(0.5)));
        assert!(kept.contains_key(&1_000) && !kept.contains_key(&1));
        assert!(kept.len() <= 64 && figures.blocks.len() == kept.len() + 1);
        figures.limit(8);
        assert!(sums(&figures).len() == 8 && sums(&figures).contains_key(&10_000));
    }

    #[test]
    fn those_that_are_not_known_count_for_their_pool() {
        let mut figures = limited(9);
        for pool in [PoolId(0), POOL] {
            figures.count(0, pool, 10, 1);
            figures.count_error(0, pool);
        }
        let sums = sums(&figures);
        let due = StatementCounts { calls: 1, rows: 1, errors: 1, time_us: 10 };
        assert_eq!(sums[&others_of(PoolId(0))].counts, due);
        assert_eq!(sums[&others_of(POOL)].counts, due);
    }

    #[test]
    fn nothing_is_counted_where_there_may_be_none() {
        let mut figures = StatementFigures::default();
        figures.count(1, POOL, 1, 1);
        figures.count_error(1, POOL);
        assert_eq!(sums(&figures).len(), 0);
    }

    #[test]
    fn a_full_bucket_halves_all_of_its_statement() {
        let mut figures = limited(2);
        figures.count(1, POOL, 5, 0);
        figures.count(1, POOL, 500, 0);
        figures.blocks[1].buckets[5] = u32::MAX;
        figures.blocks[2].buckets[place_of(500).1] = 1_000;
        figures.count(1, POOL, 5, 0);
        assert_eq!(figures.blocks[1].buckets[5], 1 << 31);
        assert_eq!(figures.blocks[2].buckets[place_of(500).1], 500);
        assert_eq!(sums(&figures)[&1].counts.calls, (1 << 32) + 1_000);
        figures.count(1, POOL, 5, 0);
        assert_eq!(sums(&figures)[&1].counts.calls, (1 << 32) + 1_001);
    }
}
