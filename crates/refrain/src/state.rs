//! The state of the whole program that the helper threads share.

use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use refrain_config::{Database, Options};
use refrain_drive::Address;
use refrain_pool::Now;
use refrain_pool::event::Command;
use refrain_pool::hosts::HostView;

use crate::clock::Clock;
use crate::cores::AnyCores;
use crate::inherit::Handles;
use crate::resolve::Resolver;
use crate::systemd::Supervising;
use crate::tls::{Setup, Store};

/// The state of the whole program that the helper threads share. Cores do not use it.
pub(crate) struct State {
    pub(crate) clock: Clock,
    pub(crate) started: Now,
    /// The cores, one entry for each protocol that is served.
    pub(crate) cores: Vec<Arc<dyn AnyCores>>,
    pub(crate) resolver: Arc<Resolver>,
    pub(crate) tls: Arc<Store>,
    /// The addresses at which clients are accepted.
    pub(crate) addresses: Vec<Address>,
    /// `io_uring` or `epoll`.
    pub(crate) driver: &'static str,
    /// The file or URL of the options, without a password.
    pub(crate) source: String,
    pub(crate) options: RwLock<Arc<Options>>,
    pub(crate) flags: Flags,
    /// Second handles on the sockets at which the program listens.
    pub(crate) handles: Handles,
    pub(crate) metrics: MetricsSocket,
    pub(crate) supervising: Supervising,
    /// The parts of the program, beside the cores, that follow the options.
    pub(crate) followers: OptionsFollowers,
    /// The last reload of the configuration.
    pub(crate) reloaded: Mutex<Option<Reloaded>>,
}

/// A part of the program that takes in the options.
type OptionsFollower = Box<dyn Fn(&Options) + Send + Sync>;

/// The parts of the program that take in the options, now and whenever these change.
#[derive(Default)]
pub(crate) struct OptionsFollowers(Mutex<Vec<OptionsFollower>>);

/// A reload of the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Reloaded {
    pub(crate) at: Now,
    /// The number of options that changed, or why none did.
    pub(crate) outcome: Result<usize, String>,
}

/// Whether the socket of the metrics is another program's by now.
#[derive(Debug, Default)]
pub(crate) struct MetricsSocket {
    given: AtomicBool,
    /// Wakes the thread that serves the metrics.
    rope: OnceLock<UnixStream>,
}

impl MetricsSocket {
    /// Sets the socket that wakes the thread of the metrics.
    pub(crate) fn ring_by(&self, rope: UnixStream) {
        // The metrics are served once.
        let _ = self.rope.set(rope);
    }

    /// True if this program is not to accept at the socket any more.
    pub(crate) fn are_given(&self) -> bool {
        self.given.load(Relaxed)
    }

    /// Leaves the socket to another program.
    pub(crate) fn give(&self) {
        self.given.store(true, Relaxed);
        if let Some(mut rope) = self.rope.get() {
            // If the socket is full, the thread is about to wake.
            let _ = rope.write(&[0]);
        }
    }
}

/// Switches of the whole program that an operator sets.
#[derive(Debug, Default)]
pub(crate) struct Flags {
    draining: AtomicBool,
}

impl State {
    /// Returns the options in force.
    pub(crate) fn options(&self) -> Arc<Options> {
        self.options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes a reload of the configuration.
    pub(crate) fn note_reload(&self, outcome: Result<usize, String>) {
        let reloaded = Reloaded { at: self.clock.now(), outcome };
        *self.reloaded.lock().unwrap_or_else(PoisonError::into_inner) = Some(reloaded);
    }

    /// Returns the last reload of the configuration, if there was one.
    pub(crate) fn last_reload(&self) -> Option<Reloaded> {
        self.reloaded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts new options into force, and the files that they name.
    pub(crate) fn reload(&self, options: Options, setup: Setup) {
        let options = Arc::new(options);
        // Before the options: these name what is in the setup.
        self.tls.replace(setup);
        *self.options.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&options);
        self.resolver.configure(&options.general);
        self.cores.iter().for_each(|cores| cores.reload(&options));
        self.followers().iter().for_each(|take| take(&options));
    }

    /// Gives the options to `take`, now and whenever they change.
    pub(crate) fn on_options(&self, take: impl Fn(&Options) + Send + Sync + 'static) {
        // A reload waits for the lock, so that `take` gets its options or gets them later.
        let mut followers = self.followers();
        take(&self.options());
        followers.push(Box::new(take));
    }

    fn followers(&self) -> MutexGuard<'_, Vec<OptionsFollower>> {
        self.followers.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the TCP addresses at which clients are accepted.
    pub(crate) fn tcp_addresses(&self) -> Vec<SocketAddr> {
        let tcp = |address: &Address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        };
        self.addresses.iter().filter_map(tcp).collect()
    }

    /// Returns what the program does, in a line for its supervisor.
    pub(crate) fn status(&self) -> String {
        let addresses: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
        format!("Serving at {}", addresses.join(", "))
    }

    /// Returns a warning for each database that no core serves: its protocol was not needed at the
    /// start.
    pub(crate) fn unserved(&self, options: &Options) -> Vec<String> {
        let is_served = |database: &&Database| {
            self.cores.iter().any(|cores| cores.serves(database.server.backend))
        };
        let unserved = options.databases.iter().filter(|database| !is_served(database));
        let warning = |database: &Database| {
            format!("database {} is the first of its kind: restart to serve it", database.name)
        };
        unserved.map(warning).collect()
    }

    /// Returns the number of cores.
    pub(crate) fn core_count(&self) -> usize {
        self.cores.iter().map(|cores| cores.count()).sum()
    }

    /// True if each core ends a turn within this time.
    pub(crate) fn all_cores_answer(&self, timeout: Duration) -> bool {
        self.cores.iter().all(|cores| cores.answering(timeout) == cores.count())
    }

    /// Returns the number of clients.
    pub(crate) fn clients(&self) -> u32 {
        self.cores.iter().map(|cores| cores.clients()).fold(0, u32::wrapping_add)
    }

    /// Returns the databases of which no host may serve, as far as is known.
    pub(crate) fn unreachable(&self) -> Vec<Database> {
        self.cores.iter().flat_map(|cores| cores.unreachable()).collect()
    }

    /// Returns what is known of the hosts of databases that have several, or that want one of a
    /// certain state.
    pub(crate) fn hosts(&self) -> Vec<HostView> {
        self.cores.iter().flat_map(|cores| cores.hosts()).collect()
    }

    /// Counts the servers of a database, or of all.
    pub(crate) fn database_servers(&self, database: Option<&str>) -> u32 {
        self.cores.iter().map(|cores| cores.database_servers(database)).sum()
    }

    /// Gives a command to every core.
    pub(crate) fn command(&self, command: &Command) {
        self.cores.iter().for_each(|cores| cores.command(command));
    }

    /// Has the cores leave the addresses that names of hosts lose from now on.
    pub(crate) fn follow_names(self: &Arc<Self>) {
        let state = Arc::downgrade(self);
        self.resolver.follow(move |name, gone| {
            if let Some(state) = state.upgrade() {
                state.command(&Command::LeaveAddresses(name.into(), gone.into()));
            }
        });
    }

    /// True if a shutdown has begun, so that new clients should go elsewhere.
    pub(crate) fn is_draining(&self) -> bool {
        self.flags.draining.load(Relaxed)
    }

    pub(crate) fn set_draining(&self) {
        self.flags.draining.store(true, Relaxed);
    }

    /// Begins a shutdown: no core accepts clients any more, and nothing else listens for them.
    pub(crate) fn refuse_clients(&self) {
        self.set_draining();
        self.handles.close();
        self.cores.iter().for_each(|cores| cores.refuse_clients());
    }

    /// Leaves the sockets in these places to another program, and accepts clients at none.
    pub(crate) fn hand_over(&self, places: &[usize], asking_stays: bool) {
        self.handles.hand_over(places, asking_stays);
        self.metrics.give();
        self.refuse_clients();
    }

    /// True if all databases were paused at once. A database may be paused on its own as well.
    pub(crate) fn is_paused(&self) -> bool {
        self.cores.iter().all(|cores| cores.are_all_paused())
    }

    /// Pauses a database, or all.
    pub(crate) fn pause(&self, database: Option<&Arc<str>>) {
        self.cores.iter().for_each(|cores| cores.pause(database));
    }

    /// Resumes a database, or all.
    pub(crate) fn resume(&self, database: Option<&Arc<str>>) {
        self.cores.iter().for_each(|cores| cores.resume(database));
    }

    /// Has a database take no new clients, or take them again.
    pub(crate) fn set_disabled(&self, database: &Arc<str>, disabled: bool) {
        self.cores.iter().for_each(|cores| cores.set_disabled(database, disabled));
    }

    /// Closes all clients and servers of a database, or all, and pauses it.
    pub(crate) fn kill(&self, database: Option<&Arc<str>>) {
        self.cores.iter().for_each(|cores| cores.kill(database));
    }

    /// Makes the cores close each server of a database, or of all, once its client is done with it.
    pub(crate) fn reconnect(&self, database: Option<&Arc<str>>) {
        self.cores.iter().for_each(|cores| cores.reconnect(database));
    }
}
