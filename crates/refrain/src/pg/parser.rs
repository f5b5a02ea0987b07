//! The parser thread: analyses queries by PostgreSQL's grammar, off the cores.
//!
//! An analysis takes up to milliseconds, and each core asks for it once per normalized query, or
//! about once a minute per statement that may be a read: one thread is enough for all cores.
//! Requests wait in a bounded queue, which drops those beyond [`WAITING_MAX`]. That costs nothing
//! but time: a core without an answer asks again as long as such queries keep coming.
//!
//! The parser thread refuses a text that is not UTF-8, because the grammar reads nothing else.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use refrain_grammar::{PgGrammar, STACK};
use refrain_pg::parts::Pg;
use refrain_pg::requests::{Answer, Case, ReadCase, TextFindings};
use refrain_pool::ids::Core;
use refrain_sql::normalize::{Analysis, Grammar, Reason};
use refrain_sql::reads::Objection;

use crate::mail::{Mail, Post};

/// Maximum number of requests that wait. Each holds a text.
const WAITING_MAX: usize = 256;

static ENCODING: Reason =
    Reason { name: "encoding", text: "the text is not UTF-8, and the grammar reads nothing else" };

/// A text to be parsed.
#[derive(Debug)]
pub(crate) enum Text {
    /// A simple query: its literals may become parameters.
    Query(Box<Case>),
    /// A statement: it may be a read, or change rows.
    Statement(Box<ReadCase>),
}

/// A text, and the core that waits for the result.
pub(crate) type ParseRequest = (Core, Text);

/// The queue of the parser thread.
#[derive(Clone, Debug)]
pub(crate) struct ParserQueue(SyncSender<ParseRequest>);

impl ParserQueue {
    /// Puts a text into the queue, unless the queue is full.
    pub(crate) fn put(&self, core: Core, text: Text) {
        match self.0.try_send((core, text)) {
            // If the queue was full, the core asks again.
            Ok(()) | Err(TrySendError::Full(_)) => {}
            // The parser thread ends after the cores.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

/// Starts the parser thread. It ends when all copies of its queue are gone.
///
/// # Errors
/// If the thread cannot be started.
pub(crate) fn open(post: Arc<Post<Pg>>) -> io::Result<(ParserQueue, JoinHandle<()>)> {
    let (queue, requests) = mpsc::sync_channel(WAITING_MAX);
    let thread = thread::Builder::new().name("parser".to_owned()).stack_size(STACK);
    let thread = thread.spawn(move || run(&post, requests))?;
    Ok((ParserQueue(queue), thread))
}

fn run(post: &Post<Pg>, requests: Receiver<ParseRequest>) {
    for (core, text) in requests {
        let answer = match text {
            Text::Query(case) => Answer::Analysed { analysis: analyse(&case), case },
            Text::Statement(case) => Answer::Read { found: Box::new(read(&case)), case },
        };
        post.send(core, Mail::Answered(answer));
    }
}

fn read(case: &ReadCase) -> TextFindings {
    let Ok(text) = str::from_utf8(case.text()) else { return Err(Objection::Encoding).into() };
    let read = refrain_grammar::read(text);
    let wanted = case.wants_effect() && read.is_err();
    TextFindings { read, effect: wanted.then(|| refrain_grammar::effect(text)) }
}

fn analyse(case: &Case) -> Analysis {
    match str::from_utf8(&case.text) {
        Ok(text) => PgGrammar.analyse(text, &case.spans),
        Err(_) => Analysis::Never(&ENCODING),
    }
}
