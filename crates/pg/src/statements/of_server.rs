//! ServerStatements: the prepared statements of one server, least recently used first.
//!
//! The set changes in the same function that appends to the server's output (E76). So it says which
//! statements the server will have when it has read all that was sent; changes that the server then
//! refuses or skips are undone (see [`crate::pipeline::undo`]). Until the segment that prepared a
//! statement is over, the statement is *unsettled*: a later segment must not rely on it.
//!
//! The unnamed statement stands apart: every Parse without a name and every simple Query overwrites
//! it.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use hashlink::LruCache;

use crate::ground::ids::Segment;
use crate::statements::columns::{Columns, Found};
use crate::statements::statement::{Generation, Statement};

/// Executions of a statement that PostgreSQL plans for their values before it considers a generic
/// plan.
const PLANNED: u8 = 5;

/// A server's reference to a statement: it counts the server in, and out when it is dropped.
#[derive(Debug)]
pub(crate) struct ServerRef {
    statement: Arc<Statement>,
    /// How often the server ran it for simple queries; at most [`PLANNED`] are counted.
    runs: u8,
    /// Bytes of the server's memory that it is taken to need.
    memory: usize,
}

impl ServerRef {
    /// Counts the server in.
    pub(crate) fn new(statement: Arc<Statement>) -> Self {
        statement.add_server();
        let memory = statement.memory();
        Self { statement, runs: 0, memory }
    }

    /// Returns the statement.
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
    /// The statement.
    pub(crate) served: ServerRef,
    /// Which generation of it.
    pub(crate) generation: Generation,
    /// The server's segment that prepared it.
    pub(crate) segment: Segment,
    /// Whether the server may have dropped it: then Refrain closes it and prepares it anew before
    /// it is used.
    pub(crate) doubtful: bool,
    /// Whether autoprepare has put it there, for simple queries.
    pub(crate) auto: bool,
    /// The columns and parameters that its Parse found.
    pub(crate) found: Found,
}

impl ServerStatement {
    fn bytes(&self) -> usize {
        self.served.statement().tail.len()
    }
}

/// The unnamed statement of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unnamed {
    /// The statement's ID; zero if there is none, or if it is unknown.
    pub(crate) id: u64,
    /// Which generation of it.
    pub(crate) generation: Generation,
    /// The server's segment that parsed it.
    pub(crate) segment: Segment,
    /// The columns and parameters that its Parse found.
    pub(crate) found: Found,
}

impl Unnamed {
    /// No unnamed statement, or an unknown one, since a segment that is over.
    pub(crate) const NONE: Self = Self {
        id: 0,
        generation: 0,
        segment: 0,
        found: Found { columns: Columns::Fixed, parameters: 0, asked: 0 },
    };
}

impl Unnamed {
    /// Returns the record for no unnamed statement since this segment.
    pub(crate) fn none_since(segment: Segment) -> Self {
        Self { segment, ..Self::NONE }
    }
}

/// Spreads statement IDs over a table. They are dense and never used twice, so a multiplication
/// will do.
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
        // The table uses the upper bits of the hash too.
        self.0 = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

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
    pub(crate) unnamed: Unnamed,
}

impl Default for ServerStatements {
    fn default() -> Self {
        let named = LruCache::with_hasher_and_unbounded();
        Self { named, bytes: 0, autos: 0, auto_bytes: 0, unnamed: Unnamed::NONE }
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
    pub(crate) fn touch(&mut self, id: u64) -> Option<&mut ServerStatement> {
        self.named.get_mut(&id)
    }

    /// Returns a statement, and leaves the order as it is.
    pub(crate) fn peek(&self, id: u64) -> Option<&ServerStatement> {
        self.named.peek(&id)
    }

    /// Returns a statement for changes, and leaves the order as it is.
    pub(crate) fn peek_mut(&mut self, id: u64) -> Option<&mut ServerStatement> {
        self.named.peek_mut(&id)
    }

    /// Adds a statement, as the one used last.
    pub(crate) fn insert(&mut self, slot: ServerStatement) {
        self.remove(slot.served.statement().id);
        self.bytes += slot.bytes();
        if slot.auto {
            self.autos += 1;
            self.auto_bytes += slot.served.memory;
        }
        self.named.insert(slot.served.statement().id, slot);
    }

    /// Takes a statement out.
    pub(crate) fn remove(&mut self, id: u64) -> Option<ServerStatement> {
        let slot = self.named.remove(&id)?;
        self.bytes = self.bytes.checked_sub(slot.bytes()).expect("its bytes were counted");
        if slot.auto {
            self.autos -= 1;
            self.auto_bytes -= slot.served.memory;
        }
        Some(slot)
    }

    /// Takes out the least recently used statement if one more of `bytes` would not fit.
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
            slot.served.memory = slot.served.statement.memory();
            self.auto_bytes += slot.served.memory;
        }
    }

    /// Counts a run of a statement for a simple query. True if PostgreSQL plans this run for its
    /// values in any case.
    pub(crate) fn is_planned(&mut self, id: u64) -> bool {
        let Some(slot) = self.named.peek_mut(&id) else { return false };
        let planned = slot.served.runs < PLANNED;
        slot.served.runs += u8::from(planned);
        planned
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::EnvId;
    use crate::statements::statement::Identity;
    use refrain_pool::ids::PoolId;

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
