//! The simulated network: links between model peers and engines, one pipe in each direction.
//!
//! A pipe takes its sender's bytes, cuts them anywhere, and delivers the pieces in order, each
//! after a latency. It holds a limited number of bytes; other bytes stay with the sender, which
//! learns late that all bytes are sent. If a reader pauses, the pieces stay in the pipe.

use std::collections::VecDeque;

use refrain_pg::Transfer;
use refrain_pool::{Conn, Core};

/// The number of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub usize);

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the peer to the engine.
    Up,
    /// From the engine to the peer.
    Down,
}

/// A piece of a stream.
#[derive(Debug)]
pub enum Piece {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The end of the stream.
    End,
}

/// A pipe: one direction of a link.
#[derive(Debug, Default)]
pub struct Pipe {
    /// The sender's bytes.
    pub backlog: Vec<u8>,
    /// The number of those bytes that the pipe has taken.
    pub(crate) taken: usize,
    /// Whether the sender closes after its backlog.
    pub(crate) closing: bool,
    /// Pieces in flight, in order.
    pub(crate) flight: VecDeque<Piece>,
    /// The time at which the last piece arrives.
    pub(crate) last: u64,
    /// Number of bytes in flight.
    pub(crate) load: usize,
    /// The most bytes in flight.
    pub(crate) room: usize,
    /// Whether the receiver has paused.
    pub(crate) paused: bool,
    /// Number of pieces that have arrived during the pause.
    pub(crate) due: usize,
    /// Whether the pipe delivers no more pieces.
    pub(crate) dead: bool,
}

impl Pipe {
    /// Whether the pipe has taken all bytes of the sender.
    pub fn is_clear(&self) -> bool {
        self.taken == self.backlog.len()
    }

    /// Appends bytes to the sender's backlog.
    pub fn send(&mut self, bytes: &[u8]) {
        if self.is_clear() {
            self.backlog.clear();
            self.taken = 0;
        }
        if !self.closing {
            self.backlog.extend_from_slice(bytes);
        }
    }

    /// Moves up to `most` bytes of the backlog, or the end after them, into flight. Returns true if
    /// it moved a piece.
    pub fn load(&mut self, most: usize) -> bool {
        let count =
            most.min(self.backlog.len() - self.taken).min(self.room.saturating_sub(self.load));
        if count > 0 {
            let piece = self.backlog[self.taken..self.taken + count].to_vec();
            self.taken += count;
            self.load += count;
            self.flight.push_back(Piece::Bytes(piece));
            return true;
        }
        let ends = self.is_clear() && self.closing && !self.dead;
        let ended = matches!(self.flight.back(), Some(Piece::End));
        if ends && !ended {
            self.flight.push_back(Piece::End);
            return true;
        }
        false
    }

    /// Takes the next piece out of the pipe.
    pub fn arrive(&mut self) -> Option<Piece> {
        let piece = self.flight.pop_front()?;
        match &piece {
            Piece::Bytes(bytes) => self.load -= bytes.len(),
            Piece::End => self.dead = true,
        }
        Some(piece)
    }

    /// Returns the pipe's state in words.
    pub fn summary(&self) -> String {
        let Self { backlog, taken, flight, load, room, paused, due, dead, closing, .. } = self;
        let (backlog, flight) = (backlog.len() - taken, flight.len());
        format!(
            "[backlog {backlog} flight {flight} load {load}/{room} due {due} paused {paused} \
             closing {closing} dead {dead}]"
        )
    }

    /// Drops all pieces, and delivers no more.
    pub fn kill(&mut self) {
        self.dead = true;
        self.flight.clear();
        self.load = 0;
        self.due = 0;
    }
}

/// The peer at the other end of an engine's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A model client, by number.
    Client(usize),
    /// A sender of a cancel request.
    Canceller,
    /// A model server's session, by number; `None` before the connection is established.
    Backend(Option<usize>),
}

/// A link.
#[derive(Debug)]
pub struct Link {
    /// The core at the engine's end.
    pub core: usize,
    /// The engine's number of the connection, while it is open.
    pub conn: Option<Conn>,
    /// The other end.
    pub peer: Peer,
    /// The pipe to the engine.
    pub up: Pipe,
    /// The pipe from the engine.
    pub down: Pipe,
    /// Whether the engine waits to get a buffer back.
    pub(crate) lent: bool,
    /// The core to which the engine hands the connection over.
    pub(crate) leaving: Option<(Core, Box<Transfer>)>,
    /// Whether the connection is established.
    pub(crate) connected: bool,
}

impl Link {
    /// Creates a link with pipes of these sizes.
    pub fn new(core: usize, conn: Option<Conn>, peer: Peer, room: (usize, usize)) -> Self {
        let pipe = |room| Pipe { room, ..Pipe::default() };
        let (up, down) = (pipe(room.0), pipe(room.1));
        let connected = !matches!(peer, Peer::Backend(_));
        Self { core, conn, peer, up, down, lent: false, leaving: None, connected }
    }

    /// Returns the pipe of one direction.
    pub fn pipe(&mut self, way: Way) -> &mut Pipe {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }
}
