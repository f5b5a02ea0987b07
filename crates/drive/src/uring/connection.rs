//! What is kept for a connection, 56 bytes of it, and the buffers kept for none.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use io_uring::{opcode, squeue, types};
use socket2::SockAddr;

use crate::face::{Event, Token};
use crate::table::Life;

use super::Sink;

/// What the kernel does about receiving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Receive {
    /// Nothing.
    Nothing,
    /// It reports what comes in.
    Asked,
    /// It was asked to stop, and has not yet said that it did.
    Cancelled,
}

/// What the kernel does, or is to do, about sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Send {
    /// Nothing.
    Nothing,
    /// It connects first.
    Connecting,
    /// `out` is not in its hands yet.
    Waiting,
    /// It has `out`, and answers at once or not at all.
    Fast,
    /// It has the rest of `out`, and answers when that is gone.
    Slow,
}

/// One connection.
pub(super) struct Connection {
    pub(super) fd: OwnedFd,
    /// What a send failed with; 0 if none did.
    pub(super) error: i32,
    pub(super) life: Life,
    pub(super) receive: Receive,
    pub(super) send: Send,
    /// The caller wants to receive.
    pub(super) wanted: bool,
    /// Bytes have come in since it was asked for them.
    pub(super) fed: bool,
    /// The caller waits for [`Event::Sent`].
    pub(super) owed: bool,
    pub(super) aside: Option<Box<Aside>>,
    pub(super) out: Vec<u8>,
    /// Bytes of `out` that are gone.
    pub(super) sent: usize,
}

/// What a connection has at times only.
pub(super) enum Aside {
    /// Where it connects to.
    Address(SockAddr),
    /// What to send when `out` is gone.
    Next(Vec<u8>),
}

const _: () = assert!(size_of::<Connection>() <= 56);

/// The kernel counts in 32 bits.
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

    /// A request to send what is left of `out`: all of it, or as much as can be had with these flags.
    pub(super) fn rest(&self, flags: i32) -> squeue::Entry {
        let rest = &self.out[self.sent..];
        let length = rest.len().min(MOST_AT_ONCE) as u32;
        opcode::Send::new(self.raw(), rest.as_ptr(), length)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL | flags)
            .build()
    }

    /// The kernel holds nothing for it, and is to get nothing.
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

    /// The peer has ended its stream. Unless a send has failed before, it may still be sent to.
    pub(super) fn end_of_stream(&mut self, token: Token, sink: Sink<'_>) {
        if self.life == Life::Open && self.error == 0 {
            self.life = Life::HalfOpen;
            sink(Event::Closed { token, error: None });
        } else {
            self.end(token, None, sink);
        }
    }

    /// Delivers the end, once. An error in sending came first, and is the one to be told.
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
    /// What is kept after a burst.
    const MOST_BYTES: usize = 4 << 20;

    pub(super) fn put(&mut self, buffer: Vec<u8>) {
        let bytes = self.bytes + buffer.capacity();
        if bytes <= Spare::MOST_BYTES && buffer.capacity() > 0 {
            self.bytes = bytes;
            self.buffers.push(buffer);
        }
    }

    /// One of them, or one without memory.
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
