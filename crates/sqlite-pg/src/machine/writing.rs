//! The right to write, and where a statement writes.
//!
//! A commit waits for the disk, so writes go to a thread: two wake-ups, which take as long as half a commit. Where nobody
//! else is served on the loop there is nobody to be held up, and one statement that is its own transaction writes there.

use std::time::Instant;

use refrain_sqlite::Connection;

use crate::failure::{Failure, state};

use super::{Machine, Need, Outcome, RunsOn, Stop};

impl Machine {
    /// Makes sure that the session may write, here. `whole` says that the statement is all of its transaction.
    pub(super) fn may_write(&mut self, connection: &Connection, whole: bool) -> Outcome {
        if let Some(failure) = self.write_refused.take() {
            return Err(Stop::Failed(failure));
        }
        if self.transaction.is_read_only() {
            let message = "cannot execute a statement that writes in a read-only transaction";
            return Err(Stop::Failed(Failure::new(state::READ_ONLY, message)));
        }
        let may = match self.runs_on {
            RunsOn::Thread => self.permit.is_some(),
            RunsOn::Loop => whole && self.begins_to_write_here(connection),
        };
        if may { Ok(()) } else { Err(Stop::Needs(Need::Writer)) }
    }

    /// Takes the right to write on the loop, if it is free and nobody would be held up for long.
    fn begins_to_write_here(&mut self, connection: &Connection) -> bool {
        if !self.alone || self.permit.is_some() {
            return false;
        }
        let (backend, now) = (self.backend().clone(), Instant::now());
        if backend.disk.is_quick(now) {
            self.permit = backend.queue.enter();
            self.writes_since = Some(now);
            self.limit(connection);
        }
        self.permit.is_some()
    }

    /// A write is over: how long the loop stood still for it, if it did.
    pub(super) fn wrote_here(&mut self) {
        if let Some(since) = self.writes_since.take().filter(|_| self.runs_on == RunsOn::Loop) {
            self.backend().disk.took(since, Instant::now());
        }
    }
}
