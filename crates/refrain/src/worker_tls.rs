//! The encrypted connections of a core: what their sessions hear goes to the engine, and their
//! tasks go to the kernel.

use refrain_drive::{Address, Driver, Kernel};
use refrain_pool::event::TlsPeer;
use refrain_pool::{Conn, Event, Now};

use crate::served::Served;
use crate::tls::{Heard, Sender, Session, Task};
use crate::worker_state::{WorkerState, token};

impl<P: Served> WorkerState<P> {
    /// Begins to encrypt a connection.
    pub(crate) fn start_tls(
        &mut self,
        now: Now,
        conn: Conn,
        with: &TlsPeer,
        clear: usize,
        early: &[u8],
    ) {
        let store = &self.tls.store;
        let begun = match with {
            TlsPeer::Client => Session::of_client(store, clear, false),
            TlsPeer::DirectClient => Session::of_client(store, clear, true),
            TlsPeer::Server(host) => Session::of_asked_server(store, host, clear),
        };
        match begun {
            Ok(mut session) => {
                if self.ports.queued(conn) > clear {
                    session.follow_a_send();
                }
                self.tls.put(conn, Box::new(session));
                if !early.is_empty() {
                    self.receive_tls(now, conn, early);
                }
            }
            Err(why) => self.step(now, Event::Failed { conn, why: &why }),
        }
    }

    /// Handles bytes that came on a connection with a session.
    pub(crate) fn receive_tls(&mut self, now: Now, conn: Conn, bytes: &[u8]) {
        let Some(mut session) = self.tls.take(conn) else { return };
        let mut scratch = std::mem::take(&mut self.tls.scratch);
        session.receive(bytes, &mut scratch, &mut |heard| self.hear(now, conn, heard));
        self.tls.scratch = scratch;
        self.tls.put(conn, session);
    }

    /// Handles the kernel's connection to a server that may be encrypted.
    pub(crate) fn connected_tls(&mut self, now: Now, conn: Conn, address: Option<Address>) {
        let Some(mut session) = self.tls.take(conn) else { return };
        session.connected(address, &mut |heard| self.hear(now, conn, heard));
        self.tls.put(conn, session);
    }

    /// Handles the end of the kernel's stream. The session may have told of the peer's end before.
    pub(crate) fn closed_tls(&mut self, now: Now, conn: Conn, why: Option<&str>) {
        let Some(mut session) = self.tls.take(conn) else { return };
        session.closed(why, &mut |heard| self.hear(now, conn, heard));
        self.tls.put(conn, session);
    }

    /// Handles the kernel's end of a send.
    pub(crate) fn sent_tls(&mut self, now: Now, conn: Conn, buffer: Vec<u8>) {
        match self.tls.session(conn).map(Session::sent) {
            Some(Sender::Engine) => self.sent(now, conn, buffer),
            Some(Sender::Session) | None => self.tls.keep(buffer),
        }
    }

    fn hear(&mut self, now: Now, conn: Conn, heard: Heard<'_>) {
        match heard {
            Heard::Secured(secured) => self.step(now, Event::Secured { conn, secured }),
            Heard::Connected => self.step(now, Event::Connected { conn }),
            Heard::Bytes(bytes) => self.step(now, Event::Bytes { conn, bytes }),
            Heard::End => self.step(now, Event::Closed { conn, why: None }),
            Heard::Failed(why) => self.step(now, Event::Failed { conn, why: &why }),
            Heard::Broken(why) => self.step(now, Event::Closed { conn, why: Some(&why) }),
        }
    }

    /// Does the tasks of all sessions that may have one. Returns whether the engine has heard of
    /// it.
    pub(crate) fn do_tls(&mut self, now: Now, kernel: &mut Kernel) -> bool {
        let mut has_heard = false;
        while let Some((conn, mut session)) = self.tls.next_ready() {
            loop {
                match session.next(&mut self.tls.spare) {
                    Task::Nothing => {
                        self.tls.put_back(conn, session);
                        break;
                    }
                    Task::Send(bytes) => {
                        if let Some(buffer) = kernel.send(token(conn), bytes) {
                            self.tls.keep(buffer);
                            session.sent();
                        }
                    }
                    Task::Sent(buffer) => {
                        has_heard = true;
                        self.sent(now, conn, buffer);
                    }
                    Task::Dial(address) => {
                        kernel.close(token(conn));
                        kernel.connect(token(conn), &address);
                    }
                    Task::Dissolve => break,
                    Task::Break(why) => {
                        has_heard = true;
                        self.step(now, Event::Closed { conn, why: Some(&why) });
                    }
                }
            }
        }
        has_heard
    }

    /// Ends a session with its connection.
    pub(crate) fn end_tls(&mut self, conn: Conn, kernel: &mut Kernel) {
        let last = self.tls.take(conn).and_then(|session| session.last());
        if let Some(bytes) = last {
            // The kernel sends them before it closes the connection.
            drop(kernel.send(token(conn), bytes));
        }
    }
}
