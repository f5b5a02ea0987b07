//! Connections that leave the driver, closed or detached: each stays until the kernel has finished
//! with its requests.

use std::os::fd::AsFd;

use crate::face::Event;
use crate::socket::Socket;
use crate::sys;
use crate::table::{Key, Life};

use super::connection::Send;
use super::ring::Operation;
use super::{Sink, Uring};

impl Uring {
    /// Removes a connection that was waiting for the kernel to finish with it.
    pub(super) fn look_after(&mut self, key: Key) {
        let Some((_, connection)) = self.table.get(key) else { return };
        match connection.life {
            Life::Lingering | Life::Expired if connection.is_quiet() => {
                sys::discard(connection.fd.as_fd());
                self.table.remove(key);
            }
            Life::Leaving if connection.is_quiet() => self.left.push(key),
            _ => {}
        }
    }

    /// Gives the socket of a detached connection to the caller.
    pub(super) fn give_up(&mut self, key: Key, sink: Sink<'_>) {
        let Some((token, connection)) = self.table.get(key) else { return };
        if connection.life != Life::Leaving {
            return;
        }
        self.table.unbind(token);
        if let Some(connection) = self.table.remove(key) {
            sink(Event::Detached { token, socket: Socket::new(connection.fd) });
        }
    }

    /// Cancels the requests of a closed connection.
    ///
    /// The completion of a cancelled send is as if the send had been cut short: it reports the
    /// bytes that went before, if there were any. A send may also be about to follow, so the
    /// connection remembers that none may, and the socket refuses it.
    pub(super) fn expire(&mut self, key: Key) {
        let Some((_, connection)) = self.table.get(key) else { return };
        connection.life = Life::Expired;
        sys::stop(connection.fd.as_fd());
        match connection.send {
            Send::Nothing | Send::Waiting | Send::Fast => {}
            Send::Connecting => self.ring.cancel(Operation::Connect.of(key)),
            Send::Slow => self.ring.cancel(Operation::Send.of(key)),
        }
        self.look_after(key);
    }
}
