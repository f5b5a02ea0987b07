//! Hosts SQLite in the place of PostgreSQL servers: its sessions look like server connections to
//! the engine.
//!
//! A session stands under a connection's number, as a socket would. What the engine sends there
//! goes into the session; its replies come back in the same turn as bytes that arrived. Neither
//! needs a system call. A statement that takes long runs on a thread of `refrain-sqlite-pg`; its
//! end comes as mail.
//!
//! An idle session goes from core to core by mail, as a socket does.
//!
//! Not here: SQL, the protocol and threads, all of which `refrain-sqlite-pg` has.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, fs};

use refrain_config::{Sqlite, StatementAdmission, Synchronous};
use refrain_pg::parts::Pg;
use refrain_pool::Conn;
use refrain_pool::ids::Core;
use refrain_sqlite::{Admit, CacheOptions, Database, OpenOptions, Synchronous as Durability};
use refrain_sqlite_pg::{Backend, Pool, PoolView};

use super::round::Round;
use super::session::SqliteSession;
use crate::mail::{Mail, Post};
use crate::served::{LocalServers, SessionOutput};

/// The database name of a session that gives none; the engine always gives one.
const NAMELESS: &str = "refrain";

/// The files that are served, over all cores. Each has one queue of those who write, under whatever
/// names and options it is served.
pub(crate) struct Files {
    /// The number of cores that share a file's cache.
    cores: usize,
    served: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Files by their canonical paths.
    files: HashMap<PathBuf, Served>,
    /// The canonical paths of paths that were served before: a file that is gone by now is not
    /// created again.
    places: HashMap<PathBuf, PathBuf>,
}

struct Served {
    backend: Arc<Backend>,
    pools: Vec<Opened>,
}

/// The connections of one core to a file, opened with the same options.
struct Opened {
    file: Arc<Sqlite>,
    core: Core,
    pool: Arc<Pool>,
}

/// A snapshot of one core's connections to a file.
pub(crate) struct CorePool {
    pub(crate) path: String,
    pub(crate) core: Core,
    pub(crate) view: PoolView,
}

impl Files {
    /// Makes an empty table for this number of cores.
    pub(crate) fn new(cores: u16) -> Self {
        Self { cores: usize::from(cores.max(1)), served: Mutex::default() }
    }

    /// Returns a core's pool for a file; opens the file if it is not open.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(crate) fn open(&self, file: &Arc<Sqlite>, core: Core) -> Result<Arc<Pool>, String> {
        let mut known = self.served();
        let Known { files, places } = &mut *known;
        let place = match places.entry(file.path.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(place(file)?),
        };
        let served = match files.entry(place.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(serve(file)?),
        };
        served.open(file, core, self.cores)
    }

    /// Returns a snapshot of all pools of all files.
    pub(crate) fn pools(&self) -> Vec<CorePool> {
        let served = self.served();
        let opened = served.files.values().flat_map(|served| &served.pools);
        let look = |Opened { file, core, pool }: &Opened| CorePool {
            path: file.path.display().to_string(),
            core: *core,
            view: pool.view(),
        };
        let mut found: Vec<CorePool> = opened.map(look).collect();
        found.sort_by(|one, other| (&one.path, one.core).cmp(&(&other.path, other.core)));
        found
    }

    fn served(&self) -> MutexGuard<'_, Known> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Served {
    /// Returns a core's pool for these options. A pool for other options goes when its last session
    /// has ended.
    fn open(&mut self, file: &Arc<Sqlite>, core: Core, cores: usize) -> Result<Arc<Pool>, String> {
        self.pools.retain(|known| known.file == *file || Arc::strong_count(&known.pool) > 1);
        let mut known = self.pools.iter().filter(|known| known.core == core);
        if let Some(known) = known.find(|known| known.file == *file) {
            return Ok(Arc::clone(&known.pool));
        }
        self.backend.want_readers(file.readers.into()).map_err(|error| error.to_string())?;
        let share = file.cache_size / cores;
        let options = OpenOptions { reader_pages: share, ..open_options(file) };
        let database = Database::new(&file.path, options);
        let pool = Pool::new(&self.backend, database, file.lock_timeout);
        self.pools.push(Opened { file: Arc::clone(file), core, pool: Arc::clone(&pool) });
        Ok(pool)
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.served().files.keys()).finish()
    }
}

/// Opens a file, and creates it if it does not exist.
///
/// # Errors
/// Why it cannot be opened.
pub(crate) fn try_open(file: &Sqlite) -> Result<(), String> {
    Database::new(&file.path, open_options(file))
        .connect()
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Returns the canonical path of a file. Creates the file if it does not exist.
fn place(file: &Sqlite) -> Result<PathBuf, String> {
    if !file.path.exists() {
        try_open(file)?;
    }
    fs::canonicalize(&file.path).map_err(|error| error.to_string())
}

fn serve(file: &Sqlite) -> Result<Served, String> {
    try_open(file)?;
    let path = file.path.display().to_string();
    let log = move |sqlstate: &'static str, words: &str| {
        tracing::error!(cause = "sqlite", path = &*path, sqlstate, "{words}");
    };
    let backend = Backend::with_log(NAMELESS, file.readers.into(), Arc::new(log));
    let backend = backend.map_err(|error| error.to_string())?;
    Ok(Served { backend, pools: Vec::new() })
}

fn open_options(file: &Sqlite) -> OpenOptions {
    OpenOptions {
        busy_timeout: file.busy_timeout,
        synchronous: match file.synchronous {
            Synchronous::Full => Durability::Full,
            Synchronous::Normal => Durability::Normal,
            Synchronous::Off => Durability::Off,
        },
        read_only: false,
        max_length: file.max_length,
        max_memory: file.max_memory,
        reader_pages: 0,
        mmap_size: file.mmap_size,
        cache: CacheOptions {
            size: file.stmt_cache_size as usize,
            admit: match file.stmt_cache_admit {
                StatementAdmission::SecondUse => Admit::SecondUse,
                StatementAdmission::Always => Admit::Always,
            },
            max_sql: file.stmt_cache_max_sql,
        },
    }
}

/// The SQLite sessions of one core.
pub(crate) struct SqliteHost {
    core: Core,
    post: Arc<Post<Pg>>,
    files: Arc<Files>,
    /// A small map, as a pool has few servers; it is searched several times for each query.
    sessions: BTreeMap<Conn, SqliteSession>,
    /// Sessions that have more output.
    round: Round,
    /// Pools whose sessions got input in this turn.
    busy: Vec<Arc<Pool>>,
    /// True if the core has at most one client.
    alone: bool,
}

impl SqliteHost {
    pub(crate) fn new(core: Core, post: Arc<Post<Pg>>, files: Arc<Files>) -> Self {
        let (sessions, round, busy) = (BTreeMap::new(), Round::new(), Vec::new());
        Self { core, post, files, sessions, round, busy, alone: false }
    }

    fn note(&mut self, conn: Conn, done: SessionOutput) -> SessionOutput {
        self.round.produced(done.bytes.len());
        if done.has_more {
            self.round.join(conn);
        }
        done
    }
}

impl LocalServers for SqliteHost {
    type Session = SqliteSession;

    fn connect(&mut self, conn: Conn, file: &Arc<Sqlite>) -> Result<(), String> {
        let pool = self.files.open(file, self.core)?;
        let post = Arc::clone(&self.post);
        let tell = move |(core, conn)| post.send(core, Mail::Continue(conn));
        self.sessions.insert(conn, SqliteSession::new(pool, (self.core, conn), tell));
        Ok(())
    }

    fn has(&self, conn: Conn) -> bool {
        self.sessions.contains_key(&conn)
    }

    fn set_alone(&mut self, alone: bool) {
        self.alone = alone;
    }

    fn send(&mut self, conn: Conn, bytes: Vec<u8>) -> Option<SessionOutput> {
        let session = self.sessions.get_mut(&conn)?;
        let done = session.receive(bytes, self.alone);
        if !self.busy.iter().any(|pool| Arc::ptr_eq(pool, session.pool())) {
            self.busy.push(Arc::clone(session.pool()));
        }
        Some(self.note(conn, done))
    }

    fn end_turn(&mut self) {
        self.busy.drain(..).for_each(|pool| pool.end_turn());
        self.round.begin();
    }

    fn is_waited_for(&self) -> bool {
        !self.round.is_empty()
    }

    fn go_on(&mut self, conn: Conn) -> Option<SessionOutput> {
        if self.round.is_over() {
            self.round.join(conn);
            return None;
        }
        let done = self.sessions.get_mut(&conn)?.go_on()?;
        Some(self.note(conn, done))
    }

    fn next(&mut self) -> Option<(Conn, SessionOutput)> {
        while let Some(conn) = self.round.next() {
            if let Some(done) = self.sessions.get_mut(&conn).and_then(SqliteSession::say_more) {
                return Some((conn, self.note(conn, done)));
            }
        }
        None
    }

    fn set_paused(&mut self, conn: Conn, paused: bool) -> bool {
        let Some(session) = self.sessions.get_mut(&conn) else { return false };
        if session.set_paused(paused) {
            self.round.join(conn);
        }
        true
    }

    fn remove(&mut self, conn: Conn) -> Option<SqliteSession> {
        self.sessions.remove(&conn)
    }

    fn arrived(&mut self, conn: Conn, session: SqliteSession) {
        session.settle((self.core, conn));
        self.sessions.insert(conn, session);
    }
}
