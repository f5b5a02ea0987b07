//! The parser thread: analyses queries by PostgreSQL's grammar, off the cores.
//!
//! An analysis takes up to milliseconds, and each core asks for it once per normalized query: one
//! thread is enough for all cores. Requests wait in a bounded queue, which drops those beyond
//! [`WAITING_MAX`]. That costs nothing but time: a core without an answer asks again as long as
//! such queries keep coming.
//!
//! The parser thread refuses a text that is not UTF-8, because the grammar reads nothing else.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use refrain_grammar::{PgGrammar, STACK};
use refrain_pg::requests::Case;
use refrain_pool::ids::Core;
use refrain_sql::normalize::{Analysis, Grammar, Reason};

use crate::mail::{Mail, Post};

/// Maximum number of requests that wait. Each holds a text.
const WAITING_MAX: usize = 256;

static ENCODING: Reason =
    Reason { name: "encoding", text: "the text is not UTF-8, and the grammar reads nothing else" };

/// A case, and the core that waits for its analysis.
pub(crate) type ParseRequest = (Core, Box<Case>);

/// The queue of the parser thread.
#[derive(Clone, Debug)]
pub(crate) struct ParserQueue(SyncSender<ParseRequest>);

impl ParserQueue {
    /// Puts a case into the queue, unless the queue is full.
    pub(crate) fn put(&self, core: Core, case: Box<Case>) {
        match self.0.try_send((core, case)) {
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
pub(crate) fn open(post: Arc<Post>) -> io::Result<(ParserQueue, JoinHandle<()>)> {
    let (queue, requests) = mpsc::sync_channel(WAITING_MAX);
    let thread = thread::Builder::new().name("parser".to_owned()).stack_size(STACK);
    let thread = thread.spawn(move || run(&post, requests))?;
    Ok((ParserQueue(queue), thread))
}

fn run(post: &Post, requests: Receiver<ParseRequest>) {
    for (core, case) in requests {
        let analysis = analyse(&case);
        post.send(core, Mail::Analysed { case, analysis });
    }
}

fn analyse(case: &Case) -> Analysis {
    match str::from_utf8(&case.text) {
        Ok(text) => PgGrammar.analyse(text, &case.spans),
        Err(_) => Analysis::Never(&ENCODING),
    }
}
