//! The statements one server has, least recently used first.
//!
//! The set changes in the same function that appends to the server's output, so it says what the
//! server will have when it has read everything sent so far; what the server then refuses or skips is
//! undone (see [`crate::pipeline::undo`]). Until the segment that prepared a slot is over, the slot is *unsettled*: a
//! later segment must not rely on it.
//!
//! The unnamed statement is one more slot, which every Parse without a name and every simple Query
//! overwrites.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use hashlink::LruCache;

use crate::ground::ids::Segment;
use crate::statements::columns::{Columns, Found};
use crate::statements::statement::{Generation, Statement};

/// Executions of a statement that a server plans for their values, before it looks for a plan to keep.
const PLANNED: u8 = 5;

/// A server's share in a statement; the counts hear of its end.
#[derive(Debug)]
pub(crate) struct ServerRef {
    statement: Arc<Statement>,
    /// How often it was run there for simple queries; no more than [`PLANNED`] are counted.
    runs: u8,
    /// What it counts as of the server's memory, in bytes.
    memory: usize,
}

impl ServerRef {
    /// Counts the server in.
    pub(crate) fn new(statement: Arc<Statement>) -> Self {
        statement.add_server();
        let memory = statement.memory();
        Self { statement, runs: 0, memory }
    }

    /// The statement.
    pub(crate) fn statement(&self) -> &Arc<Statement> {
        &self.statement
    }
}

impl Drop for ServerRef {
    fn drop(&mut self) {
        self.statement.drop_server();
    }
}

/// A statement that a server has under a name.
#[derive(Debug)]
pub(crate) struct ServerStatement {
    /// Which.
    pub(crate) served: ServerRef,
    /// Which generation of it.
    pub(crate) generation: Generation,
    /// The server's segment that prepared it.
    pub(crate) segment: Segment,
    /// Whether the server may not have it after all: it is closed and prepared anew before it is used.
    pub(crate) doubtful: bool,
    /// Whether it is there for simple queries.
    pub(crate) auto: bool,
    /// What its Parse found.
    pub(crate) found: Found,
}

impl ServerStatement {
    fn bytes(&self) -> usize {
        self.served.statement().tail.len()
    }
}

/// What a server's unnamed statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unnamed {
    /// The statement's ID; zero for none, or one that cannot be known.
    pub(crate) id: u64,
    /// Which generation of it.
    pub(crate) generation: Generation,
    /// The server's segment that parsed it.
    pub(crate) segment: Segment,
    /// What its Parse found.
    pub(crate) found: Found,
}

impl Unnamed {
    /// No unnamed statement, or one that cannot be known, since a segment that is over.
    pub(crate) const NONE: Self = Self {
        id: 0,
        generation: 0,
        segment: 0,
        found: Found { columns: Columns::Fixed, parameters: 0, asked: 0 },
    };
}

impl Unnamed {
    /// No unnamed statement, since this segment.
    pub(crate) fn none_since(segment: Segment) -> Self {
        Self { segment, ..Self::NONE }
    }
}

/// Statement IDs are dense and never used twice: they need no hash.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 << 8) | u64::from(byte);
        }
    }

    #[inline]
    fn write_u64(&mut self, id: u64) {
        // The table looks at the upper bits too.
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// All statements of a server.
#[derive(Debug)]
pub(crate) struct ServerStatements {
    named: LruCache<u64, ServerStatement, BuildHasherDefault<IdHasher>>,
    bytes: usize,
    /// How many are there for simple queries, and what they take.
    autos: usize,
    auto_bytes: usize,
    /// The unnamed statement.
    pub(crate) unnamed: Unnamed,
}

impl Default for ServerStatements {
    fn default() -> Self {
        let named = LruCache::with_hasher_and_unbounded();
        Self { named, bytes: 0, autos: 0, auto_bytes: 0, unnamed: Unnamed::NONE }
    }
}

/// `LruCache` evicts by itself at its capacity; here the caller evicts, with a Close.
trait Unbounded {
    fn with_hasher_and_unbounded() -> Self;
}

impl Unbounded for LruCache<u64, ServerStatement, BuildHasherDefault<IdHasher>> {
    fn with_hasher_and_unbounded() -> Self {
        Self::with_hasher(usize::MAX, BuildHasherDefault::default())
    }
}

impl ServerStatements {
    /// The slot of a statement, which becomes the one used last.
    #[inline]
    pub(crate) fn touch(&mut self, id: u64) -> Option<&mut ServerStatement> {
        self.named.get_mut(&id)
    }

    /// The slot of a statement, its place in the order kept.
    pub(crate) fn peek(&self, id: u64) -> Option<&ServerStatement> {
        self.named.peek(&id)
    }

    /// The same, to note something of it.
    pub(crate) fn peek_mut(&mut self, id: u64) -> Option<&mut ServerStatement> {
        self.named.peek_mut(&id)
    }

    /// Adds a slot, used last.
    pub(crate) fn insert(&mut self, slot: ServerStatement) {
        self.remove(slot.served.statement().id);
        self.bytes += slot.bytes();
        if slot.auto {
            self.autos += 1;
            self.auto_bytes += slot.served.memory;
        }
        self.named.insert(slot.served.statement().id, slot);
    }

    /// Takes a slot out.
    pub(crate) fn remove(&mut self, id: u64) -> Option<ServerStatement> {
        let slot = self.named.remove(&id)?;
        self.bytes = self.bytes.checked_sub(slot.bytes()).expect("its bytes were counted");
        if slot.auto {
            self.autos -= 1;
            self.auto_bytes -= slot.served.memory;
        }
        Some(slot)
    }

    /// Takes the least recently used slot out if one more of `bytes` would not fit.
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

    /// The same among those that are there for simple queries. `memory_max` is what the server may need for them.
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

    /// More is known of the memory that statements take.
    pub(crate) fn weigh_anew(&mut self) {
        self.auto_bytes = 0;
        for (_, slot) in self.named.iter_mut().filter(|(_, slot)| slot.auto) {
            slot.served.memory = slot.served.statement.memory();
            self.auto_bytes += slot.served.memory;
        }
    }

    /// A statement is run for a simple query. Says whether it is planned for its values in any case.
    pub(crate) fn is_planned(&mut self, id: u64) -> bool {
        let Some(slot) = self.named.peek_mut(&id) else { return false };
        let planned = slot.served.runs < PLANNED;
        slot.served.runs += u8::from(planned);
        planned
    }

    /// The server may have dropped this one.
    pub(crate) fn doubt(&mut self, id: u64) {
        if let Some(slot) = self.named.peek_mut(&id) {
            slot.doubtful = true;
        }
    }

    /// The server may have dropped all that have a name.
    pub(crate) fn doubt_all(&mut self) {
        self.named.iter_mut().for_each(|(_, slot)| slot.doubtful = true);
    }

    /// Forgets all: the server dropped them.
    pub(crate) fn clear(&mut self) {
        self.clear_named();
        self.unnamed = Unnamed::NONE;
    }

    /// Forgets all that have a name.
    pub(crate) fn clear_named(&mut self) {
        self.named.clear();
        (self.bytes, self.autos, self.auto_bytes) = (0, 0, 0);
    }

    /// How many have a name.
    pub(crate) fn len(&self) -> usize {
        self.named.len()
    }

    /// Whether the counts are those of the slots that are there.
    pub(crate) fn adds_up(&self) -> bool {
        let all = || self.named.iter().map(|(_, slot)| slot);
        self.bytes == all().map(ServerStatement::bytes).sum::<usize>()
            && self.autos == all().filter(|slot| slot.auto).count()
    }

    /// Bytes of their texts.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::{EnvId, PoolId};
    use crate::statements::statement::Identity;

    fn slot(id: u64) -> ServerStatement {
        let identity = Identity { pool: PoolId(0), env: EnvId(0), tail: b"0123456789" };
        let served = ServerRef::new(Arc::new(Statement::new(id, identity, b"_")));
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
        let small = slot(4).served.statement.memory();
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
