//! The end of a transaction, by a commit or after an error: the session gives back the right to
//! write and its connection.

use crate::failure::Failure;

use super::Machine;
use super::access::Access;

impl Machine {
    /// Reports an error. It ends a simple query; after an extended message everything is skipped
    /// until Sync.
    pub(super) fn failed(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        self.access.began = None;
        self.access.pool.failed(failure);
        failure.write(out, "ERROR");
        self.rows = None;
        self.copy = None;
        self.end_failed();
        if self.simple.take().is_some() {
            self.ready(out);
        } else {
            self.skipping = true;
        }
    }

    /// Ends or fails the transaction after an error.
    pub(super) fn end_failed(&mut self) {
        if let Some(connection) = &self.access.connection {
            connection.discard_parked();
        }
        self.access.transaction.fail(self.access.connection.as_deref());
        self.portals.clear();
        if !self.access.transaction.is_block() {
            self.access.context.transaction_ended(false);
        }
        self.access.settle();
    }

    /// Ends a segment: ends the transaction, unless BEGIN began it, and says that the session is
    /// ready. The client gets the error if the commit fails.
    pub(super) fn end_segment(&mut self, out: &mut Vec<u8>) {
        if let Err(failure) = self.end_implicit() {
            self.access.pool.failed(&failure);
            failure.write(out, "ERROR");
            self.end_failed();
        }
        self.ready(out);
    }

    /// Ends a transaction that no BEGIN began.
    fn end_implicit(&mut self) -> Result<(), Failure> {
        if self.access.transaction.is_block() {
            return Ok(());
        }
        self.portals.clear();
        if let Some(connection) = &self.access.connection {
            connection.discard_parked();
        }
        let committed = self.access.commit_open();
        self.access.context.transaction_ended(committed.is_ok());
        self.access.context.forget_now();
        self.access.settle();
        committed.map(drop)
    }
}

impl Access {
    /// Commits the open transaction. Returns false if the transaction had failed and was rolled
    /// back. The changes must have gone to the file that is served, so the file is checked before
    /// and after.
    ///
    /// # Errors
    /// SQLite refused to commit, or the file is gone. The transaction is over then.
    pub(super) fn commit_open(&mut self) -> Result<bool, Failure> {
        let connection = self.connection.as_deref();
        let writer = connection.filter(|_| self.permit.is_some() && self.transaction.is_open());
        if let Some(Err(gone)) = writer.map(|writer| self.pool.check(writer)) {
            self.transaction.rollback(connection);
            return Err(gone);
        }
        let kept = self.transaction.commit(connection)?;
        writer.filter(|_| kept).map_or(Ok(()), |writer| self.pool.check_commit(writer))?;
        Ok(kept)
    }

    /// Gives back the right to write and the connection, where no transaction or temporary table
    /// needs them. The session's portals are closed.
    pub(super) fn settle(&mut self) {
        if !self.transaction.is_open() {
            self.stop_writing();
            self.changed_schema = false;
        }
        if self.transaction.is_open() || self.has_temporary {
            return;
        }
        if let Some(connection) = self.connection.take() {
            self.context.control.works_on(None);
            // Portals of a transaction block in which nothing ran may still have parked runs.
            connection.discard_parked();
            self.pool.put(connection);
        }
    }
}
