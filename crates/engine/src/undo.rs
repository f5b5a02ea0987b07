//! What to take back when a server refuses or skips a message.
//!
//! The client's map and the server's set change when a message is sent; until its reply has come, the
//! change may have to be undone: the message failed, or was skipped because one before it failed
//! (E1 to E3, E22 to E24). Each change leaves a record here under the number of its ledger entry. A
//! reply makes the records of its entry final; an error takes back those of the entries it struck
//! off, newest first, and no others.

use std::collections::VecDeque;

use crate::ledger::{Failed, Seq};
use crate::names::{ClientStatement, Name, Names};
use crate::slots::{Slot, Unnamed};

/// A change, with what is needed to take it back.
#[derive(Debug)]
pub(crate) enum Undo {
    /// The client's map got this name.
    Named(Name),
    /// The client's map lost this name.
    Unnamed(Name, ClientStatement),
    /// The client's map lost everything.
    AllUnnamed(Names),
    /// The client's unnamed statement was another one before.
    ClientUnnamed(Option<ClientStatement>),
    /// The server's set got this statement.
    Prepared(u64),
    /// The server's set lost this slot.
    Evicted(Slot),
    /// The server's unnamed statement was another one before.
    ServerUnnamed(Unnamed),
}

/// A change to take back.
#[derive(Debug)]
pub(crate) struct Reverted {
    /// Which.
    pub(crate) undo: Undo,
    /// Whether its own message failed; if not, it was skipped.
    pub(crate) failed: bool,
}

/// All changes that are not final.
#[derive(Debug, Default)]
pub(crate) struct Undos(VecDeque<(Seq, Undo)>);

impl Undos {
    /// Records a change made by the message of ledger entry `seq`.
    pub(crate) fn push(&mut self, seq: Seq, undo: Undo) {
        self.0.push_back((seq, undo));
    }

    /// Makes the changes of entries up to and with `seq` final.
    #[inline]
    pub(crate) fn settle(&mut self, seq: Seq) {
        while self.0.front().is_some_and(|(s, _)| *s <= seq) {
            self.0.pop_front();
        }
    }

    /// Takes out the changes of the entries that an error struck off, newest first.
    pub(crate) fn fail(&mut self, failed: &Failed) -> impl Iterator<Item = Reverted> + use<> {
        let end = self.0.partition_point(|(seq, _)| *seq < failed.until.max(failed.seq + 1));
        let first = failed.seq;
        let struck: Vec<_> = self.0.drain(..end).collect();
        struck.into_iter().rev().map(move |(seq, undo)| Reverted { undo, failed: seq == first })
    }

    /// Forgets what the client's map would get back: the client is gone, and its map with it.
    pub(crate) fn forget_client(&mut self) {
        self.0.retain(|(_, undo)| {
            matches!(undo, Undo::Prepared(_) | Undo::Evicted(_) | Undo::ServerUnnamed(_))
        });
    }
}
