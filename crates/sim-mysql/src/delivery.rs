//! Bytes in flight: pieces are delivered to either end of a connection, or it breaks before.

use refrain_pool::Event;
use refrain_sim::net::{LinkId, Peer, Piece, Way};

use crate::hostile::HOSTILE;
use crate::wire::show;
use crate::world::{Happening, World};

impl World {
    /// Delivers a piece.
    pub(crate) fn deliver(&mut self, id: LinkId, way: Way) {
        if self.maybe_reset(id) {
            return;
        }
        let pipe = self.links[id.0].pipe(way);
        if pipe.dead && pipe.flight.is_empty() {
            return;
        }
        if pipe.paused {
            pipe.due += 1;
            return;
        }
        let Some(piece) = pipe.arrive() else { return };
        let full = pipe.load + 64 > pipe.room;
        self.hand(id, way, piece);
        if full || !self.links[id.0].pipe(way).is_clear() {
            self.pump(id, way);
        }
        self.maybe_stall(id, way);
    }

    /// Breaks the connection before a piece arrives, if chance decides so. Returns true if it
    /// broke.
    fn maybe_reset(&mut self, id: LinkId) -> bool {
        if self.is_calm {
            return false;
        }
        let link = &self.links[id.0];
        let rate = match link.peer {
            Peer::Client(_) => self.plan.rates.client_reset,
            Peer::Backend(_) | Peer::Canceller => self.plan.rates.server_reset,
        };
        if rate == 0 || link.leaving.is_some() || !self.rng.chance(rate) {
            return false;
        }
        self.reset(id);
        true
    }

    /// Breaks a connection, and ends what is at its other end.
    fn reset(&mut self, id: LinkId) {
        self.break_link(id);
        match self.links[id.0].peer {
            Peer::Client(hostile) if hostile >= HOSTILE => self.hostile_ends(hostile, id),
            Peer::Client(client) => self.client_loses(client, id),
            Peer::Backend(Some(backend)) => {
                self.faults += 1;
                self.backend_ends(backend);
            }
            Peer::Backend(None) => self.faults += 1,
            Peer::Canceller => {}
        }
    }

    /// Tells an engine that a connection has broken.
    pub(crate) fn broken(&mut self, id: LinkId) {
        let link = &self.links[id.0];
        if link.leaving.is_some() {
            return self.later(100, Happening::Broken(id));
        }
        if let Some(conn) = link.conn {
            let core = link.core;
            self.step(core, Event::Closed { conn, why: Some("reset") });
        }
    }

    fn hand(&mut self, id: LinkId, way: Way, piece: Piece) {
        let link = &self.links[id.0];
        let (peer, core, conn) = (link.peer, link.core, link.conn);
        if way == Way::Up {
            let Some(conn) = conn else { return };
            match piece {
                Piece::Bytes(bytes) => {
                    self.trace.line(self.now, "from", format_args!("{peer:?}"), || show(&bytes));
                    self.step(core, Event::Bytes { conn, bytes: &bytes });
                }
                Piece::End => {
                    self.trace.line(self.now, "end of", format_args!("{peer:?}"), String::new);
                    self.step(core, Event::Closed { conn, why: None });
                }
            }
            return;
        }
        match (peer, piece) {
            (Peer::Client(hostile), Piece::Bytes(_)) if hostile >= HOSTILE => {}
            (Peer::Client(hostile), Piece::End) if hostile >= HOSTILE => {
                self.hostile_ends(hostile, id);
            }
            (Peer::Client(client), Piece::Bytes(bytes)) => self.client_reads(client, id, &bytes),
            (Peer::Client(client), Piece::End) => self.client_ends(client, id),
            (Peer::Backend(Some(backend)), Piece::Bytes(bytes)) => {
                self.backend_reads(backend, &bytes);
            }
            (Peer::Backend(Some(backend)), Piece::End) => self.backend_ends(backend),
            (Peer::Backend(None) | Peer::Canceller, _) => {}
        }
    }

    /// Stops a reader for a while, if chance decides so.
    fn maybe_stall(&mut self, id: LinkId, way: Way) {
        if way == Way::Up || self.is_calm || !self.rng.chance(self.plan.rates.stall) {
            return;
        }
        self.links[id.0].pipe(way).paused = true;
        let delay = self.rng.range(100, 30_000);
        self.later(delay, Happening::Unstall(id, way));
    }
}
