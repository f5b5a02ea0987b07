//! The features of a client's script.

/// A kind of units of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Rows.
    Reads,
    /// Transactions, with errors and savepoints in them.
    Transactions,
    /// Variables, schemas and the option for several statements.
    Settings,
    /// SET NAMES.
    Names,
    /// `autocommit`.
    Autocommit,
    /// Things that only a server has.
    Pins,
    /// Characteristics of the next transaction.
    NextTransaction,
    /// Errors.
    Errors,
    /// Several statements in a text.
    Several,
    /// Questions about the statement before.
    Asks,
    /// Texts that are prepared.
    Prepares,
    /// Executions.
    Executes,
    /// Cursors.
    Cursors,
    /// Values that come ahead.
    LongData,
    /// Resets, and commands without a server.
    Resets,
    /// Files.
    Files,
}

/// All features.
pub const FEATURES: [Feature; 16] = [
    Feature::Reads,
    Feature::Transactions,
    Feature::Settings,
    Feature::Names,
    Feature::Autocommit,
    Feature::Pins,
    Feature::NextTransaction,
    Feature::Errors,
    Feature::Several,
    Feature::Asks,
    Feature::Prepares,
    Feature::Executes,
    Feature::Cursors,
    Feature::LongData,
    Feature::Resets,
    Feature::Files,
];
