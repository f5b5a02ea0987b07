//! What the sessions of one database file share, and where their connections come from.

use std::collections::HashMap;
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
}

impl Pool {
    /// A pool without connections; each is opened when it is needed.
    pub fn new(backend: &Arc<Backend>) -> Arc<Self> {
        Arc::new(Self { backend: backend.clone(), idle: Mutex::default() })
    }

    #[expect(clippy::vec_box, reason = "as above")]
    fn idle(&self) -> MutexGuard<'_, Vec<Box<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that was given back last, or a new one.
    pub(crate) fn take(&self) -> Result<Box<Connection>, Error> {
        let idle = self.idle().pop();
        match idle {
            Some(connection) => Ok(connection),
            None => {
                let connection = Box::new(self.backend.database.connect()?);
                functions::define(&connection)?;
                Ok(connection)
            }
        }
    }

    /// Takes a connection back, with no transaction and no run on it.
    pub(crate) fn put(&self, connection: Box<Connection>) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }

    /// Looks at the connections that are not in use just now, say for what their caches did.
    pub fn inspect(&self, mut look: impl FnMut(&Connection)) {
        self.idle().iter().for_each(|connection| look(connection));
    }
}
