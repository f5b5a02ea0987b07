//! The state that the sessions of one database file share: the [`Backend`] of the file, and a
//! [`Pool`] of connections for each core.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use refrain_sqlite::{CacheStats, Connection, Database, StatementStats};

use crate::checkpoint_timer::CheckpointTimer;
use crate::compute;
use crate::context::Shared;
use crate::control::{CancelHandle, Control, Waker};
use crate::disk::Disk;
use crate::failure::{Failure, state};
use crate::functions;
use crate::group_commit::{GroupCommit, SyncWal};
use crate::idle::IdleConnections;
use crate::operator_log::{LogSink, OperatorLog};
use crate::runs_on::RunsOn;
use crate::settings::VERSION;
use crate::threads::{Lane, Threads};
use crate::translation_cache::TranslationCache;
use crate::turn::Turn;
use crate::watch::{self, Look, Watch};
use crate::write_queue::WriteQueue;

/// Bytes that a message may have besides its longest value.
const MESSAGE_BESIDES: usize = 64 * 1024;
/// How often a thread tries to empty the WAL of a file that is gone.
const RESCUE_EVERY: Duration = Duration::from_millis(200);

/// A database file that this process serves. There must be one backend for each file: it has the
/// write queue.
pub struct Backend {
    name: String,
    operator_log: OperatorLog,
    pub(crate) watch: Watch,
    pub(crate) disk: Disk,
    pub(crate) queue: Arc<WriteQueue>,
    pub(crate) threads: Threads,
    pub(crate) commits: GroupCommit,
    pub(crate) shared: Arc<Shared>,
    sessions: Mutex<Sessions>,
}

/// The sessions by process ID.
#[derive(Default)]
struct Sessions {
    entries: HashMap<u32, SessionEntry>,
    /// The ID that was given last.
    last: u32,
}

impl Sessions {
    /// Returns the next process ID, a positive `i32` that no session has. It comes back only after
    /// all others: a late cancel request names nobody.
    fn next_id(&mut self) -> u32 {
        loop {
            self.last = self.last % i32::MAX.unsigned_abs() + 1;
            if !self.entries.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

/// A session, as a cancel request finds it.
struct SessionEntry {
    key: [u8; 4],
    control: Weak<Control>,
}

impl Backend {
    /// Serves a file. `name` is the database name of clients that give none; `readers` is the
    /// number of threads for reads that take long.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn new(name: &str, readers: usize) -> std::io::Result<Arc<Self>> {
        Self::with_log(name, readers, Arc::new(|_, _| {}))
    }

    /// Serves a file. Any thread may call `sink`, with a message that an operator has to see.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn with_log(name: &str, readers: usize, sink: LogSink) -> std::io::Result<Arc<Self>> {
        Self::with_disk(name, readers, sink, Arc::new(refrain_sqlite::sync_wal))
    }

    /// Serves a file. `sync` waits until a WAL is on disk; the path is that of the WAL.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn with_disk(
        name: &str,
        readers: usize,
        sink: LogSink,
        sync: SyncWal,
    ) -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            name: name.to_owned(),
            operator_log: OperatorLog::new(sink),
            watch: Watch::new(),
            disk: Disk::default(),
            queue: Arc::default(),
            shared: Arc::default(),
            threads: Threads::start(readers)?,
            commits: GroupCommit::start(sync)?,
            sessions: Mutex::default(),
        }))
    }

    /// Returns how many sessions wait for the right to write.
    pub fn waiting_writers(&self) -> usize {
        self.queue.waiting()
    }

    /// Keeps at least `readers` threads for reads that take long.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn want_readers(&self, readers: usize) -> std::io::Result<()> {
        self.threads.want_readers(readers)
    }

    /// Returns the database name of clients that give none.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value of `server_version`. Drivers read the digits at its beginning.
    pub(crate) fn server_version() -> String {
        format!("{VERSION} (Refrain, SQLite {})", rusqlite::version())
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a session. Returns its process ID and secret key for BackendKeyData, and its
    /// control.
    pub(crate) fn enter(&self, waker: Waker) -> (u32, [u8; 4], Arc<Control>) {
        let pid = self.sessions().next_id();
        let mut key = [0; 4];
        // Without randomness a key made from the process ID serves; no two sessions have the same.
        if getrandom::fill(&mut key).is_err() {
            key = pid.rotate_left(13).to_be_bytes();
        }
        let control = Control::new(u64::from(pid), waker);
        let member = SessionEntry { key, control: Arc::downgrade(&control) };
        self.sessions().entries.insert(pid, member);
        (pid, key, control)
    }

    /// Removes a session.
    pub(crate) fn leave(&self, pid: u32) {
        self.sessions().entries.remove(&pid);
        // At once: those that wait may have all threads, and the session's end may need one.
        self.shared.advisory.session_ended(pid);
    }

    /// Cancels the running statement of a session, if `key` is the session's own.
    pub fn cancel(&self, pid: u32, key: &[u8]) {
        let control = {
            let sessions = self.sessions();
            let member = sessions.entries.get(&pid).filter(|member| member.key == key);
            member.map(|member| member.control.clone())
        };
        if let Some(control) = control {
            CancelHandle { control }.cancel();
        }
    }
}

/// The connections of one core, all opened with the same options.
pub struct Pool {
    pub(crate) backend: Arc<Backend>,
    database: Database,
    /// The WAL, if commits wait for the disk in a group.
    synced_wal: Option<Arc<Path>>,
    lock_timeout: Duration,
    idle: IdleConnections,
    known_connections: Mutex<KnownConnections>,
    turn: Mutex<Turn>,
    checkpoint_timer: CheckpointTimer,
    pub(crate) translations: TranslationCache,
}

/// The statistics of a pool's connections, those in use included.
#[derive(Default)]
struct KnownConnections {
    /// The open connections by number. The statistics of one in use are those of the last look at
    /// it.
    open: BTreeMap<u64, CacheStats>,
    /// The sum over closed connections.
    closed: CacheStats,
    /// The number of the connection for short reads.
    reader: Option<u64>,
}

/// A snapshot of a pool.
pub struct PoolView {
    /// The pool's connections.
    pub connections: Vec<ConnectionView>,
    /// The sum of the counters of closed connections' statement caches.
    pub closed: CacheStats,
    /// The statements that idle connections keep.
    pub statements: Vec<StatementStats>,
}

/// A connection of a pool.
pub struct ConnectionView {
    /// Its number, unique in this process.
    pub number: u64,
    /// True if a session uses it. Then `stats` are those of an earlier look.
    pub in_use: bool,
    /// The maximum number of statements that it keeps.
    pub size: usize,
    /// The counters of its statement cache.
    pub stats: CacheStats,
}

impl Pool {
    /// Makes a pool without connections; each is opened when a session needs it. `database` must be
    /// the file that `backend` serves; `lock_timeout` is how long a session waits for the right to
    /// write.
    pub fn new(
        backend: &Arc<Backend>,
        mut database: Database,
        lock_timeout: Duration,
    ) -> Arc<Self> {
        let later = database.sync_later();
        let synced_wal = later.then(|| Arc::from(refrain_sqlite::wal_path(database.path())));
        Arc::new(Self {
            backend: backend.clone(),
            database,
            synced_wal,
            lock_timeout,
            idle: IdleConnections::default(),
            known_connections: Mutex::default(),
            turn: Mutex::default(),
            checkpoint_timer: CheckpointTimer::default(),
            translations: TranslationCache::default(),
        })
    }

    /// Returns the length in bytes of the longest message that a client may send. The text form of
    /// a `bytea` is twice as long as its bytes.
    pub(crate) fn longest_message(&self) -> usize {
        self.database.longest().saturating_mul(2).saturating_add(MESSAGE_BESIDES)
    }

    /// Returns how long a session waits for the right to write.
    pub(crate) fn lock_timeout(&self) -> Duration {
        self.lock_timeout
    }

    fn known_connections(&self) -> MutexGuard<'_, KnownConnections> {
        self.known_connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an idle connection, or opens one. The loop gets the connection for short reads, if
    /// that one is idle.
    pub(crate) fn take(self: &Arc<Self>, runs_on: RunsOn) -> Result<Box<Connection>, Failure> {
        let connection = match self.idle.take(runs_on) {
            Some(connection) => connection,
            None => Box::new(self.connect()?),
        };
        if (connection.has_broken_index() || self.backend.watch.is_due())
            && let Err(gone) = self.check(&connection)
        {
            self.put(connection);
            return Err(gone);
        }
        Ok(connection)
    }

    /// True if a connection is idle.
    pub(crate) fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// Opens a connection. A file that was served already is not created again, and another file in
    /// its place is not opened.
    fn connect(self: &Arc<Self>) -> Result<Connection, Failure> {
        let connection = self.open()?;
        let defined = functions::define(&connection).and_then(|()| compute::define(&connection));
        let mut known_connections = self.known_connections();
        let made = defined.and_then(|()| match known_connections.reader {
            None => self.database.make_reader(&connection),
            Some(_) => Ok(()),
        });
        made.map_err(|error| Failure::of_sqlite(&error, b""))?;
        known_connections.reader.get_or_insert(connection.number());
        known_connections.open.insert(connection.number(), CacheStats::default());
        drop(known_connections);
        Ok(connection)
    }

    fn open(self: &Arc<Self>) -> Result<Connection, Failure> {
        let (watch, path) = (&self.backend.watch, self.database.path());
        if !watch.leads_there(path) {
            if watch.lose() {
                self.lost();
            }
            return Err(watch::gone(path));
        }
        let opened = match watch.is_new() {
            true => self.database.connect(),
            false => self.database.connect_again(),
        };
        let connection = opened.map_err(|error| Failure::of_sqlite(&error, b""))?;
        watch.opened(path);
        Ok(connection)
    }

    /// Checks that the path still leads to the file that is served.
    ///
    /// # Errors
    /// 58P01: it does not. 58030: the WAL's index (`-shm`) is not whole.
    pub(crate) fn check(self: &Arc<Self>, connection: &Connection) -> Result<(), Failure> {
        connection.check_index()?;
        let path = self.database.path();
        match self.backend.watch.look(connection) {
            Look::Here => return Ok(()),
            Look::Lost => self.lost(),
            Look::Gone => {}
            Look::Back => {
                self.backend.operator_log.log("58P01", "the file is in its place again");
                return Ok(());
            }
        }
        Err(watch::gone(path))
    }

    /// Checks the file after a commit.
    ///
    /// # Errors
    /// 58030: the commit did not reach the file that is there now.
    pub(crate) fn check_commit(self: &Arc<Self>, connection: &Connection) -> Result<(), Failure> {
        self.check(connection).map_err(|failure| match failure.sqlstate {
            state::UNDEFINED_FILE => watch::committed_to_nothing(self.database.path()),
            _ => failure,
        })
    }

    /// Reports that the file is gone, and lets a thread empty its WAL into it.
    fn lost(self: &Arc<Self>) {
        let words = "the file was moved, replaced or deleted: it is not served until it is back";
        self.backend.operator_log.log("58P01", words);
        self.rescue_at(Instant::now());
    }

    fn rescue_at(self: &Arc<Self>, moment: Instant) {
        let pool = Arc::downgrade(self);
        let rescue = move || {
            let Some(pool) = pool.upgrade() else { return };
            let threads = pool.backend.clone();
            threads.threads.send(Lane::Read, Box::new(move || pool.rescue()));
        };
        self.backend.threads.wake_at(moment, Arc::new(rescue));
    }

    fn rescue(self: &Arc<Self>) {
        let emptied = self.idle.take(RunsOn::Thread).is_some_and(|connection| {
            let emptied = connection.empty_wal();
            self.put(connection);
            emptied.is_ok()
        });
        if !emptied && self.backend.watch.is_gone() {
            self.rescue_at(Instant::now() + RESCUE_EVERY);
        }
    }

    /// Reports an error that a client got, if an operator has to know of it.
    pub(crate) fn failed(&self, failure: &Failure) {
        self.backend.operator_log.log_failure(failure, Instant::now());
    }

    /// Takes a connection back. No transaction and no run may be open on it.
    pub(crate) fn put(&self, connection: Box<Connection>) {
        if let Some(surplus) = self.idle.put(connection) {
            self.close(surplus);
        }
    }

    /// Closes a connection and keeps its statistics.
    pub(crate) fn close(&self, connection: Box<Connection>) {
        let mut known_connections = self.known_connections();
        known_connections.open.remove(&connection.number());
        known_connections.reader =
            known_connections.reader.filter(|reader| *reader != connection.number());
        known_connections.closed += CacheStats { entries: 0, bytes: 0, ..connection.cache_stats() };
    }

    /// Notes a read on the core's loop outside of a transaction.
    pub(crate) fn reads(self: &Arc<Self>) {
        self.turn().reads(|| self.open());
    }

    /// Ends the turn of the core's loop: no session reads there until the next turn. A caller that
    /// runs many sessions in turns should call this, as the reads of one turn then share SQLite's
    /// lock; a caller need not.
    pub fn end_turn(&self) {
        self.turn().end();
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the WAL that has to be on disk before a commit is acknowledged; none if a commit
    /// need not be there, or is there already.
    pub(crate) fn synced_wal(&self) -> Option<&Arc<Path>> {
        self.synced_wal.as_ref()
    }

    /// Notes that a session has written and has given up the right to write.
    pub(crate) fn wrote(self: &Arc<Self>) {
        if let Some(moment) = self.checkpoint_timer.wrote(Instant::now()) {
            self.look_at(moment);
        }
    }

    /// Lets the clock check at `moment` whether sessions still write.
    fn look_at(self: &Arc<Self>, moment: Instant) {
        let pool = Arc::downgrade(self);
        let look = move || {
            if let Some(pool) = pool.upgrade() {
                pool.look();
            }
        };
        self.backend.threads.wake_at(moment, Arc::new(look));
    }

    fn look(self: &Arc<Self>) {
        if let Some(again) = self.checkpoint_timer.look(Instant::now()) {
            return self.look_at(again);
        }
        let pool = self.clone();
        self.backend.threads.send(Lane::Read, Box::new(move || pool.copy_wal()));
    }

    /// Copies the WAL into the file without waiting: pages that a reader still needs stay in the
    /// WAL for now.
    fn copy_wal(self: &Arc<Self>) {
        let Ok(connection) = self.take(RunsOn::Thread) else { return };
        let copied = connection.checkpoint();
        self.put(connection);
        if copied.is_ok_and(|(frames, copied)| copied < frames) {
            self.wrote();
        }
    }

    /// Calls `look` with each idle connection, for instance to read its statistics.
    pub fn inspect(&self, mut look: impl FnMut(&Connection)) {
        self.idle.each(&mut look);
    }

    /// Returns a snapshot of the connections and their statistics. A session that takes a
    /// connection meanwhile waits for this.
    pub fn view(&self) -> PoolView {
        let mut statements = Vec::new();
        let mut idle = BTreeMap::new();
        self.inspect(|connection| {
            idle.insert(connection.number(), connection.cache_stats());
            statements.append(&mut connection.statement_stats());
        });
        let mut known_connections = self.known_connections();
        let connections = known_connections.open.iter_mut().map(|(number, known)| {
            let found = idle.get(number);
            *known = found.copied().unwrap_or(*known);
            let size = self.database.cache_size();
            ConnectionView { number: *number, in_use: found.is_none(), size, stats: *known }
        });
        let connections = connections.collect();
        PoolView { connections, closed: known_connections.closed, statements }
    }
}
