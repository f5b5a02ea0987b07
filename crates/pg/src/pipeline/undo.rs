//! Undo records: the changes to take back when a server refuses or skips a message.
//!
//! The client's map of statements and the server's set change when Refrain sends a message. The
//! message may yet fail, or the server may skip it because an earlier message failed: a Parse that
//! is refused leaves no statement behind (E1 to E3), and a Close that is skipped removes none (E22
//! to E24). So each change leaves a record under the number of its outstanding request: the client
//! keeps the records of its map, the server those of its set. A reply makes the records of its
//! request final; an error takes back the records of the requests that it struck off, newest first,
//! and no others.

use std::collections::VecDeque;

use crate::ground::name::Name;
use crate::pipeline::outstanding::{Failed, Seq};
use crate::statements::of_client::{ByName, ClientStatement};
use crate::statements::of_server::{ServerStatement, Unnamed};

/// A change to a client's map, with all that is needed to take it back.
#[derive(Debug)]
pub(crate) enum ClientUndo {
    /// The map got this name.
    Named(Name),
    /// The map lost this name.
    Closed(Name, ClientStatement),
    /// The unnamed statement was another one before.
    Unnamed(Option<ClientStatement>),
    /// The server has another statement under this name than before, or none: this was there
    /// before.
    Lent(Name, ByName),
}

/// A change to a server's set, with all that is needed to take it back.
#[derive(Debug)]
pub(crate) enum ServerUndo {
    /// The set got this statement.
    Prepared(u64),
    /// The set lost this statement.
    Evicted(ServerStatement),
    /// The unnamed statement was another one before.
    Unnamed(Unnamed),
}

/// A change to take back.
#[derive(Debug)]
pub(crate) struct Reverted<U> {
    /// The change.
    pub(crate) undo: U,
    /// Whether the message of the change failed; if not, the server skipped it.
    pub(crate) failed: bool,
}

/// All records of one kind that are not final, oldest first.
#[derive(Debug)]
pub(crate) struct Undos<U>(VecDeque<(Seq, U)>);

impl<U> Default for Undos<U> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<U> Undos<U> {
    /// Records a change by the message of outstanding request `seq`.
    pub(crate) fn push(&mut self, seq: Seq, undo: U) {
        self.0.push_back((seq, undo));
    }

    /// Makes the changes final of all requests up to and including `seq`.
    #[inline]
    pub(crate) fn settle(&mut self, seq: Seq) {
        while self.0.front().is_some_and(|(s, _)| *s <= seq) {
            self.0.pop_front();
        }
    }

    /// Makes the changes by request `seq` final, and those of no other request.
    pub(crate) fn confirm(&mut self, seq: Seq) {
        self.0.retain(|(of, _)| *of != seq);
    }

    /// Takes out the changes of the requests that an error struck off, newest first.
    pub(crate) fn fail(&mut self, failed: &Failed) -> impl Iterator<Item = Reverted<U>> + use<U> {
        let end = self.0.partition_point(|(seq, _)| *seq < failed.until.max(failed.seq + 1));
        let first = failed.seq;
        let struck: Vec<_> = self.0.drain(..end).collect();
        struck.into_iter().rev().map(move |(seq, undo)| Reverted { undo, failed: seq == first })
    }

    /// Calls `keep` with each change that is not final, oldest first, and keeps those for which it
    /// returns true.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut U) -> bool) {
        self.0.retain_mut(|(_, undo)| keep(undo));
    }

    /// Returns all changes that are not final, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &U> {
        self.0.iter().map(|(_, undo)| undo)
    }

    /// True if every change is final.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::outstanding::{OutstandingRequest, ReplyAction, RequestKind, Syncs};

    fn failed(seq: Seq, until: Seq) -> Failed {
        let entry = OutstandingRequest::new(RequestKind::Parse, ReplyAction::Forward);
        Failed { entry, seq, until, segments: (1, 1), open: false, syncs: Syncs::Sure }
    }

    #[test]
    fn an_error_takes_back_what_it_struck_off_newest_first_and_no_more() {
        let mut undos = Undos::default();
        for seq in [1, 2, 2, 3, 7] {
            undos.push(seq, seq);
        }
        undos.settle(1);
        undos.push(8, 8);
        undos.confirm(8);
        let reverted: Vec<_> = undos.fail(&failed(2, 4)).map(|r| (r.undo, r.failed)).collect();
        assert_eq!(reverted, [(3, false), (2, true), (2, true)]);
        assert!(!undos.is_empty(), "a later segment is not touched");
        undos.settle(7);
        assert!(undos.is_empty());
    }

    #[test]
    fn an_error_at_sync_takes_nothing_back_but_its_own() {
        let mut undos = Undos::default();
        undos.push(5, ());
        assert_eq!(undos.fail(&failed(4, 4)).count(), 0);
    }
}
