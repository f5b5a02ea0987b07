//! CoreStatements judged by the real grammar, off the cores.
//!
//! Parsing takes up to milliseconds, and is done once per normalized query and core: one thread is enough for all. Cases
//! wait in a queue that has an end; beyond it they are dropped. Nothing is lost by that but time: a core that gets
//! no answer asks again, as long as such texts keep coming.
//!
//! A text whose bytes are not UTF-8 is refused here, as the grammar reads nothing else.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

use refrain_grammar::{PgGrammar, STACK};
use refrain_pg::event::{Case, Core};
use refrain_sql::normalize::{Analysis, Grammar, Reason};

use crate::mail::{Mail, Post};

/// Cases that may wait. Each holds a text.
const WAITING_MAX: usize = 256;

static ENCODING: Reason =
    Reason { name: "encoding", text: "the text is not UTF-8, and the grammar reads nothing else" };

/// A case, and which core wants to know.
pub(crate) type ParseRequest = (Core, Box<Case>);

/// The way to the judge.
#[derive(Clone, Debug)]
pub(crate) struct ParserQueue(SyncSender<ParseRequest>);

impl ParserQueue {
    /// Puts a case before the judge, unless too many wait.
    pub(crate) fn bring(&self, core: Core, case: Box<Case>) {
        match self.0.try_send((core, case)) {
            // The core asks again.
            Ok(()) | Err(TrySendError::Full(_)) => {}
            // The judge goes after the cores.
            Err(TrySendError::Disconnected(_)) => {}
        }
    }
}

/// Starts the thread that judges; it ends when nobody is left who could bring a case.
///
/// # Errors
/// Where no thread can be started.
pub(crate) fn open(post: Arc<Post>) -> io::Result<(ParserQueue, JoinHandle<()>)> {
    let (bench, cases) = mpsc::sync_channel(WAITING_MAX);
    let thread = thread::Builder::new().name("judge".to_owned()).stack_size(STACK);
    let thread = thread.spawn(move || sit(&post, cases))?;
    Ok((ParserQueue(bench), thread))
}

fn sit(post: &Post, cases: Receiver<ParseRequest>) {
    for (core, case) in cases {
        let analysis = parser(&case);
        post.send(core, Mail::Analysed { case, analysis });
    }
}

fn parser(case: &Case) -> Analysis {
    match str::from_utf8(&case.text) {
        Ok(text) => PgGrammar.analyse(text, &case.spans),
        Err(_) => Analysis::Never(&ENCODING),
    }
}
