//! The schema of a database: a count of its possible changes, and the transactions that may change
//! it.
//!
//! A change counts when its completion comes, and again when its transaction ends. From the moment
//! at which the change is sent until then, Refrain cannot know whether other sessions see it: the
//! schema is *being defined*, and within transactions Refrain runs no autoprepared statement, which
//! the change could make the server refuse.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use refrain_sql::Traits;

/// The traits of texts that change the schema, or hide whether they do.
pub(crate) const DEFINES: Traits = Traits::DDL.union(Traits::PROCEDURAL).union(Traits::UNREAD);

/// Changes to the schema of one database.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// The count of possible changes.
    schema_changes: AtomicU64,
    /// Transactions under way that may change the schema.
    defining: AtomicU32,
}

/// A transaction under way that may change a schema; it counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Defining(Arc<Schema>);

impl Schema {
    /// Counts a possible change.
    pub(crate) fn schema_change(&self) {
        self.schema_changes.fetch_add(1, Relaxed);
    }

    /// Returns the count of possible changes.
    #[inline]
    pub(crate) fn schema_changes(&self) -> u64 {
        self.schema_changes.load(Relaxed)
    }

    /// True if a transaction is under way that may change the schema.
    #[inline]
    pub(crate) fn is_being_defined(&self) -> bool {
        self.defining.load(Relaxed) > 0
    }
}

impl Defining {
    /// Notes that a text is sent that may change the schema.
    pub(crate) fn begin(schema: &Arc<Schema>) -> Self {
        schema.defining.fetch_add(1, Relaxed);
        Self(schema.clone())
    }
}

impl Drop for Defining {
    fn drop(&mut self) {
        let before = self.0.defining.fetch_sub(1, Relaxed);
        assert!(before > 0, "what ends has begun");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_being_defined_until_the_last_has_ended() {
        let schema = Arc::new(Schema::default());
        let (one, two) = (Defining::begin(&schema), Defining::begin(&schema));
        drop(one);
        assert!(schema.is_being_defined());
        drop(two);
        assert!(!schema.is_being_defined());
    }
}
