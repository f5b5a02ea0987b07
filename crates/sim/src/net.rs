//! The simulated network: links between model peers and engines, one pipe in each direction.
//!
//! A pipe takes what its sender has, cuts it anywhere, and delivers the pieces in order, each after a latency.
//! It holds so many bytes and no more; what does not fit stays with the sender, who learns late that all has
//! gone. A reader that pauses leaves the pieces in the pipe.

use std::collections::VecDeque;

use refrain_pg::Transfer;
use refrain_pool::{Conn, Core};

/// Which link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub usize);

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the peer to the engine.
    Up,
    /// From the engine to the peer.
    Down,
}

/// What travels.
#[derive(Debug)]
pub enum Piece {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The end.
    End,
}

/// One direction of a link.
#[derive(Debug, Default)]
pub struct Pipe {
    /// What the sender wants sent, and how much of it has been taken.
    pub backlog: Vec<u8>,
    pub(crate) taken: usize,
    /// Whether the sender closes once the backlog has gone.
    pub(crate) closing: bool,
    /// On the way, in order, each with its arrival.
    pub(crate) flight: VecDeque<Piece>,
    /// When the last of those arrives.
    pub(crate) last: u64,
    /// Bytes in flight.
    pub(crate) load: usize,
    /// Bytes that fit.
    pub(crate) room: usize,
    /// Whether the receiver does not read.
    pub(crate) paused: bool,
    /// Pieces that have arrived and are not read.
    pub(crate) due: usize,
    /// Whether nothing more is delivered.
    pub(crate) dead: bool,
}

impl Pipe {
    /// Whether all that the sender wanted sent has been taken.
    pub fn is_clear(&self) -> bool {
        self.taken == self.backlog.len()
    }

    /// Adds to what the sender wants sent.
    pub fn send(&mut self, bytes: &[u8]) {
        if self.is_clear() {
            self.backlog.clear();
            self.taken = 0;
        }
        if !self.closing {
            self.backlog.extend_from_slice(bytes);
        }
    }

    /// Takes up to `most` bytes of the backlog onto the way, or the end behind them; says whether anything was
    /// taken.
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

    /// The next piece arrives.
    pub fn arrive(&mut self) -> Option<Piece> {
        let piece = self.flight.pop_front()?;
        match &piece {
            Piece::Bytes(bytes) => self.load -= bytes.len(),
            Piece::End => self.dead = true,
        }
        Some(piece)
    }

    /// Its state in short.
    pub fn summary(&self) -> String {
        let Self { backlog, taken, flight, load, room, paused, due, dead, closing, .. } = self;
        let (backlog, flight) = (backlog.len() - taken, flight.len());
        format!(
            "[backlog {backlog} flight {flight} load {load}/{room} due {due} paused {paused} \
             closing {closing} dead {dead}]"
        )
    }

    /// Nothing more is delivered.
    pub fn kill(&mut self) {
        self.dead = true;
        self.flight.clear();
        self.load = 0;
        self.due = 0;
    }
}

/// Who is at the other end of an engine's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A model client, by number.
    Client(usize),
    /// Somebody with a cancel request.
    Canceller,
    /// A model server's session, by number; none before the connection stands.
    Backend(Option<usize>),
}

/// A link.
#[derive(Debug)]
pub struct Link {
    /// The core at the engine's end.
    pub core: usize,
    /// Its number there, while the engine has it open.
    pub conn: Option<Conn>,
    /// The other end.
    pub peer: Peer,
    /// To the engine.
    pub up: Pipe,
    /// From the engine.
    pub down: Pipe,
    /// The buffer that the engine is to get back.
    pub(crate) lent: bool,
    /// Where it is about to be handed over to.
    pub(crate) leaving: Option<(Core, Box<Transfer>)>,
    /// Whether the connection stands.
    pub(crate) connected: bool,
}

impl Link {
    /// A link with pipes of these sizes.
    pub fn new(core: usize, conn: Option<Conn>, peer: Peer, room: (usize, usize)) -> Self {
        let pipe = |room| Pipe { room, ..Pipe::default() };
        let (up, down) = (pipe(room.0), pipe(room.1));
        let connected = !matches!(peer, Peer::Backend(_));
        Self { core, conn, peer, up, down, lent: false, leaving: None, connected }
    }

    /// One direction.
    pub fn pipe(&mut self, way: Way) -> &mut Pipe {
        match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        }
    }
}
