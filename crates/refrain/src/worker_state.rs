//! The state of a core, apart from its kernel driver.

use std::collections::HashMap;
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::time::Duration;

use refrain_drive::{Peer, Token};
use refrain_pool::ids::{self, Core};
use refrain_pool::{Conn, Engine, Event, Now, Ports, Transfer};

use crate::balance::Order;
use crate::clock::Clock;
use crate::dial::Dialer;
use crate::listen::Door;
use crate::loads::{Gauge, Loads};
use crate::machine::UserNames;
use crate::mail::{Mail, Post};
use crate::scene;
use crate::served::{LocalServers, Served, SessionOutput};
use crate::silence::Silence;
use crate::supervisor::SupervisorCommand;
use crate::tls::{Session, TlsHost};

/// The user that Linux names for a process of a user namespace whose user it cannot map
/// (`overflowuid`). A program that runs as this user, `nobody`, has no peers of its own.
const UNKNOWN_USER: u32 = 65_534;

/// Set by a test: the next bytes that a core receives cause a panic.
#[cfg(test)]
pub(crate) static PLANTED: AtomicBool = AtomicBool::new(false);

/// The state of a core, apart from its kernel driver.
pub(crate) struct WorkerState<P: Served> {
    pub(crate) core: Core,
    pub(crate) clock: Clock,
    pub(crate) engine: Engine<P>,
    pub(crate) ports: Ports<P>,
    pub(crate) dialer: Dialer,
    pub(crate) tls: TlsHost,
    /// The servers that run in this process.
    pub(crate) local: P::Local,
    pub(crate) loads: Loads,
    pub(crate) gauge: Gauge,
    /// Clients that are to go to another core, as soon as they do nothing.
    pub(crate) giving: Option<Giving>,
    pub(crate) door: Door<P>,
    pub(crate) user_names: UserNames,
    pub(crate) links: Links<P>,
    /// Servers and clients on their way to another core, until the kernel has detached them.
    pub(crate) leaving: HashMap<Token, Leaving<P>>,
    pub(crate) inbox: Vec<Mail<P>>,
    pub(crate) woken: bool,
    pub(crate) stopped: bool,
    pub(crate) drained: bool,
    /// The number of clients that [`Loads`] has for this core.
    pub(crate) counted: u32,
    pub(crate) silence: Silence,
}

/// The channels to the other threads.
pub(crate) struct Links<P: Served> {
    pub(crate) post: Arc<Post<P>>,
    /// Mail for each core, sent at the end of the turn.
    pub(crate) outgoing: Vec<Vec<Mail<P>>>,
    /// The threads that work for the protocol.
    pub(crate) helpers: P::Helpers,
    pub(crate) commands: Sender<SupervisorCommand>,
}

/// Clients that are to go to another core.
pub(crate) struct Giving {
    to: Core,
    left: usize,
    /// The time at which those that are still busy stay.
    until: Now,
}

/// The time in which clients have to do nothing for a moment, to go to another core.
const GIVING_MAX: Duration = Duration::from_millis(200);
/// The most clients that go to another core in one turn.
const GIVEN_AT_ONCE: usize = 64;

/// A server or client on its way to another core.
pub(crate) struct Leaving<P: Served> {
    pub(crate) to: Core,
    pub(crate) transfer: Box<Transfer<P>>,
    /// Bytes that it sent in the meantime, for the other core.
    pub(crate) early: Vec<u8>,
    /// Its TLS.
    pub(crate) session: Option<Box<Session>>,
}

impl<P: Served> WorkerState<P> {
    /// Returns how long the kernel may wait for an event: not at all while mail or sessions in this
    /// process wait.
    pub(crate) fn poll_timeout(&self, now: Now) -> Option<Duration> {
        if !self.inbox.is_empty() || self.local.is_waited_for() {
            return Some(Duration::ZERO);
        }
        self.engine.next_tick(&self.ports).map(|tick| Duration::from_micros(tick.since(now)))
    }

    pub(crate) fn step(&mut self, now: Now, event: Event<'_, P>) {
        scene::begin(&event);
        #[cfg(test)]
        assert!(!PLANTED.load(Relaxed) || !matches!(event, Event::Bytes { .. }), "planted");
        self.engine.step(now, event, &mut self.ports);
        scene::end();
    }

    /// Returns the peer of a new client, as the engine knows it.
    pub(crate) fn peer_of(&mut self, peer: Peer) -> ids::Peer {
        match peer {
            Peer::Tcp(address) => ids::Peer::Tcp(address),
            Peer::Unix { uid, .. } => {
                let options = self.door.shared.options();
                let name = uid.and_then(|uid| self.user_names.name(&options, uid));
                let own = rustix::process::geteuid().as_raw();
                let is_own = uid == Some(own) && own != UNKNOWN_USER;
                ids::Peer::Unix { uid, is_own, name }
            }
        }
    }

    /// Begins to give clients to another core.
    pub(crate) fn begin_giving(&mut self, now: Now, order: Order) {
        let left = order.clients(self.engine.active_clients(now));
        self.giving = Some(Giving { to: order.to, left, until: now.after(GIVING_MAX) });
    }

    /// Gives clients that do nothing now to another core, if an order asks for it. Their output has
    /// been sent.
    pub(crate) fn give(&mut self, now: Now) {
        let Some(Giving { to, left, until }) = self.giving.take() else { return };
        let before = self.engine.client_count();
        self.step(now, Event::GiveClients { to, most: left.min(GIVEN_AT_ONCE) });
        let left = left.saturating_sub(before - self.engine.client_count());
        if left > 0 && now < until {
            self.giving = Some(Giving { to, left, until });
        }
    }

    /// Passes the output of a session in this process to the engine.
    pub(crate) fn hear_session(&mut self, now: Now, conn: Conn, done: SessionOutput) {
        let SessionOutput { sent, bytes, closed, .. } = done;
        if let Some(buffer) = sent {
            self.sent(now, conn, buffer);
        }
        if !bytes.is_empty() {
            self.step(now, Event::Bytes { conn, bytes: &bytes });
        }
        if closed {
            self.step(now, Event::Closed { conn, why: None });
        }
    }

    pub(crate) fn sent(&mut self, now: Now, conn: Conn, buffer: Vec<u8>) {
        if self.ports.sent(conn, buffer) {
            self.step(now, Event::Drained { conn });
        }
    }

    pub(crate) fn tick(&mut self, now: Now) {
        if self.engine.next_tick(&self.ports).is_some_and(|tick| tick <= now) {
            self.step(now, Event::Tick);
        }
    }

    /// Ends a turn: sends the mail, corrects this core's number of clients in [`Loads`], measures
    /// the load now and then, and tells the supervisor once if a drain has ended here.
    pub(crate) fn report(&mut self, now: Now) {
        self.balance(now);
        self.links.send();
        let clients = u32::try_from(self.engine.client_count()).unwrap_or(u32::MAX);
        self.loads.correct(self.core, self.counted, clients);
        self.counted = clients;
        if !self.drained && self.engine.is_drained() && !self.ports.are_closing() {
            self.drained = true;
            // The supervisor ends last.
            let _ = self.links.commands.send(SupervisorCommand::Drained(self.core));
        }
    }
}

impl<P: Served> WorkerState<P> {
    /// Measures this core's load, and passes on the order if clients are to move.
    fn balance(&mut self, now: Now) {
        if self.loads.is_single() {
            return;
        }
        let Some(busy) = self.gauge.measure(now) else { return };
        if let Some(order) = self.loads.measured(self.core, now, busy) {
            self.links.put(order.from, Mail::Give(order));
        }
    }
}

impl<P: Served> Links<P> {
    pub(crate) fn put(&mut self, to: Core, mail: Mail<P>) {
        self.outgoing[usize::from(to.0)].push(mail);
    }

    fn send(&mut self) {
        for (core, mail) in self.post.cores().zip(&mut self.outgoing) {
            self.post.send_all(core, mail);
        }
    }
}

/// Converts an engine's number of a connection to the kernel driver's: they are the same.
pub(crate) fn token(conn: Conn) -> Token {
    Token(conn.0)
}

/// Converts the kernel driver's number of a connection to the engine's.
pub(crate) fn conn(token: Token) -> Conn {
    Conn(token.0)
}
