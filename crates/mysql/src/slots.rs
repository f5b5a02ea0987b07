//! The prepared statements that a server has, by the server's own numbers.
//!
//! They stay when clients close theirs, for the next client that prepares the same text. Their
//! number is bounded; the least recently used one goes for a new one.

use std::collections::HashMap;
use std::sync::Arc;

use crate::statement::{Draft, Held, Statement};

/// The statements of a server.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    there: HashMap<Key, Slot>,
    /// The length of their texts.
    bytes: usize,
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
    Again(Arc<Statement>, u32, u32),
}

/// The place of a statement in memory, and which of its copies it is. Whoever has the statement
/// keeps it in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key(usize, u32);

impl Key {
    fn of(statement: &Arc<Statement>, copy: u32) -> Self {
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
    /// The use at which it was used last.
    used: u64,
}

impl Slots {
    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.there.len()
    }

    /// Whether there is room for a text, if there may be so many of so many bytes.
    pub(crate) fn has_room(&self, text: usize, (count, bytes): (usize, usize)) -> bool {
        self.there.len() < count && self.bytes.saturating_add(text) <= bytes
    }

    fn take(&mut self, key: Key) -> Option<u32> {
        let slot = self.there.remove(&key)?;
        self.bytes -= slot.statement.text.len();
        Some(slot.id)
    }

    /// Returns the slot of a client's statement.
    pub(crate) fn get(&mut self, held: &Held) -> Option<&mut Slot> {
        self.uses += 1;
        let slot = self.there.get_mut(&Key::of(&held.statement, held.copy))?;
        slot.used = self.uses;
        Some(slot)
    }

    /// Returns which copy of a statement a client's has to be. Two statements of a client may have
    /// the same text, and cursors and values of their own.
    pub(crate) fn copy_for(&self, held: &Held) -> u32 {
        let slot = |copy| self.there.get(&Key::of(&held.statement, copy));
        let is_free = |slot: &Slot| slot.owner.is_none_or(|owner| owner == held.number);
        match slot(held.copy) {
            Some(its) if is_free(its) => held.copy,
            _ if slot(0).is_none_or(is_free) => 0,
            _ => held.number,
        }
    }

    /// Adds a statement that the server has prepared. Returns the number of the one that it
    /// replaces.
    pub(crate) fn insert(&mut self, statement: Arc<Statement>, copy: u32, id: u32) -> Option<u32> {
        self.uses += 1;
        let key = Key::of(&statement, copy);
        let old = self.take(key);
        self.bytes += statement.text.len();
        let slot = Slot { statement, id, types: None, owner: None, used: self.uses };
        self.there.insert(key, slot);
        old
    }

    /// Adds a statement that the server prepares now, with the number that it will have. Both MySQL
    /// and MariaDB count attempts. Returns false if the number is not known.
    pub(crate) fn foretell(&mut self, statement: &Arc<Statement>, copy: u32) -> bool {
        let next = self.last.and_then(|last| last.checked_add(1));
        let Some(id) = next.filter(|_| self.wrong < WRONG_MAX) else { return false };
        self.insert(statement.clone(), copy, id);
        true
    }

    /// Notes the number of a statement that the server has prepared again.
    pub(crate) fn confirm(&mut self, statement: Arc<Statement>, copy: u32, id: u32) {
        self.last = Some(id);
        let Some(slot) = self.there.get_mut(&Key::of(&statement, copy)) else {
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
            self.take(Key::of(statement, *copy));
        }
        pending
    }

    /// Takes out a statement. Returns its number.
    pub(crate) fn remove(&mut self, held: &Held) -> Option<u32> {
        self.take(Key::of(&held.statement, held.copy))
    }

    /// Takes out the one that was used least recently. Returns its number; `None` if all are
    /// needed.
    pub(crate) fn evict(&mut self) -> Option<u32> {
        let can_go = |slot: &Slot| slot.owner.is_none() && slot.statement.is_whole;
        let going = self.there.iter().filter(|(_, slot)| can_go(slot));
        let (&key, _) = going.min_by_key(|(_, slot)| slot.used)?;
        self.take(key)
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
