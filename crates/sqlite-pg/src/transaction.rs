//! PostgreSQL's transactions on top of SQLite's.
//!
//! BEGIN alone does nothing in SQLite: its transaction begins with the first statement that runs. A
//! statement that writes begins it with `IMMEDIATE`, so that it cannot fail later because another
//! session has written in the meantime. After an error nothing runs until ROLLBACK, although SQLite
//! would go on.

use refrain_pg_wire::back::Status;
use refrain_sqlite::{Connection, Error};

use crate::command::Modes;
use crate::failure::{Failure, state};

/// The transaction that a session is in.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    block: Block,
    /// True if SQLite has one open.
    open: bool,
    /// READ ONLY or READ WRITE, if the client gave it.
    read_only: Option<bool>,
    /// `default_transaction_read_only`.
    pub(crate) default_read_only: bool,
    /// Savepoints that the client set, oldest first.
    savepoints: Vec<String>,
}

/// The transaction block as the client sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Block {
    #[default]
    None,
    /// Between BEGIN and COMMIT or ROLLBACK.
    Begun,
    /// After an error in such a block.
    Failed,
}

impl Transaction {
    /// Returns the status for ReadyForQuery.
    pub(crate) fn status(&self) -> Status {
        match self.block {
            Block::None => Status::Idle,
            Block::Begun => Status::Transaction,
            Block::Failed => Status::Failed,
        }
    }

    /// True if the client is in a transaction block.
    pub(crate) fn is_block(&self) -> bool {
        self.block != Block::None
    }

    /// True if SQLite has a transaction open for the session.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// True if SQLite has a transaction open for messages outside of a transaction block.
    pub(crate) fn is_implicit(&self) -> bool {
        self.open && !self.is_block()
    }

    /// True if statements that write are refused.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only.unwrap_or(self.default_read_only)
    }

    /// Refuses to run a statement in a failed transaction.
    ///
    /// # Errors
    /// 25P02.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.block != Block::Failed {
            return Ok(());
        }
        let message =
            "current transaction is aborted, commands ignored until end of transaction block";
        Err(Failure::new(state::FAILED_TRANSACTION, message))
    }

    /// Handles BEGIN. The error is a warning: a transaction is open already.
    pub(crate) fn begin(&mut self, modes: Modes) -> Result<(), Failure> {
        if self.is_block() {
            let message = "there is already a transaction in progress";
            return Err(Failure::new(state::ACTIVE_TRANSACTION, message));
        }
        self.block = Block::Begun;
        self.set(modes);
        Ok(())
    }

    /// Handles SET TRANSACTION.
    pub(crate) fn set(&mut self, modes: Modes) {
        self.read_only = modes.read_only.or(self.read_only);
    }

    /// Opens SQLite's transaction before a statement, if it is not open yet.
    ///
    /// # Errors
    /// 55P03 if another process writes.
    pub(crate) fn open(&mut self, connection: &Connection, writes: bool) -> Result<(), Error> {
        if self.open {
            return Ok(());
        }
        let begin = if writes { "BEGIN IMMEDIATE" } else { "BEGIN" };
        connection.execute(begin, &[])?;
        self.open = true;
        Ok(())
    }

    /// Handles COMMIT, or the end of an implicit transaction. Returns false if it was rolled back,
    /// as it had failed.
    ///
    /// # Errors
    /// SQLite refused to commit; the transaction is rolled back then.
    pub(crate) fn commit(&mut self, connection: Option<&Connection>) -> Result<bool, Error> {
        let keep = self.block != Block::Failed;
        let committed = match connection.filter(|_| self.open) {
            Some(connection) if keep => {
                connection.discard_parked();
                connection.execute("COMMIT", &[]).map(drop)
            }
            Some(connection) => {
                roll_back(connection);
                Ok(())
            }
            None => Ok(()),
        };
        if let (Err(_), Some(connection)) = (&committed, connection) {
            roll_back(connection);
        }
        self.over();
        committed.map(|()| keep)
    }

    /// Handles ROLLBACK.
    pub(crate) fn rollback(&mut self, connection: Option<&Connection>) {
        if let Some(connection) = connection.filter(|_| self.open) {
            roll_back(connection);
        }
        self.over();
    }

    /// Handles an error: an implicit transaction is rolled back, a transaction block fails.
    pub(crate) fn fail(&mut self, connection: Option<&Connection>) {
        if !self.is_block() {
            return self.rollback(connection);
        }
        self.block = Block::Failed;
        // Without a savepoint to go back to, nothing of the block can be kept, and other sessions
        // may write now.
        let Some(connection) = connection.filter(|_| self.open) else { return };
        if self.savepoints.is_empty() || connection.autocommit() {
            roll_back(connection);
            self.open = false;
            self.savepoints.clear();
        }
    }

    fn over(&mut self) {
        self.block = Block::None;
        self.open = false;
        self.read_only = None;
        self.savepoints.clear();
    }

    /// Handles SAVEPOINT. SQLite's transaction must be open.
    ///
    /// # Errors
    /// SQLite refused the savepoint.
    pub(crate) fn savepoint(&mut self, connection: &Connection, name: &str) -> Result<(), Error> {
        connection.execute(&format!("SAVEPOINT {}", quoted(name)), &[])?;
        self.savepoints.push(name.to_owned());
        Ok(())
    }

    /// Handles RELEASE SAVEPOINT.
    ///
    /// # Errors
    /// 3B001: there is no such savepoint.
    pub(crate) fn release(&mut self, connection: &Connection, name: &str) -> Result<(), Failure> {
        let place = self.find(name)?;
        let text = format!("RELEASE {}", quoted(name));
        connection.execute(&text, &[]).map_err(|error| Failure::of_sqlite(&error, b""))?;
        self.savepoints.truncate(place);
        Ok(())
    }

    /// Handles ROLLBACK TO SAVEPOINT, after which a failed transaction goes on.
    ///
    /// # Errors
    /// 3B001: there is no such savepoint.
    pub(crate) fn back_to(&mut self, connection: &Connection, name: &str) -> Result<(), Failure> {
        let place = self.find(name)?;
        connection.discard_parked();
        let text = format!("ROLLBACK TO {}", quoted(name));
        connection.execute(&text, &[]).map_err(|error| Failure::of_sqlite(&error, b""))?;
        self.savepoints.truncate(place + 1);
        self.block = Block::Begun;
        Ok(())
    }

    fn find(&self, name: &str) -> Result<usize, Failure> {
        let place = self.savepoints.iter().rposition(|known| known == name);
        place.ok_or_else(|| Failure::new("3B001", format!("savepoint \"{name}\" does not exist")))
    }
}

/// Rolls back, unless an error has ended the transaction before.
fn roll_back(connection: &Connection) {
    connection.discard_parked();
    if connection.in_transaction() {
        // If the rollback fails there is nothing left to do: the file is as it was.
        let _ = connection.execute("ROLLBACK", &[]);
    }
}

/// Writes a savepoint's name as the hexadecimal codes of its letters: SQLite takes names that
/// differ in case for equal, PostgreSQL does not.
fn quoted(name: &str) -> String {
    let letters = name.bytes().map(|byte| format!("{byte:02x}"));
    format!("\"s{}\"", letters.collect::<String>())
}
