//! SQLite in the place of servers: sessions that the engine takes for connections.
//!
//! A session stands under a connection's number as a socket would. What the engine sends there goes into
//! the session, what the session answers comes back in the same turn as bytes that arrived, and no system
//! call is made for either. What takes long goes on on a thread of SQLite's; its end is mail.
//!
//! A session that nobody uses goes from core to core by mail, as a socket does.
//!
//! Not here: SQL, the protocol, and threads, all of which `refrain-sqlite-pg` has.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_config::{Sqlite, StatementAdmission, Synchronous};
use refrain_pg::Conn;
use refrain_pg::event::Core;
use refrain_sqlite::{Admit, CacheOptions, Database, OpenOptions, Synchronous as Durability};
use refrain_sqlite_pg::{Backend, Pool, PoolView};

use crate::guest::{Done, Guest};
use crate::mail::{Mail, Post};
use crate::round::Round;

/// What `current_database()` says to a client that named none; the engine always does.
const NAMELESS: &str = "refrain";

/// The files that are served, over all cores: each has one line of those who write, whatever names and options it is
/// served by.
pub(crate) struct Files {
    /// Cores that share what is for a file.
    cores: usize,
    served: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By their true places.
    files: HashMap<PathBuf, Served>,
    /// The true places of names that were served once: what is gone by now is not made again.
    places: HashMap<PathBuf, PathBuf>,
}

struct Served {
    backend: Arc<Backend>,
    pools: Vec<Opened>,
}

/// A core's connections to a file by the same options.
struct Opened {
    file: Arc<Sqlite>,
    core: Core,
    pool: Arc<Pool>,
}

/// A core's connections to a file.
pub(crate) struct PoolOf {
    pub(crate) path: String,
    pub(crate) core: Core,
    pub(crate) view: PoolView,
}

impl Files {
    /// No files yet, for so many cores.
    pub(crate) fn new(cores: u16) -> Self {
        Self { cores: usize::from(cores.max(1)), served: Mutex::default() }
    }

    /// Opens a file for a core, or finds it open.
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

    /// All pools of all files, as they are now.
    pub(crate) fn pools(&self) -> Vec<PoolOf> {
        let served = self.served();
        let opened = served.files.values().flat_map(|served| &served.pools);
        let look = |Opened { file, core, pool }: &Opened| PoolOf {
            path: file.path.display().to_string(),
            core: *core,
            view: pool.view(),
        };
        let mut found: Vec<PoolOf> = opened.map(look).collect();
        found.sort_by(|one, other| (&one.path, one.core).cmp(&(&other.path, other.core)));
        found
    }

    fn served(&self) -> MutexGuard<'_, Known> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Served {
    /// A core's pool by these options. Pools by others go when their last session has ended.
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

/// Opens a file, and makes it if it is not there.
///
/// # Errors
/// Why it cannot be opened.
pub(crate) fn try_open(file: &Sqlite) -> Result<(), String> {
    Database::new(&file.path, open_options(file))
        .connect()
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Where a file is, by whatever names it goes. It is made if it is not there.
fn place(file: &Sqlite) -> Result<PathBuf, String> {
    if !file.path.exists() {
        try_open(file)?;
    }
    fs::canonicalize(&file.path).map_err(|error| error.to_string())
}

fn serve(file: &Sqlite) -> Result<Served, String> {
    try_open(file)?;
    let path = file.path.display().to_string();
    let teller = move |sqlstate: &'static str, words: &str| {
        tracing::error!(cause = "sqlite", path = &*path, sqlstate, "{words}");
    };
    let backend = Backend::telling(NAMELESS, file.readers.into(), Arc::new(teller));
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

/// The sessions of one core.
pub(crate) struct Embedded {
    core: Core,
    post: Arc<Post>,
    files: Arc<Files>,
    /// As few as pools have servers, and looked up several times a query.
    guests: BTreeMap<Conn, Guest>,
    /// Those that have more to say.
    round: Round,
    /// Whose sessions were sent something in this turn.
    busy: Vec<Arc<Pool>>,
    /// Whether the core has no more than one client.
    alone: bool,
}

impl Embedded {
    pub(crate) fn new(core: Core, post: Arc<Post>, files: Arc<Files>) -> Self {
        let (guests, round, busy) = (BTreeMap::new(), Round::new(), Vec::new());
        Self { core, post, files, guests, round, busy, alone: false }
    }

    /// Begins a session under a connection's number.
    ///
    /// # Errors
    /// Why the file cannot be opened.
    pub(crate) fn connect(&mut self, conn: Conn, file: &Arc<Sqlite>) -> Result<(), String> {
        let pool = self.files.open(file, self.core)?;
        let post = Arc::clone(&self.post);
        let tell = move |(core, conn)| post.send(core, Mail::Continue(conn));
        self.guests.insert(conn, Guest::new(pool, (self.core, conn), tell));
        Ok(())
    }

    /// Whether a connection is a session here.
    pub(crate) fn has(&self, conn: Conn) -> bool {
        self.guests.contains_key(&conn)
    }

    /// Says whether the core has no more than one client.
    pub(crate) fn set_alone(&mut self, alone: bool) {
        self.alone = alone;
    }

    /// Gives a session what the engine sent.
    pub(crate) fn send(&mut self, conn: Conn, bytes: Vec<u8>) -> Option<Done> {
        let guest = self.guests.get_mut(&conn)?;
        let done = guest.receive(bytes, self.alone);
        if !self.busy.iter().any(|pool| Arc::ptr_eq(pool, guest.pool())) {
            self.busy.push(Arc::clone(guest.pool()));
        }
        Some(self.note(conn, done))
    }

    /// The turn is over.
    pub(crate) fn end_turn(&mut self) {
        self.busy.drain(..).for_each(|pool| pool.end_turn());
        self.round.begin();
    }

    /// Whether a session has more to say at once.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.round.is_empty()
    }

    /// Has a session go on that was woken, in the next turn if enough was said in this.
    pub(crate) fn go_on(&mut self, conn: Conn) -> Option<Done> {
        if self.round.is_over() {
            self.round.join(conn);
            return None;
        }
        let done = self.guests.get_mut(&conn)?.go_on()?;
        Some(self.note(conn, done))
    }

    /// Has the next session go on whose turn it is.
    pub(crate) fn next(&mut self) -> Option<(Conn, Done)> {
        while let Some(conn) = self.round.next() {
            if let Some(done) = self.guests.get_mut(&conn).and_then(Guest::say_more) {
                return Some((conn, self.note(conn, done)));
            }
        }
        None
    }

    fn note(&mut self, conn: Conn, done: Done) -> Done {
        self.round.said(done.bytes.len());
        if done.has_more {
            self.round.join(conn);
        }
        done
    }

    /// Pauses or resumes what comes from a session; whether it is one.
    pub(crate) fn set_paused(&mut self, conn: Conn, paused: bool) -> bool {
        let Some(guest) = self.guests.get_mut(&conn) else { return false };
        if guest.set_paused(paused) {
            self.round.join(conn);
        }
        true
    }

    /// Ends a session, or has it leave for another core.
    pub(crate) fn remove(&mut self, conn: Conn) -> Option<Guest> {
        self.guests.remove(&conn)
    }

    /// A session from another core.
    pub(crate) fn arrived(&mut self, conn: Conn, guest: Guest) {
        guest.settle((self.core, conn));
        self.guests.insert(conn, guest);
    }
}
