//! All cores that serve one protocol, as the helper threads see them.
//!
//! A core serves one protocol. A process that serves two has cores of each: they share no pool and
//! send each other no mail. Helper threads that work for the whole process reach the cores as
//! [`AnyCores`], whatever their protocol.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use refrain_config::{Backend, Database, Options};
use refrain_drive::{Driver, Kernel};
use refrain_pg::snapshot::StatementView;
use refrain_pool::event::Command;
use refrain_pool::hosts::HostView;
use refrain_pool::ids::Core;
use refrain_pool::lobby::Lobby;
use refrain_pool::process::Process;
use refrain_pool::shared::Shared;
use refrain_pool::snapshot::{Extent, Snapshot};
use refrain_pool::{Engine, Now};

use crate::loads::Loads;
use crate::mail::{Look, Mail, Post};
use crate::random;
use crate::served::Served;

/// All cores that serve a protocol.
pub(crate) struct Cores<P: Served> {
    pub(crate) post: Arc<Post<P>>,
    pub(crate) shared: Arc<Shared<P>>,
    pub(crate) loads: Loads,
}

impl<P: Served> Cores<P> {
    /// Makes a core for each kernel driver. There is room for so many connections of clients.
    pub(crate) fn new(
        process: Arc<Process>,
        options: &Arc<Options>,
        kernels: &[Kernel],
        room: u32,
    ) -> Arc<Self> {
        let cores = u16::try_from(kernels.len()).unwrap_or(u16::MAX);
        let own = options.of_backends(P::serves);
        let shared = Shared::in_process(process, own, cores, &mut random::fill);
        shared.lobby.set_room(room);
        Arc::new(Self {
            post: Arc::new(Post::new(kernels.iter().map(Driver::waker))),
            shared,
            loads: Loads::new(kernels.len(), options.general.worker_load),
        })
    }

    /// Returns a snapshot of each core, in the order of the cores.
    pub(crate) fn snapshots(&self, timeout: Duration, extent: Extent) -> Vec<Snapshot<P>> {
        let mut snapshots = self.look(timeout, move |engine, now| engine.snapshot_of(now, extent));
        snapshots.sort_by_key(|snapshot| snapshot.core);
        snapshots
    }

    /// Looks at every core, between two steps. The result leaves out cores that do not answer in
    /// time: for an operator who looks for a fault, an incomplete answer is better than none.
    pub(crate) fn look<T: Send + 'static>(
        &self,
        timeout: Duration,
        see: impl Fn(&Engine<P>, Now) -> T + Copy + Send + 'static,
    ) -> Vec<T> {
        let (answer, answers) = mpsc::channel();
        let cores = self.post.cores();
        let expected = cores.len();
        cores.for_each(|core| {
            let answer = answer.clone();
            // The thread that asked may have stopped waiting.
            let look = Look::new(move |engine, now| drop(answer.send(see(engine, now))));
            self.post.send(core, Mail::Look(look));
        });
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

/// All cores that serve a protocol, whatever it is.
pub(crate) trait AnyCores: Send + Sync {
    /// Returns the number of cores.
    fn count(&self) -> usize;
    /// Returns the number of clients of all cores.
    fn clients(&self) -> u32;
    /// Gives a command to every core.
    fn command(&self, command: &Command);
    /// Stops accepting clients.
    fn refuse_clients(&self);
    /// Puts new options into force.
    fn reload(&self, options: &Arc<Options>);
    /// Whether the cores serve databases with this backend.
    fn serves(&self, backend: Backend) -> bool;
    /// Returns a snapshot of each core. What is PostgreSQL's alone is empty.
    fn any_snapshots(&self, timeout: Duration, extent: Extent) -> Vec<refrain_pg::Snapshot>;
    /// Returns the statements of all cores, with their figures.
    fn statements(&self, timeout: Duration) -> Vec<StatementView>;
    /// Returns the number of cores that answer within this time.
    fn answering(&self, timeout: Duration) -> usize;
    /// Returns the databases of which no host may serve, as far as is known.
    fn unreachable(&self) -> Vec<Database>;
    /// Returns what is known of the hosts of databases that have several, or that want one of a
    /// certain state.
    fn hosts(&self) -> Vec<HostView>;
    /// Returns the counts of connections of clients.
    fn lobby(&self) -> &Lobby;
    /// Counts the servers of a database, or of all.
    fn database_servers(&self, database: Option<&str>) -> u32;
    /// Pauses a database, or all. Cores with pools get a command; a core that opens a pool later
    /// reads the pause in what the cores share.
    fn pause(&self, database: Option<&Arc<str>>);
    /// Resumes a database, or all.
    fn resume(&self, database: Option<&Arc<str>>);
    /// Has a database take no new clients, or take them again.
    fn set_disabled(&self, database: &Arc<str>, disabled: bool);
    /// True if all databases were paused at once. A database may be paused on its own as well.
    fn are_all_paused(&self) -> bool;
    /// Closes all clients and servers of a database, or all, and pauses it.
    fn kill(&self, database: Option<&Arc<str>>);
    /// Makes the cores close each server of a database, or of all, once its client is done with it.
    fn reconnect(&self, database: Option<&Arc<str>>);
}

impl<P: Served> AnyCores for Cores<P> {
    fn count(&self) -> usize {
        self.post.cores().len()
    }

    fn clients(&self) -> u32 {
        self.loads.total()
    }

    fn command(&self, command: &Command) {
        self.post.command(command);
    }

    // The first core accepts the clients of all.
    fn refuse_clients(&self) {
        self.post.send(Core(0), Mail::Unlisten);
    }

    fn reload(&self, options: &Arc<Options>) {
        let own = options.of_backends(P::serves);
        self.shared.reload(Arc::clone(&own));
        self.post.command(&Command::Reload(own));
    }

    fn serves(&self, backend: Backend) -> bool {
        P::serves(backend)
    }

    fn any_snapshots(&self, timeout: Duration, extent: Extent) -> Vec<refrain_pg::Snapshot> {
        let snapshots = self.snapshots(timeout, extent).into_iter();
        snapshots.map(|one| one.of_another(P::client_view_of, P::server_view_of)).collect()
    }

    fn statements(&self, timeout: Duration) -> Vec<StatementView> {
        let cores = self.look(timeout, |engine, _| P::statements_of(engine));
        P::statements(&self.shared, &cores)
    }

    fn answering(&self, timeout: Duration) -> usize {
        self.look(timeout, |_, _| ()).len()
    }

    fn unreachable(&self) -> Vec<Database> {
        self.shared.unreachable()
    }

    fn hosts(&self) -> Vec<HostView> {
        self.shared.host_lists().iter().flat_map(|hosts| hosts.view()).collect()
    }

    fn lobby(&self) -> &Lobby {
        &self.shared.lobby
    }

    fn database_servers(&self, database: Option<&str>) -> u32 {
        self.shared.counts.database_servers(database)
    }

    fn pause(&self, database: Option<&Arc<str>>) {
        self.shared.set_paused(database, true);
        self.post.command(&Command::Pause(database.cloned()));
    }

    fn resume(&self, database: Option<&Arc<str>>) {
        self.shared.set_paused(database, false);
        self.post.command(&Command::Resume(database.cloned()));
    }

    fn set_disabled(&self, database: &Arc<str>, disabled: bool) {
        self.shared.set_disabled(database, disabled);
    }

    fn are_all_paused(&self) -> bool {
        self.shared.are_all_paused()
    }

    fn kill(&self, database: Option<&Arc<str>>) {
        self.shared.kill(database);
        self.post.command(&Command::Kill(database.cloned()));
    }

    fn reconnect(&self, database: Option<&Arc<str>>) {
        self.shared.reconnect(database);
        self.post.command(&Command::Reconnect(database.cloned()));
    }
}
