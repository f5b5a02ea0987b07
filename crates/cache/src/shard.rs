//! Shard: a part of the cache behind one lock.

use std::sync::Arc;

use hashbrown::HashTable;

use crate::bug::{Bug, Planted};
use crate::entry::{Entry, Index, NONE, Place, Slab, USES_MAX, data_bytes};
use crate::fill::{Asker, Fill, Found, Hit, Kept, Waiter};
use crate::flights::{Fetched, Flights};
use crate::queue::{Ghosts, Queue};
use crate::stats::{EntryView, Stats};
use crate::terms::{Age, Terms};
use crate::topics::TopicSet;

/// Bytes of a reply that is copied under the lock, at most.
const COPIED_MAX: usize = 4096;
/// Bytes of key and reply that are joined on the stack, at most: one allocation is saved.
const JOINED_MAX: usize = 512;
/// One reply takes at most this part of the shard's room.
const REPLY_PART: usize = 4;

/// A question about a key.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) hash: u64,
    pub(crate) key: &'a [u8],
    pub(crate) topics: &'a Arc<TopicSet>,
    pub(crate) terms: &'a Terms,
    pub(crate) now: u64,
    pub(crate) asker: Asker,
}

/// The part that an asker has in an entry.
enum Use {
    /// It gets the reply.
    Give,
    /// It gets the reply, whose time is over. Another is to be fetched as of these generations,
    /// unless it has been waited for in vain.
    GiveOld(Option<u64>),
    /// It waits until another reply has been fetched as of these generations.
    Fetch(u64, Waiter),
    /// It goes to the server, and its reply is not kept.
    Skip,
    /// Nothing: nobody gets the reply.
    Drop,
}

/// A reply that is to be copied once the lock is free: key and reply, and the bytes of the key.
pub(crate) type Long = (Arc<[u8]>, usize);

/// A reply that has come.
#[derive(Clone, Copy)]
pub(crate) struct Reply<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) terms: &'a Terms,
    pub(crate) took: u64,
    pub(crate) empty: bool,
    /// Whether it could not be kept, so that `bytes` are none.
    pub(crate) refused: bool,
}

/// A part of the cache.
#[derive(Debug)]
pub(crate) struct Shard {
    table: HashTable<Index>,
    slab: Slab,
    queues: Vec<Queue>,
    ghosts: Ghosts,
    flights: Flights,
    /// The bytes of all allocations of keys and replies.
    data: usize,
    limit: usize,
    stats: Stats,
    /// The entry at which the next sweep begins.
    swept: Index,
    /// The fills that have begun.
    fills: u64,
    bug: Planted<Bug>,
}

impl Shard {
    /// Makes an empty one with these limits: that of all its bytes, and those of its queues.
    pub(crate) fn new(limit: usize, queues: &[usize]) -> Self {
        Self {
            table: HashTable::new(),
            slab: Slab::new(),
            queues: queues.iter().map(|most| Queue::new(*most)).collect(),
            ghosts: Ghosts::new(),
            flights: Flights::default(),
            data: 0,
            limit,
            stats: Stats::default(),
            swept: 0,
            fills: 0,
            bug: Planted::default(),
        }
    }

    /// Drops all replies and takes other limits. What is being fetched goes on.
    pub(crate) fn configure(&mut self, limit: usize, queues: &[usize]) {
        self.entries().for_each(|entry| entry.topics.account().goes(cost(entry)));
        let (flights, stats, fills) = (std::mem::take(&mut self.flights), self.stats, self.fills);
        let bug = std::mem::take(&mut self.bug);
        *self = Self { flights, stats, fills, bug, ..Self::new(limit, queues) };
    }

    /// Plants a bug.
    #[cfg(feature = "plant")]
    pub(crate) fn plant(&self, bug: Bug) {
        self.bug.plant(bug);
    }

    /// Returns the bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.data + self.slab.bytes() + self.table.allocation_size() + self.ghosts.bytes()
    }

    /// Returns its counts.
    pub(crate) fn stats(&self) -> Stats {
        let (entries, flights) = (self.table.len() as u64, self.flights.len() as u64);
        Stats { entries, flights, bytes: self.bytes() as u64, ..self.stats }
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<Index> {
        let same = |index: &Index| {
            self.slab.get(*index).is_some_and(|entry| entry.hash == hash && entry.key() == key)
        };
        self.table.find(hash, same).copied()
    }

    /// Looks for a reply, and appends it if there is one and it is short. A long one is returned,
    /// to be appended once the lock is free.
    #[inline]
    pub(crate) fn look(&mut self, ask: &Ask<'_>, out: &mut Vec<u8>) -> (Found, Option<Long>) {
        let Some(index) = self.find(ask.hash, ask.key) else { return (self.miss(ask), None) };
        match self.use_of(index, ask) {
            Use::Give => {
                let (hit, long) = self.give(index, ask, false, out);
                (Found::Hit(hit), long)
            }
            Use::GiveOld(stamp) => {
                let (hit, long) = self.give(index, ask, true, out);
                let fetched = stamp.is_none_or(|stamp| self.is_fetched(ask, stamp));
                let fill = stamp.filter(|_| !fetched).map(|stamp| self.fill(ask, stamp));
                (fill.map_or(Found::Hit(hit), |fill| Found::Stale(hit, fill)), long)
            }
            Use::Fetch(stamp, waiter) if !self.is_fetched(ask, stamp) => {
                let fill = self.fill(ask, stamp);
                self.flights.wait(ask.hash, ask.key, waiter);
                (Found::Fetch(fill), None)
            }
            Use::Skip => (Found::Alone, None),
            Use::Fetch(..) | Use::Drop => (self.miss(ask), None),
        }
    }

    /// Decides what an asker gets of an entry.
    #[inline]
    fn use_of(&mut self, index: Index, ask: &Ask<'_>) -> Use {
        let Some(entry) = self.slab.get(index) else { return Use::Drop };
        if !Arc::ptr_eq(&entry.topics, ask.topics) || !entry.is_current() {
            self.stats.outdated += 1;
            entry.topics.account().is_outdated();
            return Use::Drop;
        }
        let age = ask.terms.age(entry.asked, entry.empty, ask.hash, ask.now);
        if age == Age::Fresh || self.bug.is(Bug::EndlessTime) {
            return if entry.refused { Use::Skip } else { Use::Give };
        }
        match (age, ask.asker, ask.topics.sure_stamp()) {
            _ if entry.refused => {}
            (Age::Stale, _, Some(stamp)) => return Use::GiveOld(Some(stamp)),
            (Age::LastResort, _, Some(stamp)) if entry.failed => return Use::GiveOld(Some(stamp)),
            (Age::LastResort, Asker::Alone, _) => return Use::GiveOld(None),
            (Age::LastResort, Asker::Waits(waiter), Some(stamp)) => {
                return Use::Fetch(stamp, waiter);
            }
            _ => {}
        }
        self.stats.expired += 1;
        Use::Drop
    }

    /// Whether a key is being fetched as of these generations.
    fn is_fetched(&mut self, ask: &Ask<'_>, stamp: u64) -> bool {
        self.flights.state(ask.hash, ask.key) == Fetched::As(stamp)
    }

    /// Gives an entry to an asker.
    #[inline]
    fn give(
        &mut self,
        index: Index,
        ask: &Ask<'_>,
        stale: bool,
        out: &mut Vec<u8>,
    ) -> (Hit, Option<Long>) {
        let Some(entry) = self.slab.get_mut(index) else {
            return (Hit { age: 0, took: 0, stale }, None);
        };
        entry.uses = entry.uses.saturating_add(1).min(USES_MAX);
        let age = ask.now.saturating_sub(entry.asked);
        let hit = Hit { age, took: u64::from(entry.took), stale };
        let mut long = None;
        if entry.reply().len() <= COPIED_MAX {
            out.extend_from_slice(entry.reply());
        } else {
            long = Some((entry.data.clone(), entry.key_bytes as usize));
        }
        (hit, long)
    }

    /// Decides who fetches a reply that is not there.
    fn miss(&mut self, ask: &Ask<'_>) -> Found {
        let Some(stamp) = ask.topics.sure_stamp() else { return Found::Alone };
        // A reply that is being fetched as of other generations may lack what has happened before
        // this asker came.
        let same = match self.flights.state(ask.hash, ask.key) {
            Fetched::As(of) => of == stamp || self.bug.is(Bug::OldFlight),
            Fetched::Not => false,
        };
        match ask.asker {
            Asker::Waits(waiter) if same => match self.flights.wait(ask.hash, ask.key, waiter) {
                true => Found::Wait,
                false => Found::Alone,
            },
            Asker::Alone if same => Found::Alone,
            Asker::Waits(_) | Asker::Alone => Found::Miss(self.fill(ask, stamp)),
        }
    }

    fn fill(&mut self, ask: &Ask<'_>, stamp: u64) -> Box<Fill> {
        self.fills += 1;
        let fill = Box::new(Fill {
            hash: ask.hash,
            key: ask.key.into(),
            topics: ask.topics.clone(),
            stamp,
            asked: ask.now,
            queue: ask.terms.queue,
            number: self.fills,
        });
        self.flights.begin(&fill);
        fill
    }

    /// Ends a fill without a reply. Returns those that wait for it.
    pub(crate) fn abandon(&mut self, fill: &Fill) -> Vec<Waiter> {
        self.flights.end(fill)
    }

    /// Ends a fill that has failed. The reply from before is given in its place if that may be, and
    /// else dropped. Returns those that wait for it.
    pub(crate) fn fail(&mut self, fill: &Fill, keeps_old: bool) -> Vec<Waiter> {
        match self.find(fill.hash, &fill.key) {
            Some(index) if !keeps_old => self.remove(index),
            Some(index) => {
                if let Some(entry) = self.slab.get_mut(index) {
                    entry.failed = true;
                }
            }
            None => {}
        }
        self.flights.end(fill)
    }

    /// Ends a fill with its reply, which is kept if nothing has changed since it was asked for.
    /// Returns those that wait for it.
    pub(crate) fn store(&mut self, fill: &Fill, reply: &Reply<'_>) -> (Kept, Vec<Waiter>) {
        let waiters = self.flights.end(fill);
        let late = self.bug.is(Bug::LateStamp) || self.bug.is(Bug::OldFlight);
        let late = late.then(|| fill.topics.stamp());
        let stamp = late.unwrap_or(fill.stamp);
        if fill.topics.sure_stamp() != Some(stamp) {
            return (Kept::Changed, waiters);
        }
        let most = self.queues.get(fill.queue as usize).map_or(0, |queue| queue.most);
        let whole = fill.key.len() + reply.bytes.len();
        let bytes = data_bytes(whole) + size_of::<Option<Entry>>();
        let large = bytes > most.min(self.limit / REPLY_PART);
        if large {
            // Nobody is to wait for it the next time.
            self.put(fill, stamp, &Reply { bytes: &[], refused: true, ..*reply }, fill.key.clone());
        } else {
            let data = joined(&fill.key, reply.bytes);
            self.put(fill, stamp, reply, data);
        }
        self.make_room(fill.queue);
        (if large { Kept::Large } else { Kept::Yes }, waiters)
    }

    fn put(&mut self, fill: &Fill, stamp: u64, reply: &Reply<'_>, data: Arc<[u8]>) {
        let entry = Entry {
            hash: fill.hash,
            topics: fill.topics.clone(),
            stamp,
            asked: fill.asked,
            dies: reply.terms.dies(fill.asked, reply.empty),
            took: u32::try_from(reply.took).unwrap_or(u32::MAX),
            key_bytes: u32::try_from(fill.key.len()).unwrap_or(u32::MAX),
            next: NONE,
            previous: NONE,
            queue: fill.queue,
            place: Place::Free,
            uses: 0,
            empty: reply.empty,
            refused: reply.refused,
            failed: false,
            data,
        };
        // One that comes back keeps what it has earned.
        let (place, uses) = match self.find(fill.hash, &fill.key) {
            Some(index) => {
                let kept = self.slab.get(index).map(|old| (old.place, old.uses));
                self.remove(index);
                kept.unwrap_or((Place::Small, 0))
            }
            None if self.ghosts.take(fill.hash) => (Place::Main, 0),
            None => (Place::Small, 0),
        };
        let cost = cost(&entry);
        entry.topics.account().comes(cost);
        self.data += data_bytes(entry.data.len());
        let queue = entry.queue as usize;
        let index = self.slab.add(Entry { uses, ..entry });
        let slab = &self.slab;
        self.table.insert_unique(fill.hash, index, |index| {
            slab.get(*index).map_or(0, |entry| entry.hash)
        });
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.push(&mut self.slab, index, place, cost);
        }
        self.ghosts.fit(self.slab.room());
    }

    /// Evicts entries until the shard and this queue are within their limits.
    fn make_room(&mut self, queue: u16) {
        while self.queues.get(queue as usize).is_some_and(|queue| queue.bytes() > queue.most) {
            self.evict(queue as usize);
        }
        while self.bytes() > self.limit && !self.table.is_empty() {
            let longest = (0..self.queues.len()).max_by_key(|queue| self.queues[*queue].bytes());
            self.evict(longest.unwrap_or_default());
        }
    }

    fn evict(&mut self, queue: usize) {
        let Some(own) = self.queues.get_mut(queue) else { return };
        let Some(index) = own.evict(&mut self.slab, cost) else { return };
        if let Some(entry) = self.forget(index) {
            self.ghosts.add(entry.hash);
            entry.topics.account().is_evicted();
            self.stats.evicted += 1;
        }
    }

    /// Takes an entry out.
    fn remove(&mut self, index: Index) {
        let Some(entry) = self.slab.get(index) else { return };
        let (queue, cost) = (entry.queue as usize, cost(entry));
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.unlink(&mut self.slab, index, cost);
        }
        self.forget(index);
    }

    /// Takes out an entry that stands in no line.
    fn forget(&mut self, index: Index) -> Option<Entry> {
        let entry = self.slab.remove(index)?;
        entry.topics.account().goes(cost(&entry));
        self.data -= data_bytes(entry.data.len());
        if let Ok(found) = self.table.find_entry(entry.hash, |other| *other == index) {
            found.remove();
        }
        Some(entry)
    }

    /// Drops replies that are given to nobody any more, among the next `most` entries.
    pub(crate) fn sweep(&mut self, now: u64, most: usize) {
        let room = self.slab.room() as Index;
        for _ in 0..most.min(room as usize) {
            let index = if self.swept < room { self.swept } else { 0 };
            self.swept = index + 1;
            let over = |entry: &Entry| now >= entry.dies || !entry.is_current();
            if self.slab.get(index).is_some_and(over) {
                self.remove(index);
                self.stats.swept += 1;
            }
        }
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        (0..self.slab.room() as Index).filter_map(|index| self.slab.get(index))
    }

    /// Appends views of at most `most` replies that are given to clients.
    pub(crate) fn view(&self, now: u64, most: usize, views: &mut Vec<EntryView>) {
        let given = |entry: &&Entry| !entry.refused && now < entry.dies && entry.is_current();
        views.extend(self.entries().filter(given).take(most).map(|entry| EntryView {
            bytes: cost(entry),
            age: now.saturating_sub(entry.asked),
            left: entry.dies - now,
            took: entry.took.into(),
            uses: entry.uses,
            topics: entry.topics.clone(),
        }));
    }

    /// Checks that lines, table and counts agree.
    pub(crate) fn check(&self) {
        assert_eq!(self.entries().count(), self.table.len());
        assert_eq!(
            self.data,
            self.entries().map(|entry| data_bytes(entry.data.len())).sum::<usize>()
        );
        for (number, queue) in self.queues.iter().enumerate() {
            let own = self.entries().filter(|entry| entry.queue as usize == number);
            assert_eq!(queue.bytes(), own.map(cost).sum::<usize>());
        }
        assert!(self.bytes() <= self.limit || self.table.is_empty());
    }
}

/// Returns the bytes that an entry takes, its share of the tables aside.
fn cost(entry: &Entry) -> usize {
    data_bytes(entry.data.len()) + size_of::<Option<Entry>>()
}

/// Returns key and reply in one allocation.
fn joined(key: &[u8], reply: &[u8]) -> Arc<[u8]> {
    let mut short = [0; JOINED_MAX];
    let Some(place) = short.get_mut(..key.len() + reply.len()) else {
        return [key, reply].concat().into();
    };
    let (first, second) = place.split_at_mut(key.len());
    first.copy_from_slice(key);
    second.copy_from_slice(reply);
    Arc::from(&*place)
}
