//! Effect: which rows a statement may change, as far as its parse tree shows.
//!
//! The catalog says what follows: which tables a foreign key or a partition adds, and whether a
//! function, a trigger or a rule may change anything.

use crate::reads::Mentioned;

/// A way to change a relation's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// INSERT, or COPY FROM.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// TRUNCATE.
    Truncate,
    /// TRUNCATE with CASCADE.
    TruncateCascade,
    /// REFRESH MATERIALIZED VIEW.
    Refresh,
}

/// A relation that a statement names as the one that it changes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The relation, as SQL writes it.
    pub relation: String,
    /// How.
    pub way: Way,
}

/// The rows that a statement may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No rows, whatever the catalog says.
    Nothing,
    /// Rows of the targets, and rows that functions change which it mentions.
    Rows {
        /// The relations that it names as changed, each once.
        targets: Vec<Target>,
        /// The names that it mentions beside them.
        mentioned: Mentioned,
    },
    /// Anything in the database.
    Anything,
}
