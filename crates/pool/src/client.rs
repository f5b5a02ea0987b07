//! A client: what the pool knows of it.

use crate::ids::{ClientSerial, Conn, Peer, PoolId};
use crate::inbox::{Inbox, Rest};
use crate::lobby::Counted;
use crate::parts::Parts;
use crate::time::Now;

/// How far a client is. The protocol says so of its sessions ([`crate::Protocol::phase`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has not shown who it is.
    Login,
    /// It has shown who it is, and waits until a server of its pool has been reached.
    Entering,
    /// A server checks its wishes for the session.
    Checking,
    /// It may ask for anything.
    Ready,
    /// It gives commands to the admin console, and has no pool.
    Console,
}

/// Why a client's input is not read on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitingFor {
    /// It is read on.
    #[default]
    Nothing,
    /// It waits for a server.
    Server,
    /// Its next message depends on replies still to come.
    Replies,
    /// Its server does a job for Refrain.
    Job,
}

/// A client.
#[derive(Debug)]
pub struct Client<P: Parts> {
    /// Its number, which the process gives once.
    pub(crate) serial: ClientSerial,
    /// Its connection.
    pub(crate) conn: Conn,
    /// Where it connects from.
    pub(crate) peer: Peer,
    /// What the lobby counts it as.
    pub(crate) counted: Counted,
    /// Its pool, from [`Phase::Entering`] on.
    pub(crate) pool: PoolId,
    /// The server lent to it.
    pub(crate) link: Option<Conn>,
    /// Input that has not been handled yet.
    pub inbox: Inbox,
    /// Why its input waits.
    pub(crate) waiting_for: WaitingFor,
    /// Whether reading its connection is paused.
    pub(crate) paused: bool,
    /// When it ended its stream. It gets the replies to its requests, and then its session ends.
    pub(crate) ended: Option<Now>,
    /// Whether it has sent a cancel request before the server began with the client's request.
    pub cancel_wanted: bool,
    /// What a cancel request must show: 4 bytes in protocol 3.0, 32 in 3.2.
    pub(crate) key: Box<[u8]>,
    /// When it connected.
    pub(crate) connected: Now,
    /// When it last got the whole reply to a request, or was let in.
    pub(crate) requested: Now,
    /// When it began to wait for a server.
    pub(crate) waiting: Now,
    /// Its session, as the protocol knows it.
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
            counted: Counted::Login,
            pool: PoolId::NONE,
            link: None,
            inbox: Inbox::default(),
            waiting_for: WaitingFor::Nothing,
            paused: false,
            ended: None,
            cancel_wanted: false,
            key: Box::default(),
            connected: now,
            requested: now,
            waiting: now,
            session,
        }
    }

    /// Returns its number, which the process gives once.
    #[inline]
    pub fn serial(&self) -> ClientSerial {
        self.serial
    }

    /// Returns its connection.
    #[inline]
    pub fn conn(&self) -> Conn {
        self.conn
    }

    /// Returns where it connects from.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns its pool.
    #[inline]
    pub fn pool(&self) -> PoolId {
        self.pool
    }

    /// Returns the server lent to it.
    #[inline]
    pub fn link(&self) -> Option<Conn> {
        self.link
    }

    /// Returns why its input waits.
    #[inline]
    pub fn waiting_for(&self) -> WaitingFor {
        self.waiting_for
    }

    /// Keeps its input unread until replies have come ([`crate::Step::unblock`]).
    pub fn await_replies(&mut self) {
        self.waiting_for = WaitingFor::Replies;
    }

    /// Whether it has ended its stream.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Sets what a cancel request for it must show.
    pub fn set_cancel_key(&mut self, key: &[u8]) {
        self.key = key.into();
    }

    /// Notes that it has got the whole reply to a request. The time in which it does nothing counts
    /// from now.
    #[inline]
    pub fn note_reply(&mut self, now: Now) {
        self.requested = now;
    }

    /// Whether its server has got the beginning of a message whose rest has not arrived.
    pub fn is_half_sent(&self) -> bool {
        self.inbox.rest > 0 && self.inbox.rest_goes == Rest::On
    }
}
