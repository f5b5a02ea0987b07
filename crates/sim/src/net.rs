//! The simulated network: links between model peers and engines, one pipe in each direction.
//!
//! A pipe takes its sender's bytes, cuts them anywhere, and delivers the pieces in order, each
//! after a latency. It holds a limited number of bytes; other bytes stay with the sender, which
//! learns late that all bytes are sent. If a reader pauses, the pieces stay in the pipe.

use std::collections::VecDeque;

use refrain_pg::parts::Pg;
use refrain_pool::{Conn, Core, Parts, Transfer};

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
    pub taken: usize,
    /// Whether the sender closes after its backlog.
    pub closing: bool,
    /// Pieces in flight, in order.
    pub flight: VecDeque<Piece>,
    /// The time at which the last piece arrives.
    pub last: u64,
    /// Number of bytes in flight.
    pub load: usize,
    /// The most bytes in flight.
    pub room: usize,
    /// Whether the receiver has paused.
    pub paused: bool,
    /// Number of pieces that have arrived during the pause.
    pub due: usize,
    /// Whether the pipe delivers no more pieces.
    pub dead: bool,
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
        let wanted = most.min(self.backlog.len() - self.taken);
        let count = wanted.min(self.room.saturating_sub(self.load));
        // As TCP does, it waits for more room: in a full pipe pieces would only become smaller.
        let waits = count < wanted && self.load > 0;
        if count > 0 && !waits {
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
pub struct Link<P: Parts = Pg> {
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
    pub lent: bool,
    /// The core to which the engine hands the connection over.
    pub leaving: Option<(Core, Box<Transfer<P>>)>,
    /// Whether the connection is established.
    pub connected: bool,
    /// Whether the peer has fallen silent: nothing arrives any more, and nobody tells the engine.
    pub is_silent: bool,
    /// The number of the host to which the engine connects.
    pub host: usize,
}

impl<P: Parts> Link<P> {
    /// Creates a link with pipes of these sizes.
    pub fn new(core: usize, conn: Option<Conn>, peer: Peer, room: (usize, usize)) -> Self {
        let pipe = |room| Pipe { room, ..Pipe::default() };
        let (up, down) = (pipe(room.0), pipe(room.1));
        let connected = !matches!(peer, Peer::Backend(_));
        Self {
            core,
            conn,
            peer,
            up,
            down,
            lent: false,
            leaving: None,
            connected,
            is_silent: false,
            host: 0,
        }
    }

    /// Returns the pipe of one direction.
    pub fn pipe(&mut self, way: Way) -> &mut Pipe {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }
    /// Moves the sender's bytes into the pipe, as far as they fit. `draw` returns the most bytes of
    /// the next piece, and its latency. Returns how long each piece takes to arrive.
    pub fn pump(&mut self, way: Way, now: u64, mut draw: impl FnMut() -> (usize, u64)) -> Vec<u64> {
        let mut delays = Vec::new();
        loop {
            let (most, latency) = draw();
            if way == Way::Down && !self.connected && !self.down.closing {
                return delays;
            }
            let pipe = self.pipe(way);
            if pipe.dead || !pipe.load(most) {
                return delays;
            }
            pipe.last = pipe.last.max(now + latency);
            delays.push(pipe.last - now);
        }
    }

    /// Whether the engine is owed the buffer that it has lent, as all of it is sent.
    pub fn owes_buffer(&self) -> bool {
        self.lent && self.down.is_clear() && (self.connected || self.down.closing)
    }
}
