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
    pub serial: ClientSerial,
    /// Its connection.
    pub conn: Conn,
    /// Where it connects from.
    pub peer: Peer,
    /// What the lobby counts it as.
    pub counted: Counted,
    /// Its pool, from [`Phase::Entering`] on.
    pub pool: PoolId,
    /// The server lent to it.
    pub link: Option<Conn>,
    /// Input that has not been handled yet.
    pub inbox: Inbox,
    /// Why its input waits.
    pub waiting_for: WaitingFor,
    /// Whether reading its connection is paused.
    pub paused: bool,
    /// When it ended its stream. It gets the replies to its requests, and then its session ends.
    pub ended: Option<Now>,
    /// Whether it has sent a cancel request before the server began with the client's request.
    pub cancel_wanted: bool,
    /// What a cancel request must show: 4 bytes in protocol 3.0, 32 in 3.2.
    pub key: Box<[u8]>,
    /// When it connected.
    pub connected: Now,
    /// When it last sent a request, or got the reply.
    pub requested: Now,
    /// When it began to wait for a server.
    pub waiting: Now,
    /// Its session, as the protocol knows it.
    pub session: P::Client,
}

impl<P: Parts> Client<P> {
    /// Makes a client that has just connected.
    pub fn new(serial: ClientSerial, conn: Conn, peer: Peer, now: Now, session: P::Client) -> Self {
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

    /// Whether its server has got the beginning of a message whose rest has not arrived.
    pub fn is_half_sent(&self) -> bool {
        self.inbox.rest > 0 && self.inbox.rest_goes == Rest::On
    }
}
