//! What the helper threads know of the program as a whole.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use refrain_config::Options;
use refrain_drive::Address;
use refrain_pg::Now;
use refrain_pg::event::Command;
use refrain_pg::shared::Shared;
use refrain_pg::snapshot::Snapshot;

use crate::clock::Clock;
use crate::mail::{Mail, Post};
use crate::resolve::Resolver;
use crate::sqlite_host::Files;

/// What the helper threads know of the program as a whole. Cores do not touch it.
pub(crate) struct State {
    pub(crate) clock: Clock,
    pub(crate) started: Now,
    pub(crate) post: Arc<Post>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) resolver: Arc<Resolver>,
    pub(crate) files: Arc<Files>,
    /// Where clients are accepted.
    pub(crate) addresses: Vec<Address>,
    /// `io_uring` or `epoll`.
    pub(crate) driver: &'static str,
    /// The file or URL the options came from, without a password.
    pub(crate) source: String,
    pub(crate) flags: Flags,
}

/// What an operator did to the program as a whole.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    draining: AtomicBool,
}

impl State {
    /// The options in force.
    pub(crate) fn options(&self) -> Arc<Options> {
        self.shared.options()
    }

    /// Whether the program is about to end, and new clients are to go elsewhere.
    pub(crate) fn is_draining(&self) -> bool {
        self.flags.draining.load(Relaxed)
    }

    pub(crate) fn set_draining(&self) {
        self.flags.draining.store(true, Relaxed);
    }

    /// Whether all databases were paused at once. A database may be paused on its own as well.
    pub(crate) fn is_paused(&self) -> bool {
        self.shared.are_all_paused()
    }

    /// Pauses a database, or all. A core that opens a pool from now on reads it there; the others are told.
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
        self.shared.set_paused(database.as_ref(), true);
        self.post.command(&Command::Kill(database));
    }

    /// Has each server of a database, or all, closed once its client is done with it.
    pub(crate) fn reconnect(&self, database: Option<Arc<str>>) {
        self.shared.reconnect(database.as_ref());
        self.post.command(&Command::Reconnect(database));
    }

    /// What every core looks like now, in their order.
    pub(crate) fn snapshots(&self, timeout: Duration) -> Vec<Snapshot> {
        let mut snapshots = self.ask(timeout, Mail::Snapshot);
        snapshots.sort_by_key(|snapshot| snapshot.core);
        snapshots
    }

    /// How many clients hold each statement, by its ID.
    pub(crate) fn statement_clients(&self, timeout: Duration) -> HashMap<u64, u32> {
        let mut clients = HashMap::new();
        for (id, count) in self.ask(timeout, Mail::StatementClients).into_iter().flatten() {
            *clients.entry(id).or_default() += count;
        }
        clients
    }

    /// Asks every core. Those that do not answer in time are left out: an incomplete answer is of more use to whoever
    /// looks for what is wrong than none.
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
