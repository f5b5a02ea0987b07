//! A client, as the pool sees it: its connection, its pool, its server, and its unread input.

use std::sync::Arc;

use crate::ids::{ClientSerial, Conn, Peer, PoolId};
use crate::inbox::{Inbox, Rest};
use crate::lobby::Counted;
use crate::parts::Parts;
use crate::secured::Secured;
use crate::time::Now;

/// The phase of a client's session, which the protocol knows ([`crate::Protocol::phase`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The client has not authenticated.
    Login,
    /// The client has authenticated, and waits until a server of its pool has been reached.
    Entering,
    /// A server checks the client's wishes for the session.
    Checking,
    /// The client is logged in, and may send any request.
    Ready,
    /// The client gives commands to the admin console, and has no pool.
    Console,
}

/// The thing that a client's input waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitingFor {
    /// The input is read on.
    #[default]
    Nothing,
    /// The client waits for a server.
    Server,
    /// The client's next message depends on replies still to come.
    Replies,
    /// The client's server does a job for Refrain.
    Job,
    /// The client's request is under way on a server that others use as well. The client is read on
    /// when the request is answered.
    Turn,
    /// Another client or a job fetches the reply to the same request, or what a login needs. The
    /// client is told when that is there, or will not come.
    Fetch,
}

/// The process ID that a client is told, and who knows where the client with it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProcessId {
    /// The client has not logged in.
    None,
    /// The client's core, at which it has logged in.
    Home(u32),
    /// The table that the cores share: the client has moved since its login.
    Moved(u32),
}

/// A client of Refrain.
#[derive(Debug)]
pub struct Client<P: Parts> {
    /// The client's number, which the process gives once.
    pub(crate) serial: ClientSerial,
    /// The client's connection at this core.
    pub(crate) conn: Conn,
    /// The address that the client connects from.
    pub(crate) peer: Peer,
    /// The encryption of the connection, if it has any.
    pub(crate) secured: Option<Arc<Secured>>,
    /// The lobby's count that the client belongs to.
    pub(crate) counted: Counted,
    /// The client's pool, from [`Phase::Entering`] on.
    pub(crate) pool: PoolId,
    /// The user, from [`Phase::Entering`] on.
    pub(crate) user: Arc<str>,
    /// The server lent to the client.
    pub(crate) link: Option<Conn>,
    /// Input that has not been handled yet.
    pub inbox: Inbox,
    /// The thing that the client's input waits for.
    pub(crate) waiting_for: WaitingFor,
    /// The request that the client has sent to a server that others may use as well, until the
    /// request is answered.
    pub(crate) read: Option<Vec<u8>>,
    /// Whether the client waits for a server of its own: its request may not share one, or none
    /// fits.
    pub(crate) waits_alone: bool,
    /// Whether the client's request has been sent once, to a server that the pool parted it from.
    pub(crate) resent: bool,
    /// Whether Refrain has stopped reading the client's connection.
    pub(crate) paused: bool,
    /// When the client ended its stream. The client gets the replies to its requests, and then its
    /// session ends.
    pub(crate) ended: Option<Now>,
    /// Whether a cancel request came before the server began with the client's request.
    pub cancel_wanted: bool,
    /// The process ID that the client is told.
    pub(crate) pid: ProcessId,
    /// The key that a cancel request must show: 4 bytes in protocol 3.0, 32 in 3.2.
    pub(crate) key: Box<[u8]>,
    /// When the client connected.
    pub(crate) connected: Now,
    /// When the client first logged in.
    pub(crate) logged_in: Option<Now>,
    /// When the client last got the whole reply to a request, or was let in.
    pub(crate) requested: Now,
    /// When the client began to wait for a server.
    pub(crate) waiting: Now,
    /// When it began to wait, if it has got a notice that it waits.
    pub(crate) notified: Option<Now>,
    /// The protocol's part of the session.
    pub session: P::Client,
}

impl<P: Parts> Client<P> {
    /// Makes a client that has just connected.
    pub(crate) fn new(
        serial: ClientSerial,
        conn: Conn,
        peer: Peer,
        now: Now,
        session: P::Client,
    ) -> Self {
        Self {
            serial,
            conn,
            peer,
            secured: None,
            counted: Counted::Login,
            pool: PoolId::NONE,
            user: Arc::default(),
            link: None,
            inbox: Inbox::default(),
            waiting_for: WaitingFor::Nothing,
            read: None,
            waits_alone: false,
            resent: false,
            paused: false,
            ended: None,
            cancel_wanted: false,
            pid: ProcessId::None,
            key: Box::default(),
            connected: now,
            logged_in: None,
            requested: now,
            waiting: now,
            notified: None,
            session,
        }
    }

    /// Returns the client's number, which the process gives once.
    #[inline]
    pub fn serial(&self) -> ClientSerial {
        self.serial
    }

    /// Returns the client's connection at this core.
    #[inline]
    pub fn conn(&self) -> Conn {
        self.conn
    }

    /// Returns the address that the client connects from.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns the encryption of the connection, if it has any.
    pub fn secured(&self) -> Option<&Secured> {
        self.secured.as_deref()
    }

    /// Returns the client's pool.
    #[inline]
    pub fn pool(&self) -> PoolId {
        self.pool
    }

    /// Returns the user, once the client has authenticated.
    pub fn user(&self) -> &Arc<str> {
        &self.user
    }

    /// Returns the server lent to the client.
    #[inline]
    pub fn link(&self) -> Option<Conn> {
        self.link
    }

    /// Returns the thing that the client's input waits for.
    #[inline]
    pub fn waiting_for(&self) -> WaitingFor {
        self.waiting_for
    }

    /// Keeps the client's input unread until another has fetched the reply
    /// ([`crate::Flow::tell_fetched`]).
    pub fn await_fetch(&mut self) {
        self.waiting_for = WaitingFor::Fetch;
    }

    /// Keeps the client's input unread until replies have come
    /// ([`crate::connections::Connections::unblock`]).
    pub fn await_replies(&mut self) {
        self.waiting_for = WaitingFor::Replies;
    }

    /// Whether Refrain has stopped reading the client's connection.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether the client has ended its stream.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns the process ID that the client is told, or 0 before its login. A cancel request
    /// names the client by it, at whichever core the client is.
    pub fn pid(&self) -> u32 {
        match self.pid {
            ProcessId::None => 0,
            ProcessId::Home(pid) | ProcessId::Moved(pid) => pid,
        }
    }

    /// Sets the process ID that a cancel request for the client names, and the key that it must
    /// show.
    pub(crate) fn set_cancel_key(&mut self, pid: u32, key: &[u8]) {
        self.pid = ProcessId::Home(pid);
        self.key = key.into();
    }

    /// Notes that the client has got the whole reply to a request. The client's idle time counts
    /// from now.
    #[inline]
    pub fn note_reply(&mut self, now: Now) {
        self.requested = now;
    }

    /// Takes the first `count` bytes from the request that the client has sent to a shared server,
    /// if it has: the client has got the replies to them.
    pub fn drop_from_request(&mut self, count: usize) {
        if let Some(request) = &mut self.read {
            request.drain(..count.min(request.len()));
        }
    }

    /// Whether the client's request has been sent once, to a server that the pool parted it from.
    pub fn is_resent(&self) -> bool {
        self.resent
    }

    /// Returns the request that the client has sent to a shared server.
    pub fn request(&self) -> Option<&[u8]> {
        self.read.as_deref()
    }

    /// Whether the client's server has got the beginning of a message whose rest has not arrived.
    pub fn is_half_sent(&self) -> bool {
        self.inbox.rest > 0 && self.inbox.rest_goes == Rest::On
    }
}
