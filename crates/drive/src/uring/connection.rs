//! The state of a connection, 56 bytes of it, and the spare buffers, which no connection owns.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::{opcode, squeue, types};
use socket2::SockAddr;

use crate::face::{Event, Token};
use crate::table::Life;

use super::Sink;

/// The state of the request to receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Receive {
    /// Nothing.
    Nothing,
    /// The kernel reports bytes as they arrive.
    Asked,
    /// The driver asked the kernel to stop, and the kernel has not confirmed it yet.
    Cancelled,
}

/// The state of the request to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Send {
    /// Nothing.
    Nothing,
    /// The socket is still connecting.
    Connecting,
    /// The kernel has not seen `out` yet.
    Waiting,
    /// The kernel has `out`, and sends a completion at once or not at all.
    Fast,
    /// The kernel has the rest of `out`, and sends a completion when the rest is gone.
    Slow,
}

/// One connection.
pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    /// The error number with which a send failed; 0 if none failed.
    pub(super) error: i32,
    pub(super) life: Life,
    pub(super) receive: Receive,
    pub(super) send: Send,
    /// True if the caller wants to receive.
    pub(super) wanted: bool,
    /// True if bytes have arrived since the last request to receive.
    pub(super) fed: bool,
    /// True if the caller waits for [`Event::Sent`].
    pub(super) owed: bool,
    pub(super) aside: Option<Box<Aside>>,
    pub(super) out: Vec<u8>,
    /// Bytes of `out` that are sent.
    pub(super) sent: usize,
}

/// State that a connection has at times only.
pub(super) enum Aside {
    /// The address to connect to.
    Address(SockAddr),
    /// The bytes to send when `out` is gone.
    Next(Vec<u8>),
}

const _: () = assert!(size_of::<Connection>() <= 56);

/// Returns a length for the kernel, which counts in 32 bits.
const MOST_AT_ONCE: usize = 1 << 30;

impl Connection {
    pub(super) fn new(fd: OwnedFd, life: Life) -> Connection {
        Connection {
            fd,
            error: 0,
            life,
            receive: Receive::Nothing,
            send: Send::Nothing,
            wanted: true,
            fed: false,
            owed: false,
            aside: None,
            out: Vec::new(),
            sent: 0,
        }
    }

    pub(super) fn raw(&self) -> types::Fd {
        types::Fd(self.fd.as_raw_fd())
    }

    /// Builds a request to send the rest of `out`: all of it, or as much as possible with these
    /// flags.
    pub(super) fn rest(&self, flags: i32) -> squeue::Entry {
        let rest = &self.out[self.sent..];
        let length = rest.len().min(MOST_AT_ONCE) as u32;
        opcode::Send::new(self.raw(), rest.as_ptr(), length)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL | flags)
            .build()
    }

    /// True if the kernel has no request of the connection, and will get none.
    pub(super) fn is_quiet(&self) -> bool {
        self.receive == Receive::Nothing && self.send == Send::Nothing
    }

    pub(super) fn put_next(&mut self, mut buffer: Vec<u8>) {
        match self.aside.as_deref_mut() {
            Some(Aside::Next(next)) => {
                debug_assert!(false, "one send at a time");
                next.append(&mut buffer);
            }
            _ => self.aside = Some(Box::new(Aside::Next(buffer))),
        }
    }

    pub(super) fn take_next(&mut self) -> Option<Vec<u8>> {
        match *self.aside.take()? {
            Aside::Next(next) => Some(next),
            Aside::Address(_) => None,
        }
    }

    pub(super) fn forget_sends(&mut self) {
        self.send = Send::Nothing;
        self.owed = false;
        self.sent = 0;
        self.out = Vec::new();
        self.aside = None;
    }

    /// Handles the end of the peer's stream. Unless a send has failed before, the caller may still
    /// send.
    pub(super) fn end_of_stream(&mut self, token: Token, sink: Sink<'_>) {
        if self.life == Life::Open && self.error == 0 {
            self.life = Life::HalfOpen;
            sink(Event::Closed { token, error: None });
        } else {
            self.end(token, None, sink);
        }
    }

    /// Delivers the end, once. An error in sending came first, so the driver reports that one.
    pub(super) fn end(&mut self, token: Token, error: Option<io::Error>, sink: Sink<'_>) {
        if self.life.may_send() {
            self.life = Life::Ended;
            let sent = (self.error != 0).then(|| io::Error::from_raw_os_error(self.error));
            sink(Event::Closed { token, error: sent.or(error) });
        }
    }
}

/// Empty buffers to give to the caller in return for full ones.
#[derive(Default)]
pub(super) struct Spare {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spare {
    /// The number of buffers that are kept after a burst.
    const MOST_BYTES: usize = 4 << 20;

    pub(super) fn put(&mut self, buffer: Vec<u8>) {
        let bytes = self.bytes + buffer.capacity();
        if bytes <= Spare::MOST_BYTES && buffer.capacity() > 0 {
            self.bytes = bytes;
            self.buffers.push(buffer);
        }
    }

    /// Returns a spare buffer, or one without memory.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer
    }
}

pub(super) fn emptied(mut buffer: Vec<u8>) -> Vec<u8> {
    buffer.clear();
    buffer
}
