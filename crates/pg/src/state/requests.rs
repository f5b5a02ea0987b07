//! Work that the program does for the engine, on other threads.

use std::sync::Arc;

use refrain_pool::ClientSerial;
use refrain_pool::ids::PoolId;
use refrain_sql::normalize::{Analysis, Key, Span};

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
}
