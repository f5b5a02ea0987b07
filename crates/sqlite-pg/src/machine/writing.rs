//! The right to write, and where a statement that writes runs.
//!
//! A commit waits for the disk, so writes go to a thread. That takes two wake-ups, about as long as
//! half a commit. Where the loop serves no other client it holds up no one, and a statement that is
//! its whole transaction writes on the loop.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use refrain_sqlite::Connection;

use crate::failure::{Failure, state};
use crate::translation_cache::TranslatedStatement;

use super::access::Access;
use super::{Need, Outcome, RunsOn, Stop};

impl Access {
    /// Checks that the session may write where it runs. `whole` is true if the statement is its
    /// whole transaction.
    fn may_write(&mut self, connection: &Connection, whole: bool) -> Outcome {
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

    /// Takes the right to write on the loop, if no session has it and the disk is quick.
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

    /// Returns the WAL that has to be on disk before the replies so far leave, once for each
    /// commit.
    pub(crate) fn take_unsynced(&mut self) -> Option<Arc<Path>> {
        let unsynced = std::mem::take(&mut self.is_unsynced);
        self.pool.synced_wal().filter(|_| unsynced).cloned()
    }

    /// Waits on the loop until what the session has committed is on disk.
    ///
    /// # Errors
    /// 58030.
    pub(crate) fn sync_here(&mut self) -> Result<(), Failure> {
        let synced = match self.take_unsynced() {
            Some(wal) => self.backend().commits.wait(&wal),
            None => Ok(()),
        };
        self.wrote_here();
        synced
    }

    /// Notes how long the loop has waited for a write that ran there.
    fn wrote_here(&mut self) {
        if let Some(since) = self.writes_since.take().filter(|_| self.runs_on == RunsOn::Loop) {
            self.backend().disk.took(since, Instant::now());
        }
    }

    /// Gives up the right to write; the next session in the queue gets it.
    pub(super) fn stop_writing(&mut self) {
        if self.permit.take().is_some() {
            self.is_unsynced = true;
            self.pool.wrote();
        }
    }

    /// Makes SQLite's open transaction one that writes, for a statement that locks rows: the error
    /// is that of an older snapshot, whose rows cannot be locked.
    pub(super) fn lock(
        &self,
        connection: &Connection,
        translated: Option<&TranslatedStatement>,
    ) -> Outcome {
        let Some(table) = translated.and_then(|translated| translated.locks.as_ref()) else {
            return Ok(());
        };
        if !self.transaction.is_open() {
            return Ok(());
        }
        // It changes nothing, and needs what a change needs.
        let locked = connection.execute(&format!("DELETE FROM {table} WHERE 0"), &[]);
        locked.map(drop).map_err(|error| self.stop(&error, b""))
    }

    /// Gets the right to write for a statement that writes, and opens SQLite's transaction where
    /// several statements belong together. `last` is true if no further statement can belong to it.
    pub(super) fn open(&mut self, connection: &Connection, writes: bool, last: bool) -> Outcome {
        let block = self.transaction.is_block();
        if writes {
            self.may_write(connection, last && !block && !self.transaction.is_open())?;
            self.pool.check(connection)?;
        }
        if block || (writes && !last) {
            let opened = self.transaction.open(connection, writes);
            opened.map_err(|error| self.stop(&error, b""))?;
        } else if self.runs_on == RunsOn::Loop && !writes {
            self.pool.reads();
        }
        Ok(())
    }
}
