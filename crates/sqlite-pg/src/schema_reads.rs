//! Queries of SQLite for its schema, while a text is translated or described.
//!
//! The translation asks for one fact at a time, and takes a query that fails for "there is no such
//! table". That is true where the statement itself is at fault: a view may read a table that is
//! gone. A file that cannot be read, a limit or a cancel says nothing of the schema. Such an error
//! is remembered, and the caller asks for it ([`SchemaReads::check`]) before it uses anything that
//! was made of the facts.

use std::cell::RefCell;

use refrain_sqlite::{Connection, Error};

/// A connection whose schema is read, and the first error of it.
pub(crate) struct SchemaReads<'a> {
    pub(crate) connection: &'a Connection,
    failed: RefCell<Option<Error>>,
}

impl<'a> SchemaReads<'a> {
    pub(crate) fn of(connection: &'a Connection) -> Self {
        Self { connection, failed: RefCell::default() }
    }

    /// Returns the result of a query; nothing if the query failed.
    pub(crate) fn found<T: Default>(&self, read: Result<T, Error>) -> T {
        read.unwrap_or_else(|error| {
            self.note(&error);
            T::default()
        })
    }

    /// Remembers an error, unless the statement itself is at fault.
    pub(crate) fn note(&self, error: &Error) {
        if !error.is_of_statement() {
            self.failed.borrow_mut().get_or_insert_with(|| error.clone());
        }
    }

    /// Checks that all facts so far are facts.
    ///
    /// # Errors
    /// The first error that says nothing of the schema.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.failed.borrow().clone().map_or(Ok(()), Err)
    }
}
