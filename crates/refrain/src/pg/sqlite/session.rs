//! One SQLite session, which stands in the place of a socket in the core's loop.
//!
//! A send counts as done once the session has handled its bytes. A session with more output waits
//! as long as the engine has paused receiving, so that the engine's limits hold here as they do
//! with the kernel.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_pool::Conn;
use refrain_pool::ids::Core;
use refrain_sqlite_pg::{Pool, Progress, Session};

use crate::served::SessionOutput;

/// Initial capacity of a reply, in bytes: most replies are one row and the messages around it.
const ANSWER: usize = 512;

/// A session, and the core and connection to wake for it.
pub(crate) struct SqliteSession {
    session: Session,
    place: Arc<WakeTarget>,
    /// True if the session has not handled all bytes of the engine yet.
    owes_buffer: bool,
    /// True if the session goes on once the engine has its output.
    has_more: bool,
    /// True if the engine has paused receiving.
    paused: bool,
}

/// The core and connection to wake for a session. It changes when the session moves.
struct WakeTarget(Mutex<(Core, Conn)>);

impl WakeTarget {
    fn lock(&self) -> MutexGuard<'_, (Core, Conn)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SqliteSession {
    /// Makes a session that waits for the startup packet. Any thread may call `tell`, with the core
    /// and connection of a session that may go on.
    pub(crate) fn new(
        pool: Arc<Pool>,
        place: (Core, Conn),
        tell: impl Fn((Core, Conn)) + Send + Sync + 'static,
    ) -> Self {
        let place = Arc::new(WakeTarget(Mutex::new(place)));
        let known = Arc::clone(&place);
        let wake = move || {
            let place = *known.lock();
            tell(place);
        };
        let session = Session::new(pool, Arc::new(wake));
        Self { session, place, owes_buffer: false, has_more: false, paused: false }
    }

    /// Returns the pool that the session's connections come from.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.session.pool()
    }

    /// Takes what the engine sends. `alone` is true if the core has no other client.
    pub(crate) fn receive(&mut self, bytes: Vec<u8>, alone: bool) -> SessionOutput {
        self.session.set_alone(alone);
        let mut out = Vec::with_capacity(ANSWER);
        let progress = self.session.receive(bytes, &mut out);
        self.owes_buffer = true;
        self.done(progress, out)
    }

    /// Goes on because the session was woken. Does nothing while the session waits for the engine
    /// to take its output.
    pub(crate) fn go_on(&mut self) -> Option<SessionOutput> {
        (!self.has_more).then(|| self.resume())
    }

    /// Goes on because it is the session's turn. Does nothing while the session has more output and
    /// the engine has paused receiving.
    pub(crate) fn say_more(&mut self) -> Option<SessionOutput> {
        (!self.has_more || !self.paused).then(|| self.resume())
    }

    fn resume(&mut self) -> SessionOutput {
        let mut out = Vec::new();
        let progress = self.session.resume(&mut out);
        self.done(progress, out)
    }

    fn done(&mut self, progress: Progress, bytes: Vec<u8>) -> SessionOutput {
        self.has_more = progress == Progress::More;
        let closed = progress == Progress::Closed;
        let has_gone = closed || progress == Progress::Idle;
        let is_sent = has_gone && mem::take(&mut self.owes_buffer);
        let sent = is_sent.then(|| self.session.take_buffer());
        SessionOutput { sent, bytes, has_more: self.has_more, closed }
    }

    /// Sets whether the engine has paused receiving. Returns true if the session has output for it.
    pub(crate) fn set_paused(&mut self, paused: bool) -> bool {
        self.paused = paused;
        self.has_more && !paused
    }

    /// Sets the core and connection to wake from now on.
    pub(crate) fn settle(&self, place: (Core, Conn)) {
        *self.place.lock() = place;
    }
}

impl fmt::Debug for SqliteSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteSession").field("paused", &self.paused).finish_non_exhaustive()
    }
}
