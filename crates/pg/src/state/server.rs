//! A server's session: everything that PostgreSQL's protocol knows of a server.
//!
//! Before another client gets the server, the pool asks the protocol for a proof from
//! [`Outstanding`] that the server owes nothing.

mod front;
mod transaction;

use std::sync::Arc;

use refrain_pool::Now;
use smallvec::SmallVec;

use crate::auth::Login;
use crate::pipeline::job::Wishes;
use crate::pipeline::outstanding::{Failed, Outstanding, Seq};
use crate::pipeline::undo::{Reverted, ServerUndo, Undos};
use crate::settings::of_server::ServerSettings;
use crate::settings::session::{self, SETTINGS_BYTES_MAX, ServerParameters, Settings};
use crate::state::server::front::FrontSegment;
use crate::state::server::transaction::TransactionChanges;
use crate::statements::columns::Found;
use crate::statements::of_server::{ServerStatement, ServerStatements, Unnamed};
use crate::statements::statement::{Generation, Statement};

/// A login under way.
#[derive(Debug)]
pub struct LoggingIn {
    /// The exchange of passwords; `None` once the server has let us in.
    pub(crate) login: Option<Login>,
    /// The ParameterStatus messages that the server has sent.
    pub(crate) server_parameters: ServerParameters,
}

impl LoggingIn {
    /// Whether one more setting may be reported.
    pub(crate) fn has_room(&self, name: &[u8], value: &[u8]) -> bool {
        session::bytes(&self.server_parameters) + session::cost(name, value) <= SETTINGS_BYTES_MAX
    }
}

/// A server's session, as PostgreSQL's protocol knows it.
#[derive(Debug)]
pub struct ServerSession {
    /// The replies that it owes.
    pub(crate) outstanding: Outstanding,
    /// How to undo changes to its statements if it refuses or skips them.
    pub(crate) undos: Undos<ServerUndo>,
    /// The statements it has.
    pub(crate) statements: ServerStatements,
    /// Its run-time parameters.
    pub(crate) settings: ServerSettings,
    /// Changes that its transaction may have made beyond its session.
    pub(crate) transaction: TransactionChanges,
    /// The segment that it is answering.
    pub(crate) front: FrontSegment,
    /// The statements that it is to prepare once no client holds it.
    pub(crate) wishes: Wishes,
    /// A mark of the portal that was bound last; zero where not from its unnamed statement.
    pub(crate) bound: u32,
    /// Uses of a statement that it had.
    pub(crate) hits: u64,
    /// Uses of a statement that it was sent first.
    pub(crate) misses: u64,
    /// Whether a client left something behind that a reset has to remove.
    dirty: bool,
}

impl ServerSession {
    /// Makes the session of a server that is being connected.
    pub(crate) fn new(nothing: &Arc<Settings>, now: Now) -> Self {
        Self {
            outstanding: Outstanding::default(),
            undos: Undos::default(),
            statements: ServerStatements::default(),
            settings: ServerSettings::new(nothing, now),
            transaction: TransactionChanges::default(),
            front: FrontSegment::default(),
            wishes: Wishes::default(),
            bound: 0,
            hits: 0,
            misses: 0,
            dirty: false,
        }
    }

    /// Notes that a client leaves, or may leave, something behind that a reset has to remove.
    pub(crate) fn soil(&mut self) {
        self.dirty = true;
    }

    /// True if a reset has to remove what a client left behind.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Notes that the server has run its client's DISCARD ALL: nothing is left to be removed.
    pub(crate) fn discarded(&mut self) {
        self.dirty = false;
    }

    /// Notes that the server has run Refrain's reset query: it has its default settings and no
    /// statements.
    pub(crate) fn reset(&mut self) {
        self.statements.clear();
        self.settings.reset();
        self.dirty = false;
    }

    /// Undoes the changes to its statements by messages that failed or were skipped (E1, E2, E24).
    pub(crate) fn undo(&mut self, failed: &Failed) {
        let (mut never, mut before) = (SmallVec::<[u64; 4]>::new(), None);
        for Reverted { undo, failed: own } in self.undos.fail(failed) {
            match undo {
                ServerUndo::Prepared(id) => {
                    never.push(id);
                    if self.statements.peek(id).is_some_and(|slot| failed.covers(slot.segment)) {
                        self.statements.remove(id);
                    }
                }
                ServerUndo::Evicted(slot) => {
                    if self.statements.peek(slot.served.statement().id).is_none() {
                        self.statements.insert(slot);
                    }
                }
                ServerUndo::Unnamed(old) => {
                    let old = if own { Unnamed::NONE } else { old };
                    before = Some(old);
                    // A later segment may have changed it since: that change stays.
                    if failed.covers(self.statements.unnamed.segment) {
                        self.statements.unnamed = old;
                    }
                }
            }
        }
        if never.is_empty() && before.is_none() {
            return;
        }
        // Undos of later segments must not bring back a statement that, as is known now, was not
        // there.
        self.undos.retain(|undo| match undo {
            ServerUndo::Evicted(slot) => {
                let id = slot.served.statement().id;
                !(never.contains(&id) && failed.covers(slot.segment))
            }
            ServerUndo::Unnamed(old) => {
                if failed.covers(old.segment)
                    && let Some(before) = before
                {
                    *old = before;
                }
                true
            }
            ServerUndo::Prepared(_) => true,
        });
    }

    /// Returns the generation of a statement that it has for certain, if that is the current one.
    /// Counts as a use of it (E26).
    #[inline]
    pub(crate) fn has(&mut self, statement: &Statement) -> Option<Generation> {
        self.slot(statement).map(|slot| slot.generation)
    }

    /// Returns a statement that it has for certain in its current generation. Counts as a use of
    /// it.
    #[inline]
    pub(crate) fn slot(&mut self, statement: &Statement) -> Option<&ServerStatement> {
        let slot = self.statements.touch(statement.id)?;
        let current = slot.generation == statement.generation() && self.outstanding.is_sure(slot);
        current.then_some(&*slot)
    }

    /// Returns the copy of a statement that request `seq` describes: its generation, and its
    /// columns.
    pub(crate) fn asked_by(&mut self, id: u64, seq: Seq) -> Option<(Generation, &mut Found)> {
        let unnamed = &mut self.statements.unnamed;
        if unnamed.id == id && unnamed.found.asked == seq {
            return Some((unnamed.generation, &mut self.statements.unnamed.found));
        }
        let slot = self.statements.peek_mut(id).filter(|slot| slot.found.asked == seq)?;
        Some((slot.generation, &mut slot.found))
    }
}
