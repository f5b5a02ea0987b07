//! Work that the program does for the engine, on other threads.

use std::sync::Arc;

use refrain_pool::ClientSerial;
use refrain_pool::ids::PoolId;
use refrain_sql::normalize::{Analysis, Key, Span};
use refrain_sql::reads::{Mentioned, Objection};

use crate::settings::session::Settings;
use crate::statements::statement::Statement;

/// A text that the parser thread analyses: the first of its normalized query that was worth it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The pool of the normalized query.
    pub pool: PoolId,
    /// The key of the normalized query.
    pub key: Key,
    /// The text.
    pub text: Box<[u8]>,
    /// Its literals.
    pub spans: Box<[Span]>,
}

/// A statement whose text the parser thread reads: it may be a read.
#[derive(Clone, Debug)]
pub struct ReadCase {
    pub(crate) statement: Arc<Statement>,
    /// Settings of the statement's parse environment.
    pub(crate) settings: Arc<Settings>,
}

impl ReadCase {
    /// Returns the text.
    pub fn text(&self) -> &[u8] {
        self.statement.text()
    }
}

/// Work that the program does for the engine.
#[derive(Debug)]
pub enum Request {
    /// Answer a command that a client gave at the admin console.
    Console {
        /// The client.
        client: ClientSerial,
        /// The user's name.
        user: Arc<str>,
        /// Whether the user may change anything, and not only look.
        admin: bool,
        /// The text of the command.
        query: String,
    },
    /// Parse a text with PostgreSQL's grammar, which is too slow for the engine's thread.
    Analyse(Box<Case>),
    /// Find out by PostgreSQL's grammar what a text mentions that may be that of a read.
    Read(Box<ReadCase>),
}

/// The result of a [`Request`].
#[derive(Debug)]
pub enum Answer {
    /// The reply to a command at the admin console.
    Console {
        /// The client that gave the command.
        client: ClientSerial,
        /// Messages to be sent as they are, up to but without ReadyForQuery.
        reply: Vec<u8>,
    },
    /// The analysis of a text.
    Analysed {
        /// The text.
        case: Box<Case>,
        /// The result: which literals become parameters, or why none does.
        analysis: Analysis,
    },
    /// The names in the text of a statement.
    Read {
        /// The statement.
        case: Box<ReadCase>,
        /// The names, or why the statement is no read.
        found: Result<Mentioned, Objection>,
    },
}
