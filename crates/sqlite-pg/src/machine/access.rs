//! A session's way to the file: its connection, its transaction, and the right to write.

use std::sync::Arc;
use std::time::Instant;

use refrain_sqlite::Connection;

use crate::backend::{Backend, Pool};
use crate::context::Context;
use crate::failure::Failure;
use crate::runs_on::RunsOn;
use crate::transaction::Transaction;
use crate::write_queue::Permit;

use super::{Need, Stop};

/// A session's way to the file. It knows nothing of the client's statements.
pub(crate) struct Access {
    pub(super) pool: Arc<Pool>,
    pub(crate) context: Arc<Context>,
    pub(super) connection: Option<Box<Connection>>,
    /// True if the connection has temporary tables, which belong to this session alone.
    pub(super) has_temporary: bool,
    /// True if the open transaction has changed the schema, which other sessions do not see yet.
    pub(super) changed_schema: bool,
    /// The right to write.
    pub(crate) permit: Option<Permit>,
    /// The error to raise instead of writing, if the session did not get the right to write.
    pub(crate) write_refused: Option<Failure>,
    /// When the running statement began; none if `statement_timeout` does not limit it.
    pub(super) began: Option<Instant>,
    pub(super) transaction: Transaction,
    pub(super) runs_on: RunsOn,
    /// True if the loop serves no other client.
    pub(crate) alone: bool,
    /// When the write that runs on the loop began.
    pub(super) writes_since: Option<Instant>,
    /// True if the session may have committed what is not on disk yet.
    pub(super) is_unsynced: bool,
}

impl Access {
    pub(super) fn new(pool: Arc<Pool>, context: Arc<Context>) -> Self {
        Self {
            pool,
            context,
            connection: None,
            has_temporary: false,
            changed_schema: false,
            permit: None,
            write_refused: None,
            began: None,
            transaction: Transaction::default(),
            runs_on: RunsOn::Loop,
            alone: false,
            writes_since: None,
            is_unsynced: false,
        }
    }

    /// Returns the pool that connections come from.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns the backend of the file that is served.
    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.pool.backend
    }

    /// True if the session may see another schema than other sessions do.
    pub(super) fn sees_alone(&self) -> bool {
        self.has_temporary || self.changed_schema
    }

    /// Closes the connection, and with it the session's temporary tables. No other session may have
    /// it.
    pub(super) fn close_connection(&mut self) {
        self.has_temporary = false;
        self.context.control.works_on(None);
        if let Some(connection) = self.connection.take() {
            self.pool.close(connection);
        }
    }

    /// Returns the session's connection, or takes one from the pool.
    pub(super) fn connect(&mut self) -> Result<Box<Connection>, Stop> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        // Opening a file may wait for a lock, and takes as long as ten reads: a thread does it.
        if self.runs_on == RunsOn::Loop && !self.pool.has_idle() {
            return Err(Stop::Needs(Need::Thread));
        }
        let connection = self.pool.take(self.runs_on)?;
        self.context.control.works_on(Some(connection.interrupter()));
        Ok(connection)
    }
}
