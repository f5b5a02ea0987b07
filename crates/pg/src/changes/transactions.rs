//! Transactions: which relations each transaction of a stream has changed.
//!
//! A transaction comes as a whole once it has been committed, or in parts while it is under way. A
//! part may be rolled back alone: then its relations count as changed all the same.

use std::collections::{BTreeSet, HashMap};

/// Most relations of a transaction. One that changes more counts as one that changes all.
const CHANGED_MAX: usize = 4096;

/// The prefix of messages that an event trigger writes, if there is one (`refrain publication
/// --ddl`): the transaction may have changed the schema, or rights.
const PREFIX: &[u8] = b"refrain";

/// The relations that a transaction has changed, and those that it has named.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) changed: BTreeSet<u32>,
    /// Whether it may have changed any other.
    pub(super) anything: bool,
    pub(super) named: Vec<u32>,
    /// Whether it may have changed the schema, or rights.
    pub(super) schema: bool,
    /// The relation that was changed last: most changes are of the same.
    last: Option<u32>,
}

impl Touched {
    /// Adds a relation that it has changed.
    pub(super) fn change(&mut self, oid: u32) {
        if self.last == Some(oid) {
            return;
        }
        self.last = Some(oid);
        if self.changed.len() < CHANGED_MAX {
            self.changed.insert(oid);
        } else {
            self.anything = true;
        }
    }

    /// Takes in a message that it has written into the log.
    pub(super) fn emit(&mut self, prefix: &[u8]) {
        self.schema |= prefix == PREFIX;
    }

    /// Whether it has changed nothing.
    pub(super) fn is_nothing(&self) -> bool {
        self.changed.is_empty() && !self.anything && !self.schema
    }
}

/// The transactions of a stream that have not come to their end.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    /// The one that comes as a whole.
    whole: Option<(u32, Touched)>,
    /// The one of which a part comes.
    part: Option<u32>,
    parts: HashMap<u32, Touched>,
}

impl Transactions {
    /// Whether a part of a transaction comes.
    pub(super) fn are_in_part(&self) -> bool {
        self.part.is_some()
    }

    /// Begins one that comes as a whole.
    pub(super) fn begin(&mut self, xid: u32) {
        self.whole = Some((xid, Touched::default()));
    }

    /// Ends it. `None` if none has begun.
    pub(super) fn commit(&mut self) -> Option<(u32, Touched)> {
        self.whole.take()
    }

    /// Begins a part of one.
    pub(super) fn begin_part(&mut self, xid: u32) {
        self.parts.entry(xid).or_default();
        self.part = Some(xid);
    }

    /// Ends the part.
    pub(super) fn end_part(&mut self) {
        self.part = None;
    }

    /// Ends one that came in parts.
    pub(super) fn end(&mut self, xid: u32) -> Touched {
        self.parts.remove(&xid).unwrap_or_default()
    }

    /// Returns the one whose changes come; `None` if there is none.
    pub(super) fn current(&mut self) -> Option<&mut Touched> {
        match self.part {
            Some(xid) => self.parts.get_mut(&xid),
            None => self.whole.as_mut().map(|(_, touched)| touched),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_belong_to_the_part_or_else_to_the_whole() {
        let mut transactions = Transactions::default();
        assert!(transactions.current().is_none() && transactions.commit().is_none());
        let change = |transactions: &mut Transactions, oid| {
            transactions.current().unwrap().change(oid);
        };
        transactions.begin_part(5);
        change(&mut transactions, 1);
        transactions.end_part();
        transactions.begin(6);
        change(&mut transactions, 2);
        let (xid, touched) = transactions.commit().unwrap();
        assert_eq!((xid, touched.changed), (6, [2].into()));
        transactions.begin_part(5);
        transactions.begin_part(7);
        change(&mut transactions, 3);
        transactions.begin_part(5);
        change(&mut transactions, 4);
        transactions.end_part();
        assert_eq!(transactions.end(5).changed, [1, 4].into());
        assert_eq!(transactions.end(7).changed, [3].into());
        assert!(transactions.end(7).is_nothing());
    }

    #[test]
    fn a_transaction_that_changes_many_relations_changes_all() {
        let mut touched = Touched::default();
        (0..CHANGED_MAX as u32).for_each(|oid| touched.change(oid));
        assert!(!touched.anything);
        touched.change(u32::MAX);
        assert!(touched.anything && touched.changed.len() == CHANGED_MAX);
    }
}
