//! NamedStatements: the statements that a client has prepared, by the names that the client gave.
//!
//! A Bind finds its statement here without a lock, a shared atomic or an allocation: it compares
//! its name with the one that was used last, and one hash finds any other. The map is made on the
//! first named Parse; a client that never prepares has none.

use std::rc::Rc;

use indexmap::IndexMap;
use refrain_sql::MAX_NAME;
use smallvec::SmallVec;

use crate::ground::ids::{EnvId, Segment};
use crate::statements::columns::Columns;
use crate::statements::of_core::CachedStatement;
use crate::statements::registry::Seed;
use crate::statements::statement::Generation;

/// A statement's name; those of drivers (`S_12`, `__asyncpg_stmt_3__`) fit without an allocation.
pub(crate) type Name = SmallVec<[u8; 22]>;

/// Returns the part of a name by which PostgreSQL finds a statement or a portal, in bytes whatever
/// the encoding (`NAMEDATALEN`, in the keys of `prepared_queries` and `PortalHashTable`).
#[inline]
pub(crate) fn key(name: &[u8]) -> &[u8] {
    &name[..name.len().min(MAX_NAME)]
}

/// Hashes a name, so that a client's names for one statement can be told apart. A collision would
/// put the wrong one of these names into the text of an error.
#[inline]
pub(crate) fn mark(name: &[u8]) -> u32 {
    name.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A client's reference to a statement: it counts the client in, and out when it is dropped.
#[derive(Debug)]
pub(crate) struct ClientRef(Rc<CachedStatement>);

impl ClientRef {
    /// Counts the client in.
    pub(crate) fn new(cached: Rc<CachedStatement>) -> Self {
        cached.add_client();
        Self(cached)
    }

    /// Returns the statement as this core has it.
    pub(crate) fn cached(&self) -> &Rc<CachedStatement> {
        &self.0
    }
}

impl Clone for ClientRef {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl Drop for ClientRef {
    fn drop(&mut self) {
        self.0.drop_client();
    }
}

/// A generation that no statement has: the client has seen nothing of the copies there are.
pub(crate) const UNSEEN: Generation = Generation::MAX;

/// One statement of a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientStatement {
    /// The statement.
    pub(crate) held: ClientRef,
    /// The generation that was current when the client prepared it, or that was later shown to
    /// return the same.
    pub(crate) generation: Generation,
    /// The columns that its Parse found.
    pub(crate) columns: Columns,
    /// A hash of the types of parameters that the client was told by Describe; zero for none.
    pub(crate) parameters: u64,
    /// The statement that the server has under the client's name.
    pub(crate) lent: ByName,
    /// The client's parse environment when it was last made sure that this is the statement which
    /// the client's text is there.
    pub(crate) env: EnvId,
    /// Whether it is the unnamed one and runs as the named statement where the server has that.
    pub(crate) runs_named: bool,
}

/// The statement that the server has under a name that the client gave by Parse, beside the one
/// under Refrain's name, and the segment since which the server has it. SQL that names the
/// statement (EXECUTE, DEALLOCATE) needs it there (E49, E51).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByName {
    /// Nothing.
    Nothing,
    /// An empty statement, so that the name is taken.
    Empty(Segment),
    /// The client's statement.
    Statement(Segment),
}

impl ClientStatement {
    /// Makes a statement that the server has under Refrain's name alone.
    pub(crate) fn new(held: ClientRef, generation: Generation, columns: Columns) -> Self {
        let (parameters, lent, env) = (0, ByName::Nothing, held.cached().statement.env);
        Self { held, generation, columns, parameters, lent, env, runs_named: false }
    }

    /// True if this is the statement with this ID, and `name` has this mark.
    pub(crate) fn is(&self, id: u64, name: &[u8], wanted: u32) -> bool {
        self.held.cached().statement.id == id && mark(name) == wanted
    }
}

/// All named statements of a client.
#[derive(Debug, Default)]
pub(crate) struct NamedStatements {
    map: Option<Box<IndexMap<Name, ClientStatement, Seed>>>,
    last: usize,
    bytes: usize,
}

impl NamedStatements {
    /// Returns the statement with this name.
    #[inline]
    pub(crate) fn get(&mut self, name: &[u8]) -> Option<&mut ClientStatement> {
        let name = key(name);
        let map = self.map.as_mut()?;
        if map.get_index(self.last).is_none_or(|(key, _)| key.as_slice() != name) {
            self.last = map.get_index_of(name)?;
        }
        map.get_index_mut(self.last).map(|(_, statement)| statement)
    }

    /// True if the client has a statement with this name.
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.map.as_ref().is_some_and(|map| map.contains_key(key(name)))
    }

    /// Adds a statement under a name that is free.
    pub(crate) fn insert(&mut self, mut name: Name, statement: ClientStatement) {
        name.truncate(MAX_NAME);
        self.bytes += Self::cost(&name, &statement);
        let before = self.map.get_or_insert_default().insert(name, statement);
        assert!(before.is_none(), "a name is given once");
    }

    /// Takes a statement out.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<ClientStatement> {
        let map = self.map.as_mut()?;
        let (key, statement) = map.swap_remove_entry(key(name))?;
        let bytes = Self::cost(&key, &statement);
        self.bytes = self.bytes.checked_sub(bytes).expect("its bytes were counted");
        if map.is_empty() {
            self.map = None;
        }
        Some(statement)
    }

    /// Takes all out, with their names.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Iterates over the statements, with their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &ClientStatement)> {
        self.map.iter().flat_map(|map| map.iter())
    }

    /// Returns the name with this mark that the client gave to the statement with this ID.
    pub(crate) fn marked(&self, id: u64, wanted: u32) -> Option<&[u8]> {
        let map = self.map.as_ref()?;
        let found = map.iter().find(|(name, statement)| statement.is(id, name, wanted));
        found.map(|(name, _)| name.as_slice())
    }

    /// Returns the statement with this ID, and the name that the client gave it.
    pub(crate) fn by_id(&mut self, id: u64) -> Option<(&[u8], &mut ClientStatement)> {
        let map = self.map.as_mut()?;
        let (name, statement) = map.iter_mut().find(|(_, s)| s.held.cached().statement.id == id)?;
        Some((name.as_slice(), statement))
    }

    /// Returns the statements with this ID, under all their names.
    pub(crate) fn all_of(
        &mut self,
        id: u64,
    ) -> impl Iterator<Item = (&[u8], &mut ClientStatement)> {
        let all = self.map.iter_mut().flat_map(|map| map.iter_mut());
        let all = all.map(|(name, statement)| (name.as_slice(), statement));
        all.filter(move |(_, statement)| statement.held.cached().statement.id == id)
    }

    /// Returns the number of statements.
    pub(crate) fn len(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.len())
    }

    /// Returns the bytes that count for the client: its names, and the texts that they refer to.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if the count of bytes is that of the statements in the map.
    pub(crate) fn adds_up(&self) -> bool {
        let there = self.map.iter().flat_map(|map| map.iter());
        self.bytes == there.map(|(name, statement)| Self::cost(name, statement)).sum::<usize>()
    }

    fn cost(name: &Name, statement: &ClientStatement) -> usize {
        size_of::<(Name, ClientStatement)>()
            + name.len()
            + statement.held.cached().statement.tail.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::EnvId;
    use crate::statements::of_core::CoreStatements;
    use crate::statements::registry::Registry;
    use crate::statements::statement::Identity;
    use refrain_pool::ids::PoolId;

    fn statement(tail: &[u8]) -> ClientStatement {
        let identity = Identity { pool: PoolId(0), env: EnvId::of(0), tail };
        let registry = Registry::new(1, Seed::default());
        let held = ClientRef::new(CoreStatements::default().intern(
            &registry,
            identity,
            &crate::settings::session::nothing(),
        ));
        ClientStatement::new(held, 0, Columns::Fixed)
    }

    #[test]
    fn names_are_found_in_any_order_and_after_removal() {
        let mut names = NamedStatements::default();
        for name in [&b"a"[..], b"b", b"a-name-longer-than-fits-inline"] {
            names.insert(Name::from_slice(name), statement(name));
        }
        for name in [&b"b"[..], b"b", b"a", b"a-name-longer-than-fits-inline", b"a"] {
            let found = names.get(name).unwrap();
            assert_eq!(&*found.held.cached().statement.tail, name);
        }
        assert!(names.remove(b"a").is_some());
        assert!(names.get(b"a").is_none());
        assert_eq!(&*names.get(b"b").unwrap().held.cached().statement.tail, b"b");
        names.remove(b"b");
        names.remove(b"a-name-longer-than-fits-inline");
        assert_eq!((names.len(), names.bytes()), (0, 0));
    }

    #[test]
    fn counts_follow_the_map() {
        let mut names = NamedStatements::default();
        let one = statement(b"x");
        let cached = one.held.cached().clone();
        names.insert(Name::from_slice(b"x"), one);
        assert_eq!(cached.clients(), 1);
        let old = names.take();
        assert_eq!((names.len(), cached.clients()), (0, 1));
        drop(old);
        assert_eq!(cached.clients(), 0);
    }
}
