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
    pub(crate) serial: u64,
    /// Its connection here.
    pub(crate) conn: Conn,
    /// Its pool.
    pub(crate) pool: PoolId,
    /// Who holds it.
    pub(crate) state: ServerState<P>,
    /// Input that has not been handled yet.
    pub inbox: Inbox,
    /// Its process ID there.
    pub(crate) pid: u32,
    /// What a cancel request must show.
    pub(crate) key: Box<[u8]>,
    /// Cancel requests under way to it.
    pub(crate) cancels: u32,
    /// Whether it is to be closed once its client is done.
    pub(crate) close_needed: bool,
    /// Whether reading it is paused, because its client reads slowly.
    pub(crate) paused: bool,
    /// Whether it has done a job since a client had it.
    pub(crate) worked: bool,
    /// Its pool's [`crate::pool_shared::PoolShared::reconnects`] when it was connected.
    pub(crate) reconnects: u32,
    /// When it was connected.
    pub(crate) connected: Now,
    /// When it was lent or given back.
    pub(crate) since: Now,
    /// When the request under way began.
    pub(crate) asked: Now,
    /// When it is too old.
    pub(crate) expires: Now,
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

    /// Returns its number, which the process gives once.
    #[inline]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns its connection here.
    #[inline]
    pub fn conn(&self) -> Conn {
        self.conn
    }

    /// Returns its pool.
    #[inline]
    pub fn pool(&self) -> PoolId {
        self.pool
    }

    /// Returns its process ID there.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sets what a cancel request to it must show.
    pub fn set_cancel_key(&mut self, pid: u32, key: &[u8]) {
        (self.pid, self.key) = (pid, key.into());
    }

    /// Returns who holds it.
    #[inline]
    pub fn state(&self) -> &ServerState<P> {
        &self.state
    }

    /// Begins the login to it.
    pub fn begin_login(&mut self, login: P::Login) {
        self.state = ServerState::Login(Box::new(login));
    }

    /// Returns the login that is under way.
    pub fn login_mut(&mut self) -> Option<&mut P::Login> {
        match &mut self.state {
            ServerState::Login(login) => Some(login),
            _ => None,
        }
    }

    /// Returns the job that it does.
    pub fn job_mut(&mut self) -> Option<&mut P::Job> {
        match &mut self.state {
            ServerState::Held(Holder::Job(job, _)) => Some(job),
            _ => None,
        }
    }

    /// Whether it is to be closed once its client is done.
    pub fn is_close_needed(&self) -> bool {
        self.close_needed
    }

    /// Has it closed once its client is done.
    #[inline]
    pub fn close_later(&mut self) {
        self.close_needed = true;
    }

    /// Notes that it begins with a request while it owes nothing else. The time of the request
    /// counts from now.
    #[inline]
    pub fn request_begins(&mut self, now: Now) {
        self.asked = now;
    }

    /// Notes that it has answered a request. Returns the time that took. The time of the next
    /// request, or of doing nothing in a transaction, counts from now.
    #[inline]
    pub fn request_ends(&mut self, now: Now) -> u64 {
        now.since(std::mem::replace(&mut self.asked, now))
    }

    /// Notes that it makes progress for a client that has left, which gives it more time.
    pub fn note_progress(&mut self, now: Now) {
        self.since = now;
    }

    /// Notes that a reconnect of the pool's servers does not concern this one: it has seen why.
    pub fn note_reconnects(&mut self, reconnects: u32) {
        self.reconnects = reconnects;
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
