//! Sequences.
//!
//! A sequence is a table of one row, with the columns that PostgreSQL's has; its CREATE statement
//! has the rest in a comment. The functions write to it in the transaction of the statement that
//! calls them, so the right to write is needed, and a number that was committed is never given
//! again. As in the server, a number that a transaction has taken is not given again when the
//! transaction is rolled back: the process remembers it ([`Numbers`]) until it ends.
//!
//! The row's number is a random one and tells a sequence from an earlier one of the same name.
//! `log_cnt` counts changes: the row is newer than the memory if another process has counted on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::arrays::json_string;
use crate::failure::Failure;
use crate::types::Type;

/// The beginning of the comment that makes a table a sequence.
pub(crate) const MARK: &str = "/*refrain sequence ";

/// The functions that take numbers from a sequence, or set them: of one that CREATE SEQUENCE has
/// made, and of a table's key.
pub(crate) const NEXT: &str = "refrain_nextval";
pub(crate) const SET: &str = "refrain_setval";
pub(crate) const NEXT_KEY: &str = "refrain_next_key";
pub(crate) const SET_KEY: &str = "refrain_set_key";

/// The options of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) is: Type,
    pub(crate) start: i64,
    pub(crate) increment: i64,
    pub(crate) minimum: i64,
    pub(crate) maximum: i64,
    pub(crate) cache: i64,
    pub(crate) cycle: bool,
    /// The table and the column with which it is dropped.
    pub(crate) owner: Option<(String, String)>,
}

impl Sequence {
    /// Returns the comment.
    pub(crate) fn mark(&self) -> String {
        let owner = self.owner.as_ref().map_or(String::new(), |(table, column)| {
            format!(" {}.{}", json_string(table), json_string(column))
        });
        let Self { start, increment, minimum, maximum, cache, .. } = self;
        let (is, cycle) = (self.is.oid(), u8::from(self.cycle));
        format!("{MARK}{is} {start} {increment} {minimum} {maximum} {cache} {cycle}{owner}*/")
    }

    /// Reads the options from a CREATE statement; none if it makes no sequence.
    pub(crate) fn read(sql: &str) -> Option<Self> {
        let (_, rest) = sql.split_once(MARK)?;
        let (inside, _) = rest.split_once("*/")?;
        let mut words = inside.splitn(8, ' ');
        let mut number = || words.next()?.parse::<i64>().ok();
        Some(Self {
            is: Type::of_oid(u32::try_from(number()?).ok()?)?,
            start: number()?,
            increment: number()?,
            minimum: number()?,
            maximum: number()?,
            cache: number()?,
            cycle: number()? != 0,
            owner: words.next().and_then(|owner| {
                let (table, column) = owner.split_once("\".\"")?;
                let plain = |text: &str| text.replace("\\\"", "\"").replace("\\\\", "\\");
                Some((plain(table.strip_prefix('"')?), plain(column.strip_suffix('"')?)))
            }),
        })
    }

    /// Returns the options as JSON, for the catalog.
    pub(crate) fn json(&self) -> String {
        let (table, column) = self.owner.clone().unwrap_or_default();
        let Self { start, increment, minimum, maximum, cache, .. } = self;
        format!(
            "[{},{start},{increment},{minimum},{maximum},{cache},{},{},{}]",
            self.is.oid(),
            u8::from(self.cycle),
            json_string(&table),
            json_string(&column)
        )
    }

    /// Returns the number behind `last`.
    pub(crate) fn next(&self, name: &str, last: i64, is_called: bool) -> Result<i64, Failure> {
        if !is_called {
            return Ok(last);
        }
        let next = last.checked_add(self.increment);
        let next = next.filter(|next| (self.minimum..=self.maximum).contains(next));
        let up = self.increment > 0;
        let (word, bound) = if up { ("maximum", self.maximum) } else { ("minimum", self.minimum) };
        match next {
            Some(next) => Ok(next),
            None if self.cycle => Ok(if up { self.minimum } else { self.maximum }),
            None => Err(Failure::new(
                "2200H",
                format!("nextval: reached {word} value of sequence \"{name}\" ({bound})"),
            )),
        }
    }
}

/// The state of a sequence.
#[derive(Clone, Copy)]
pub(crate) struct Given {
    pub(crate) last: i64,
    pub(crate) is_called: bool,
    /// The number of changes.
    pub(crate) count: i64,
}

/// The states of sequences that this process has made.
#[derive(Default)]
pub(crate) struct Numbers(Mutex<HashMap<SequenceId, Given>>);

/// The most sequences that are remembered: without it, a rollback gives numbers back.
const REMEMBERED_MAX: usize = 65_536;

impl Numbers {
    /// Returns the newer of the remembered state and that of the file.
    pub(crate) fn newer(&self, id: &SequenceId, of_file: Given) -> Given {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied();
        known.filter(|known| known.count > of_file.count).unwrap_or(of_file)
    }

    pub(crate) fn set(&self, id: SequenceId, given: Given) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED_MAX && !all.contains_key(&id) {
            all.clear();
        }
        all.insert(id, given);
    }

    /// Forgets all states: VACUUM has given the rows other numbers, the same for each sequence.
    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A sequence: its name, and the number of its row. 0 is a table's own sequence, which SQLite
/// keeps.
pub(crate) type SequenceId = (String, i64);

/// The numbers that a session has got from sequences.
#[derive(Default)]
pub(crate) struct SessionSequences {
    /// The last number of each sequence; none if SQLite has generated it and not told.
    numbers: HashMap<SequenceId, Option<i64>>,
    last: Option<SequenceId>,
}

impl SessionSequences {
    /// Notes the number that a sequence has given.
    pub(crate) fn gave(&mut self, id: SequenceId, number: Option<i64>) {
        self.last = Some(id.clone());
        self.numbers.insert(id, number);
    }

    /// Notes the number to which a sequence was set.
    pub(crate) fn was_set(&mut self, id: SequenceId, number: i64) {
        self.numbers.insert(id, Some(number));
    }

    /// Notes that rows were written whose keys are not known.
    pub(crate) fn copied(&mut self) {
        self.numbers.iter_mut().filter(|((_, row), _)| *row == 0).for_each(|(_, it)| *it = None);
        self.last.iter_mut().for_each(|last| *last = (String::new(), 0));
        self.numbers.insert((String::new(), 0), None);
    }

    /// Returns the number of a sequence; none if there is none, or none that is known.
    pub(crate) fn number(&self, id: &SequenceId) -> Option<Option<i64>> {
        self.numbers.get(id).copied()
    }

    /// Returns the sequence that gave the last number.
    pub(crate) fn last(&self) -> Option<SequenceId> {
        self.last.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_they_are_written() {
        let sequence = Sequence {
            is: Type::Int4,
            start: -5,
            increment: 2,
            minimum: -5,
            maximum: 0,
            cache: 1,
            cycle: true,
            owner: Some(("a \"b\".c".to_owned(), "d e".to_owned())),
        };
        assert_eq!(Sequence::read(&sequence.mark()), Some(sequence.clone()));
        let plain = Sequence { owner: None, ..sequence.clone() };
        assert_eq!(Sequence::read(&format!("CREATE TABLE s ({}a)", plain.mark())), Some(plain));
        assert_eq!(Sequence::read("CREATE TABLE s (a)"), None);
        let next = |last| sequence.next("s", last, true).expect("a number");
        assert_eq!([next(-5), next(-1), next(0)], [-3, -5, -5]);
        let once = Sequence { cycle: false, ..sequence };
        assert_eq!(once.next("s", -1, true).map_err(|failure| failure.sqlstate), Err("2200H"));
        assert_eq!(once.next("s", -5, false), Ok(-5));
    }
}
