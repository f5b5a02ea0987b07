//! The state of the whole program that the helper threads share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use refrain_config::Options;
use refrain_drive::Address;
use refrain_pg::{Shared, Snapshot};
use refrain_pool::Now;
use refrain_pool::event::Command;

use crate::clock::Clock;
use crate::mail::{Mail, Post};
use crate::resolve::Resolver;
use crate::sqlite_host::Files;
use crate::tls::Store;

/// The state of the whole program that the helper threads share. Cores do not use it.
pub(crate) struct State {
    pub(crate) clock: Clock,
    pub(crate) started: Now,
    pub(crate) post: Arc<Post>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) resolver: Arc<Resolver>,
    pub(crate) files: Arc<Files>,
    pub(crate) tls: Arc<Store>,
    /// The addresses at which clients are accepted.
    pub(crate) addresses: Vec<Address>,
    /// `io_uring` or `epoll`.
    pub(crate) driver: &'static str,
    /// The file or URL of the options, without a password.
    pub(crate) source: String,
    pub(crate) flags: Flags,
}

/// Switches of the whole program that an operator sets.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    draining: AtomicBool,
}

impl State {
    /// Returns the options in force.
    pub(crate) fn options(&self) -> Arc<Options> {
        self.shared.options()
    }

    /// True if a shutdown has begun, so that new clients should go elsewhere.
    pub(crate) fn is_draining(&self) -> bool {
        self.flags.draining.load(Relaxed)
    }

    pub(crate) fn set_draining(&self) {
        self.flags.draining.store(true, Relaxed);
    }

    /// True if all databases were paused at once. A database may be paused on its own as well.
    pub(crate) fn is_paused(&self) -> bool {
        self.shared.are_all_paused()
    }

    /// Pauses a database, or all. Cores with pools get a command; a core that opens a pool later
    /// reads the pause in `shared`.
    pub(crate) fn pause(&self, database: Option<Arc<str>>) {
        self.shared.set_paused(database.as_ref(), true);
        self.post.command(&Command::Pause(database));
    }

    /// Resumes a database, or all.
    pub(crate) fn resume(&self, database: Option<Arc<str>>) {
        self.shared.set_paused(database.as_ref(), false);
        self.post.command(&Command::Resume(database));
    }

    /// Closes all clients and servers of a database, or all, and pauses it.
    pub(crate) fn kill(&self, database: Option<Arc<str>>) {
        self.shared.kill(database.as_ref());
        self.post.command(&Command::Kill(database));
    }

    /// Makes the cores close each server of a database, or of all, once its client is done with it.
    pub(crate) fn reconnect(&self, database: Option<Arc<str>>) {
        self.shared.reconnect(database.as_ref());
        self.post.command(&Command::Reconnect(database));
    }

    /// Returns a snapshot of each core, in the order of the cores.
    pub(crate) fn snapshots(&self, timeout: Duration) -> Vec<Snapshot> {
        let mut snapshots = self.ask(timeout, Mail::Snapshot);
        snapshots.sort_by_key(|snapshot| snapshot.core);
        snapshots
    }

    /// Counts the clients that hold each statement, by the statement's ID.
    pub(crate) fn statement_clients(&self, timeout: Duration) -> HashMap<u64, u32> {
        let mut clients = HashMap::new();
        for (id, count) in self.ask(timeout, Mail::StatementClients).into_iter().flatten() {
            *clients.entry(id).or_default() += count;
        }
        clients
    }

    /// Asks every core. The result leaves out cores that do not answer in time: for an operator who
    /// looks for a fault, an incomplete answer is better than none.
    fn ask<T>(&self, timeout: Duration, question: impl Fn(Sender<T>) -> Mail) -> Vec<T> {
        let (answer, answers) = mpsc::channel();
        let cores = self.post.cores();
        let expected = cores.len();
        cores.for_each(|core| self.post.send(core, question(answer.clone())));
        drop(answer);
        let deadline = Instant::now() + timeout;
        let mut answered: Vec<T> = Vec::with_capacity(expected);
        while answered.len() < expected {
            match answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(one) => answered.push(one),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        answered
    }
}
