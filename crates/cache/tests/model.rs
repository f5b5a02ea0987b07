//! The cache against a naive model: random looks, fills, changes and passing time, from a seed.
//!
//! The model knows every reply that was ever stored, with the time and the generations of its
//! request. The cache may forget a reply at any time; it may never give one that the model would
//! not give.

use std::collections::HashMap;
use std::sync::Arc;

use refrain_cache::{
    Account, Asker, Cache, Fill, Found, Hit, Kept, Seed, Terms, Topic, TopicSet, Topics, Waiter,
};

/// Small random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

const KEYS: u64 = 400;
const TOPICS: u64 = 6;
/// Time beyond the end of its own for which a reply may be given while another is fetched.
const STALE: u64 = 100;
/// The same if no other can be fetched.
const IF_ERROR: u64 = 400;

/// A reply as the model has it.
#[derive(Clone)]
struct Known {
    reply: Vec<u8>,
    asked: u64,
    generations: Vec<(usize, u64)>,
    empty: bool,
    /// Whether another could not be fetched.
    failed: bool,
}

impl Known {
    /// Returns the time for which it is fresh.
    fn ttl(&self) -> u64 {
        if self.empty { 50 } else { 500 }
    }
}

/// A fill under way: its key, and the generations at its request.
type Under = (u64, Box<Fill>, Vec<(usize, u64)>);

struct World {
    random: Random,
    cache: Cache,
    topics: Vec<Topic>,
    generations: Vec<u64>,
    doubts: Vec<u64>,
    sets: Vec<(Vec<usize>, Arc<TopicSet>)>,
    account: Arc<Account>,
    stored: HashMap<u64, Known>,
    fills: Vec<Under>,
    waiting: HashMap<u64, u64>,
    now: u64,
    serial: u64,
    hits: u64,
    stale_hits: u64,
    waits: u64,
    fetches: u64,
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number} {}", "x".repeat((number % 37) as usize)).into_bytes()
}

impl World {
    fn new(seed: u64, limit: usize) -> Self {
        let topics = Topics::new(Seed::default());
        let all: Vec<Topic> = (0..TOPICS).map(|it| topics.topic(&it.to_le_bytes())).collect();
        let (mut sets, account) = (Vec::new(), Arc::default());
        for first in 0..TOPICS as usize {
            let members = vec![first, (first + 1) % TOPICS as usize];
            let set = topics.set(members.iter().map(|it| all[*it].clone()).collect(), &account);
            sets.push((members, set));
        }
        Self {
            random: Random(seed * 2 + 1),
            cache: Cache::new(Seed::default(), limit, &[limit, limit / 4]),
            topics: all,
            generations: vec![0; TOPICS as usize],
            doubts: vec![0; TOPICS as usize],
            sets,
            account,
            stored: HashMap::new(),
            fills: Vec::new(),
            waiting: HashMap::new(),
            now: 1_000_000,
            serial: 0,
            hits: 0,
            stale_hits: 0,
            waits: 0,
            fetches: 0,
        }
    }

    fn terms(&self, key: u64) -> Terms {
        let queue = u16::from(key.is_multiple_of(3));
        Terms {
            ttl: 500,
            empty_ttl: 50,
            stale: STALE,
            if_error: IF_ERROR,
            jitter: 0,
            queue,
            since: 0,
            waited: 0,
        }
    }

    fn look(&mut self, number: u64, asker: Asker) {
        let (members, set) = self.sets[(number % TOPICS) as usize].clone();
        let terms = self.terms(number);
        let mut out = b"before".to_vec();
        let found = self.cache.look(&key(number), &set, &terms, self.now, asker, &mut out);
        let now: Vec<(usize, u64)> =
            members.iter().map(|it| (*it, self.generations[*it])).collect();
        let fetched = self.fills.iter().any(|fill| fill.0 == number && fill.2 == now);
        match found {
            Found::Hit(hit) => {
                let (known, past) = self.given(number, &hit, &out, &now);
                let last = matches!(asker, Asker::Alone) && past >= STALE;
                assert!(!hit.stale || fetched || last, "nobody fetches it");
                assert!(!hit.stale || past < STALE || last || known.failed, "it has to be fetched");
                return;
            }
            Found::Stale(hit, fill) => {
                let (known, past) = self.given(number, &hit, &out, &now);
                assert!(hit.stale && !fetched, "it is fetched already");
                assert!(past < STALE || known.failed, "its time is over");
                self.fills.push((number, fill, now));
                return;
            }
            Found::Fetch(fill) => {
                let Asker::Waits(waiter) = asker else { panic!("it waits without asking") };
                let past = self.now - self.stored[&number].asked - self.stored[&number].ttl();
                assert!(!fetched && (STALE..IF_ERROR).contains(&past), "it may not be given");
                self.fills.push((number, fill, now));
                self.waiting.insert(waiter.client, number);
                self.fetches += 1;
            }
            Found::Miss(fill) => self.fills.push((number, fill, now)),
            Found::Wait => {
                let Asker::Waits(waiter) = asker else { panic!("it waits without asking") };
                let is_same = |fill: &Under| fill.0 == number && fill.2 == now;
                assert!(self.fills.iter().any(is_same), "it waits for nothing");
                self.waiting.insert(waiter.client, number);
                self.waits += 1;
            }
            Found::Alone => {}
        }
        assert_eq!(out, b"before");
    }

    /// Checks a reply that was given. Returns what the model has, and the time for which it has not
    /// been fresh.
    fn given(&mut self, number: u64, hit: &Hit, out: &[u8], now: &[(usize, u64)]) -> (Known, u64) {
        let known = self.stored[&number].clone();
        assert_eq!(out, [b"before", &*known.reply].concat());
        assert_eq!(known.generations, now, "a reply out of date");
        assert_eq!(hit.age, self.now - known.asked);
        assert_eq!(hit.stale, hit.age >= known.ttl());
        assert!(hit.age < known.ttl() + IF_ERROR, "a reply too old");
        self.hits += 1;
        self.stale_hits += u64::from(hit.stale);
        let past = hit.age.saturating_sub(known.ttl());
        (known, past)
    }

    fn end(&mut self) {
        if self.fills.is_empty() {
            return;
        }
        let at = self.random.below(self.fills.len() as u64) as usize;
        let (number, fill, generations) = self.fills.swap_remove(at);
        let terms = self.terms(number);
        let waiters = match self.random.below(10) {
            0 => self.cache.abandon(&fill),
            1 => self.cache.refuse(&fill, &terms),
            2 => {
                self.stored.entry(number).and_modify(|known| known.failed = true);
                self.cache.fail(&fill, true)
            }
            3 => {
                self.stored.remove(&number);
                self.cache.fail(&fill, false)
            }
            _ => {
                let empty = self.random.below(4) == 0;
                let bytes = self.random.below(1500);
                let reply: Vec<u8> = (0..bytes).map(|it| (it + self.serial) as u8).collect();
                self.serial += 1;
                let asked = fill.asked();
                let doubt = generations.iter().any(|(topic, _)| self.doubts[*topic] > 0);
                let current =
                    !doubt && generations.iter().all(|(it, was)| self.generations[*it] == *was);
                let (kept, waiters) = self.cache.store(&fill, &reply, &terms, 7, empty);
                assert_eq!(kept, if current { Kept::Yes } else { Kept::Changed });
                if current {
                    self.stored
                        .insert(number, Known { reply, asked, generations, empty, failed: false });
                }
                waiters
            }
        };
        for Waiter { client, .. } in waiters {
            assert_eq!(self.waiting.remove(&client), Some(number), "it waits for this key");
        }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..60 => {
                let number = match self.random.below(2) {
                    0 => self.random.below(KEYS),
                    _ => self.random.below(8),
                };
                self.serial += 1;
                let waiter = Waiter { core: 0, client: self.serial, request: 0 };
                let asker = match self.random.below(10) {
                    0 => Asker::Alone,
                    _ => Asker::Waits(waiter),
                };
                self.look(number, asker);
            }
            60..92 => self.end(),
            92..94 => {
                let topic = self.random.below(TOPICS) as usize;
                self.generations[topic] += 1;
                self.topics[topic].void();
            }
            94 => {
                let topic = self.random.below(TOPICS) as usize;
                self.generations[topic] += 1;
                if self.doubts[topic] > 0 {
                    self.doubts[topic] -= 1;
                    self.topics[topic].end_doubt();
                } else {
                    self.doubts[topic] += 1;
                    self.topics[topic].begin_doubt();
                }
            }
            95 => self.cache.sweep(self.now, 100),
            _ => self.now += self.random.below(60),
        }
    }
}

#[test]
fn the_cache_gives_what_the_model_would_give() {
    let mut stale = 0;
    let (mut hits, mut waits, mut fetches, mut evicted) = (0, 0, 0, 0);
    for seed in 1..40 {
        let limit = 16 * (17 * 1024 + 256 * seed as usize);
        let mut world = World::new(seed, limit);
        for step in 0..4000 {
            world.step();
            if step % 100 == 0 {
                world.cache.check();
                let (own, all) = (world.account.figures(), world.cache.stats());
                let counts = (own.entries, own.evicted, own.outdated);
                assert_eq!(counts, (all.entries, all.evicted, all.outdated));
                assert!(own.bytes <= all.bytes && (own.bytes > 0) == (own.entries > 0));
            }
        }
        assert!(world.cache.bytes() <= limit, "{} bytes", world.cache.bytes());
        while !world.fills.is_empty() {
            world.end();
        }
        assert!(world.waiting.is_empty(), "all who waited were told");
        world.cache.configure(limit, &[limit]);
        assert_eq!((world.account.figures().entries, world.account.figures().bytes), (0, 0));
        assert_eq!(world.cache.stats().flights, 0);
        hits += world.hits;
        stale += world.stale_hits;
        waits += world.waits;
        fetches += world.fetches;
        evicted += world.cache.stats().evicted;
    }
    assert!(hits > 5_000 && waits > 500 && stale > 50, "{hits} {waits} {stale}");
    assert!(fetches > 20 && evicted > 20, "{fetches} {evicted}");
}
