//! The statement cache of a connection: statements that are not in use, least recently returned
//! first.
//!
//! A statement that is in use is not in the cache: it was taken out, and comes back when its run is
//! over. So a text that is used twice at once is compiled twice, and one of the two is kept.
//!
//! A text is kept from its second use on (rule 6). Of a text that was used once the cache remembers
//! the hash, for four times as many texts as it keeps: a flood of texts that come once evicts
//! nothing, while a plain LRU would keep nothing but them.

use std::any::Any;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashlink::linked_hash_map::{Entry, RawEntryMut};
use hashlink::{LinkedHashMap, LruCache};

use crate::ffi::Idle;
use crate::options::{Admit, CacheOptions};
use crate::stats::{CacheStats, StatementStats};
use crate::text::{Text, may_be_kept};

/// Hashes remembered for each statement kept.
const SEEN_PER_KEPT: usize = 4;

/// A value that a caller has computed from a statement, and the generation and subject it is for.
pub(crate) struct Memo {
    pub(crate) generation: u64,
    pub(crate) subject: u64,
    pub(crate) value: Arc<dyn Any + Send + Sync>,
}

/// Refrain's data about a statement, beside SQLite's.
pub(crate) struct StatementFacts {
    pub(crate) hash: u64,
    /// True if the cache keeps it when it is returned.
    pub(crate) keep: bool,
    /// True if it ended with an error after which it must not run again.
    pub(crate) spoiled: bool,
    /// True if a single step of it may take long.
    pub(crate) costly: bool,
    /// The connection's count of schema changes when it was compiled.
    pub(crate) epoch: u64,
    /// How often the connection compiled it again, and SQLite before that.
    pub(crate) recompiled: u64,
    /// SQLite's count of compiling it again, when it was last returned.
    pub(crate) reprepares: u32,
    pub(crate) memo: Option<Memo>,
    pub(crate) bytes: u32,
    pub(crate) prepare: Duration,
    pub(crate) calls: u64,
    pub(crate) hits: u64,
    pub(crate) rows: u64,
    /// How many calls were timed, and (`run`) how long they took.
    pub(crate) timed: u32,
    pub(crate) run: Duration,
    pub(crate) last_used: Instant,
}

/// A statement that is not in use, and the data about it.
pub(crate) struct Kept {
    pub(crate) idle: Idle,
    pub(crate) facts: Box<StatementFacts>,
}

impl StatementFacts {
    pub(crate) fn new(hash: u64, keep: bool, epoch: u64, begun: Instant) -> StatementFacts {
        let now = Instant::now();
        StatementFacts {
            hash,
            keep,
            spoiled: false,
            costly: false,
            epoch,
            recompiled: 0,
            reprepares: 0,
            memo: None,
            bytes: 0,
            prepare: now - begun,
            calls: 0,
            hits: 0,
            rows: 0,
            timed: 0,
            run: Duration::ZERO,
            last_used: now,
        }
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Kept) -> bool {
        self.facts.hash == other.facts.hash && self.idle.sql() == other.idle.sql()
    }
}

impl Eq for Kept {}

impl Hash for Kept {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.facts.hash);
    }
}

/// A hasher for keys that are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only whole hashes are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type BuildAsIs = BuildHasherDefault<AsIs>;

/// The cache of one connection.
pub(crate) struct Cache {
    options: CacheOptions,
    /// Least recently returned first. The key is the statement's text, found by its hash.
    kept: LinkedHashMap<Kept, (), BuildAsIs>,
    /// Hashes of texts used before, kept or not.
    seen: LruCache<u64, (), BuildAsIs>,
    /// Hashes of statements in use: a few at a time, mostly one.
    busy: Vec<u64>,
    stats: CacheStats,
}

impl Cache {
    pub(crate) fn new(options: CacheOptions) -> Cache {
        Cache {
            options,
            kept: LinkedHashMap::with_hasher(BuildAsIs::default()),
            seen: LruCache::with_hasher(seen_size(options.size), BuildAsIs::default()),
            busy: Vec::new(),
            stats: CacheStats::default(),
        }
    }

    /// Takes out the statement of a text, if it is kept and not in use.
    pub(crate) fn take(&mut self, text: &Text<'_>) -> Option<Kept> {
        let entries = self.kept.raw_entry_mut();
        let RawEntryMut::Occupied(found) =
            entries.from_hash(text.hash(), |kept| kept.idle.sql() == text.sql())
        else {
            return None;
        };
        let (mut kept, ()) = found.remove_entry();
        kept.facts.hits += 1;
        self.stats.hits += 1;
        self.stats.saved_ns += nanoseconds(kept.facts.prepare);
        self.stats.bytes -= u64::from(kept.facts.bytes);
        self.busy.push(text.hash());
        Some(kept)
    }

    /// True if a text was used recently: then the statement to be compiled is kept.
    pub(crate) fn was_seen(&self, hash: u64) -> bool {
        self.options.size > 0
            && (self.options.admit == Admit::Always || self.seen.peek(&hash).is_some())
    }

    /// Counts that a text was compiled. Returns true if its statement is to be kept.
    pub(crate) fn compiled(&mut self, text: &Text<'_>, time: Duration) -> bool {
        let hash = text.hash();
        self.stats.misses += 1;
        self.stats.prepare_ns += nanoseconds(time);
        self.stats.busy_misses += u64::from(self.busy.contains(&hash));
        self.busy.push(hash);
        if self.options.size == 0 {
            return false;
        }
        let is_first = self.seen.insert(hash, ()).is_none();
        self.stats.first_uses += u64::from(is_first);
        let is_admitted = !is_first || self.options.admit == Admit::Always;
        is_admitted && text.sql().len() <= self.options.max_sql && may_be_kept(text.sql())
    }

    /// Takes back a statement whose run is over. One that is not to be kept is finalised here.
    pub(crate) fn give_back(&mut self, mut kept: Kept) {
        self.is_free(kept.facts.hash);
        let reprepares = kept.idle.reprepares();
        let has_changed = reprepares != kept.facts.reprepares;
        self.stats.reprepares += u64::from(reprepares.saturating_sub(kept.facts.reprepares));
        kept.facts.reprepares = reprepares;
        if kept.facts.spoiled {
            self.stats.finalized_errors += 1;
            return;
        }
        if !kept.facts.keep || self.options.size == 0 {
            return;
        }
        if has_changed || kept.facts.bytes == 0 {
            kept.facts.bytes = kept.idle.bytes();
        }
        let bytes = u64::from(kept.facts.bytes);
        // If it is there already, the text was used twice at once, and the other statement came
        // back first.
        if let Entry::Vacant(place) = self.kept.entry(kept) {
            place.insert(());
            self.stats.bytes += bytes;
            self.shrink_to(self.options.size);
        }
    }

    fn is_free(&mut self, hash: u64) {
        // The statement that was taken last mostly comes back first.
        if let Some(place) = self.busy.iter().rposition(|busy| *busy == hash) {
            self.busy.swap_remove(place);
        }
    }

    /// Counts that the connection compiled a statement again because the schema had changed.
    pub(crate) fn recompiled(&mut self, time: Duration) {
        self.stats.reprepares += 1;
        self.stats.prepare_ns += nanoseconds(time);
    }

    /// Sets the options. A smaller size evicts at once.
    pub(crate) fn set_options(&mut self, options: CacheOptions) {
        self.options = options;
        self.seen.set_capacity(seen_size(options.size));
        self.shrink_to(options.size);
    }

    /// Finalises all kept statements.
    pub(crate) fn clear(&mut self) {
        self.shrink_to(0);
    }

    fn shrink_to(&mut self, size: usize) {
        while self.kept.len() > size {
            if let Some((oldest, ())) = self.kept.pop_front() {
                self.stats.bytes -= u64::from(oldest.facts.bytes);
                self.stats.evictions += 1;
            }
        }
    }

    pub(crate) fn options(&self) -> CacheOptions {
        self.options
    }

    pub(crate) fn stats(&self) -> CacheStats {
        CacheStats { entries: self.kept.len() as u64, ..self.stats }
    }

    /// Returns statistics of each kept statement, most recently returned first.
    pub(crate) fn statements(&self) -> Vec<StatementStats> {
        self.kept.keys().rev().map(Kept::stats).collect()
    }
}

impl Kept {
    fn stats(&self) -> StatementStats {
        let facts = &self.facts;
        StatementStats {
            sql: self.idle.sql().to_owned(),
            calls: facts.calls,
            hits: facts.hits,
            rows: facts.rows,
            prepare: facts.prepare,
            run: facts.run.checked_div(facts.timed).unwrap_or_default(),
            reprepares: facts.recompiled + u64::from(facts.reprepares),
            bytes: u64::from(facts.bytes),
            last_used: facts.last_used,
        }
    }
}

fn seen_size(size: usize) -> usize {
    size.saturating_mul(SEEN_PER_KEPT)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
