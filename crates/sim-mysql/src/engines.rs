//! The engines' surroundings: steps the engines and carries out their actions. This is the
//! simulator's counterpart of the program's loop, and the place of planted bugs.

use refrain_config::Host;
use refrain_mysql::parts::My;
use refrain_pool::event::Level;
use refrain_pool::ids::Peer as Who;
use refrain_pool::{Action, Conn, Core, Event, Output, Transfer};
use refrain_sim::net::{Link, LinkId, Peer, Way};

use crate::plant::Plant;
use crate::wire::{PAYLOAD_MAX, show};
use crate::world::{Happening, World};

/// The most bytes that may be queued beyond `buffer_high`: bytes that were in flight when reading
/// stopped, and bytes held for a client that waited.
const SLACK: usize = 192 * 1024;
/// The number of events of a world after each of which the engine's tables are checked.
const CHECKED_EVENTS: u64 = 1_000;
/// The number of later events between two checks.
const CHECKED_EVERY: u64 = 8;

impl World {
    /// Gives an event to an engine, and collects its output now or at a later turn.
    pub(crate) fn step(&mut self, core: usize, event: Event<'_, My>) {
        let now = self.clock();
        let worker = &mut self.workers[core];
        worker.engine.step(now, event, &mut worker.ports);
        let is_due = self.events <= CHECKED_EVENTS || self.events.is_multiple_of(CHECKED_EVERY);
        if is_due && let Err(what) = self.workers[core].engine.check() {
            self.violate("tables", || format!("core {core}: {what}"));
        }
        if self.rng.chance(self.plan.rates.lazy) && !self.is_calm {
            if !self.workers[core].turning {
                self.workers[core].turning = true;
                let delay = self.rng.below(50);
                self.later(delay, Happening::Turn(core));
            }
        } else {
            self.collect(core);
        }
    }

    /// Carries out an engine's output.
    pub(crate) fn collect(&mut self, core: usize) {
        while let Some(output) = self.workers[core].ports.next() {
            match output {
                Output::Send { conn, bytes } => self.send(core, conn, bytes),
                Output::Close { conn } => self.close(core, conn),
                Output::Act(action) => self.act(core, action),
            }
        }
        self.watch_buffers(core);
        if let Some(delay) = self.workers[core].plan_tick(self.now) {
            self.later(delay, Happening::Tick(core));
        }
    }

    /// Checks that no connection has more bytes queued than its bound.
    fn watch_buffers(&mut self, core: usize) {
        // A text has to be there as a whole, and hostile clients send long ones.
        let long = if self.plan.hostile > 0 { PAYLOAD_MAX } else { 0 };
        let most = self.plan.buffer_high + SLACK + long;
        let queued = self.workers[core].most_queued();
        if queued > most {
            self.violate("buffers", || format!("{queued} bytes are queued on one connection"));
        }
    }

    /// Gives an engine its tick. Does nothing if an earlier tick has replaced this one.
    pub(crate) fn tick(&mut self, core: usize) {
        if !self.workers[core].take_tick(self.now) {
            return;
        }
        self.step(core, Event::Tick);
        self.collect(core);
    }

    fn link_of(&self, core: usize, conn: Conn) -> Option<LinkId> {
        self.workers[core].links.get(&conn).copied()
    }

    fn send(&mut self, core: usize, conn: Conn, bytes: Vec<u8>) {
        let Some(id) = self.link_of(core, conn) else {
            return self
                .violate("ports", || format!("core {core} sends on {conn:?}, which is not open"));
        };
        self.trace.fold([self.now, id.0 as u64, 1], &bytes);
        let peer = self.links[id.0].peer;
        self.trace.line(self.now, "send", format_args!("{peer:?}"), || show(&bytes));
        let (id, bytes) = self.planted(id, bytes);
        let pipe = &mut self.links[id.0].down;
        if !pipe.is_clear() {
            // Only a planted bug sends while the link still has bytes to send.
            pipe.backlog.extend_from_slice(&bytes);
        } else {
            pipe.backlog = bytes;
            pipe.taken = 0;
        }
        self.links[id.0].lent = true;
        self.pump(id, Way::Down);
    }

    /// Applies the planted bug to bytes of the engine, if this is its place.
    fn planted(&mut self, id: LinkId, mut bytes: Vec<u8>) -> (LinkId, Vec<u8>) {
        let Some(plant) = self.plant else { return (id, bytes) };
        match self.links[id.0].peer {
            Peer::Backend(_) if plant == Plant::Twice => {
                let is_query =
                    bytes.get(3..5) == Some(&[0, 3]) && bytes.get(5..11) == Some(b"INSERT");
                if is_query && self.strikes() {
                    bytes = bytes.repeat(2);
                }
                (id, bytes)
            }
            Peer::Backend(_) => (id, plant.to_server(bytes)),
            Peer::Client(_) if plant == Plant::Sequence => {
                if bytes.get(3) == Some(&1) && self.strikes() {
                    bytes[3] += 1;
                }
                (id, bytes)
            }
            Peer::Client(_) if plant == Plant::Misroute => {
                let mut others = self.clients.iter().filter_map(|client| client.link);
                let other = others.find(|other| *other != id);
                let is_reply = bytes.get(3) == Some(&1);
                match other.filter(|_| is_reply && self.strikes()) {
                    Some(other) => {
                        let own = &mut self.links[id.0];
                        own.lent = true;
                        own.down.backlog.clear();
                        own.down.taken = 0;
                        self.later(1, Happening::Sent(id));
                        (other, bytes)
                    }
                    None => (id, bytes),
                }
            }
            Peer::Client(_) | Peer::Canceller => (id, bytes),
        }
    }

    fn close(&mut self, core: usize, conn: Conn) {
        let Some(id) = self.link_of(core, conn) else {
            return self
                .violate("ports", || format!("core {core} closes {conn:?}, which is not open"));
        };
        self.trace.fold([self.now, id.0 as u64, 2], &[]);
        let peer = self.links[id.0].peer;
        self.trace.line(self.now, "close", format_args!("{peer:?}"), String::new);
        self.workers[core].links.remove(&conn);
        let link = &mut self.links[id.0];
        link.conn = None;
        link.lent = false;
        link.up.kill();
        link.down.backlog.truncate(link.down.taken);
        let leaks = matches!(
            (self.plant, peer),
            (Some(Plant::LeakServer), Peer::Backend(Some(_)))
                | (Some(Plant::LeakClient), Peer::Client(_))
        );
        if leaks && self.strikes() {
            return;
        }
        let link = &mut self.links[id.0];
        link.down.closing = true;
        if !link.connected {
            link.down.kill();
        }
        self.pump(id, Way::Down);
    }

    fn act(&mut self, core: usize, action: Action<My>) {
        match action {
            Action::Connect { conn, host } => {
                let lies = matches!(&*host, Host::Tcp { .. }) && host.to_string().ends_with(":2");
                let id = self.open(core, conn, Peer::Backend(None));
                self.trace.line(self.now, "connect", format_args!("{id:?}"), String::new);
                let (least, most) = self.plan.latency;
                let delay = self.rng.range(least, most);
                self.later(delay, Happening::Connect(id, lies));
            }
            Action::Pause { conn } => self.set_paused(core, conn, true),
            Action::Resume { conn } => {
                if self.plant != Some(Plant::LoseResume) || !self.strikes() {
                    self.set_paused(core, conn, false);
                }
            }
            Action::HandOver { conn, to, transfer } => {
                let Some(id) = self.link_of(core, conn) else { return };
                self.trace.fold([self.now, id.0 as u64, 3], &[]);
                self.trace
                    .line(self.now, "hand over", format_args!("{id:?}"), || format!("to {to:?}"));
                self.links[id.0].leaving = Some((to, transfer));
                self.links[id.0].up.paused = true;
                self.depart(id);
            }
            Action::Tell { core: to, message } => {
                self.trace.line(self.now, "tell", format_args!("{core} to {}", to.0), || {
                    format!("{message:?}")
                });
                let (least, most) = self.plan.between;
                let at = self.now + self.rng.range(least, most);
                let to = usize::from(to.0);
                let delay = self.workers[core].tell(to, at) - self.now;
                self.later(delay, Happening::Tell(to, message));
            }
            // No model client asks for TLS, or for the console.
            Action::StartTls { .. } | Action::Ask(_) => {}
            Action::Note(note) => {
                self.trace.line(self.now, "note", note.cause, || {
                    format!("{:?} {}", note.client, note.detail)
                });
                let broke = note.cause == "server_protocol" && note.level == Level::Error;
                if broke && self.plan.hostile == 0 {
                    self.violate("outstanding", || {
                        format!("a reply was not expected: {}", note.detail)
                    });
                }
            }
        }
    }

    /// Makes a link for a connection of an engine.
    pub(crate) fn open(&mut self, core: usize, conn: Conn, peer: Peer) -> LinkId {
        let id = LinkId(self.links.len());
        let room = self.plan.room;
        self.links.push(Link::new(core, Some(conn), peer, (room, room)));
        self.workers[core].links.insert(conn, id);
        id
    }

    fn set_paused(&mut self, core: usize, conn: Conn, paused: bool) {
        let Some(id) = self.link_of(core, conn) else { return };
        self.trace.fold([self.now, id.0 as u64, 4 + u64::from(paused)], &[]);
        let what = if paused { "pause" } else { "resume" };
        self.trace.line(self.now, what, format_args!("{:?}", self.links[id.0].peer), String::new);
        if paused {
            self.links[id.0].up.paused = true;
        } else {
            self.unpause(id, Way::Up);
        }
    }

    /// Gives a buffer back to the engine after its bytes are sent.
    pub(crate) fn sent(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        let Some(conn) = link.conn.filter(|_| link.lent && link.down.is_clear()) else { return };
        link.lent = false;
        link.down.taken = 0;
        let buffer = std::mem::take(&mut link.down.backlog);
        let core = link.core;
        if self.workers[core].ports.sent(conn, buffer) {
            self.step(core, Event::Drained { conn });
        }
        self.collect(core);
        self.depart(id);
    }

    /// Hands a connection over to another core, once the engine has no buffer of it lent.
    fn depart(&mut self, id: LinkId) {
        let link = &mut self.links[id.0];
        if link.lent {
            return;
        }
        let Some((to, transfer)) = link.leaving.take() else { return };
        let core = link.core;
        if let Some(conn) = link.conn.take() {
            self.workers[core].ports.release(conn);
            self.workers[core].links.remove(&conn);
        }
        let (least, most) = self.plan.between;
        let delay = self.rng.range(least, most);
        self.later(delay, Happening::HandOver(id, to, transfer));
    }

    /// Gives a core the connection that another core has handed over.
    pub(crate) fn arrive(&mut self, id: LinkId, core: Core, transfer: Box<Transfer<My>>) {
        let core = usize::from(core.0);
        let worker = &mut self.workers[core];
        let conn = worker.ports.open();
        worker.links.insert(conn, id);
        self.links[id.0].core = core;
        self.links[id.0].conn = Some(conn);
        if self.links[id.0].up.dead {
            // The kernel reports the end to this core too.
            self.later(0, Happening::Broken(id));
        }
        // The step below may hand the connection over again at once, so it comes last.
        self.unpause(id, Way::Up);
        self.step(core, Event::Arrived { conn, transfer });
    }

    /// Gives a core a new connection from outside.
    pub(crate) fn accept(&mut self, peer: Peer) -> LinkId {
        let core = self.rng.index(self.workers.len());
        let conn = self.workers[core].ports.open();
        let id = self.open(core, conn, peer);
        self.trace.fold([self.now, id.0 as u64, 6], &[]);
        let from = std::net::SocketAddr::from(([127, 0, 0, 1], 5000));
        self.step(core, Event::Accepted { conn, peer: Who::Tcp(from) });
        id
    }
}
