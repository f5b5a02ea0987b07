//! The loop of one core: passes events of the kernel to the engine, and its output to the kernel.
//!
//! In each turn the core hands all pending operations to the kernel and gets the events; the engine
//! handles each event; the core reads its mail if it was woken; then it collects the output of the
//! engine, for the kernel at the next turn. So a turn costs one system call (with epoll, one
//! receive and one send per connection), however many connections take part in it.
//!
//! ```text
//! turn:  kernel ──event──► handle_event ──► engine.step      (bytes, connects, closes)
//!        mailbox ──mail──► read ──────────► engine.step      (only when woken)
//!        engine's ports ──► drain_output ──► kernel, other cores, helpers
//! ```
//!
//! Always true: a connection has one number, for the engine and for the kernel; the core reads the
//! clock once per turn and wakes another core at most once per turn; it waits for nothing but the
//! kernel.
//!
//! Not here: any decision about the meaning of bytes. TLS stands between the kernel and the engine,
//! as a step from bytes to bytes (`tls`). The loop is the same for each protocol that the program
//! serves (`served`), and each has a copy of its own, made by the compiler.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use refrain_config::Host;
use refrain_drive::{Driver, Event as Happened, Kernel, Listener};
use refrain_pool::event::Command;
use refrain_pool::{Action, Conn, Event, Now, Output};

use crate::log;
use crate::mail::Mail;
use crate::scene::{self, Other};
use crate::served::{LocalServers, Served};
use crate::worker_state::{Leaving, WorkerState, token};

/// Time after a stop for output that has not been sent yet.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// Time after that for output that the kernel has not taken yet.
const LAST_TURN: Duration = Duration::from_millis(10);

/// A core: its kernel driver and its state.
pub(crate) struct Worker<P: Served> {
    kernel: Kernel,
    worker_state: WorkerState<P>,
    listeners: u32,
}

impl<P: Served> Worker<P> {
    /// Makes a core that accepts on `listeners`, which is empty for all cores but the first.
    ///
    /// # Errors
    /// If the kernel refuses a listener.
    pub(crate) fn new(
        mut kernel: Kernel,
        worker_state: WorkerState<P>,
        listeners: Vec<Listener>,
    ) -> io::Result<Self> {
        let mut count = 0;
        for listener in listeners {
            kernel.listen(count, listener)?;
            count += 1;
        }
        Ok(Self { kernel, worker_state, listeners: count })
    }

    /// Runs until a [`Command::Stop`].
    ///
    /// # Errors
    /// If a call of the kernel driver fails.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut now = self.worker_state.clock.now();
        while !self.worker_state.stopped {
            now = self.turn(now)?;
        }
        // Behind what the kernel is still sending, clients have yet to be told.
        let until = now.after(LAST_OUTPUT);
        while self.worker_state.ports.are_closing() && now < until {
            now = self.turn(now)?;
        }
        self.kernel.turn(Some(LAST_TURN), &mut |_| ())
    }

    fn turn(&mut self, before: Now) -> io::Result<Now> {
        let Self { kernel, worker_state, .. } = self;
        let mut now = None;
        worker_state.ports.note_from(log::level());
        worker_state.ports.note_sessions(log::sessions());
        kernel.turn(worker_state.poll_timeout(before), &mut |happened| {
            let now = *now.get_or_insert_with(|| worker_state.clock.now());
            worker_state.handle_event(now, happened);
        })?;
        let now = now.unwrap_or_else(|| worker_state.clock.now());
        while let Some((conn, address)) = worker_state.dialer.next_again() {
            kernel.close(token(conn));
            kernel.connect(token(conn), &address);
        }
        if worker_state.woken {
            worker_state.woken = false;
            worker_state.links.post.take(worker_state.core, &mut worker_state.inbox);
        }
        for mail in std::mem::take(&mut worker_state.inbox) {
            self.read(now, mail);
        }
        self.worker_state.tick(now);
        self.end_silent(now);
        self.worker_state.local.set_alone(self.worker_state.engine.client_count() <= 1);
        self.drain_output(now);
        if self.worker_state.giving.is_some() {
            self.worker_state.give(now);
            self.drain_output(now);
        }
        self.worker_state.local.end_turn();
        self.worker_state.report(now);
        Ok(now)
    }

    /// Ends the connections of servers that have gone silent.
    fn end_silent(&mut self, now: Now) {
        let Self { kernel, worker_state, .. } = self;
        if !worker_state.silence.is_due(now) {
            return;
        }
        let limit = worker_state.door.shared.options().general.server_silence_timeout;
        let unacknowledged = |conn| kernel.unacknowledged(token(conn));
        let silent = worker_state.silence.look(&worker_state.engine, unacknowledged, now, limit);
        for conn in silent {
            let error = Some(io::ErrorKind::TimedOut.into());
            worker_state.handle_event(now, Happened::Closed { token: token(conn), error });
        }
    }

    fn read(&mut self, now: Now, mail: Mail<P>) {
        let Self { kernel, worker_state, listeners } = self;
        match mail {
            Mail::Accepted { socket, peer } => {
                worker_state.counted = worker_state.counted.wrapping_add(1);
                let conn = worker_state.ports.open();
                kernel.adopt(token(conn), socket);
                let peer = worker_state.peer_of(peer);
                scene::meet(conn, Other::Client(peer.clone()));
                worker_state.step(now, Event::Accepted { conn, peer });
            }
            Mail::Arrived { socket, transfer, early, session } => {
                let conn = worker_state.ports.open();
                kernel.adopt(token(conn), socket);
                match transfer.peer() {
                    Some(peer) => {
                        worker_state.counted = worker_state.counted.wrapping_add(1);
                        scene::meet(conn, Other::Client(peer.clone()));
                    }
                    None => scene::forget(conn),
                }
                let is_encrypted = session.is_some();
                if let Some(session) = session {
                    worker_state.tls.put(conn, session);
                }
                worker_state.step(now, Event::Arrived { conn, transfer });
                match early.is_empty() {
                    true => {}
                    false if is_encrypted => worker_state.receive_tls(now, conn, &early),
                    false => worker_state.step(now, Event::Bytes { conn, bytes: &early }),
                }
            }
            Mail::Give(order) => worker_state.begin_giving(now, order),
            Mail::Moved { session, transfer } => {
                let conn = worker_state.ports.open();
                worker_state.local.arrived(conn, *session);
                scene::forget(conn);
                worker_state.step(now, Event::Arrived { conn, transfer });
            }
            Mail::Continue(conn) => {
                if let Some(done) = worker_state.local.go_on(conn) {
                    worker_state.hear_session(now, conn, done);
                }
            }
            Mail::Resolved { conn, ticket, addresses } => {
                match worker_state.dialer.resolved(conn, ticket, addresses) {
                    Ok(Some(address)) => kernel.connect(token(conn), &address),
                    Ok(None) => {}
                    Err(why) => worker_state.step(now, Event::Failed { conn, why: &why }),
                }
            }
            Mail::Message(message) => worker_state.step(now, Event::Message(message)),
            Mail::Command(command) => {
                worker_state.stopped |= matches!(command, Command::Stop);
                worker_state.step(now, Event::Command(command));
            }
            Mail::Answered(answer) => worker_state.step(now, Event::Answered(answer)),
            Mail::Look(look) => look.at(&worker_state.engine, now),
            Mail::Unlisten => (0..*listeners).for_each(|listener| kernel.unlisten(listener)),
        }
    }

    /// Carries out the output of the engine, and any output that comes of that.
    fn drain_output(&mut self, now: Now) {
        loop {
            while let Some(output) = self.worker_state.ports.next() {
                self.put_out(now, output);
            }
            if self.worker_state.do_tls(now, &mut self.kernel) {
                continue;
            }
            match self.worker_state.local.next() {
                Some((conn, done)) => self.worker_state.hear_session(now, conn, done),
                None => return,
            }
        }
    }

    fn put_out(&mut self, now: Now, output: Output<P>) {
        let Self { kernel, worker_state, .. } = self;
        match output {
            Output::Send { conn, bytes } if worker_state.local.has(conn) => {
                if let Some(done) = worker_state.local.send(conn, bytes) {
                    worker_state.hear_session(now, conn, done);
                }
            }
            Output::Send { conn, bytes } if worker_state.tls.has(conn) => {
                if let Some(session) = worker_state.tls.session(conn) {
                    session.send(bytes);
                }
            }
            Output::Send { conn, bytes } => {
                if let Some(buffer) = kernel.send(token(conn), bytes) {
                    worker_state.sent(now, conn, buffer);
                }
            }
            Output::Close { conn } => {
                if worker_state.local.remove(conn).is_none() {
                    worker_state.dialer.forget(conn);
                    worker_state.end_tls(conn, kernel);
                    kernel.close(token(conn));
                }
            }
            Output::Act(action) => self.act(now, action),
        }
    }

    fn act(&mut self, now: Now, action: Action<P>) {
        let Self { kernel, worker_state, .. } = self;
        match action {
            Action::Connect { conn, host } => {
                scene::meet(conn, Other::Server(Arc::clone(&host)));
                self.connect(now, conn, &host);
            }
            Action::StartTls { conn, with, clear, early } => {
                worker_state.start_tls(now, conn, &with, clear, &early);
            }
            Action::Pause { conn } => {
                if !worker_state.local.set_paused(conn, true) {
                    kernel.pause(token(conn));
                }
            }
            Action::Resume { conn } => {
                if !worker_state.local.set_paused(conn, false) {
                    kernel.resume(token(conn));
                }
            }
            Action::HandOver { conn, to, transfer } => {
                match worker_state.local.remove(conn) {
                    Some(session) => {
                        worker_state.ports.release(conn);
                        worker_state
                            .links
                            .put(to, Mail::Moved { session: Box::new(session), transfer });
                    }
                    None => {
                        if transfer.peer().is_some() {
                            worker_state.loads.add(to);
                        }
                        let session = worker_state.tls.take(conn).map(|mut session| {
                            // The kernel sends what it has before it lets the socket go.
                            session.sent();
                            session
                        });
                        let leaving = Leaving { to, transfer, early: Vec::new(), session };
                        worker_state.leaving.insert(token(conn), leaving);
                        kernel.detach(token(conn));
                    }
                }
            }
            Action::Tell { core, message } => worker_state.links.put(core, Mail::Message(message)),
            Action::Ask(request) => {
                P::ask(&worker_state.links.helpers, worker_state.core, request);
            }
            Action::Note(note) => log::note(&note),
        }
    }

    fn connect(&mut self, now: Now, conn: Conn, host: &Host) {
        let Self { kernel, worker_state, .. } = self;
        match host {
            Host::Tcp { .. } | Host::Unix { .. } | Host::Socket(_) => {
                match P::server_tls(&worker_state.tls.store, host) {
                    Ok(Some(session)) => worker_state.tls.put(conn, Box::new(session)),
                    Ok(None) => {}
                    Err(why) => {
                        return worker_state.step(now, Event::Failed { conn, why: &why });
                    }
                }
                if let Some(address) = worker_state.dialer.begin(conn, host) {
                    kernel.connect(token(conn), &address);
                }
            }
            Host::Sqlite(file) => match worker_state.local.connect(conn, file) {
                Ok(()) => worker_state.step(now, Event::Connected { conn }),
                Err(why) => worker_state.step(now, Event::Failed { conn, why: &why }),
            },
        }
    }
}
