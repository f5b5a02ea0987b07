//! Listeners that rest, for there is no descriptor for those who connect.
//!
//! A caller keeps descriptors for other ends by a gate ([`crate::Sizing::gate`]). Connections that it has told to close
//! still have theirs for a moment, so the gate may be reached though soon there is room: the one connection that
//! found none is held, and those behind it keep waiting in the kernel.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use crate::delay::Delay;
use crate::socket::Socket;

/// The time of one rest. To ask again at once would only burn the processor.
const REST: Duration = Duration::from_millis(100);
/// Rests for the sake of one connection, which is then delivered with the descriptor that it has.
const RESTS: u8 = 10;

/// Whether an accept failed for want of something that only time brings back.
pub(crate) fn is_scarcity(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// See the module.
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

    /// Has a listener rest to which the kernel could give no connection.
    pub(crate) fn put(&mut self, listener: u32) {
        self.delay.put(Rest { listener, held: None });
    }

    /// Gives a socket back that was just accepted. If it is beyond the gate it is held, and its listener rests.
    pub(crate) fn admit(&mut self, listener: u32, socket: Socket) -> Option<Socket> {
        if self.is_below(&socket) {
            return Some(socket);
        }
        self.hold(listener, Held { socket, rests_left: RESTS });
        None
    }

    /// A listener that has rested, and the connection that was held meanwhile.
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

    /// `wait`, or less if a rest is over earlier.
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
