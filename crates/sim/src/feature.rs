//! The features of the protocol and of SQL that clients use.

/// The subject of a unit. The seed gives each a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Simple queries.
    Simple,
    /// Errors of all kinds.
    Errors,
    /// Transaction blocks.
    Blocks,
    /// Settings that the server reports.
    Reported,
    /// Settings that the server does not report.
    Unreported,
    /// Unnamed statements.
    Unnamed,
    /// Named statements.
    Named,
    /// Pipelines of several segments.
    Pipelines,
    /// Portals that are read in pieces.
    Portals,
    /// Flush instead of Sync.
    Flushes,
    /// COPY in and out.
    Copies,
    /// PREPARE and EXECUTE as SQL.
    SqlPrepare,
    /// DEALLOCATE and DISCARD.
    Discards,
    /// LISTEN and NOTIFY.
    Listens,
    /// Temporary tables, held cursors, advisory locks.
    Objects,
    /// FunctionCall messages.
    Calls,
    /// Functions that leave state in the session.
    Leaves,
    /// Statements that take long.
    Sleeps,
    /// Long rows, many rows and long texts.
    Bulk,
    /// DDL.
    Definitions,
    /// Named statements that clients run one at a time: reads, most of them.
    Reads,
    /// Rows with versions, which clients read, write and lock.
    Rows,
}

/// All features.
pub const FEATURES: [Feature; 22] = [
    Feature::Simple,
    Feature::Errors,
    Feature::Blocks,
    Feature::Reported,
    Feature::Unreported,
    Feature::Unnamed,
    Feature::Named,
    Feature::Pipelines,
    Feature::Portals,
    Feature::Flushes,
    Feature::Copies,
    Feature::SqlPrepare,
    Feature::Discards,
    Feature::Listens,
    Feature::Objects,
    Feature::Calls,
    Feature::Leaves,
    Feature::Sleeps,
    Feature::Bulk,
    Feature::Definitions,
    Feature::Reads,
    Feature::Rows,
];

/// Returns the index of a feature among the weights.
pub fn index(feature: Feature) -> usize {
    FEATURES.iter().position(|f| *f == feature).unwrap_or(0)
}
