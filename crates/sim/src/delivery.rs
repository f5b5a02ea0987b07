//! The delivery of pieces to either end of a connection, and connections that break before.

use refrain_pg::Event;

use crate::net::{LinkId, Peer, Piece, Way};
use crate::trace::brief;
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

    /// Breaks a connection. The bytes in flight are lost.
    pub(crate) fn reset(&mut self, id: LinkId) {
        self.trace.fold([self.now, id.0 as u64, 7], &[]);
        let peer = self.links[id.0].peer;
        self.trace.line(self.now, "reset", format_args!("{peer:?}"), String::new);
        let link = &mut self.links[id.0];
        link.up.kill();
        link.down.kill();
        match peer {
            Peer::Client(client) => self.client_loses(client, id),
            Peer::Backend(Some(backend)) => {
                self.faults.servers += 1;
                self.backend_ends(backend);
            }
            Peer::Backend(None) => self.faults.servers += 1,
            Peer::Canceller => {}
        }
        let delay = self.rng.below(200);
        self.later(delay, Happening::Broken(id));
    }

    /// Tells an engine that a connection has broken.
    pub(crate) fn broken(&mut self, id: LinkId) {
        let link = &self.links[id.0];
        if link.leaving.is_some() {
            let delay = 100;
            return self.later(delay, Happening::Broken(id));
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
                    self.trace.line(self.now, "from", format_args!("{peer:?}"), || brief(&bytes));
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
