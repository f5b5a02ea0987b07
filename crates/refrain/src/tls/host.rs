//! The TLS of a core's connections.
//!
//! A connection in the clear is not in here: the test for it is one look at a list, which is empty
//! as long as no connection is encrypted.

use std::sync::Arc;

use refrain_pool::Conn;

use super::configs::Store;
use super::session::Session;

/// Buffers kept for use again.
const SPARE_BUFFERS_MAX: usize = 64;
/// A buffer that grew larger than this is not kept.
const SPARE_BYTES_MAX: usize = 64 * 1024;

/// The TLS of a core's connections.
pub(crate) struct TlsHost {
    pub(crate) store: Arc<Store>,
    sessions: Vec<Option<Box<Session>>>,
    /// Connections that may have a task for the kernel.
    ready: Vec<Conn>,
    /// The buffer in which records are decrypted.
    pub(crate) scratch: Vec<u8>,
    /// Buffers to encrypt into.
    pub(crate) spare: Vec<Vec<u8>>,
}

impl TlsHost {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        let (sessions, ready) = (Vec::new(), Vec::new());
        Self { store, sessions, ready, scratch: Vec::new(), spare: Vec::new() }
    }

    /// Whether a connection is encrypted, or about to be.
    #[inline]
    pub(crate) fn has(&self, conn: Conn) -> bool {
        self.sessions.get(conn.0 as usize).is_some_and(Option::is_some)
    }

    /// Takes a connection's session out.
    pub(crate) fn take(&mut self, conn: Conn) -> Option<Box<Session>> {
        self.sessions.get_mut(conn.0 as usize)?.take()
    }

    /// Puts a connection's session in. The session may have a task.
    pub(crate) fn put(&mut self, conn: Conn, session: Box<Session>) {
        let index = conn.0 as usize;
        if self.sessions.len() <= index {
            self.sessions.resize_with(index + 1, || None);
        }
        self.sessions[index] = Some(session);
        self.ready.push(conn);
    }

    /// Returns the session of a connection, which may have a task then.
    pub(crate) fn session(&mut self, conn: Conn) -> Option<&mut Session> {
        let session = self.sessions.get_mut(conn.0 as usize)?.as_deref_mut()?;
        self.ready.push(conn);
        Some(session)
    }

    /// Takes the next connection that may have a task, with its session.
    pub(crate) fn next_ready(&mut self) -> Option<(Conn, Box<Session>)> {
        loop {
            let conn = self.ready.pop()?;
            if let Some(session) = self.take(conn) {
                return Some((conn, session));
            }
        }
    }

    /// Puts a session back that has no task.
    pub(crate) fn put_back(&mut self, conn: Conn, session: Box<Session>) {
        if let Some(place) = self.sessions.get_mut(conn.0 as usize) {
            *place = Some(session);
        }
    }

    /// Keeps a buffer to encrypt into.
    pub(crate) fn keep(&mut self, mut buffer: Vec<u8>) {
        let fits = (1..=SPARE_BYTES_MAX).contains(&buffer.capacity());
        if fits && self.spare.len() < SPARE_BUFFERS_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}
