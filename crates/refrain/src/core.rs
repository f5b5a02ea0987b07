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

use std::io;
use std::sync::Arc;
use std::time::Duration;

use refrain_config::Host;
use refrain_drive::{Driver, Kernel, Listener, Peer};
use refrain_pg::event::{self, Command};
use refrain_pg::{Action, Conn, Event, Now, Output};

use crate::admin::Question;
use crate::log;
use crate::mail::Mail;
use crate::scene::{self, Other};
use crate::seat::{Leaving, Seat, token};

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
        self.seat.embedded.set_alone(self.seat.engine.client_count() <= 1);
        self.flush(now);
        self.seat.embedded.end_turn();
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
                let peer = peer_of(peer);
                scene::meet(conn, Other::Client(peer.clone()));
                seat.step(now, Event::Accepted { conn, peer });
            }
            Mail::Arrived { socket, parcel, early } => {
                let conn = seat.ports.open();
                kernel.adopt(token(conn), socket);
                scene::forget(conn);
                seat.step(now, Event::Arrived { conn, parcel });
                if !early.is_empty() {
                    seat.step(now, Event::Bytes { conn, bytes: &early });
                }
            }
            Mail::Moved { guest, parcel } => {
                let conn = seat.ports.open();
                seat.embedded.arrived(conn, *guest);
                scene::forget(conn);
                seat.step(now, Event::Arrived { conn, parcel });
            }
            Mail::Continue(conn) => {
                if let Some(done) = seat.embedded.go_on(conn) {
                    seat.hear_session(now, conn, done);
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
            Mail::Judged { case, verdict } => seat.step(now, Event::Judged { case, verdict }),
            // Whoever asked may have lost patience.
            Mail::Snapshot(answer) => drop(answer.send(seat.engine.snapshot(now))),
            Mail::StatementClients(answer) => drop(answer.send(seat.engine.statement_clients())),
            Mail::Unlisten => (0..*listeners).for_each(|listener| kernel.unlisten(listener)),
        }
    }

    /// Does what the engine wants done. What it wants because of that is done as well.
    fn flush(&mut self, now: Now) {
        loop {
            while let Some(output) = self.seat.ports.next() {
                self.put_out(now, output);
            }
            match self.seat.embedded.next() {
                Some((conn, done)) => self.seat.hear_session(now, conn, done),
                None => return,
            }
        }
    }

    fn put_out(&mut self, now: Now, output: Output) {
        let Self { kernel, seat, .. } = self;
        match output {
            Output::Send { conn, bytes } if seat.embedded.has(conn) => {
                if let Some(done) = seat.embedded.send(conn, bytes) {
                    seat.hear_session(now, conn, done);
                }
            }
            Output::Send { conn, bytes } => {
                if let Some(buffer) = kernel.send(token(conn), bytes) {
                    seat.sent(now, conn, buffer);
                }
            }
            Output::Close { conn } => {
                if seat.embedded.remove(conn).is_none() {
                    seat.dialer.forget(conn);
                    kernel.close(token(conn));
                }
            }
            Output::Act(action) => self.act(now, action),
        }
    }

    fn act(&mut self, now: Now, action: Action) {
        let Self { kernel, seat, .. } = self;
        match action {
            Action::Connect { conn, host } => {
                scene::meet(conn, Other::Server(Arc::clone(&host)));
                self.connect(now, conn, &host);
            }
            Action::Pause { conn } => {
                if !seat.embedded.set_paused(conn, true) {
                    kernel.pause(token(conn));
                }
            }
            Action::Resume { conn } => {
                if !seat.embedded.set_paused(conn, false) {
                    kernel.resume(token(conn));
                }
            }
            Action::HandOver { conn, to, parcel } => match seat.embedded.remove(conn) {
                Some(guest) => {
                    seat.ports.release(conn);
                    seat.links.put(to, Mail::Moved { guest: Box::new(guest), parcel });
                }
                None => {
                    seat.leaving.insert(token(conn), Leaving { to, parcel, early: Vec::new() });
                    kernel.detach(token(conn));
                }
            },
            Action::Tell { core, message } => seat.links.put(core, Mail::Message(message)),
            Action::Console { client, user, admin, query } => {
                let question = Question { core: seat.core, client, user, admin, query };
                // The desk goes before the cores only when the program ends.
                let _ = seat.links.questions.send(question);
            }
            Action::Judge(case) => seat.links.bench.bring(seat.core, case),
            Action::Note(note) => log::note(&note),
        }
    }

    fn connect(&mut self, now: Now, conn: Conn, host: &Host) {
        let Self { kernel, seat, .. } = self;
        match host {
            Host::Tcp { .. } | Host::Unix { .. } => {
                if let Some(address) = seat.dialer.begin(conn, host) {
                    kernel.connect(token(conn), &address);
                }
            }
            Host::Sqlite(file) => match seat.embedded.connect(conn, file) {
                Ok(()) => seat.step(now, Event::Connected { conn }),
                Err(why) => seat.step(now, Event::Failed { conn, why: &why }),
            },
        }
    }
}

fn peer_of(peer: Peer) -> event::Peer {
    match peer {
        Peer::Tcp(address) => event::Peer::Tcp(address),
        Peer::Unix { uid, .. } => event::Peer::Unix { uid },
    }
}
