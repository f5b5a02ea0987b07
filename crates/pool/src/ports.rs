//! The engine's side of its connections: their numbers, and the bytes to send on each.
//!
//! The engine appends to a connection's buffer as often as it likes. The loop takes each buffer out
//! once a turn and gives the whole buffer to the kernel, so that a turn costs one send per
//! destination. While a send is under way, later bytes wait here for the next one.
//!
//! A connection owns a buffer only while bytes are queued on it. [`Ports::sent`] takes buffers back
//! and [`Ports::out`] gives them out again, so that the engine allocates none once enough are in
//! circulation.
//!
//! A connection that is to be closed sends its queued bytes first. A peer that does not read them
//! has `CLOSING_MAX`. The number is free again when the loop has taken the [`Output::Close`].

use std::time::Duration;

use crate::event::{Action, Level, SessionNotes, TlsPeer};
use crate::ids::Conn;
use crate::parts::Parts;
use crate::time::Now;
use crate::transfer::Transfer;

/// A task of the loop; see [`Ports::next`].
#[derive(Debug)]
pub enum Output<P: Parts> {
    /// Give these bytes to the kernel, and give the buffer back with [`Ports::sent`] when the
    /// kernel has sent all of them.
    Send {
        /// The connection's number.
        conn: Conn,
        /// The bytes; never empty.
        bytes: Vec<u8>,
    },
    /// Close the connection. A new connection may get the number at once.
    Close {
        /// The connection's number.
        conn: Conn,
    },
    /// Do the engine's action.
    Act(Action<P>),
}

/// Time in which a connection that is to be closed may send its queued bytes.
const CLOSING_MAX: Duration = Duration::from_secs(5);
/// Buffers kept for use again.
const SPARE_BUFFERS_MAX: usize = 1024;
/// A buffer that grew larger than this is not kept.
const SPARE_BYTES_MAX: usize = 64 * 1024;
/// Room in a new buffer.
const NEW_BYTES: usize = 2 * 1024;

#[derive(Debug, Default)]
struct Port {
    pending: Vec<u8>,
    /// Bytes that the kernel is sending; zero when no send is under way.
    in_flight: usize,
    state: PortState,
    /// Whether the connection is listed in `Ports::dirty`.
    marked: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum PortState {
    #[default]
    Free,
    Open,
    /// The connection is to be closed once all its bytes are sent, or at this time, which the next
    /// [`Ports::tick`] sets.
    Closing(Option<Now>),
}

/// All connections of a core.
#[derive(Debug)]
pub struct Ports<P: Parts> {
    ports: Vec<Port>,
    free: Vec<Conn>,
    dirty: Vec<Conn>,
    /// Number of connections that are to be closed.
    closing: usize,
    actions: std::collections::VecDeque<Action<P>>,
    spare: Vec<Vec<u8>>,
    /// The least important notes that somebody reads.
    noted: Level,
    /// Notes of sessions that are more important than otherwise.
    sessions: SessionNotes,
}

impl<P: Parts> Default for Ports<P> {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            free: Vec::new(),
            dirty: Vec::new(),
            closing: 0,
            actions: std::collections::VecDeque::new(),
            spare: Vec::new(),
            noted: Level::Debug,
            sessions: SessionNotes::default(),
        }
    }
}

impl<P: Parts> Ports<P> {
    /// Has the engine make no notes that are less important than these: nobody reads them.
    pub fn note_from(&mut self, level: Level) {
        self.noted = level;
    }

    /// Makes these notes of sessions as important as what an operator wants to see.
    pub fn note_sessions(&mut self, sessions: SessionNotes) {
        self.sessions = sessions;
    }

    /// Returns the notes of sessions that are as important.
    pub(crate) fn session_notes(&self) -> SessionNotes {
        self.sessions
    }

    /// True if somebody reads notes of this level.
    pub fn notes(&self, level: Level) -> bool {
        level <= self.noted
    }

    /// Gives a number to a new connection.
    pub fn open(&mut self) -> Conn {
        let conn = self.free.pop().unwrap_or_else(|| {
            self.ports.push(Port::default());
            Conn(u32::try_from(self.ports.len() - 1).expect("fewer than 2^32 connections"))
        });
        let port = self.port(conn);
        assert_eq!(port.state, PortState::Free, "a free number is free");
        port.state = PortState::Open;
        conn
    }

    /// Returns the buffer whose bytes are sent on `conn` at the end of this turn.
    ///
    /// # Panics
    /// If `conn` is not open.
    #[inline]
    pub fn out(&mut self, conn: Conn) -> &mut Vec<u8> {
        let port = &mut self.ports[conn.0 as usize];
        assert!(port.state == PortState::Open, "writing to an open connection");
        if !port.marked {
            port.marked = true;
            self.dirty.push(conn);
        }
        if port.pending.capacity() == 0 {
            port.pending = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(NEW_BYTES));
        }
        &mut port.pending
    }

    /// Returns the number of bytes on `conn` that the kernel has not finished sending.
    #[inline]
    pub fn queued(&self, conn: Conn) -> usize {
        self.ports.get(conn.0 as usize).map_or(0, |port| port.pending.len() + port.in_flight)
    }

    /// Closes `conn` once all bytes queued on it are sent.
    pub fn close(&mut self, conn: Conn) {
        let port = self.port(conn);
        assert_eq!(port.state, PortState::Open, "an open connection is closed, and once");
        port.state = PortState::Closing(None);
        self.closing += 1;
        self.mark(conn);
    }

    /// Closes `conn` and forgets the bytes queued on it, because the peer has gone.
    pub fn abandon(&mut self, conn: Conn) {
        let port = self.port(conn);
        port.pending.clear();
        port.in_flight = 0;
        self.close(conn);
    }

    /// Forgets the bytes queued on a connection that is to be closed, because the peer has gone.
    pub fn give_up(&mut self, conn: Conn) {
        let Some(port) = self.ports.get_mut(conn.0 as usize) else { return };
        if matches!(port.state, PortState::Closing(_)) {
            port.pending.clear();
            port.in_flight = 0;
            self.mark(conn);
        }
    }

    /// Whether any connection is to be closed once its bytes are sent.
    pub fn are_closing(&self) -> bool {
        self.closing > 0
    }

    /// Gives up connections that have been closing for too long: their peers do not read.
    pub fn tick(&mut self, now: Now) {
        if !self.are_closing() {
            return;
        }
        let mut late = Vec::new();
        for (conn, port) in (0u32..).map(Conn).zip(&mut self.ports) {
            match &mut port.state {
                PortState::Closing(Some(due)) if *due <= now => late.push(conn),
                PortState::Closing(due) => *due = Some(due.unwrap_or(now.after(CLOSING_MAX))),
                PortState::Free | PortState::Open => {}
            }
        }
        late.into_iter().for_each(|conn| self.give_up(conn));
    }

    /// Forgets `conn` without closing it: its socket moves to another core. Nothing may be queued.
    pub fn release(&mut self, conn: Conn) {
        assert_eq!(self.queued(conn), 0, "nothing is left behind");
        let port = self.port(conn);
        port.state = PortState::Free;
        self.recycle_pending(conn);
        self.free.push(conn);
    }

    /// Queues an action behind those queued before. The loop does it at the end of this turn.
    pub fn act(&mut self, action: Action<P>) {
        self.actions.push_back(action);
    }

    /// Returns the server or client that is to move from `conn` to another core, until the loop has
    /// taken that action. Bytes that still come from it go along.
    pub fn leaving(&mut self, conn: Conn) -> Option<&mut Transfer<P>> {
        self.actions.iter_mut().find_map(|action| match action {
            Action::HandOver { conn: leaving, transfer, .. } if *leaving == conn => {
                Some(&mut **transfer)
            }
            _ => None,
        })
    }

    /// Has the loop encrypt a connection behind what is queued on it ([`Action::StartTls`]).
    pub fn start_tls(&mut self, conn: Conn, with: TlsPeer, early: Vec<u8>) {
        let clear = self.port(conn).pending.len();
        self.act(Action::StartTls { conn, with, clear, early });
    }

    /// Returns the beginning of the handshake of a client, until the loop has taken that action.
    /// Bytes that still come from the client go along.
    pub fn starting(&mut self, conn: Conn) -> Option<&mut Vec<u8>> {
        self.actions.iter_mut().find_map(|action| match action {
            Action::StartTls { conn: starting, early, .. } if *starting == conn => Some(early),
            _ => None,
        })
    }

    /// Returns the loop's next task, or `None` when this turn's work is done.
    ///
    /// Actions come first: a connection is opened before anything is sent on it.
    #[expect(clippy::should_implement_trait, reason = "what comes depends on what is done between")]
    pub fn next(&mut self) -> Option<Output<P>> {
        if let Some(action) = self.actions.pop_front() {
            return Some(Output::Act(action));
        }
        while let Some(conn) = self.dirty.pop() {
            let port = self.port(conn);
            port.marked = false;
            if port.in_flight > 0 {
                continue; // `sent` looks again
            }
            if !port.pending.is_empty() {
                let bytes = std::mem::take(&mut port.pending);
                port.in_flight = bytes.len();
                return Some(Output::Send { conn, bytes });
            }
            self.recycle_pending(conn);
            if matches!(self.port(conn).state, PortState::Closing(_)) {
                self.port(conn).state = PortState::Free;
                self.closing = self.closing.checked_sub(1).expect("what closes was to be closed");
                self.free.push(conn);
                return Some(Output::Close { conn });
            }
        }
        None
    }

    /// Takes back the buffer of an [`Output::Send`] whose bytes are all sent. Returns whether the
    /// connection is open: if so, the loop steps [`crate::Event::Drained`].
    pub fn sent(&mut self, conn: Conn, buffer: Vec<u8>) -> bool {
        self.keep(buffer);
        let Some(port) = self.ports.get_mut(conn.0 as usize) else { return false };
        port.in_flight = 0;
        if !port.pending.is_empty() || matches!(port.state, PortState::Closing(_)) {
            self.mark(conn);
        }
        self.port(conn).state == PortState::Open
    }

    fn port(&mut self, conn: Conn) -> &mut Port {
        &mut self.ports[conn.0 as usize]
    }

    fn mark(&mut self, conn: Conn) {
        let port = self.port(conn);
        if !port.marked {
            port.marked = true;
            self.dirty.push(conn);
        }
    }

    fn recycle_pending(&mut self, conn: Conn) {
        let buffer = std::mem::take(&mut self.port(conn).pending);
        self.keep(buffer);
    }

    fn keep(&mut self, mut buffer: Vec<u8>) {
        let fits = (1..=SPARE_BYTES_MAX).contains(&buffer.capacity());
        if fits && self.spare.len() < SPARE_BUFFERS_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}
