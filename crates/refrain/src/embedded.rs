//! SQLite in the place of servers: sessions that the engine takes for connections.
//!
//! A session stands under a connection's number as a socket would. What the engine sends there goes into
//! the session, what the session answers comes back in the same turn as bytes that arrived, and no system
//! call is made for either. What takes long goes on on a thread of SQLite's; its end is mail.
//!
//! A session that nobody uses goes from core to core by mail, as a socket does.
//!
//! Not here: SQL, the protocol, and threads, all of which `refrain-lite` has.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_config::{Sqlite, StatementAdmission, Synchronous};
use refrain_engine::Conn;
use refrain_engine::event::Core;
use refrain_lite::{
    Admit, Backend, CacheOptions, Database, OpenOptions, Pool, PoolView, Synchronous as Durability,
};

use crate::guest::{Done, Guest};
use crate::mail::{Mail, Post};

/// What `current_database()` says to a client that named none; the engine always does.
const NAMELESS: &str = "refrain";

/// The files that are served, over all cores. Each is opened once, and stays open.
#[derive(Default)]
pub(crate) struct Files {
    served: Mutex<HashMap<Arc<Sqlite>, Served>>,
}

struct Served {
    backend: Arc<Backend>,
    pools: BTreeMap<Core, Arc<Pool>>,
}

/// A core's connections to a file.
pub(crate) struct PoolOf {
    pub(crate) path: String,
    pub(crate) core: Core,
    pub(crate) view: PoolView,
}

impl Files {
    /// Opens a file for a core, or finds it open.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(crate) fn open(&self, file: &Arc<Sqlite>, core: Core) -> Result<Arc<Pool>, String> {
        let mut served = self.served();
        if !served.contains_key(file) {
            let backend = serve(file)?;
            served.insert(Arc::clone(file), Served { backend, pools: BTreeMap::new() });
        }
        let Served { backend, pools } = &mut served.get_mut(file).expect("it was put in");
        Ok(Arc::clone(pools.entry(core).or_insert_with(|| Pool::new(backend))))
    }

    /// All pools of all files, as they are now.
    pub(crate) fn pools(&self) -> Vec<PoolOf> {
        let mut found = Vec::new();
        for (file, served) in self.served().iter() {
            let path = file.path.display().to_string();
            found.extend(served.pools.iter().map(|(core, pool)| PoolOf {
                path: path.clone(),
                core: *core,
                view: pool.view(),
            }));
        }
        found.sort_by(|one, other| (&one.path, one.core).cmp(&(&other.path, other.core)));
        found
    }

    fn served(&self) -> MutexGuard<'_, HashMap<Arc<Sqlite>, Served>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.served().keys()).finish()
    }
}

/// Opens a file, and makes it if it is not there.
///
/// # Errors
/// Why it cannot be opened.
pub(crate) fn try_open(file: &Sqlite) -> Result<Database, String> {
    let database = Database::new(&file.path, open_options(file));
    database.connect().map_err(|error| error.to_string())?;
    Ok(database)
}

fn serve(file: &Sqlite) -> Result<Arc<Backend>, String> {
    let database = try_open(file)?;
    let backend = Backend::new(database, NAMELESS, file.lock_timeout, file.readers.into());
    backend.map_err(|error| error.to_string())
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
    /// Those that may go on when what they said has been heard.
    ready: Vec<Conn>,
    /// Whose sessions were sent something in this turn.
    busy: Vec<Arc<Pool>>,
}

impl Embedded {
    pub(crate) fn new(core: Core, post: Arc<Post>, files: Arc<Files>) -> Self {
        Self { core, post, files, guests: BTreeMap::new(), ready: Vec::new(), busy: Vec::new() }
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

    /// Gives a session what the engine sent.
    pub(crate) fn send(&mut self, conn: Conn, bytes: Vec<u8>) -> Option<Done> {
        let guest = self.guests.get_mut(&conn)?;
        let done = guest.receive(bytes);
        if !self.busy.iter().any(|pool| Arc::ptr_eq(pool, guest.pool())) {
            self.busy.push(Arc::clone(guest.pool()));
        }
        Some(self.note(conn, done))
    }

    /// The turn is over.
    pub(crate) fn end_turn(&mut self) {
        self.busy.drain(..).for_each(|pool| pool.end_turn());
    }

    /// Has a session go on that was woken.
    pub(crate) fn go_on(&mut self, conn: Conn) -> Option<Done> {
        let done = self.guests.get_mut(&conn)?.go_on()?;
        Some(self.note(conn, done))
    }

    /// Has the next session go on that has more to say, if the engine listens.
    pub(crate) fn next(&mut self) -> Option<(Conn, Done)> {
        while let Some(conn) = self.ready.pop() {
            if let Some(done) = self.guests.get_mut(&conn).and_then(Guest::say_more) {
                return Some((conn, self.note(conn, done)));
            }
        }
        None
    }

    fn note(&mut self, conn: Conn, done: Done) -> Done {
        if done.has_more {
            self.ready.push(conn);
        }
        done
    }

    /// Pauses or resumes what comes from a session; whether it is one.
    pub(crate) fn set_paused(&mut self, conn: Conn, paused: bool) -> bool {
        let Some(guest) = self.guests.get_mut(&conn) else { return false };
        guest.set_paused(paused);
        if !paused {
            self.ready.push(conn);
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
