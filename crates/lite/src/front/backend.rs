//! What the sessions of one database file share, and where their connections come from.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::connection::{Connection, Database};
use crate::error::Error;
use crate::front::control::{CancelHandle, Control, Waker};
use crate::front::functions;
use crate::front::queue::Queue;
use crate::front::settings::VERSION;
use crate::front::threads::Threads;
use crate::front::turn::Turn;
use crate::stats::{CacheStats, StatementStats};

/// Connections that a pool keeps without work for them.
const IDLE_MAX: usize = 16;

/// A database file that is served in this process.
pub struct Backend {
    database: Database,
    name: String,
    lock_timeout: Duration,
    pub(crate) queue: Arc<Queue>,
    pub(crate) threads: Threads,
    sessions: Mutex<HashMap<u32, Member>>,
    next: AtomicU32,
}

/// A session, for those who would cancel it by its key.
struct Member {
    key: [u8; 4],
    control: Weak<Control>,
}

impl Backend {
    /// Serves a database; clients that name none are told this name. `lock_timeout` is how long a session stands in line to
    /// write; `readers` is the number of threads for reads that take long.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn new(
        database: Database,
        name: &str,
        lock_timeout: Duration,
        readers: usize,
    ) -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            database,
            name: name.to_owned(),
            lock_timeout,
            queue: Arc::default(),
            threads: Threads::start(readers)?,
            sessions: Mutex::default(),
            next: AtomicU32::new(1),
        }))
    }

    /// How many sessions stand in line to write.
    pub fn waiting_writers(&self) -> usize {
        self.queue.waiting()
    }

    /// How long a session stands in line to write.
    pub(crate) fn lock_timeout(&self) -> Duration {
        self.lock_timeout
    }

    /// What `current_database()` says to clients that named none.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What `server_version` says: drivers read the digits at its beginning.
    pub(crate) fn server_version() -> String {
        format!("{VERSION} (Refrain, SQLite {})", rusqlite::version())
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<u32, Member>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a session: its number and secret for BackendKeyData, and its control.
    pub(crate) fn enter(&self, waker: Waker) -> (u32, [u8; 4], Arc<Control>) {
        let pid = self.next.fetch_add(1, Ordering::Relaxed);
        let mut key = [0; 4];
        // Without randomness nobody can cancel, as nobody knows this number.
        if getrandom::fill(&mut key).is_err() {
            key = pid.rotate_left(13).to_be_bytes();
        }
        let control = Control::new(u64::from(pid), waker);
        let member = Member { key, control: Arc::downgrade(&control) };
        self.sessions().insert(pid, member);
        (pid, key, control)
    }

    /// Takes a session out.
    pub(crate) fn leave(&self, pid: u32) {
        self.sessions().remove(&pid);
    }

    /// Cancels what a session does, if the key is its own.
    pub fn cancel(&self, pid: u32, key: &[u8]) {
        let control = {
            let sessions = self.sessions();
            let member = sessions.get(&pid).filter(|member| member.key == key);
            member.map(|member| member.control.clone())
        };
        if let Some(control) = control {
            CancelHandle { control }.cancel();
        }
    }
}

/// Connections of one core.
pub struct Pool {
    pub(crate) backend: Arc<Backend>,
    #[expect(clippy::vec_box, reason = "a connection goes from hand to hand and is large")]
    idle: Mutex<Vec<Box<Connection>>>,
    books: Mutex<Books>,
    turn: Mutex<Turn>,
}

/// What is known of a pool's connections, those in use included.
#[derive(Default)]
struct Books {
    /// By number; of one in use, what was known when it was last looked at.
    open: BTreeMap<u64, CacheStats>,
    /// What those that were closed had done.
    closed: CacheStats,
}

/// A pool as it is at one moment.
pub struct PoolView {
    /// Its connections.
    pub connections: Vec<ConnectionView>,
    /// What the statement caches of closed connections had done.
    pub closed: CacheStats,
    /// Statements that are kept by connections not in use.
    pub statements: Vec<StatementStats>,
}

/// A connection of a pool.
pub struct ConnectionView {
    /// Its number in this process.
    pub number: u64,
    /// Whether a session has it; then the figures are those of an earlier look.
    pub in_use: bool,
    /// How many statements it keeps at most.
    pub size: usize,
    /// What its statement cache did.
    pub stats: CacheStats,
}

impl Pool {
    /// A pool without connections; each is opened when it is needed.
    pub fn new(backend: &Arc<Backend>) -> Arc<Self> {
        let (idle, books, turn) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Self { backend: backend.clone(), idle, books, turn })
    }

    #[expect(clippy::vec_box, reason = "as above")]
    fn idle(&self) -> MutexGuard<'_, Vec<Box<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that was given back last, or a new one.
    pub(crate) fn take(&self) -> Result<Box<Connection>, Error> {
        let idle = self.idle().pop();
        match idle {
            Some(connection) => Ok(connection),
            None => {
                let connection = Box::new(self.backend.database.connect()?);
                functions::define(&connection)?;
                self.books().open.insert(connection.number(), CacheStats::default());
                Ok(connection)
            }
        }
    }

    /// Takes a connection back, with no transaction and no run on it.
    pub(crate) fn put(&self, connection: Box<Connection>) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            return idle.push(connection);
        }
        drop(idle);
        self.close(connection);
    }

    /// Closes a connection, and remembers what it did.
    pub(crate) fn close(&self, connection: Box<Connection>) {
        let mut books = self.books();
        books.open.remove(&connection.number());
        books.closed += CacheStats { entries: 0, bytes: 0, ..connection.cache_stats() };
    }

    /// A session reads on the core's loop, and no transaction of its own is open.
    pub(crate) fn reads(&self) {
        self.turn().reads(|| self.backend.database.connect());
    }

    /// The turn of the core's loop is over: nothing reads there until the next. Whoever runs sessions in turns, each
    /// of many sessions, does well to say so, as reads of one turn cost less together; nobody has to.
    pub fn end_turn(&self) {
        self.turn().end();
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the connections that are not in use just now, say for what their caches did.
    pub fn inspect(&self, mut look: impl FnMut(&Connection)) {
        self.idle().iter().for_each(|connection| look(connection));
    }

    /// What its connections are and did. Holds up whoever takes one meanwhile.
    pub fn view(&self) -> PoolView {
        let mut statements = Vec::new();
        let mut idle = BTreeMap::new();
        self.inspect(|connection| {
            idle.insert(connection.number(), connection.cache_stats());
            statements.append(&mut connection.statement_stats());
        });
        let mut books = self.books();
        let connections = books.open.iter_mut().map(|(number, known)| {
            let found = idle.get(number);
            *known = found.copied().unwrap_or(*known);
            let size = self.backend.database.cache_size();
            ConnectionView { number: *number, in_use: found.is_none(), size, stats: *known }
        });
        let connections = connections.collect();
        PoolView { connections, closed: books.closed, statements }
    }
}
