//! Prepared statements, as clients have them.
//!
//! A client names its statements by numbers of its own, which only grow. What a statement is does
//! not depend on the client: statements of the same pool with the same text, prepared under
//! settings that read it alike, are one. Servers know it by other numbers (`slots`).

use std::sync::{Arc, OnceLock};

use refrain_pool::ids::PoolId;

use crate::definitions::Moment;
use crate::settings::Settings;
use crate::text::Facts;

/// A prepared statement.
#[derive(Debug)]
pub(crate) struct Statement {
    /// The number under which it is counted; 0 if it is counted with others.
    pub(crate) id: u64,
    pub(crate) pool: PoolId,
    /// The settings under which it is prepared, as far as they matter.
    pub(crate) environment: Settings,
    pub(crate) text: Box<[u8]>,
    /// Whether the text is all there. If not, no server but its own can have the statement.
    pub(crate) is_whole: bool,
    /// The effects that its execution may have.
    pub(crate) facts: Facts,
    /// The types of the parameters in its first execution.
    pub(crate) first_types: OnceLock<Arc<[u8]>>,
}

impl Statement {
    /// Returns types of the parameters, to be kept. Those of the first execution are shared by all
    /// clients that execute the statement alike, which are nearly all.
    pub(crate) fn types(&self, types: &[u8]) -> Arc<[u8]> {
        let first = self.first_types.get_or_init(|| types.into());
        if **first == *types { first.clone() } else { types.into() }
    }
}

/// A text that a server is asked to prepare.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) text: Box<[u8]>,
    pub(crate) is_whole: bool,
    pub(crate) facts: Facts,
    /// The moment at which the server gets it.
    pub(crate) since: Moment,
}

/// Which of several copies of a statement on a server is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CopyId {
    /// 0, or the number of the client's statement that has something of its own in it.
    pub(crate) owner: u32,
    /// The types of the parameters in its first execution, where a server goes by these for good.
    pub(crate) types: Option<Arc<[u8]>>,
}

/// A statement of a client.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) number: u32,
    pub(crate) statement: Arc<Statement>,
    /// The number of parameters.
    pub(crate) parameters: u16,
    /// The types of the parameters in the client's last execution.
    pub(crate) types: Option<Arc<[u8]>>,
    /// The types of the parameters in the client's first execution.
    pub(crate) first_types: Option<Arc<[u8]>>,
    /// The types before those of an execution whose reply has not come. A server that finds the
    /// execution malformed goes on with them.
    pub(crate) before: Option<Unread>,
    /// Whether the last execution is so long that no types can be put in.
    pub(crate) is_full: bool,
    /// Which of several copies of the statement on a server is the client's.
    pub(crate) copy: CopyId,
    /// Whether the server has a cursor open.
    pub(crate) has_cursor: bool,
    /// Whether the server has parts of a value.
    pub(crate) has_long_data: bool,
}

/// The types of a statement before an execution that has others.
#[derive(Debug)]
pub(crate) struct Unread(Option<Arc<[u8]>>);

impl Held {
    /// Takes the types of an execution.
    pub(crate) fn take_types(&mut self, types: Arc<[u8]>) {
        if self.first_types.is_none() {
            self.first_types = Some(types.clone());
        }
        self.before = Some(Unread(self.types.replace(types)));
    }

    /// Notes whether a server has read the types of the execution that had others.
    pub(crate) fn types_are_read(&mut self, are_read: bool) {
        let Some(Unread(types)) = self.before.take().filter(|_| !are_read) else { return };
        if types.is_none() {
            self.first_types = None;
        }
        self.types = types;
    }

    /// Whether the statement has something that no other server has.
    pub(crate) fn is_bound(&self) -> bool {
        self.has_cursor || self.has_long_data
    }
}

/// The last number that a client's statement may have. The one behind it means the statement that
/// was prepared last.
const LAST_NUMBER: u32 = u32::MAX - 1;

/// The statements of a client.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    /// The statements, by number.
    list: Vec<Held>,
    /// The number that was given last.
    last: u32,
    /// The statement that was prepared last, if that has succeeded.
    pub(crate) latest: Option<u32>,
    /// The length of their texts.
    bytes: usize,
    /// The number of statements that keep the server.
    bound: usize,
    /// The number of a statement that a server would not prepare again, and the error: the answer
    /// to the command that waits for it.
    pub(crate) refused: Option<(u32, Box<[u8]>)>,
}

impl Statements {
    /// Adds a statement. Returns its number.
    pub(crate) fn add(&mut self, statement: Arc<Statement>, parameters: u16) -> u32 {
        debug_assert!(self.last < LAST_NUMBER, "has_room() was asked before");
        let number = self.last.wrapping_add(1);
        self.last = number;
        self.latest = Some(number);
        let held = Held {
            number,
            statement,
            parameters,
            types: None,
            first_types: None,
            before: None,
            is_full: false,
            copy: CopyId::default(),
            has_cursor: false,
            has_long_data: false,
        };
        self.bytes += held.statement.text.len();
        self.list.push(held);
        number
    }

    /// Whether there is room for a text, and a number, if there may be so many of so many bytes.
    pub(crate) fn has_room(&self, text: usize, (count, bytes): (usize, usize)) -> bool {
        let has_numbers = self.last < LAST_NUMBER;
        has_numbers && self.list.len() < count && self.bytes.saturating_add(text) <= bytes
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.list.len()).unwrap_or(u32::MAX)
    }

    /// Whether the client keeps its server for one of them.
    pub(crate) fn keep(&self) -> bool {
        self.bound > 0
    }

    fn place(&self, number: u32) -> Option<usize> {
        self.list.binary_search_by_key(&number, |held| held.number).ok()
    }

    /// Returns a statement.
    pub(crate) fn get(&self, number: u32) -> Option<&Held> {
        self.list.get(self.place(number)?)
    }

    /// Changes a statement. Returns it.
    pub(crate) fn edit(&mut self, number: u32, change: impl FnOnce(&mut Held)) -> Option<&Held> {
        let place = self.place(number)?;
        let held = self.list.get_mut(place)?;
        let was_bound = held.is_bound();
        change(held);
        self.bound += usize::from(held.is_bound());
        self.bound -= usize::from(was_bound);
        Some(held)
    }

    /// Takes out a statement.
    pub(crate) fn remove(&mut self, number: u32) -> Option<Held> {
        let held = self.list.remove(self.place(number)?);
        self.bound -= usize::from(held.is_bound());
        self.bytes -= held.statement.text.len();
        Some(held)
    }

    /// Forgets them all. No number is given again.
    pub(crate) fn clear(&mut self) {
        *self = Self { last: self.last, ..Self::default() };
    }

    /// Makes each of them another one, by its statement.
    pub(crate) fn replace(&mut self, mut with: impl FnMut(&Arc<Statement>) -> Arc<Statement>) {
        for held in &mut self.list {
            held.statement = with(&held.statement);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_room_when_the_numbers_are_used_up() {
        let mut statements = Statements { last: LAST_NUMBER - 1, ..Statements::default() };
        assert!(statements.has_room(1, (1, 1)));
        statements.last = LAST_NUMBER;
        assert!(!statements.has_room(1, (1, 1)));
    }
}
