//! What every driver does: the calls it takes and the events it reports.

use std::io;
use std::time::Duration;

use crate::address::{Address, Peer};
use crate::socket::{Listener, Socket};
use crate::waker::Waker;

/// The caller's name for a connection: an index of its choice, dense and small. It may be used for
/// another connection as soon as [`Driver::close`] was called, or [`Event::Detached`] was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Token(pub u32);

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// Somebody connected to us. The socket is read once it is adopted, by this driver or another.
    Accepted {
        /// The number given to [`Driver::listen`].
        listener: u32,
        /// The connection.
        socket: Socket,
        /// Who it is.
        peer: Peer,
    },
    /// A `connect` succeeded, and receiving has begun.
    Connected {
        /// The connection.
        token: Token,
        /// Our end of it; `None` for a Unix socket, which has no name there.
        local: Option<Address>,
    },
    /// A `connect` failed. The caller still has to call `close`.
    Failed {
        /// The connection.
        token: Token,
        /// Why.
        error: io::Error,
    },
    /// Bytes came in; never none.
    Received {
        /// The connection.
        token: Token,
        /// The bytes, lent for the duration of the call.
        bytes: &'a [u8],
    },
    /// The whole of a buffer went to the kernel, for which `send` had returned `None`.
    Sent {
        /// The connection.
        token: Token,
        /// A buffer for reuse, empty.
        buffer: Vec<u8>,
    },
    /// Nothing more will be received. The caller still has to call `close`.
    Closed {
        /// The connection.
        token: Token,
        /// `None` if the peer ended the stream in order: it may go on reading, and what is sent still goes out. If that
        /// fails, the event comes once more, with the error. Otherwise the peer is gone, and nothing more will be sent.
        error: Option<io::Error>,
    },
    /// The answer to `detach`. The token is free.
    Detached {
        /// The connection's token until now.
        token: Token,
        /// The connection, with nothing under way in the kernel.
        socket: Socket,
    },
    /// A [`Waker`] was used since the last turn, once or more.
    Woken,
}

/// Reports a connection that was accepted, unless its peer has gone already.
pub(crate) fn report(listener: u32, socket: Socket, sink: &mut dyn FnMut(Event<'_>)) {
    if let Ok(peer) = socket.peer() {
        sink(Event::Accepted { listener, socket, peer });
    }
}

/// One thread's way to the kernel.
///
/// Calls that name a token without a connection do nothing: the connection may have been closed by an
/// earlier event of the same turn.
pub trait Driver {
    /// Accepts connections from now on, each reported with this number.
    ///
    /// # Errors
    ///
    /// If the kernel refuses to watch the socket.
    fn listen(&mut self, listener: u32, socket: Listener) -> io::Result<()>;

    /// Stops accepting. A connection that the kernel has already accepted is still delivered, unless it is held
    /// ([`crate::Sizing::gate`]): then it is closed.
    fn unlisten(&mut self, listener: u32);

    /// Takes on a connected socket and begins to receive.
    ///
    /// # Panics
    ///
    /// If the token is in use.
    fn adopt(&mut self, token: Token, socket: Socket);

    /// Connects. The answer is [`Event::Connected`] or [`Event::Failed`], in a turn, never earlier.
    ///
    /// # Panics
    ///
    /// If the token is in use.
    fn connect(&mut self, token: Token, address: &Address);

    /// Sends a buffer, which the driver owns until all of it is with the kernel.
    ///
    /// `Some` gives back an empty buffer (not always the same one) and the caller may send again.
    /// `None` asks it to wait for [`Event::Sent`]. Errors come as [`Event::Closed`].
    fn send(&mut self, token: Token, buffer: Vec<u8>) -> Option<Vec<u8>>;

    /// Stops delivering [`Event::Received`]. With io_uring, bytes that the kernel has already handed
    /// over are still delivered. The end of the stream may go unnoticed until `resume`.
    fn pause(&mut self, token: Token);

    /// Begins to receive again.
    fn resume(&mut self, token: Token);

    /// Ends a connection: no event is delivered for it any more, and the token is free. Bytes given to
    /// `send` before go out first, for which a peer that is slow to read has [`crate::Sizing::linger`]; then they are dropped.
    fn close(&mut self, token: Token);

    /// Gives the socket up without closing it, for another thread's driver to adopt. What was received
    /// until then is delivered, and what was sent goes out, before [`Event::Detached`].
    fn detach(&mut self, token: Token);

    /// A handle by which other threads end this driver's wait.
    fn waker(&self) -> Waker;

    /// Hands everything asked for to the kernel, waits until something happens (`None`: for ever;
    /// zero: not at all), and delivers all that is there. A signal ends the wait without an event.
    ///
    /// The number of events is bounded: by the room for completions, or for ready sockets.
    ///
    /// # Errors
    ///
    /// If the kernel cannot be asked at all. What concerns one connection is an event of its own.
    fn turn(&mut self, wait: Option<Duration>, sink: &mut dyn FnMut(Event<'_>)) -> io::Result<()>;

    /// `io_uring` or `epoll`.
    fn name(&self) -> &'static str;
}
