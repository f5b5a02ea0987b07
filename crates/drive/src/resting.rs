//! Listeners that rest, because no file descriptor is free for new connections.
//!
//! A caller reserves descriptors for other purposes by a gate ([`crate::Sizing::gate`]).
//! Connections that it has closed keep their descriptors for a moment, so the gate may be reached
//! although there is soon room. The driver then holds the one connection that found no descriptor
//! below the gate, and further connections wait in the kernel.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use crate::delay::Delay;
use crate::socket::Socket;

/// The time of one rest. Trying again at once would waste processor time.
const REST: Duration = Duration::from_millis(100);
/// How many rests a held connection may cause; then it is delivered with the descriptor that it
/// has.
const RESTS: u8 = 10;

/// True if an accept failed because a resource is exhausted that may become free again.
pub(crate) fn is_scarcity(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// The resting listeners; see the module.
pub(crate) struct Resting {
    gate: u32,
    delay: Delay<Rest>,
}

struct Rest {
    listener: u32,
    held: Option<Held>,
}

struct Held {
    socket: Socket,
    rests_left: u8,
}

impl Resting {
    pub(crate) fn new(gate: u32) -> Resting {
        Resting { gate, delay: Delay::new(REST) }
    }

    /// Lets a listener rest, for which the kernel had no descriptor or memory.
    pub(crate) fn put(&mut self, listener: u32) {
        self.delay.put(Rest { listener, held: None });
    }

    /// Returns a socket that was just accepted. If its descriptor is beyond the gate, holds the
    /// socket and lets its listener rest.
    pub(crate) fn admit(&mut self, listener: u32, socket: Socket) -> Option<Socket> {
        if self.is_below(&socket) {
            return Some(socket);
        }
        self.hold(listener, Held { socket, rests_left: RESTS });
        None
    }

    /// Takes a listener that has rested, with the connection that was held meanwhile.
    pub(crate) fn take(&mut self) -> Option<(u32, Option<Socket>)> {
        loop {
            let Rest { listener, held } = self.delay.take()?;
            let Some(Held { socket, rests_left }) = held else { return Some((listener, None)) };
            let socket = socket.renumbered();
            if rests_left == 1 || self.is_below(&socket) {
                return Some((listener, Some(socket)));
            }
            self.hold(listener, Held { socket, rests_left: rests_left - 1 });
        }
    }

    /// Returns `wait`, or less if a rest ends earlier.
    pub(crate) fn limit(&self, wait: Option<Duration>) -> Option<Duration> {
        self.delay.limit(wait)
    }

    fn hold(&mut self, listener: u32, held: Held) {
        self.delay.put(Rest { listener, held: Some(held) });
    }

    fn is_below(&self, socket: &Socket) -> bool {
        u32::try_from(socket.as_fd().as_raw_fd()).is_ok_and(|number| number < self.gate)
    }
}
