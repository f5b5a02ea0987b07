//! ServerStatements: the prepared statements of one server, least recently used first.
//!
//! The set changes in the same function that appends to the server's output (E76). So it says which
//! statements the server will have when it has read all that was sent; changes that the server then
//! refuses or skips are undone (see [`crate::pipeline::undo`]): whoever sends a message says what
//! it changes and which request it is, and the set keeps the record. Until the segment that
//! prepared a statement is over, the statement is *unsettled*: a later segment must not rely on it.
//!
//! The unnamed statement stands apart: every Parse without a name and every simple Query overwrites
//! it.

use std::hash::BuildHasherDefault;

use hashlink::LruCache;
use smallvec::SmallVec;

use crate::ground::ids::Segment;
use crate::pipeline::outstanding::{Failed, Outstanding, Seq};
use crate::pipeline::undo::{Reverted, ServerUndo, Undos};
use crate::statements::columns::{Columns, Found};
use crate::statements::of_client::mark;
use crate::statements::of_server::{IdHasher, ServerStatement, Unnamed};
use crate::statements::statement::Generation;

/// All statements of a server.
#[derive(Debug)]
pub(crate) struct ServerStatements {
    named: LruCache<u64, ServerStatement, BuildHasherDefault<IdHasher>>,
    bytes: usize,
    /// The number of those that autoprepare has put there, and the bytes of memory that these are
    /// taken to need.
    autos: usize,
    auto_bytes: usize,
    /// The unnamed statement.
    unnamed: Unnamed,
    /// A mark of the portal that was bound last; zero where neither client nor server bound an
    /// unnamed statement.
    bound: u32,
    /// The generation of the statement that it was bound from; `None` for the unnamed one.
    bound_from: Option<Generation>,
    /// How to undo changes to the set if the server refuses or skips them.
    undos: Undos<ServerUndo>,
    /// Uses of a statement that the server had, and of one that it was sent first.
    hits: u64,
    misses: u64,
}

impl Default for ServerStatements {
    fn default() -> Self {
        let named = LruCache::with_hasher_and_unbounded();
        Self {
            named,
            bytes: 0,
            autos: 0,
            auto_bytes: 0,
            unnamed: Unnamed::NONE,
            bound: 0,
            bound_from: None,
            undos: Undos::default(),
            hits: 0,
            misses: 0,
        }
    }
}

/// A map without a capacity: `LruCache` would evict by itself, and an eviction here needs a Close.
trait Unbounded {
    fn with_hasher_and_unbounded() -> Self;
}

impl Unbounded for LruCache<u64, ServerStatement, BuildHasherDefault<IdHasher>> {
    fn with_hasher_and_unbounded() -> Self {
        Self::with_hasher(usize::MAX, BuildHasherDefault::default())
    }
}

impl ServerStatements {
    /// Returns a statement, and makes it the one used last.
    #[inline]
    pub(crate) fn touch(&mut self, id: u64) -> Option<&ServerStatement> {
        self.named.get(&id)
    }

    /// Returns a statement, and leaves the order as it is.
    pub(crate) fn peek(&self, id: u64) -> Option<&ServerStatement> {
        self.named.peek(&id)
    }

    /// Returns the unnamed statement.
    #[inline]
    pub(crate) fn unnamed(&self) -> Unnamed {
        self.unnamed
    }

    /// Adds a statement, as the one used last.
    fn insert(&mut self, slot: ServerStatement) {
        self.remove(slot.served.statement().id);
        self.bytes += slot.bytes();
        if slot.auto {
            self.autos += 1;
            self.auto_bytes += slot.served.memory();
        }
        self.named.insert(slot.served.statement().id, slot);
    }

    /// Takes a statement out, for a Close: see [`Self::close`].
    pub(crate) fn remove(&mut self, id: u64) -> Option<ServerStatement> {
        let slot = self.named.remove(&id)?;
        self.bytes = self.bytes.checked_sub(slot.bytes()).expect("its bytes were counted");
        if slot.auto {
            self.autos -= 1;
            self.auto_bytes -= slot.served.memory();
        }
        Some(slot)
    }

    /// Takes out the least recently used statement if one more of `bytes` would not fit, for
    /// a Close.
    pub(crate) fn evict(
        &mut self,
        bytes: usize,
        count_max: u32,
        bytes_max: usize,
    ) -> Option<ServerStatement> {
        let full = self.named.len() >= count_max as usize || self.bytes + bytes > bytes_max;
        let oldest = *self.named.iter().next()?.0;
        if full { self.remove(oldest) } else { None }
    }

    /// Takes out the least recently used of autoprepare's statements if one more of `memory` bytes
    /// would not fit into `memory_max`, or there are `count_max`.
    pub(crate) fn evict_auto(
        &mut self,
        memory: usize,
        count_max: u32,
        memory_max: usize,
    ) -> Option<ServerStatement> {
        let full = self.autos >= count_max as usize || self.auto_bytes + memory > memory_max;
        if !full {
            return None;
        }
        let oldest = self.named.iter().find(|(_, slot)| slot.auto).map(|(id, _)| *id)?;
        self.remove(oldest)
    }

    /// Counts the memory of autoprepare's statements again: more is known of it.
    pub(crate) fn weigh_anew(&mut self) {
        self.auto_bytes = 0;
        for (_, slot) in self.named.iter_mut().filter(|(_, slot)| slot.auto) {
            self.auto_bytes += slot.served.weigh();
        }
    }

    /// Counts a run of a statement for a simple query. True if PostgreSQL plans this run for its
    /// values in any case.
    pub(crate) fn is_planned(&mut self, id: u64) -> bool {
        self.named.peek_mut(&id).is_some_and(|slot| slot.served.run())
    }

    /// Notes that the server may have dropped this statement.
    pub(crate) fn doubt(&mut self, id: u64) {
        if let Some(slot) = self.named.peek_mut(&id) {
            slot.doubtful = true;
        }
    }

    /// Notes that the server may have dropped all statements that have a name.
    pub(crate) fn doubt_all(&mut self) {
        self.named.iter_mut().for_each(|(_, slot)| slot.doubtful = true);
    }

    /// Forgets all statements: the server has dropped them.
    pub(crate) fn clear(&mut self) {
        self.clear_named();
        self.unnamed = Unnamed::NONE;
    }

    /// Forgets all statements that have a name.
    pub(crate) fn clear_named(&mut self) {
        self.named.clear();
        (self.bytes, self.autos, self.auto_bytes) = (0, 0, 0);
    }

    /// Returns the number of statements that have a name.
    pub(crate) fn len(&self) -> usize {
        self.named.len()
    }

    /// True if the counts are those of the statements in the set.
    pub(crate) fn adds_up(&self) -> bool {
        let all = || self.named.iter().map(|(_, slot)| slot);
        self.bytes == all().map(ServerStatement::bytes).sum::<usize>()
            && self.autos == all().filter(|slot| slot.auto).count()
    }

    /// Returns the bytes of their texts.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Changes by messages that have just been sent: each leaves a record of how to undo it, under the
/// number of the message's request.
impl ServerStatements {
    /// Adds a statement that a Parse has prepared.
    pub(crate) fn prepare(&mut self, seq: Seq, slot: ServerStatement) {
        let id = slot.served.statement().id;
        self.insert(slot);
        self.undos.push(seq, ServerUndo::Prepared(id));
    }

    /// Records that a statement, which was taken out of the set, has been closed.
    pub(crate) fn close(&mut self, seq: Seq, mut old: ServerStatement, outstanding: &Outstanding) {
        // An error that skips the Close may have skipped the Parse of the statement too (E24).
        old.doubtful |= outstanding.is_unsettled(old.segment);
        self.undos.push(seq, ServerUndo::Evicted(old));
    }

    /// Puts another unnamed statement, or none, in the place of the one before.
    pub(crate) fn replace_unnamed(&mut self, seq: Seq, unnamed: Unnamed) {
        let old = std::mem::replace(&mut self.unnamed, unnamed);
        self.undos.push(seq, ServerUndo::Unnamed(old));
    }

    /// Removes the unnamed statement, since a query string drops it. `skippable` is the string's
    /// request if an error before it may skip it.
    pub(crate) fn drop_unnamed(&mut self, segment: Segment, skippable: Option<Seq>) {
        let old = std::mem::replace(&mut self.unnamed, Unnamed::none_since(segment));
        if let Some(seq) = skippable.filter(|_| old.id != 0) {
            self.undos.push(seq, ServerUndo::Unnamed(old));
        }
    }

    /// Notes that the unnamed statement is none, or unknown: Refrain's own query has dropped it, or
    /// a message is passed on that nobody has read.
    pub(crate) fn forget_unnamed(&mut self) {
        self.unnamed = Unnamed::NONE;
    }

    /// Notes the portal that was bound last, and the generation of the statement that it was bound
    /// from, `None` for the unnamed one. `portal` is `None` if neither the client nor the server
    /// calls the statement unnamed.
    #[inline]
    pub(crate) fn bind(&mut self, portal: Option<&[u8]>, from: Option<Generation>) {
        self.bound = portal.map_or(0, mark);
        self.bound_from = from;
    }

    /// Returns the copy of this statement from which this portal was bound last, if nobody has
    /// asked for its columns: what is known of it, and its generation if it has a name.
    #[inline]
    pub(crate) fn bound_unasked(
        &self,
        id: u64,
        portal: &[u8],
    ) -> Option<(Option<Generation>, Found)> {
        if self.bound == 0 || id == 0 {
            return None;
        }
        let found = match self.bound_from {
            None => (self.unnamed.id == id).then_some(self.unnamed.found),
            from => self.peek(id).filter(|slot| Some(slot.generation) == from).map(|it| it.found),
        };
        let unasked = found.filter(|found| found.asked == 0 && self.bound == mark(portal));
        unasked.map(|found| (self.bound_from, found))
    }

    /// Makes the changes by requests up to and including `seq` final.
    #[inline]
    pub(crate) fn settle(&mut self, seq: Seq) {
        self.undos.settle(seq);
    }

    /// True if every change is final.
    pub(crate) fn is_settled(&self) -> bool {
        self.undos.is_empty()
    }

    /// True if a statement has been closed, and an error may skip that.
    pub(crate) fn is_closing(&self, id: u64) -> bool {
        let closed = |undo: &ServerUndo| match undo {
            ServerUndo::Evicted(slot) => slot.served.statement().id == id,
            ServerUndo::Prepared(_) | ServerUndo::Unnamed(_) => false,
        };
        self.undos.iter().any(closed) && self.peek(id).is_none()
    }

    /// Undoes the changes by messages that failed or were skipped (E1, E2, E24).
    pub(crate) fn undo(&mut self, failed: &Failed) {
        let (mut never, mut before) = (SmallVec::<[u64; 4]>::new(), None);
        for Reverted { undo, failed: own } in self.undos.fail(failed) {
            match undo {
                ServerUndo::Prepared(id) => {
                    never.push(id);
                    if self.peek(id).is_some_and(|slot| failed.covers(slot.segment)) {
                        self.remove(id);
                    }
                }
                ServerUndo::Evicted(slot) => {
                    if self.peek(slot.served.statement().id).is_none() {
                        self.insert(slot);
                    }
                }
                ServerUndo::Unnamed(old) => {
                    let old = if own { Unnamed::NONE } else { old };
                    before = Some(old);
                    // A later segment may have changed it since: that change stays.
                    if failed.covers(self.unnamed.segment) {
                        self.unnamed = old;
                    }
                }
            }
        }
        if never.is_empty() && before.is_none() {
            return;
        }
        // Undos of later segments must not bring back a statement that, as is known now, was not
        // there.
        self.undos.retain(|undo| match undo {
            ServerUndo::Evicted(slot) => {
                let id = slot.served.statement().id;
                !(never.contains(&id) && failed.covers(slot.segment))
            }
            ServerUndo::Unnamed(old) => {
                if failed.covers(old.segment)
                    && let Some(before) = before
                {
                    *old = before;
                }
                true
            }
            ServerUndo::Prepared(_) => true,
        });
    }
}

/// The columns of statements, as replies tell them.
impl ServerStatements {
    /// Notes that request `seq` asks what a copy of a statement returns: the one named by `id`, or
    /// the unnamed one. Returns the number of the Parse that made it, if its columns are unknown.
    pub(crate) fn ask(&mut self, id: Option<u64>, seq: Seq) -> Option<Seq> {
        let found = match id {
            None => &mut self.unnamed.found,
            Some(id) => &mut self.named.peek_mut(&id)?.found,
        };
        found.asked = seq;
        found.columns.parse()
    }

    /// Records what the answer to request `seq` says of a copy of a statement: its columns, and a
    /// hash of its parameters. Returns the copy's generation, and its columns as they are known
    /// now; `None` if the request has asked about no copy that is still there.
    pub(crate) fn describe(
        &mut self,
        id: u64,
        seq: Seq,
        columns: Columns,
        parameters: u32,
    ) -> Option<(Generation, Columns)> {
        let unnamed = &mut self.unnamed;
        let (generation, found) = if unnamed.id == id && unnamed.found.asked == seq {
            (unnamed.generation, &mut unnamed.found)
        } else {
            let slot = self.named.peek_mut(&id).filter(|slot| slot.found.asked == seq)?;
            (slot.generation, &mut slot.found)
        };
        // PostgreSQL would have refused a change of the columns; SQLite describes them anew.
        if found.columns != Columns::Fixed {
            found.columns = columns;
        }
        found.parameters = parameters;
        Some((generation, found.columns))
    }

    /// Records the columns that a Parse found, where they are known as `before` so far: for the
    /// copies of a statement, and for those that an undo would bring back.
    pub(crate) fn find_columns(&mut self, id: u64, before: Columns, columns: Columns) {
        let known = |now: &mut Columns| {
            if *now == before {
                *now = columns;
            }
        };
        known(&mut self.unnamed.found.columns);
        if let Some(slot) = self.named.peek_mut(&id) {
            known(&mut slot.found.columns);
        }
        self.undos.retain(|undo| {
            match undo {
                ServerUndo::Evicted(slot) => known(&mut slot.found.columns),
                ServerUndo::Unnamed(old) => known(&mut old.found.columns),
                ServerUndo::Prepared(_) => {}
            }
            true
        });
    }
}

/// Counts of uses, for the console.
impl ServerStatements {
    /// Counts a use of a statement that the server had.
    #[inline]
    pub(crate) fn count_hit(&mut self) {
        self.hits += 1;
    }

    /// Counts a use of a statement that the server was sent first.
    pub(crate) fn count_miss(&mut self) {
        self.misses += 1;
    }

    /// Returns the hits and the misses.
    pub(crate) fn uses(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::EnvId;
    use crate::statements::columns::Found;
    use crate::statements::of_server::ServerRef;
    use crate::statements::statement::{Identity, Statement};
    use refrain_pool::ids::PoolId;
    use std::sync::Arc;

    fn slot(id: u64) -> ServerStatement {
        let identity = Identity { pool: PoolId(0), env: EnvId::of(0), tail: b"0123456789" };
        let served = ServerRef::new(Statement::new(id, identity, &Arc::default()));
        let found = Found::default();
        ServerStatement { served, generation: 0, segment: 0, doubtful: false, auto: false, found }
    }

    fn evict(statements: &mut ServerStatements, count_max: u32, bytes_max: usize) -> Option<u64> {
        statements.evict(10, count_max, bytes_max).map(|slot| slot.served.statement().id)
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut statements = ServerStatements::default();
        (1..=3).for_each(|id| statements.insert(slot(id)));
        statements.touch(1);
        assert_eq!(evict(&mut statements, 4, 1000), None);
        assert_eq!(evict(&mut statements, 3, 1000), Some(2));
        assert_eq!(evict(&mut statements, 3, 25), Some(3));
        assert_eq!((statements.len(), statements.bytes()), (1, 10));
    }

    #[test]
    fn what_a_plan_has_of_partitions_takes_room() {
        let mut statements = ServerStatements::default();
        for id in 1..=3 {
            statements.insert(ServerStatement { auto: true, ..slot(id) });
        }
        let small = slot(4).served.statement().memory();
        assert!(statements.evict_auto(small, 10, 4 * small).is_none());
        statements.peek(3).unwrap().served.statement().found_partitions(small);
        statements.weigh_anew();
        let first =
            statements.evict_auto(small, 10, 4 * small).map(|slot| slot.served.statement().id);
        assert_eq!(first, Some(1));
        assert!(statements.evict_auto(small, 10, 4 * small).is_none(), "there is room now");
        statements.remove(2);
        statements.remove(3);
        assert_eq!((statements.autos, statements.auto_bytes), (0, 0));
    }

    #[test]
    fn counts_follow_the_set() {
        let one = slot(1);
        let statement = one.served.statement().clone();
        let mut statements = ServerStatements::default();
        statements.insert(one);
        assert_eq!(statement.counts().1, 1);
        statements.clear();
        assert_eq!((statement.counts().1, statements.bytes()), (0, 0));
    }
}
