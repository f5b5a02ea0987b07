//! Work that the program does for the engine, on other threads.

use std::sync::Arc;

use refrain_pool::ClientSerial;
use refrain_pool::ids::PoolId;
use refrain_sql::effect::Effect;
use refrain_sql::normalize::{Analysis, Key, Span};
use refrain_sql::reads::{Mentioned, Objection};

use crate::console::reply::{ProgramReply, ReplyForm};
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

/// A statement whose text the parser thread reads: it may be a read, or change rows.
#[derive(Clone, Debug)]
pub struct ReadCase {
    pub(crate) statement: Statement,
    /// Settings of the statement's parse environment.
    pub(crate) settings: Arc<Settings>,
    /// Whether Refrain wants to know what the statement may change.
    pub(crate) changes: bool,
}

impl ReadCase {
    /// Returns the text.
    pub fn text(&self) -> &[u8] {
        self.statement.text()
    }

    /// Whether Refrain wants to know what the statement may change, should it be no read.
    pub fn wants_effect(&self) -> bool {
        self.changes
    }
}

/// Findings in the text of a statement.
#[derive(Debug)]
pub struct TextFindings {
    /// The names in it, or why the statement is no read.
    pub read: Result<Mentioned, Objection>,
    /// Rows that it may change, if that is wanted and the statement is no read.
    pub effect: Option<Effect>,
}

impl From<Result<Mentioned, Objection>> for TextFindings {
    fn from(read: Result<Mentioned, Objection>) -> Self {
        Self { read, effect: None }
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
        /// The part of the reply that the client needs.
        form: ReplyForm,
    },
    /// Pass on a cancel request to other processes of the program, as far as there are any: the
    /// client may be one of theirs.
    Cancel {
        /// The process ID in the request.
        pid: u32,
        /// The key in the request.
        key: Box<[u8]>,
    },
    /// Pass on a cancel request to another process that serves the same clients: the client is one
    /// of that process.
    PassOn {
        /// The number of the process.
        peer: u32,
        /// The process ID in the request.
        pid: u32,
        /// The key to send.
        key: Box<[u8]>,
    },
    /// Parse a text with PostgreSQL's grammar, which is too slow for the engine's thread.
    Analyse(Box<Case>),
    /// Find out by PostgreSQL's grammar what the text of a statement shows.
    Read(Box<ReadCase>),
}

/// The result of a [`Request`].
#[derive(Debug)]
pub enum Answer {
    /// The reply to a command at the admin console.
    Console {
        /// The client that gave the command.
        client: ClientSerial,
        /// The reply, in the form that was asked for.
        reply: ProgramReply,
    },
    /// The analysis of a text.
    Analysed {
        /// The text.
        case: Box<Case>,
        /// The result: which literals become parameters, or why none does.
        analysis: Analysis,
    },
    /// Findings in the text of a statement.
    Read {
        /// The statement.
        case: Box<ReadCase>,
        /// The findings.
        found: Box<TextFindings>,
    },
}
