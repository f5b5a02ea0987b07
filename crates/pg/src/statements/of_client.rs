//! NamedStatements: the statements that a client has prepared, by the names that the client gave.
//!
//! A Bind finds its statement here without a lock, a shared atomic or an allocation: it compares
//! its name with the one that was used last, and one hash finds any other. A reply finds it by its
//! ID, in as short a time: a client may have many thousands of statements. The map is made on the
//! first named Parse; a client that never prepares has none.

use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashTable;
use refrain_sql::MAX_NAME;
use smallvec::SmallVec;

use crate::ground::ids::{EnvId, Segment};
use crate::ground::name::Name;
use crate::settings::session::Settings;
use crate::statements::columns::Columns;
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::{Generation, Statement, spread};
use refrain_pool::seed::Seed;

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
    pub(crate) parameters: u32,
    /// Facts that few statements have; `None` if all are as usual.
    seldom: Option<Box<Seldom>>,
}

/// Facts that few statements have: most are found under Refrain's name alone, and used in the parse
/// environment in which they were prepared.
#[derive(Clone, Debug)]
struct Seldom {
    /// The statement that the server has under the client's name.
    lent: ByName,
    /// The client's parse environment when it was last made sure that this is the statement which
    /// the client's text is there.
    env: EnvId,
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
        Self { held, generation, columns, parameters: 0, seldom: None }
    }

    /// Returns the statement that the server has under the client's name.
    pub(crate) fn lent(&self) -> ByName {
        self.seldom.as_ref().map_or(ByName::Nothing, |seldom| seldom.lent)
    }

    /// Notes which statement the server has under the client's name, and returns the former one.
    pub(crate) fn lend(&mut self, lent: ByName) -> ByName {
        let before = self.lent();
        self.set_seldom(Seldom { lent, env: self.env() });
        before
    }

    /// Returns the client's parse environment when it was last made sure that this is the statement
    /// which the client's text is there.
    #[inline]
    pub(crate) fn env(&self) -> EnvId {
        match &self.seldom {
            None => self.held.cached().statement.env,
            Some(seldom) => seldom.env,
        }
    }

    /// Makes it another statement, which is the right one in the same parse environment.
    pub(crate) fn hold(&mut self, held: ClientRef) {
        let env = self.env();
        self.held = held;
        self.is_right_in(env);
    }

    /// Notes that this was made sure in this parse environment.
    pub(crate) fn is_right_in(&mut self, env: EnvId) {
        self.set_seldom(Seldom { lent: self.lent(), env });
    }

    fn set_seldom(&mut self, seldom: Seldom) {
        let usual =
            seldom.lent == ByName::Nothing && seldom.env == self.held.cached().statement.env;
        self.seldom = (!usual).then(|| Box::new(seldom));
    }

    /// Returns the ID of the statement.
    pub(crate) fn id(&self) -> u64 {
        self.held.cached().statement.id
    }

    /// Packs it for its way to another core.
    pub(crate) fn pack(&self) -> TravellingStatement {
        let cached = self.held.cached();
        TravellingStatement {
            statement: cached.statement.clone(),
            settings: cached.settings.clone(),
            generation: self.generation,
            columns: self.columns,
            parameters: self.parameters,
            env: self.env(),
        }
    }

    /// True if this is the statement with this ID, and `name` has this mark.
    pub(crate) fn is(&self, id: u64, name: &[u8], wanted: u32) -> bool {
        self.id() == id && mark(name) == wanted
    }
}

/// A statement of a client that is on its way to another core. The client counts as its holder
/// again when it arrives. Until then the reference keeps it in the registry.
#[derive(Debug)]
pub(crate) struct TravellingStatement {
    statement: Statement,
    settings: Arc<Settings>,
    generation: Generation,
    columns: Columns,
    parameters: u32,
    env: EnvId,
}

impl TravellingStatement {
    /// Unpacks it on the core at which it has arrived. `own` returns the core's own reference to a
    /// statement, which was parsed under these settings.
    pub(crate) fn unpack(
        self,
        own: &mut impl FnMut(&Statement, &Settings) -> Rc<CachedStatement>,
    ) -> ClientStatement {
        let held = ClientRef::new(own(&self.statement, &self.settings));
        let Self { parameters, env, .. } = self;
        let own = ClientStatement::new(held, self.generation, self.columns);
        let mut own = ClientStatement { parameters, ..own };
        own.is_right_in(env);
        own
    }
}

/// All named statements of a client.
#[derive(Debug, Default)]
pub(crate) struct NamedStatements {
    map: Option<Box<Map>>,
    last: u32,
    bytes: usize,
}

/// Statements, which are found by their names and by their IDs. A reply names the ID, and a client
/// may have many thousands of statements.
#[derive(Debug, Default)]
struct Map {
    entries: Vec<(Name, ClientStatement)>,
    /// Places in `entries`, by the names there.
    names: HashTable<u32>,
    /// Places in `entries`, by the IDs of the statements there.
    ids: HashTable<u32>,
    seed: Seed,
}

impl Map {
    fn hash_name(&self, name: &[u8]) -> u64 {
        self.seed.hash_one(name)
    }

    /// Returns the place of a name.
    #[inline]
    fn place_of(&self, name: &[u8]) -> Option<u32> {
        let is = |&place: &u32| self.entries[place as usize].0.as_slice() == name;
        self.names.find(self.hash_name(name), is).copied()
    }

    /// Returns the places of the statement with this ID, under all its names.
    fn places_of(&self, id: u64) -> SmallVec<[u32; 2]> {
        let all = self.ids.iter_hash(spread(id)).copied();
        all.filter(|&place| self.entries[place as usize].1.id() == id).collect()
    }

    /// Returns the first of these places.
    fn first_of(&self, id: u64) -> Option<u32> {
        self.ids.find(spread(id), |&place| self.entries[place as usize].1.id() == id).copied()
    }

    fn insert(&mut self, name: Name, statement: ClientStatement) {
        let place = u32::try_from(self.entries.len()).expect("names are counted");
        if self.entries.len() == self.entries.capacity() {
            // The memory of clients with many statements matters more than that of a copy.
            self.entries.reserve_exact(4 + self.entries.len() / 4);
        }
        self.entries.push((name, statement));
        self.list(place);
    }

    /// Takes out the statement at a place, to which the last one moves.
    fn remove(&mut self, place: u32) -> (Name, ClientStatement) {
        let moved = u32::try_from(self.entries.len() - 1).expect("names are counted");
        self.unlist(place);
        if place != moved {
            self.unlist(moved);
        }
        let removed = self.entries.swap_remove(place as usize);
        if place != moved {
            self.list(place);
        }
        removed
    }

    /// Puts a place into both tables.
    fn list(&mut self, place: u32) {
        let Self { entries, names, ids, seed } = self;
        let name_of = |&place: &u32| seed.hash_one(entries[place as usize].0.as_slice());
        let id_of = |&place: &u32| spread(entries[place as usize].1.id());
        names.insert_unique(name_of(&place), place, name_of);
        ids.insert_unique(id_of(&place), place, id_of);
    }

    /// Takes a place out of both tables.
    fn unlist(&mut self, place: u32) {
        let (name, statement) = &self.entries[place as usize];
        let (by_name, by_id) = (self.hash_name(name), spread(statement.id()));
        for (table, hash) in [(&mut self.names, by_name), (&mut self.ids, by_id)] {
            let listed = table.find_entry(hash, |&it| it == place);
            listed.expect("each place is in both tables").remove();
        }
    }
}

impl NamedStatements {
    /// Returns the statement with this name.
    #[inline]
    pub(crate) fn get(&mut self, name: &[u8]) -> Option<&mut ClientStatement> {
        let name = key(name);
        let map = self.map.as_mut()?;
        let last = map.entries.get(self.last as usize);
        if last.is_none_or(|(key, _)| key.as_slice() != name) {
            self.last = map.place_of(name)?;
        }
        map.entries.get_mut(self.last as usize).map(|(_, statement)| statement)
    }

    /// True if the client has a statement with this name.
    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.map.as_ref().is_some_and(|map| map.place_of(key(name)).is_some())
    }

    /// Adds a statement under a name that is free.
    pub(crate) fn insert(&mut self, name: Name, statement: ClientStatement) {
        let name = if name.len() > MAX_NAME { Name::from_slice(key(&name)) } else { name };
        self.bytes += Self::cost(&name, &statement);
        let map = self.map.get_or_insert_default();
        assert!(map.place_of(&name).is_none(), "a name is given once");
        map.insert(name, statement);
    }

    /// Takes a statement out.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<ClientStatement> {
        let map = self.map.as_mut()?;
        let place = map.place_of(key(name))?;
        let (key, statement) = map.remove(place);
        let bytes = Self::cost(&key, &statement);
        self.bytes = self.bytes.checked_sub(bytes).expect("its bytes were counted");
        if map.entries.is_empty() {
            self.map = None;
        }
        Some(statement)
    }

    /// Makes the statement of this name another one, whose text is as long.
    pub(crate) fn replace(&mut self, name: &[u8], held: ClientRef) {
        let Some(map) = &mut self.map else { return };
        let Some(place) = map.place_of(key(name)) else { return };
        map.unlist(place);
        map.entries[place as usize].1.hold(held);
        map.list(place);
    }

    /// Takes all out, with their names.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Iterates over the statements, with their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Name, ClientStatement)> {
        self.map.iter().flat_map(|map| map.entries.iter())
    }

    /// Returns the name with this mark that the client gave to the statement with this ID.
    pub(crate) fn marked(&self, id: u64, wanted: u32) -> Option<&[u8]> {
        let map = self.map.as_ref()?;
        let places = map.places_of(id);
        let mut names = places.into_iter().map(|place| map.entries[place as usize].0.as_slice());
        names.find(|name| mark(name) == wanted)
    }

    /// Returns the statement with this ID, under the first of its names.
    pub(crate) fn by_id(&mut self, id: u64) -> Option<&mut ClientStatement> {
        let map = self.map.as_mut()?;
        let place = map.first_of(id)?;
        map.entries.get_mut(place as usize).map(|(_, statement)| statement)
    }

    /// Calls `look` with the statements that have this ID, under all their names.
    pub(crate) fn for_all_of(
        &mut self,
        id: u64,
        mut look: impl FnMut(&[u8], &mut ClientStatement),
    ) {
        let Some(map) = &mut self.map else { return };
        for place in map.places_of(id) {
            let (name, statement) = &mut map.entries[place as usize];
            look(name, statement);
        }
    }

    /// Returns the number of statements.
    pub(crate) fn len(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.entries.len())
    }

    /// Returns the bytes that count for the client: its names, and the texts that they refer to.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if the count of bytes is that of the statements in the map, and each is found.
    pub(crate) fn adds_up(&self) -> bool {
        let found = |map: &Map| {
            let mut all = (0..).zip(&map.entries);
            let listed = |(place, (name, own)): (u32, &(Name, ClientStatement))| {
                map.place_of(name) == Some(place) && map.places_of(own.id()).contains(&place)
            };
            let count = map.entries.len();
            map.names.len() == count && map.ids.len() == count && all.all(listed)
        };
        let bytes = self.iter().map(|(name, statement)| Self::cost(name, statement)).sum::<usize>();
        self.bytes == bytes && self.map.as_deref().is_none_or(found)
    }

    fn cost(name: &Name, statement: &ClientStatement) -> usize {
        size_of::<(Name, ClientStatement)>()
            + name.len()
            + statement.held.cached().statement.tail().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::ids::EnvId;
    use crate::statements::of_core::CoreStatements;
    use crate::statements::registry::Registry;
    use crate::statements::statement::{Head, Identity};
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
            assert_eq!(found.held.cached().statement.tail(), name);
        }
        assert!(names.remove(b"a").is_some());
        assert!(names.get(b"a").is_none());
        assert_eq!(names.get(b"b").unwrap().held.cached().statement.tail(), b"b");
        names.remove(b"b");
        names.remove(b"a-name-longer-than-fits-inline");
        assert_eq!((names.len(), names.bytes()), (0, 0));
    }

    /// A large program has statements by the hundred thousand.
    #[test]
    fn a_statement_takes_few_bytes_beside_its_text() {
        let entry = size_of::<(Name, ClientStatement)>();
        assert_eq!((size_of::<Head>(), size_of::<CachedStatement>(), entry), (120, 72, 64));
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
