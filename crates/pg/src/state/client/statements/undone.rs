//! Undoing what a server refused or skipped of the changes to a client's prepared statements.
//!
//! An undo record of a later segment may say what was there before that segment: where an earlier
//! change is taken back, the record is put right too.

use crate::ground::name::Name;
use crate::pipeline::outstanding::Failed;
use crate::pipeline::undo::{ClientUndo, Reverted};
use crate::state::client::statements::ClientStatements;
use crate::statements::of_client::{ByName, ClientStatement};

/// The outcome of an undo.
#[derive(Debug, Default)]
pub(crate) struct Undone {
    /// The number of changes that were taken back.
    pub(crate) changes: u64,
    /// Whether a statement is there again that the server was lent, to be dropped.
    pub(crate) lent: bool,
}

impl ClientStatements {
    /// Undoes the changes by messages that failed or were skipped, newest first (E1, E2, E23).
    pub(crate) fn undo(&mut self, failed: &Failed) -> Undone {
        let mut undone = Undone::default();
        let (mut never, mut unlent, mut before) = (Vec::new(), Vec::new(), None);
        let mut kept = Vec::new();
        for Reverted { undo, failed: own } in self.undos.fail(failed) {
            undone.changes += 1;
            match undo {
                ClientUndo::Named(name) => {
                    drop(self.named.remove(&name));
                    // What was lent under the name was this statement, not one from before it.
                    unlent.retain(|(later, _)| *later != name);
                    never.push(name);
                }
                ClientUndo::Closed(name, old) => {
                    if !self.named.contains(&name) {
                        self.named.insert(name.clone(), old);
                        kept.push(name);
                    }
                }
                // The statement that had the name is closed before the Parse that failed.
                ClientUndo::Lent(name, before) => {
                    let lent = if own { ByName::Nothing } else { before };
                    unlent.retain(|(later, _)| *later != name);
                    unlent.push((name, lent));
                }
                // PostgreSQL drops the old unnamed statement before it looks at the new one.
                ClientUndo::Unnamed(old) => before = Some(old.filter(|_| !own)),
            }
        }
        if let Some(unnamed) = before {
            self.undo_unnamed(failed, unnamed);
        }
        for (name, lent) in unlent {
            self.undo_lent(&name, lent);
        }
        // Undo records of later segments may hold such a statement: it was not there when they
        // closed it.
        if !never.is_empty() {
            self.undos.retain(
                |undo| !matches!(undo, ClientUndo::Closed(name, _) if never.contains(name)),
            );
        }
        let there = |own: &mut ClientStatement| own.lent() != ByName::Nothing;
        undone.lent = kept.iter().any(|name| self.named.get(name).is_some_and(there));
        undone
    }

    /// Notes what the server has under a client's name since a change of that was taken back: in
    /// the undo record of the first later segment that has changed it, or else in the map.
    fn undo_lent(&mut self, name: &Name, lent: ByName) {
        let mut lent = Some(lent);
        self.undos.retain(|undo| {
            match (undo, lent) {
                (ClientUndo::Lent(later, before), Some(now)) if later == name => {
                    *before = now;
                    lent = None;
                }
                (ClientUndo::Closed(later, old), Some(now)) if later == name => {
                    old.lend(now);
                    lent = None;
                }
                _ => {}
            }
            true
        });
        if let Some(lent) = lent
            && let Some(own) = self.named.get(name)
        {
            own.lend(lent);
        }
    }

    /// Brings the unnamed statement back that was there before: as the current one, or in the undo
    /// record of the first later segment that has changed it.
    fn undo_unnamed(&mut self, failed: &Failed, before: Option<ClientStatement>) {
        let mut before = Some(before);
        if failed.covers(self.unnamed_changed) {
            self.unnamed = before.take().flatten();
            self.unnamed_runs_named = false;
        }
        self.undos.retain(|undo| {
            if let ClientUndo::Unnamed(old) = undo
                && let Some(before) = before.take()
            {
                *old = before;
            }
            true
        });
    }
}
