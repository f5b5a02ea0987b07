//! The statements of the tiny language ([`crate::lang`]).

use crate::item::{Argument, Item};
use crate::rows::{Need, is_table};

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// SELECT, with or without a table.
    Select(Vec<Item>, Option<String>),
    /// INSERT of a value.
    Insert(Item),
    /// UPDATE of the row of a table with a key, by a writer.
    Update(String, Argument, Argument),
    /// LOCK TABLE.
    Lock(String),
    /// A text with a syntax error.
    Wrong(String),
    /// The engine's question why a text cannot be prepared, or what guards such a question. The
    /// answer has no rows.
    Objections,
    /// The engine's question whether statements are reads: the number of a statement, the kind of a
    /// name, and the name.
    Reads(Vec<[String; 3]>),
    /// BEGIN.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK.
    Rollback,
    /// SET: name, value (`None`: the default), LOCAL.
    Set(String, Option<String>, bool),
    /// RESET of one or all.
    Reset(Option<String>),
    /// SHOW.
    Show(String),
    /// PREPARE.
    Prepare(String, Box<Statement>),
    /// EXECUTE.
    Execute(String, Vec<String>),
    /// DEALLOCATE of one or all.
    Deallocate(Option<String>),
    /// DISCARD ALL.
    DiscardAll,
    /// DISCARD TEMP.
    DiscardTemp,
    /// LISTEN.
    Listen(String),
    /// UNLISTEN of one or all.
    Unlisten(Option<String>),
    /// NOTIFY.
    Notify(String, String),
    /// CREATE TEMP TABLE.
    CreateTemp(String),
    /// DROP TABLE.
    Drop(String),
    /// Other DDL, by its tag.
    Ddl(&'static str),
    /// COPY FROM STDIN.
    CopyIn,
    /// COPY TO STDOUT: tag.
    CopyOut(String),
    /// DECLARE CURSOR WITH HOLD.
    Declare(String, Box<Statement>),
    /// FETCH ALL.
    Fetch(String),
    /// CLOSE of one cursor or all.
    CloseCursor(Option<String>),
    /// The lookup of a user by a function of the database.
    Users(String, Argument),
    /// The engine's question to a primary how far it is.
    PrimaryPosition,
    /// The engine's question to a standby how much it has replayed.
    StandbyPosition,
    /// The engine's question for settings of the session, with the additional names.
    Probe(Vec<String>),
    /// The engine's query that gives settings these values, unless they were set in the session.
    Restore(Vec<[String; 2]>),
}

impl Statement {
    /// Whether a failed transaction accepts the statement.
    pub fn ends_transaction(&self) -> bool {
        matches!(self, Self::Commit | Self::Rollback)
    }

    /// Whether the statement returns rows.
    pub fn has_rows(&self) -> bool {
        matches!(
            self,
            Self::Select(..)
                | Self::Show(_)
                | Self::Execute(..)
                | Self::Fetch(_)
                | Self::Probe(_)
                | Self::Restore(_)
                | Self::Reads(_)
                | Self::Users(..)
                | Self::PrimaryPosition
                | Self::StandbyPosition
        )
    }

    /// Whether a standby refuses the statement, since it would write.
    pub(crate) fn changes(&self) -> bool {
        match self {
            Self::Select(items, _) => items.contains(&Item::Next),
            Self::Insert(_)
            | Self::Update(..)
            | Self::Lock(_)
            | Self::Listen(_)
            | Self::Notify(..)
            | Self::CreateTemp(_)
            | Self::Drop(_)
            | Self::Ddl(_)
            | Self::CopyIn => true,
            _ => false,
        }
    }

    /// Whether the statement changes nothing, so that it may run twice, and beside others.
    pub fn is_read(&self) -> bool {
        let Self::Select(items, from) = self else { return false };
        from.as_deref().is_none_or(is_table) && !items.iter().any(Item::is_volatile)
    }

    /// Returns the number of parameters.
    pub fn params(&self) -> usize {
        match self {
            Self::Select(items, _) => items.iter().map(Item::params).max().unwrap_or(0),
            Self::Insert(item) => item.params(),
            Self::Update(_, key, writer) => key.param().max(writer.param()),
            Self::Users(_, user) => user.param(),
            _ => 0,
        }
    }

    /// Returns the statement with these values for its parameters.
    #[must_use]
    pub fn with(&self, values: &[String]) -> Self {
        match self {
            Self::Select(items, from) => {
                Self::Select(items.iter().map(|item| item.with(values)).collect(), from.clone())
            }
            Self::Update(table, key, writer) => {
                Self::Update(table.clone(), key.with(values), writer.with(values))
            }
            Self::Users(function, user) => Self::Users(function.clone(), user.with(values)),
            other => other.clone(),
        }
    }

    /// Returns what the statement needs of tables, once its parameters have values.
    pub(crate) fn needs(&self) -> Vec<Need> {
        let row = |table: &String, key: &Argument| Some((table.clone(), key.value(&[])?));
        let read = |item: &Item| match item {
            Item::Version(table, key) => row(table, key).map(Need::Read),
            _ => None,
        };
        match self {
            Self::Select(items, _) => items.iter().filter_map(read).collect(),
            Self::Update(table, key, _) => row(table, key).map(Need::Write).into_iter().collect(),
            Self::Lock(table) => vec![Need::All(table.clone())],
            _ => Vec::new(),
        }
    }

    /// Returns the time that the statement sleeps, in microseconds.
    pub fn sleeps(&self) -> u64 {
        let Self::Select(items, _) = self else { return 0 };
        items.iter().map(|item| if let Item::Sleep(us) = item { *us } else { 0 }).sum()
    }
}
