//! ResultStore: the cache with what all pools need beside it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_cache::{Account, Cache, Figures, Fill, Numbers, Topic, Topics, Waiter};
use refrain_config::Options;
use refrain_pool::Now;

use refrain_pool::seed::Seed;

/// Bytes of texts, settings and names that have numbers, at most.
const NUMBERS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Time for which a commit may go on whose server has gone, in microseconds.
const GRACE_US: u64 = 2_000_000;
/// Replies of which more is to come take at most this part of the cache's limit beside it. Those
/// beyond are not kept.
const PENDING_PART: usize = 16;
/// Entries that one tick looks at.
const SWEPT: usize = 1024;

/// The replies that are to be voided.
#[derive(Clone, Copy, Debug)]
pub enum Flush<'a> {
    /// All.
    All,
    /// The replies of the rule of this name.
    Rule(&'a str),
    /// The replies of rules with this tag.
    Tag(&'a str),
    /// The replies that read a table of this name, with or without its schema, in any database.
    Table(&'a str),
    /// The replies to this text, with whatever literals.
    Statement(&'a str),
}

/// The cache with what all pools need beside it.
#[derive(Debug)]
pub(crate) struct ResultStore {
    pub(crate) cache: Cache,
    pub(crate) topics: Topics,
    pub(crate) numbers: Numbers,
    /// The figures of the replies of each rule, by its name.
    accounts: Mutex<BTreeMap<String, Arc<Account>>>,
    /// The limits in force.
    limits: Mutex<Vec<usize>>,
    /// Writes of unknown outcome, and the time until which they may still take effect. It is set
    /// by the first tick that sees the write.
    doubts: Mutex<Vec<(Topic, Option<Now>)>>,
    /// Bytes of replies of which more is to come, and how many there may be.
    pending: AtomicUsize,
    pending_max: AtomicUsize,
    /// Clients that wait for a reply that nobody fetches any more.
    stranded: Mutex<Vec<Waiter>>,
}

impl ResultStore {
    /// Makes an empty one.
    pub(crate) fn new(options: &Options, seed: &Seed) -> Arc<Self> {
        let limits = options.cache.limits();
        Arc::new(Self {
            cache: Cache::new(seed.clone(), limits[0], &limits),
            topics: Topics::new(seed.clone()),
            numbers: Numbers::new(seed.clone(), NUMBERS_BYTES_MAX),
            pending: AtomicUsize::new(0),
            pending_max: AtomicUsize::new(limits[0] / PENDING_PART),
            accounts: Mutex::default(),
            limits: Mutex::new(limits),
            doubts: Mutex::default(),
            stranded: Mutex::default(),
        })
    }

    /// Puts new options into force. Other limits drop all replies.
    pub(crate) fn configure(&self, options: &Options) {
        let limits = options.cache.limits();
        let mut known = lock(&self.limits);
        if *known != limits {
            self.cache.configure(limits[0], &limits);
            self.pending_max.store(limits[0] / PENDING_PART, Relaxed);
            *known = limits;
        }
    }

    /// Returns the account of the rule of this name.
    pub(crate) fn account(&self, rule: &str) -> Arc<Account> {
        lock(&self.accounts).entry(rule.to_owned()).or_default().clone()
    }

    /// Returns the figures of the replies of each rule that has had any.
    pub(crate) fn figures(&self) -> Vec<(String, Figures)> {
        let accounts = lock(&self.accounts);
        accounts.iter().map(|(rule, account)| (rule.clone(), account.figures())).collect()
    }

    /// Counts bytes of a reply of which more is to come. False if there are too many.
    pub(crate) fn hold(&self, bytes: usize) -> bool {
        let before = self.pending.fetch_add(bytes, Relaxed);
        before + bytes <= self.pending_max.load(Relaxed)
    }

    /// Counts bytes out that [`Self::hold`] has counted.
    pub(crate) fn release(&self, bytes: usize) {
        self.pending.fetch_sub(bytes, Relaxed);
    }

    /// Notes a write whose outcome is unknown: for a while, nothing that it may change is kept.
    pub(crate) fn doubt(&self, topic: &Topic) {
        topic.begin_doubt();
        lock(&self.doubts).push((topic.clone(), None));
    }

    /// Ends a fill of which no reply will come.
    pub(crate) fn abandon(&self, fill: &Fill) {
        lock(&self.stranded).append(&mut self.cache.abandon(fill));
    }

    /// Ends a fill that has failed: the reply from before may be given in its place.
    pub(crate) fn fail(&self, fill: &Fill) {
        lock(&self.stranded).append(&mut self.cache.fail(fill, true));
    }

    /// Does what a tick does: ends doubts, and drops replies that nobody gets any more. Returns the
    /// clients of this core that wait for a reply that nobody fetches.
    pub(crate) fn tick(&self, now: Now, core: u16) -> Vec<Waiter> {
        lock(&self.doubts).retain_mut(|(topic, until)| {
            let over = until.get_or_insert(Now(now.0 + GRACE_US)).0 <= now.0;
            if over {
                topic.end_doubt();
            }
            !over
        });
        self.cache.sweep(now.0, SWEPT);
        let mut own = Vec::new();
        lock(&self.stranded).retain(|waiter| {
            let here = waiter.core == core;
            if here {
                own.push(*waiter);
            }
            !here
        });
        own
    }
}

/// The name of the topic of all replies.
pub(crate) const ALL: &[u8] = b"all";

/// Returns the name of the topic of a rule.
pub(crate) fn rule_topic(name: &str) -> String {
    format!("rule {name}")
}

/// Returns the name of the topic of a tag.
pub(crate) fn tag_topic(tag: &str) -> String {
    format!("tag {tag}")
}

/// Returns the name of the topic of a text, whose literals are those of no meaning.
pub(crate) fn text_topic(canonical: &[u8]) -> Vec<u8> {
    [b"text ", canonical].concat()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
