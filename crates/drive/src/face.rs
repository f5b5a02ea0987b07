//! The interface of every driver: its calls and its events.

use std::io;
use std::time::Duration;

use crate::address::{Address, Peer};
use crate::socket::{Listener, Socket};
use crate::waker::Waker;

/// The caller's name for a connection: an index chosen by the caller, dense and small. The caller
/// may reuse it after [`Driver::close`], or after [`Event::Detached`] was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Token(pub u32);

/// An event on a connection, a listener or the waker.
#[derive(Debug)]
pub enum Event<'a> {
    /// A client connected. The socket is read once a driver adopts it, this one or another.
    Accepted {
        /// The number given to [`Driver::listen`].
        listener: u32,
        /// The connection.
        socket: Socket,
        /// The peer.
        peer: Peer,
    },
    /// A `connect` succeeded, and receiving has begun.
    Connected {
        /// The connection.
        token: Token,
        /// The local address; `None` for a Unix socket, which has no name on this side.
        local: Option<Address>,
    },
    /// A `connect` failed. The caller must still call `close`.
    Failed {
        /// The connection.
        token: Token,
        /// The error.
        error: io::Error,
    },
    /// Bytes arrived, at least one.
    Received {
        /// The connection.
        token: Token,
        /// The bytes, borrowed for the duration of the call.
        bytes: &'a [u8],
    },
    /// The kernel has taken a whole buffer for which `send` had returned `None`.
    Sent {
        /// The connection.
        token: Token,
        /// An empty buffer for reuse.
        buffer: Vec<u8>,
    },
    /// Nothing more will be received. The caller must still call `close`.
    Closed {
        /// The connection.
        token: Token,
        /// `None` if the peer ended the stream in order. It may go on reading, and buffers given to
        /// `send` still go out; if sending fails, the event comes once more, with the error. With
        /// an error the peer is gone, and nothing more will be sent.
        error: Option<io::Error>,
    },
    /// The reply to `detach`. The token is free.
    Detached {
        /// The connection's token until now.
        token: Token,
        /// The connection, with no request pending in the kernel.
        socket: Socket,
    },
    /// A [`Waker`] was used since the last turn, once or more.
    Woken,
}

/// Reports an accepted connection, unless its peer has gone already.
pub(crate) fn report(listener: u32, socket: Socket, sink: &mut dyn FnMut(Event<'_>)) {
    if let Ok(peer) = socket.peer() {
        sink(Event::Accepted { listener, socket, peer });
    }
}

/// The interface of one thread to the kernel.
///
/// Calls that name a token without a connection do nothing: the connection may have been closed by
/// an earlier event of the same turn.
pub trait Driver {
    /// Accepts connections from now on, and reports each with this number.
    ///
    /// # Errors
    ///
    /// If the kernel refuses to watch the socket.
    fn listen(&mut self, listener: u32, socket: Listener) -> io::Result<()>;

    /// Stops accepting. A connection that the kernel has already accepted is still delivered,
    /// unless the driver holds it ([`crate::Sizing::gate`]): then the driver closes it.
    fn unlisten(&mut self, listener: u32);

    /// Takes over a connected socket and begins to receive.
    ///
    /// # Panics
    ///
    /// If the token is in use.
    fn adopt(&mut self, token: Token, socket: Socket);

    /// Connects. The reply is [`Event::Connected`] or [`Event::Failed`], in a later turn.
    ///
    /// # Panics
    ///
    /// If the token is in use.
    fn connect(&mut self, token: Token, address: &Address);

    /// Sends a buffer, which the driver owns until the kernel has taken all of it.
    ///
    /// `Some` returns an empty buffer (not always the same one), and the caller may send again.
    /// `None` means that the caller must wait for [`Event::Sent`]. Errors come as
    /// [`Event::Closed`].
    fn send(&mut self, token: Token, buffer: Vec<u8>) -> Option<Vec<u8>>;

    /// Stops delivering [`Event::Received`]. With io_uring, bytes that the kernel has already
    /// handed over are still delivered. The end of the stream may go unnoticed until `resume`.
    fn pause(&mut self, token: Token);

    /// Begins to receive again.
    fn resume(&mut self, token: Token);

    /// Ends a connection: no event is delivered for it any more, and the token is free. Bytes given
    /// to `send` before go out first; a peer that reads slowly has [`crate::Sizing::linger`] to
    /// take them, then they are dropped.
    fn close(&mut self, token: Token);

    /// Releases the socket without closing it, for the driver of another thread to adopt. Before
    /// [`Event::Detached`], bytes received until then are delivered and bytes given to `send` go
    /// out.
    fn detach(&mut self, token: Token);

    /// Returns the time since the peer has last acknowledged anything, if it owes an
    /// acknowledgement: of bytes that were sent more than once, or of several questions whether it
    /// has room. `None` if it owes none, and where the kernel does not know.
    fn unacknowledged(&mut self, token: Token) -> Option<Duration>;

    /// Returns a handle with which other threads end this driver's wait.
    fn waker(&self) -> Waker;

    /// Hands all requests to the kernel, waits until something happens (`None`: without limit;
    /// zero: not at all), and delivers all events. A signal ends the wait without an event.
    ///
    /// The number of events is bounded by the room for completions, or for ready sockets.
    ///
    /// # Errors
    ///
    /// If the driver cannot call the kernel at all. An error of one connection is an event instead.
    fn turn(&mut self, wait: Option<Duration>, sink: &mut dyn FnMut(Event<'_>)) -> io::Result<()>;

    /// Returns `io_uring` or `epoll`.
    fn name(&self) -> &'static str;
}
