//! The handling of kernel events by a core.
//!
//! Each kernel event becomes one step of the engine, except for what the engine does not know: that
//! a name has several addresses, that a server is on its way to another core, that an accepted
//! client may belong to another core, and that a connection is encrypted.

use refrain_drive::{Address, Event as Happened, Socket, Token};
use refrain_pool::{Event, Now};

use crate::mail::Mail;
use crate::served::Served;
use crate::worker_state::{Leaving, WorkerState, conn};

impl<P: Served> WorkerState<P> {
    /// Handles a kernel event.
    pub(crate) fn handle_event(&mut self, now: Now, happened: Happened<'_>) {
        match happened {
            Happened::Received { token, bytes } if self.tls.has(conn(token)) => {
                self.receive_tls(now, conn(token), bytes);
            }
            Happened::Received { token, bytes } => match self.leaving.get_mut(&token) {
                None => self.step(now, Event::Bytes { conn: conn(token), bytes }),
                Some(leaving) => leaving.early.extend_from_slice(bytes),
            },
            Happened::Sent { token, buffer } if self.tls.has(conn(token)) => {
                self.sent_tls(now, conn(token), buffer);
            }
            Happened::Sent { token, buffer } => self.sent(now, conn(token), buffer),
            Happened::Closed { token, error } if self.tls.has(conn(token)) => {
                let why = error.map(|error| error.to_string());
                self.closed_tls(now, conn(token), why.as_deref());
            }
            Happened::Closed { token, error } => {
                // If it is on its way to another core, that core finds it closed.
                if !self.leaving.contains_key(&token) {
                    let why = error.map(|error| error.to_string());
                    self.step(now, Event::Closed { conn: conn(token), why: why.as_deref() });
                }
            }
            Happened::Connected { token, .. } => {
                let address = self.dialer.succeeded(conn(token));
                if let Some(Address::Tcp(address)) = &address {
                    self.engine.note_address(conn(token), address.ip());
                }
                if self.tls.has(conn(token)) {
                    self.connected_tls(now, conn(token), address);
                } else {
                    self.step(now, Event::Connected { conn: conn(token) });
                }
            }
            Happened::Failed { token, error } => {
                if let Some(why) = self.dialer.failed(conn(token), &error) {
                    self.step(now, Event::Failed { conn: conn(token), why: &why });
                }
            }
            Happened::Detached { token, socket } => self.depart(token, socket),
            // Too many connections: dropping the socket closes it, before it costs anything.
            Happened::Accepted { socket, .. } if self.door.is_shut(&socket) => {}
            Happened::Accepted { socket, peer, .. } => {
                let core = self.loads.choose(self.clock.now());
                let mail = Mail::Accepted { socket, peer };
                if core == self.core { self.inbox.push(mail) } else { self.links.put(core, mail) }
            }
            Happened::Woken => self.woken = true,
        }
    }

    /// Passes a server or client that the kernel has detached to its new core.
    fn depart(&mut self, token: Token, socket: Socket) {
        if let Some(Leaving { to, transfer, early, session }) = self.leaving.remove(&token) {
            self.ports.release(conn(token));
            self.links.put(to, Mail::Arrived { socket, transfer, early, session });
        }
    }
}
