//! One session with SQLite, as the loop sees it: what a socket would be.
//!
//! A send has gone when the session has done with it, and a session that has more to say waits for as long
//! as the engine receives nothing, so that the engine's limits hold here as with the kernel.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_pg::Conn;
use refrain_pg::event::Core;
use refrain_sqlite_pg::{Pool, Progress, Session};

/// Room for an answer from the start: most are a row and what is around it.
const ANSWER: usize = 512;

/// A session, and where it is.
pub(crate) struct Guest {
    session: Session,
    place: Arc<Place>,
    /// What the engine sent, until the session has done with it.
    taken: Option<Vec<u8>>,
    /// Whether the session goes on once its output is with the engine.
    has_more: bool,
    /// Whether the engine wants to receive nothing.
    paused: bool,
}

/// What a session has done.
#[derive(Debug)]
pub(crate) struct Done {
    /// A send that has gone with it.
    pub(crate) sent: Option<Vec<u8>>,
    /// What it answers.
    pub(crate) bytes: Vec<u8>,
    /// Whether it goes on when that was heard.
    pub(crate) has_more: bool,
    /// Whether it is over.
    pub(crate) closed: bool,
}

/// Where a session is to be told that it may go on. It moves with the session.
struct Place(Mutex<(Core, Conn)>);

impl Place {
    fn lock(&self) -> MutexGuard<'_, (Core, Conn)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    /// A session that has heard nothing yet. `tell` is called, from any thread, with the place of a session
    /// that may go on.
    pub(crate) fn new(
        pool: Arc<Pool>,
        place: (Core, Conn),
        tell: impl Fn((Core, Conn)) + Send + Sync + 'static,
    ) -> Self {
        let place = Arc::new(Place(Mutex::new(place)));
        let known = Arc::clone(&place);
        let wake = move || {
            let place = *known.lock();
            tell(place);
        };
        let session = Session::new(pool, Arc::new(wake));
        Self { session, place, taken: None, has_more: false, paused: false }
    }

    /// Where its connections to the file come from.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        self.session.pool()
    }

    /// Takes what the engine sends. `alone` says that its client is the only one of its core.
    pub(crate) fn receive(&mut self, bytes: Vec<u8>, alone: bool) -> Done {
        self.session.set_alone(alone);
        let mut out = Vec::with_capacity(ANSWER);
        let progress = self.session.receive(&bytes, &mut out);
        self.taken = Some(bytes);
        self.done(progress, out)
    }

    /// Goes on because it was woken. While it waits for the engine to hear it, being woken means nothing.
    pub(crate) fn go_on(&mut self) -> Option<Done> {
        (!self.has_more).then(|| self.resume())
    }

    /// Goes on because it is its turn: not if it has more to say, and the engine does not listen.
    pub(crate) fn say_more(&mut self) -> Option<Done> {
        (!self.has_more || !self.paused).then(|| self.resume())
    }

    fn resume(&mut self) -> Done {
        let mut out = Vec::new();
        let progress = self.session.resume(&mut out);
        self.done(progress, out)
    }

    fn done(&mut self, progress: Progress, bytes: Vec<u8>) -> Done {
        self.has_more = progress == Progress::More;
        let closed = progress == Progress::Closed;
        let has_gone = closed || progress == Progress::Idle;
        let sent = if has_gone { self.taken.take() } else { None };
        Done { sent, bytes, has_more: self.has_more, closed }
    }

    /// Says whether the engine listens; whether the session has something to say to it.
    pub(crate) fn set_paused(&mut self, paused: bool) -> bool {
        self.paused = paused;
        self.has_more && !paused
    }

    /// Says where it is from now on.
    pub(crate) fn settle(&self, place: (Core, Conn)) {
        *self.place.lock() = place;
    }
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest").field("paused", &self.paused).finish_non_exhaustive()
    }
}
