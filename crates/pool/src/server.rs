//! A connection to a server: what the pool knows of it.
//!
//! Its [`ServerState`] says who holds it. Before somebody else gets it, the protocol has to give
//! the proof that the server owes nothing.

use crate::ids::{Conn, PoolId};
use crate::inbox::Inbox;
use crate::parts::Parts;
use crate::time::Now;

/// Who holds a server.
#[derive(Debug)]
pub enum Holder<P: Parts> {
    /// A client.
    Client(Conn),
    /// A job for Refrain, and the client that gets the server back behind it, if any.
    Job(Box<P::Job>, Option<Conn>),
}

/// What a server does.
#[derive(Debug)]
pub enum ServerState<P: Parts> {
    /// It is being connected.
    Connecting,
    /// It is being logged in to.
    Login(Box<P::Login>),
    /// It waits in the pool.
    Idle,
    /// It works for its holder.
    Held(Holder<P>),
    /// Nobody holds it: it is being made fit for the next client.
    Resetting,
    /// Nobody holds it: a cancel request is under way that must not hit the next client.
    Cancelling,
}

/// A connection to a server.
#[derive(Debug)]
pub struct Server<P: Parts> {
    /// Its number, which the process gives once.
    pub serial: u64,
    /// Its connection here.
    pub conn: Conn,
    /// Its pool.
    pub pool: PoolId,
    /// Who holds it.
    pub state: ServerState<P>,
    /// Input that has not been handled yet.
    pub inbox: Inbox,
    /// Its process ID there.
    pub pid: u32,
    /// What a cancel request must show.
    pub key: Box<[u8]>,
    /// Cancel requests under way to it.
    pub cancels: u32,
    /// Whether it is to be closed once its client is done.
    pub close_needed: bool,
    /// Whether reading it is paused, because its client reads slowly.
    pub paused: bool,
    /// Whether it has done a job since a client had it.
    pub worked: bool,
    /// Its pool's [`crate::pool_shared::PoolShared::reconnects`] when it was connected.
    pub reconnects: u32,
    /// When it was connected.
    pub connected: Now,
    /// When it was lent or given back.
    pub since: Now,
    /// When the request under way began.
    pub asked: Now,
    /// When it is too old.
    pub expires: Now,
    /// Its session, as the protocol knows it.
    pub session: P::Server,
}

/// A server on its way from one core to another: idle, quiescent, nothing queued.
#[derive(Debug)]
pub struct Transfer<P: Parts>(pub(crate) Server<P>);

impl<P: Parts> Transfer<P> {
    /// Keeps bytes that came from the server on the way.
    pub fn hold(&mut self, bytes: &[u8]) {
        self.0.inbox.hold(bytes);
    }
}

impl<P: Parts> Server<P> {
    /// Makes a server that is being connected.
    pub(crate) fn new(serial: u64, conn: Conn, pool: PoolId, now: Now, session: P::Server) -> Self {
        Self {
            serial,
            conn,
            pool,
            state: ServerState::Connecting,
            inbox: Inbox::default(),
            pid: 0,
            key: Box::default(),
            cancels: 0,
            close_needed: false,
            paused: false,
            worked: false,
            reconnects: 0,
            connected: now,
            since: now,
            asked: now,
            expires: Now(u64::MAX),
            session,
        }
    }

    /// Whether it is not logged in yet.
    pub fn is_new(&self) -> bool {
        matches!(self.state, ServerState::Connecting | ServerState::Login(_))
    }

    /// Whether it is logged in, and no client holds it or gets it back.
    pub fn is_ownerless(&self) -> bool {
        !self.is_new() && self.client().is_none()
    }

    /// Whether it does a job for Refrain.
    pub fn is_at_work(&self) -> bool {
        matches!(self.state, ServerState::Held(Holder::Job(..)))
    }

    /// Returns the client that holds it, or gets it back when its job is done.
    #[inline]
    pub fn client(&self) -> Option<Conn> {
        match &self.state {
            ServerState::Held(Holder::Client(client)) => Some(*client),
            ServerState::Held(Holder::Job(_, back)) => *back,
            _ => None,
        }
    }
}
