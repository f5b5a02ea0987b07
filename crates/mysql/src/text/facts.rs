//! The effects that a text may have, by kinds.

use crate::insert_id::Uses;
use crate::pins::Pins;

/// The effects that a text may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The things that it may leave behind.
    pub(crate) pins: Pins,
    /// The beginning of its first statement.
    pub(crate) verb: Verb,
    /// Whether it has several statements.
    pub(crate) has_several: bool,
    /// The things that it may leave behind in a session without `autocommit`.
    pub(crate) manual_pins: Pins,
    /// Whether it may ask for a file of the client.
    pub(crate) loads: bool,
    /// Whether it may change what the server reports.
    pub(crate) wishes: bool,
    /// For how long it sets variables.
    pub(crate) variables: Variables,
    /// Whether it names the scope of variables that it sets.
    pub(crate) scope: Scope,
    /// The things of earlier statements that it may ask about.
    pub(crate) asks: Memory,
    /// The things that it may do with the number that a row got by itself.
    pub(crate) insert_id: Uses,
    /// Whether it ends the session with its transaction.
    pub(crate) releases: bool,
    /// The fate of the definitions of tables.
    pub(crate) tables: Tables,
    /// Whether it may call a function of the user's, which may do anything.
    pub(crate) calls: Calls,
    /// Whether it asks for the number of the session.
    pub(crate) number: Number,
    /// Whether its strings have quotation marks that would end a name under ANSI_QUOTES.
    pub(crate) marks: Marks,
}

/// The things that a session remembers of the statements before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The last statement.
    pub(crate) last: bool,
    /// The counts of the last statement.
    pub(crate) counts: bool,
    /// The warnings and the error of the last statement that had any, or that has cleared those
    /// before. One that uses no table does neither.
    pub(crate) conditions: bool,
    /// The number of rows: that of the last SELECT.
    pub(crate) found_rows: bool,
}

impl Memory {
    /// Whether all of another one is in this.
    pub(crate) fn has(self, other: Self) -> bool {
        (self.last || !other.last)
            && (self.counts || !other.counts)
            && (self.conditions || !other.conditions)
            && (self.found_rows || !other.found_rows)
    }
}

/// The fate of the definitions of tables, and of the rights to them, under a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tables {
    /// Nothing.
    #[default]
    Stay,
    /// It may change them.
    Change,
    /// It may change them, and views or triggers among them.
    ChangeViews,
}

/// Whether a text asks for the number of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Number {
    /// No.
    #[default]
    Unasked,
    /// Yes.
    Asked,
}

/// Whether a text calls functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Calls {
    /// None, or only those that change no session.
    #[default]
    Harmless,
    /// The same, but it may run triggers.
    Fires,
    /// It may call one of the user's.
    Any,
}

/// Whether the strings of a text have quotation marks that would end a name under ANSI_QUOTES.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Marks {
    /// No.
    #[default]
    None,
    /// Yes.
    Escaped,
}

/// For how long a text sets variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Variables {
    /// Until they are set again.
    #[default]
    Stay,
    /// Some may be set for one statement: no report says that they are set back.
    SetBack,
}

/// Whether a text names the scope of variables that it sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// It does, or sets them by their bare names, or sets none.
    #[default]
    Known,
    /// It may set one by `@@name`, without the word SESSION. MariaDB reports no such change.
    Missing,
}

/// The beginning of a statement, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Any other.
    #[default]
    Other,
    End,
    Get,
    Kill,
    Savepoint,
    /// Its rows are those that FOUND_ROWS() counts.
    Select,
    Set,
    Show,
    Unlock,
    Use,
    /// It changes rows of a table.
    Write,
}
