//! The prepared statements that a server has, by the server's own numbers.
//!
//! They stay when clients close theirs, for the next client that prepares the same text. Their
//! number is bounded; the least recently used one goes for a new one.

use std::collections::HashMap;
use std::sync::Arc;

use crate::statement::{CopyId, Draft, Held, Statement};

/// The statements of a server.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// By addresses, which no client chooses: their hash needs no random seed.
    there: HashMap<Key, Slot, foldhash::fast::FixedState>,
    /// The length of their texts.
    bytes: usize,
    /// Whether the server goes by the types of a statement's first execution for good, as MySQL
    /// does since 8.0.22.
    pub(crate) fixes_types: bool,
    /// The number of uses so far.
    uses: u64,
    /// The text that the server prepares.
    pub(crate) pending: Option<Pending>,
    /// The number that the server gave last.
    last: Option<u32>,
    /// The execution behind a statement under way.
    pub(crate) guess: Option<Guess>,
    /// How often a number was foretold wrongly.
    wrong: u8,
}

/// The times that a number may be foretold wrongly before that ends.
const WRONG_MAX: u8 = 3;

/// An execution that was sent behind its statement, with a foretold number.
#[derive(Debug)]
pub(crate) struct Guess {
    /// The command, as it was sent.
    pub(crate) sent: Vec<u8>,
    /// The fate of the statement.
    pub(crate) outcome: Outcome,
}

/// The fate of a statement whose number was foretold.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Its number is as foretold, or is not known yet.
    Right,
    /// It has another number.
    Wrong(u32),
    /// The server has not prepared it: the payload of its error.
    Refused(Box<[u8]>),
}

/// A text that a server prepares.
#[derive(Debug)]
pub(crate) enum Pending {
    /// A client's.
    New(Draft),
    /// A statement that a client has, which of its copies, and the client's number.
    Again(Arc<Statement>, CopyId, u32),
}

/// The place of a statement in memory, and which of its copies it is. Whoever has the statement
/// keeps it in its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key(usize, CopyId);

impl Key {
    fn of(statement: &Arc<Statement>, copy: CopyId) -> Self {
        Self(Arc::as_ptr(statement).addr(), copy)
    }
}

/// A statement that a server has.
#[derive(Debug)]
pub(crate) struct Slot {
    statement: Arc<Statement>,
    /// The server's number.
    pub(crate) id: u32,
    /// The types that the server got last.
    pub(crate) types: Option<Arc<[u8]>>,
    /// The number of the client's statement that has a cursor here, or parts of a value.
    pub(crate) owner: Option<u32>,
    /// Whether it has been executed with a cursor.
    pub(crate) has_had_cursor: bool,
    /// The use at which it was used last.
    used: u64,
}

impl Slots {
    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.there.len()
    }

    /// Returns how many there are, and the length of their texts.
    pub(crate) fn size(&self) -> (u32, u64) {
        (u32::try_from(self.len()).unwrap_or(u32::MAX), self.bytes as u64)
    }

    /// Returns the statements that the server has.
    pub(crate) fn statements(&self) -> impl Iterator<Item = &Arc<Statement>> {
        self.there.values().map(|slot| &slot.statement)
    }

    /// Whether there is room for a text, if there may be so many of so many bytes.
    pub(crate) fn has_room(&self, text: usize, (count, bytes): (usize, usize)) -> bool {
        self.there.len() < count && self.bytes.saturating_add(text) <= bytes
    }

    fn take(&mut self, key: &Key) -> Option<u32> {
        let slot = self.there.remove(key)?;
        self.bytes -= slot.statement.text.len();
        Some(slot.id)
    }

    /// Returns the slot of a client's statement.
    pub(crate) fn get(&mut self, held: &Held) -> Option<&mut Slot> {
        self.uses += 1;
        let slot = self.there.get_mut(&Key::of(&held.statement, held.copy.clone()))?;
        slot.used = self.uses;
        Some(slot)
    }

    /// Returns which copy of a statement a client's has to be. Two statements of a client may have
    /// the same text, and cursors and values of their own; and where types are fixed, clients whose
    /// first executions have others need others.
    pub(crate) fn copy_for(&mut self, held: &Held) -> CopyId {
        let types = held.first_types.clone().filter(|_| self.fixes_types);
        let copy = |owner| CopyId { owner, types: types.clone() };
        if types.is_some() && held.copy.types.is_none() {
            self.fix_types(held, copy(held.copy.owner));
        }
        let slot = |owner| self.there.get(&Key::of(&held.statement, copy(owner)));
        let is_free = |slot: &Slot| slot.owner.is_none_or(|owner| owner == held.number);
        match slot(held.copy.owner) {
            Some(its) if is_free(its) => copy(held.copy.owner),
            _ if slot(0).is_none_or(is_free) => copy(0),
            _ => copy(held.number),
        }
    }

    /// Has the types of a client's first execution stay those of its copy, if nobody has executed
    /// that yet.
    fn fix_types(&mut self, held: &Held, copy: CopyId) {
        let (untyped, typed) = (held.copy.clone(), Key::of(&held.statement, copy));
        let untyped = Key::of(&held.statement, untyped);
        // A copy with parts of values is that of another statement of the client.
        let is_others = |slot: &Slot| slot.owner.is_some_and(|owner| owner != held.number);
        if self.there.contains_key(&typed) || self.there.get(&untyped).is_some_and(is_others) {
            return;
        }
        if let Some(slot) = self.there.remove(&untyped) {
            self.there.insert(typed, slot);
        }
    }

    /// Adds a statement that the server has prepared. Returns the number of the one that it
    /// replaces.
    pub(crate) fn insert(
        &mut self,
        statement: Arc<Statement>,
        copy: CopyId,
        id: u32,
    ) -> Option<u32> {
        self.uses += 1;
        let key = Key::of(&statement, copy);
        let old = self.take(&key);
        self.bytes += statement.text.len();
        let slot = Slot {
            statement,
            id,
            types: None,
            owner: None,
            has_had_cursor: false,
            used: self.uses,
        };
        self.there.insert(key, slot);
        old
    }

    /// Adds a statement that the server prepares now, with the number that it will have. Both MySQL
    /// and MariaDB count attempts. Returns false if the number is not known.
    pub(crate) fn foretell(&mut self, statement: &Arc<Statement>, copy: CopyId) -> bool {
        let next = self.last.and_then(|last| last.checked_add(1));
        let Some(id) = next.filter(|_| self.wrong < WRONG_MAX) else { return false };
        self.insert(statement.clone(), copy, id);
        true
    }

    /// Notes the number of a statement that the server has prepared again.
    pub(crate) fn confirm(&mut self, statement: Arc<Statement>, copy: CopyId, id: u32) {
        self.last = Some(id);
        let Some(slot) = self.there.get_mut(&Key::of(&statement, copy.clone())) else {
            self.insert(statement, copy, id);
            return;
        };
        if slot.id != id {
            slot.id = id;
            self.wrong += 1;
            if let Some(guess) = &mut self.guess {
                guess.outcome = Outcome::Wrong(id);
            }
        }
    }

    /// Notes the number of a statement that the server has prepared.
    pub(crate) fn counts(&mut self, id: u32) {
        self.last = Some(id);
    }

    /// Notes that the server has not prepared a statement. It has counted the attempt.
    pub(crate) fn fails(&mut self) -> Option<Pending> {
        self.last = self.last.and_then(|last| last.checked_add(1));
        let pending = self.pending.take();
        if let Some(Pending::Again(statement, copy, _)) = &pending {
            self.take(&Key::of(statement, copy.clone()));
        }
        pending
    }

    /// Takes out a statement. Returns its number.
    pub(crate) fn remove(&mut self, held: &Held) -> Option<u32> {
        self.take(&Key::of(&held.statement, held.copy.clone()))
    }

    /// Takes out the one that was used least recently. Returns its number; `None` if all are
    /// needed.
    pub(crate) fn evict(&mut self) -> Option<u32> {
        let can_go = |slot: &Slot| slot.owner.is_none() && slot.statement.is_whole;
        let going = self.there.iter().filter(|(_, slot)| can_go(slot));
        let key = going.min_by_key(|(_, slot)| slot.used)?.0.clone();
        self.take(&key)
    }

    /// Makes each statement another one.
    pub(crate) fn replace(&mut self, mut with: impl FnMut(&Arc<Statement>) -> Arc<Statement>) {
        let moved = self.there.drain().map(|(Key(_, copy), mut slot)| {
            slot.statement = with(&slot.statement);
            (Key::of(&slot.statement, copy), slot)
        });
        self.there = moved.collect();
    }

    /// Forgets all: the server has closed them.
    pub(crate) fn clear(&mut self) {
        self.there.clear();
        self.bytes = 0;
        self.pending = None;
    }
}

#[cfg(test)]
mod tests {
    use refrain_pool::ids::PoolId;

    use super::*;
    use crate::definitions::Moment;
    use crate::registry::Registry;
    use crate::settings::Settings;
    use crate::statement::Statements;
    use crate::text::Facts;

    const LONG: &[u8] = &[8, 0];
    const STRING: &[u8] = &[253, 0];

    /// Makes two clients' statements of one text, and a server that has prepared it.
    fn prepared(fixes_types: bool) -> (Slots, [Statements; 2]) {
        let (text, facts, since) = (b"SELECT ?"[..].into(), Facts::default(), Moment::default());
        let draft = Draft { text, is_whole: true, facts, since };
        let statement = Registry::default().share(PoolId::new(0, 0), &Settings::default(), draft);
        let mut slots = Slots { fixes_types, ..Slots::default() };
        let mut clients = [Statements::default(), Statements::default()];
        clients.iter_mut().for_each(|client| {
            client.add(statement.clone(), 1);
        });
        slots.insert(statement, CopyId::default(), 7);
        (slots, clients)
    }

    /// Executes a client's statement with types. Returns the number on the server, if it is there.
    fn execute(slots: &mut Slots, client: &mut Statements, types: &[u8]) -> Option<u32> {
        client.edit(1, |held| {
            held.types = Some(types.into());
            if held.first_types.is_none() {
                held.first_types.clone_from(&held.types);
            }
            held.copy = slots.copy_for(held);
        });
        slots.get(client.get(1)?).map(|slot| slot.id)
    }

    #[test]
    fn types_are_the_clients_where_the_server_does_not_keep_them() {
        let (mut slots, [mut first, mut second]) = prepared(false);
        assert_eq!(execute(&mut slots, &mut first, LONG), Some(7));
        assert_eq!(execute(&mut slots, &mut second, STRING), Some(7));
    }

    #[test]
    fn clients_of_other_types_have_other_copies_where_the_first_ones_stay() {
        let (mut slots, [mut first, mut second]) = prepared(true);
        assert_eq!(execute(&mut slots, &mut first, LONG), Some(7), "nobody has executed it");
        assert_eq!(execute(&mut slots, &mut second, STRING), None, "it has to be prepared");
        let held = second.get(1).expect("it was added");
        assert_eq!(slots.insert(held.statement.clone(), held.copy.clone(), 8), None);
        assert_eq!(execute(&mut slots, &mut second, LONG), Some(8), "the first types count");
        assert_eq!(execute(&mut slots, &mut first, STRING), Some(7));
        assert_eq!(slots.len(), 2);
    }

    #[test]
    fn a_copy_with_parts_of_values_stays_with_its_statement() {
        let (mut slots, [mut client, _]) = prepared(true);
        let statement = client.get(1).expect("it was added").statement.clone();
        client.add(statement, 1);
        client.edit(1, |held| held.copy = slots.copy_for(held));
        slots.get(client.get(1).expect("it is there")).expect("it is prepared").owner = Some(1);
        client.edit(2, |held| {
            held.first_types = Some(LONG.into());
            held.copy = slots.copy_for(held);
        });
        assert!(slots.get(client.get(2).expect("it is there")).is_none(), "it needs its own");
        assert_eq!(execute(&mut slots, &mut client, STRING), Some(7), "the parts are there");
    }
}
