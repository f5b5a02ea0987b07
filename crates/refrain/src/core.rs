//! The loop of one core, the second half of the way of every byte.
//!
//! A turn: the kernel is handed all that was asked for and says what happened; the engine hears each of
//! those things; mail is read if the core was woken; then what the engine wants is collected, to be handed
//! to the kernel together at the next turn. So a turn costs one system call (or one receive and one send
//! a connection, with epoll), whatever number of connections took part in it.
//!
//! ```text
//! turn:  kernel ──event──► hear ──► engine.step      (bytes, connects, closes)
//!        mailbox ──mail──► read ──► engine.step      (only when woken)
//!        engine's ports ──► flush ──► kernel, other cores, helpers
//! ```
//!
//! What holds: a connection has one number, for the engine and for the kernel; time is read once a turn;
//! another core is woken at most once a turn; nothing here waits for anybody but the kernel.
//!
//! Not here: any decision about what bytes mean. TLS is to go between `hear` and `flush` and the
//! kernel, as a step from bytes to bytes on the connections that have it, with nothing else changed.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use refrain_drive::{Driver, Event as Happened, Kernel, Listener, Peer, Socket, Token};
use refrain_engine::event::{self, Command, Core};
use refrain_engine::Parcel;
use refrain_engine::{Action, Conn, Engine, Event, Now, Output, Ports};

use crate::admin::Question;
use crate::clock::Clock;
use crate::dial::Dialer;
use crate::listen::Loads;
use crate::log;
use crate::mail::{Mail, Post};
use crate::operator::Order;

/// Turns after a stop, for what the kernel has not taken yet.
const LAST_TURNS: u32 = 5;
/// How long each of them may take.
const LAST_TURN: Duration = Duration::from_millis(10);

/// A core: its kernel driver, and its seat before it.
pub(crate) struct Worker {
    kernel: Kernel,
    seat: Seat,
    listeners: u32,
}

/// All that hears of the kernel's events.
pub(crate) struct Seat {
    pub(crate) core: Core,
    pub(crate) clock: Clock,
    pub(crate) engine: Engine,
    pub(crate) ports: Ports,
    pub(crate) dialer: Dialer,
    pub(crate) loads: Loads,
    pub(crate) links: Links,
    /// Servers on their way to another core, until the kernel has let go of them.
    pub(crate) leaving: HashMap<Token, Leaving>,
    pub(crate) inbox: Vec<Mail>,
    pub(crate) woken: bool,
    pub(crate) stopped: bool,
    pub(crate) drained: bool,
    /// Clients that [`Loads`] counts here.
    pub(crate) counted: u32,
}

/// Ways to the other threads.
pub(crate) struct Links {
    pub(crate) post: Arc<Post>,
    /// Mail for each core, sent at the end of the turn.
    pub(crate) outgoing: Vec<Vec<Mail>>,
    pub(crate) questions: Sender<Question>,
    pub(crate) orders: Sender<Order>,
}

/// A server on its way to another core.
pub(crate) struct Leaving {
    to: Core,
    parcel: Box<Parcel>,
    /// What came from it meanwhile; the other core's engine hears of it.
    early: Vec<u8>,
}

impl Worker {
    /// A core that accepts on `listeners`, which is empty for all but the first.
    ///
    /// # Errors
    /// Where the kernel does not take a listener.
    pub(crate) fn new(
        mut kernel: Kernel,
        seat: Seat,
        listeners: Vec<Listener>,
    ) -> io::Result<Self> {
        let mut count = 0;
        for listener in listeners {
            kernel.listen(count, listener)?;
            count += 1;
        }
        Ok(Self { kernel, seat, listeners: count })
    }

    /// Runs until a [`Command::Stop`].
    ///
    /// # Errors
    /// Where the kernel cannot be asked any more.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut now = self.seat.clock.now();
        while !self.seat.stopped {
            now = self.turn(now)?;
        }
        for _ in 0..LAST_TURNS {
            self.kernel.turn(Some(LAST_TURN), &mut |_| ())?;
        }
        Ok(())
    }

    fn turn(&mut self, before: Now) -> io::Result<Now> {
        let Self { kernel, seat, .. } = self;
        let mut now = None;
        kernel.turn(seat.patience(before), &mut |happened| {
            let now = *now.get_or_insert_with(|| seat.clock.now());
            seat.hear(now, happened);
        })?;
        let now = now.unwrap_or_else(|| seat.clock.now());
        while let Some((conn, address)) = seat.dialer.next_again() {
            kernel.close(token(conn));
            kernel.connect(token(conn), &address);
        }
        if seat.woken {
            seat.woken = false;
            seat.links.post.take(seat.core, &mut seat.inbox);
        }
        for mail in std::mem::take(&mut seat.inbox) {
            self.read(now, mail);
        }
        self.seat.tick(now);
        self.flush(now);
        self.seat.report();
        Ok(now)
    }

    fn read(&mut self, now: Now, mail: Mail) {
        let Self { kernel, seat, listeners } = self;
        match mail {
            Mail::Accepted { socket, peer } => {
                seat.counted = seat.counted.wrapping_add(1);
                let conn = seat.ports.open();
                kernel.adopt(token(conn), socket);
                seat.step(now, Event::Accepted { conn, peer: peer_of(peer) });
            }
            Mail::Arrived { socket, parcel, early } => {
                let conn = seat.ports.open();
                kernel.adopt(token(conn), socket);
                seat.step(now, Event::Arrived { conn, parcel });
                if !early.is_empty() {
                    seat.step(now, Event::Bytes { conn, bytes: &early });
                }
            }
            Mail::Resolved { conn, ticket, addresses } => {
                match seat.dialer.resolved(conn, ticket, addresses) {
                    Ok(Some(address)) => kernel.connect(token(conn), &address),
                    Ok(None) => {}
                    Err(why) => seat.step(now, Event::Failed { conn, why: &why }),
                }
            }
            Mail::Message(message) => seat.step(now, Event::Message(message)),
            Mail::Command(command) => {
                seat.stopped |= matches!(command, Command::Stop);
                seat.step(now, Event::Command(command));
            }
            Mail::Console { client, reply } => seat.step(now, Event::Console { client, reply }),
            // Whoever asked may have lost patience.
            Mail::Snapshot(answer) => drop(answer.send(seat.engine.snapshot(now))),
            Mail::Unlisten => (0..*listeners).for_each(|listener| kernel.unlisten(listener)),
        }
    }

    /// Does what the engine wants done. What it wants because of that is done as well.
    fn flush(&mut self, now: Now) {
        while let Some(output) = self.seat.ports.next() {
            match output {
                Output::Send { conn, bytes } => {
                    if let Some(buffer) = self.kernel.send(token(conn), bytes) {
                        self.seat.sent(now, conn, buffer);
                    }
                }
                Output::Close { conn } => {
                    self.seat.dialer.forget(conn);
                    self.kernel.close(token(conn));
                }
                Output::Act(action) => self.act(action),
            }
        }
    }

    fn act(&mut self, action: Action) {
        let Self { kernel, seat, .. } = self;
        match action {
            Action::Connect { conn, host } => {
                if let Some(address) = seat.dialer.begin(conn, &host) {
                    kernel.connect(token(conn), &address);
                }
            }
            Action::Pause { conn } => kernel.pause(token(conn)),
            Action::Resume { conn } => kernel.resume(token(conn)),
            Action::HandOver { conn, to, parcel } => {
                seat.leaving.insert(token(conn), Leaving { to, parcel, early: Vec::new() });
                kernel.detach(token(conn));
            }
            Action::Tell { core, message } => seat.links.put(core, Mail::Message(message)),
            Action::Console { client, user, admin, query } => {
                let question = Question { core: seat.core, client, user, admin, query };
                // The desk goes before the cores only when the program ends.
                let _ = seat.links.questions.send(question);
            }
            Action::Note(note) => log::note(&note),
        }
    }
}

impl Seat {
    /// How long the kernel may wait for something to happen.
    fn patience(&self, now: Now) -> Option<Duration> {
        if !self.inbox.is_empty() {
            return Some(Duration::ZERO);
        }
        self.engine.next_tick().map(|tick| Duration::from_micros(tick.since(now)))
    }

    fn step(&mut self, now: Now, event: Event<'_>) {
        self.engine.step(now, event, &mut self.ports);
    }

    fn hear(&mut self, now: Now, happened: Happened<'_>) {
        match happened {
            Happened::Received { token, bytes } => match self.leaving.get_mut(&token) {
                None => self.step(now, Event::Bytes { conn: conn(token), bytes }),
                Some(leaving) => leaving.early.extend_from_slice(bytes),
            },
            Happened::Sent { token, buffer } => self.sent(now, conn(token), buffer),
            Happened::Closed { token, .. } => {
                // One that is leaving is found closed by the core it goes to.
                if !self.leaving.contains_key(&token) {
                    self.step(now, Event::Closed { conn: conn(token) });
                }
            }
            Happened::Connected { token, .. } => {
                self.dialer.forget(conn(token));
                self.step(now, Event::Connected { conn: conn(token) });
            }
            Happened::Failed { token, error } => {
                if let Some(why) = self.dialer.failed(conn(token), &error) {
                    self.step(now, Event::Failed { conn: conn(token), why: &why });
                }
            }
            Happened::Detached { token, socket } => self.depart(token, socket),
            Happened::Accepted { socket, peer, .. } => {
                let core = self.loads.choose();
                let mail = Mail::Accepted { socket, peer };
                if core == self.core { self.inbox.push(mail) } else { self.links.put(core, mail) }
            }
            Happened::Woken => self.woken = true,
        }
    }

    fn sent(&mut self, now: Now, conn: Conn, buffer: Vec<u8>) {
        if self.ports.sent(conn, buffer) {
            self.step(now, Event::Drained { conn });
        }
    }

    /// The kernel has let go of a server that goes to another core.
    fn depart(&mut self, token: Token, socket: Socket) {
        if let Some(Leaving { to, parcel, early }) = self.leaving.remove(&token) {
            self.ports.release(conn(token));
            self.links.put(to, Mail::Arrived { socket, parcel, early });
        }
    }

    fn tick(&mut self, now: Now) {
        if self.engine.next_tick().is_some_and(|tick| tick <= now) {
            self.step(now, Event::Tick);
        }
    }

    /// Ends a turn: sends the mail, and tells who counts clients and who waits for the last of them.
    fn report(&mut self) {
        self.links.send();
        let clients = u32::try_from(self.engine.client_count()).unwrap_or(u32::MAX);
        self.loads.correct(self.core, self.counted, clients);
        self.counted = clients;
        if self.engine.is_drained() && !self.drained {
            self.drained = true;
            // The operator goes last.
            let _ = self.links.orders.send(Order::Drained(self.core));
        }
    }
}

impl Links {
    fn put(&mut self, to: Core, mail: Mail) {
        self.outgoing[usize::from(to.0)].push(mail);
    }

    fn send(&mut self) {
        for (core, mail) in self.post.cores().zip(&mut self.outgoing) {
            self.post.send_all(core, mail);
        }
    }
}

fn token(conn: Conn) -> Token {
    Token(conn.0)
}

fn conn(token: Token) -> Conn {
    Conn(token.0)
}

fn peer_of(peer: Peer) -> event::Peer {
    match peer {
        Peer::Tcp(address) => event::Peer::Tcp(address),
        Peer::Unix { uid, .. } => event::Peer::Unix { uid },
    }
}
