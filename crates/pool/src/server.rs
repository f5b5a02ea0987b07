//! A connection to a server, as the pool sees it.
//!
//! The [`ServerState`] says who holds the server. Before the pool lends the server to another
//! client, the protocol has to give the proof that the server owes nothing.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use refrain_config::Host;

use crate::hosts::HostPlace;
use crate::ids::{Conn, Core, PoolId};
use crate::inbox::Inbox;
use crate::line::Line;
use crate::parts::Parts;
use crate::reconnects::Reconnects;
use crate::secured::Secured;
use crate::time::Now;

/// The count of a server that is obsolete ([`Reconnects::obsolete`]), which no pool reaches.
const OBSOLETE: u32 = u32::MAX;

/// The holder of a server.
#[derive(Debug)]
pub enum Holder<P: Parts> {
    /// The client that the server is lent to.
    Client(Conn),
    /// A job for Refrain, and the client that gets the server back after the job, if any.
    Job(Box<P::Job>, Option<Conn>),
}

/// A finding about the state of a server's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFinding {
    /// The host may not be in the state that the pool wants: a new server shows.
    Doubtful,
    /// The host is not in the state that the pool wants.
    Unsuited,
}

/// The state of a server, and its holder.
#[derive(Debug)]
pub enum ServerState<P: Parts> {
    /// Refrain is connecting to the server.
    Connecting,
    /// Refrain is logging in to the server.
    Login(Box<P::Login>),
    /// The server waits in the pool.
    Idle,
    /// The server works for its holder.
    Held(Holder<P>),
    /// The server has no holder, and is being made fit for the next client.
    Resetting,
    /// The server has no holder but side connections: a cancel request is under way that must not
    /// hit the next client.
    Cancelling,
}

/// A connection to a server.
#[derive(Debug)]
pub struct Server<P: Parts> {
    /// The server's number, which the process gives once.
    pub(crate) serial: u64,
    /// The server's connection at this core.
    pub(crate) conn: Conn,
    /// The server's pool.
    pub(crate) pool: PoolId,
    /// The host that the server is at.
    pub(crate) host: Arc<Host>,
    /// The address that the connection leads to, if the host has any.
    pub(crate) address: Option<IpAddr>,
    /// The place of that host among several.
    pub(crate) place: Option<HostPlace>,
    /// Whether a login that is under way takes so long that another host is tried beside it.
    pub(crate) is_slow: bool,
    /// The encryption of the connection, if it has any.
    pub(crate) secured: Option<Arc<Secured>>,
    /// The state of the server, and its holder.
    pub(crate) state: ServerState<P>,
    /// The clients whose requests the server has got behind that of its holder.
    pub(crate) line: Line,
    /// Input that has not been handled yet.
    pub inbox: Inbox,
    /// The process ID that the server told Refrain at the login.
    pub(crate) pid: u32,
    /// The key that a cancel request must show.
    pub(crate) key: Box<[u8]>,
    /// Number of side connections that hold the server: cancel requests under way to it.
    pub(crate) cancels: u32,
    /// Whether the server is to be closed once its client is done.
    pub(crate) close_needed: bool,
    /// The core's part of another pool for which the server makes room when it is closed.
    pub(crate) heir: Option<(PoolId, Core)>,
    /// Whether Refrain has stopped reading the server, because its client reads slowly.
    pub(crate) paused: bool,
    /// Whether the server is asked if it is there, before it is lent.
    pub(crate) is_asked: bool,
    /// The pool's [`crate::pool_shared::PoolShared::reconnects`] when the server was connected.
    pub(crate) reconnects: Reconnects,
    /// When the connection began, and later when the login ended.
    pub(crate) connected: Now,
    /// When the server was last lent, given back or put to a job, or ended a transaction.
    pub(crate) since: Now,
    /// When the request under way began, or when the last request ended.
    pub(crate) asked: Now,
    /// When the last command was complete.
    completed: Now,
    /// When the server is too old.
    pub(crate) expires: Now,
    /// The protocol's part of the session.
    pub session: P::Server,
}

impl<P: Parts> Server<P> {
    /// Makes a server that is being connected.
    pub(crate) fn new(
        (serial, conn, pool): (u64, Conn, PoolId),
        (host, place): (Arc<Host>, Option<HostPlace>),
        now: Now,
        session: P::Server,
    ) -> Self {
        Self {
            serial,
            conn,
            pool,
            host,
            address: None,
            place,
            is_slow: false,
            secured: None,
            state: ServerState::Connecting,
            line: Line::default(),
            inbox: Inbox::default(),
            pid: 0,
            key: Box::default(),
            cancels: 0,
            close_needed: false,
            heir: None,
            paused: false,
            is_asked: false,
            reconnects: Reconnects::default(),
            connected: now,
            since: now,
            asked: now,
            completed: now,
            expires: Now(u64::MAX),
            session,
        }
    }

    /// Returns the server's number, which the process gives once.
    #[inline]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns the server's connection at this core.
    #[inline]
    pub fn conn(&self) -> Conn {
        self.conn
    }

    /// Returns the host that the server is at.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Whether the server was connected to one of these addresses of a name.
    pub(crate) fn is_at(&self, name: &str, addresses: &[IpAddr]) -> bool {
        matches!(&*self.host, Host::Tcp { host, .. } if host == name)
            && self.address.is_some_and(|address| addresses.contains(&address))
    }

    /// Returns the encryption of the connection, if it has any.
    pub fn secured(&self) -> Option<&Secured> {
        self.secured.as_deref()
    }

    /// Whether the server is taken whatever its host's state is: the pool prefers another state,
    /// and no host has it.
    pub fn takes_any_host(&self) -> bool {
        self.place.as_ref().is_some_and(HostPlace::takes_any)
    }

    /// Notes by how many microseconds the data of the server's host is behind, at most; `None` if
    /// that is not known.
    pub fn note_lag(&self, lag_us: Option<u64>) {
        if let Some(place) = &self.place {
            place.note_lag(lag_us);
        }
    }

    /// Notes whether the server's host is a standby.
    pub fn note_role(&self, is_standby: bool) {
        if let Some(place) = &self.place {
            place.note_role(is_standby);
        }
    }

    /// Returns the server's pool.
    #[inline]
    pub fn pool(&self) -> PoolId {
        self.pool
    }

    /// Returns the process ID that the server told Refrain at the login.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sets the process ID and the key that a cancel request to the server must show.
    pub fn set_cancel_key(&mut self, pid: u32, key: &[u8]) {
        (self.pid, self.key) = (pid, key.into());
    }

    /// Whether side connections hold the server: cancel requests under way to it.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.cancels > 0
    }

    /// Returns the key that a cancel request to the server must show.
    pub fn cancel_key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the state of the server, and its holder.
    #[inline]
    pub fn state(&self) -> &ServerState<P> {
        &self.state
    }

    /// Begins the login to the server.
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

    /// Returns the job that the server does.
    pub fn job_mut(&mut self) -> Option<&mut P::Job> {
        match &mut self.state {
            ServerState::Held(Holder::Job(job, _)) => Some(job),
            _ => None,
        }
    }

    /// Whether the server is to be closed once its client is done.
    pub fn is_close_needed(&self) -> bool {
        self.close_needed
    }

    /// Marks the server to be closed once its client is done.
    #[inline]
    pub fn close_later(&mut self) {
        self.close_needed = true;
    }

    /// Notes that the server begins a request while it owes nothing else. The time of the request
    /// counts from now.
    #[inline]
    pub fn request_begins(&mut self, now: Now) {
        self.asked = now;
    }

    /// Notes that the server has completed a command of a request. Returns the microseconds since
    /// the request was sent, or since the command before it was complete.
    #[inline]
    pub fn command_ends(&mut self, now: Now) -> u64 {
        now.since(std::mem::replace(&mut self.completed, now).max(self.asked))
    }

    /// Notes that the server has answered a request. Returns the microseconds that the request
    /// took. The time of the next request, or of idling in a transaction, counts from now.
    #[inline]
    pub(crate) fn request_ends(&mut self, now: Now) -> u64 {
        now.since(std::mem::replace(&mut self.asked, now))
    }

    /// Notes that the server makes progress for a client that has left, which gives the server more
    /// time.
    pub fn note_progress(&mut self, now: Now) {
        self.since = now;
    }

    /// Keeps this server through a reconnect of the pool's servers: its login was the reason.
    pub fn note_reconnects(&mut self, reconnects: Reconnects) {
        self.reconnects = reconnects;
    }

    /// Whether the server is not logged in yet.
    pub fn is_new(&self) -> bool {
        matches!(self.state, ServerState::Connecting | ServerState::Login(_))
    }

    /// Whether the server, which is idle, has been so for this long.
    pub(crate) fn is_stale(&self, delay: Duration, now: Now) -> bool {
        self.since.after(delay) <= now
    }

    /// Whether the server is logged in and not idle.
    pub(crate) fn is_busy(&self) -> bool {
        !self.is_new() && !matches!(self.state, ServerState::Idle)
    }

    /// Whether the server is logged in, and no client holds the server or gets it back.
    pub(crate) fn is_ownerless(&self) -> bool {
        !self.is_new() && self.client().is_none()
    }

    /// Whether the server is to be closed once it is free: it was marked so, it is too old, or the
    /// pool has reconnected its servers this often.
    #[inline]
    pub(crate) fn has_to_leave(&self, reconnects: Reconnects, now: Now) -> bool {
        self.close_needed || self.reconnects != reconnects || self.expires < now
    }

    /// Marks the server to be closed once its client is done, since the pool's servers are to be
    /// connected anew, or elsewhere.
    pub(crate) fn make_obsolete(&mut self) {
        (self.close_needed, self.reconnects.obsolete) = (true, OBSOLETE);
    }

    /// Whether the pool's servers are to be connected anew, or elsewhere, which the pool has done
    /// so many times. Servers whose defaults alone are old stay with their clients.
    pub(crate) fn is_obsolete(&self, reconnects: Reconnects) -> bool {
        self.reconnects.obsolete != reconnects.obsolete
    }

    /// Whether the server does a job for Refrain.
    pub fn is_at_work(&self) -> bool {
        matches!(self.state, ServerState::Held(Holder::Job(..)))
    }

    /// Whether further clients may join at the server.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.line.is_open()
    }

    /// Whether the server is shared, or clients may join so that it will be.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.line.is_used()
    }

    /// Returns the number of requests that the server has got behind that of its holder.
    pub fn requests_behind(&self) -> usize {
        self.line.len()
    }

    /// Returns the client that holds the server, or gets it back when the job is done.
    #[inline]
    pub fn client(&self) -> Option<Conn> {
        match &self.state {
            ServerState::Held(Holder::Client(client)) => Some(*client),
            ServerState::Held(Holder::Job(_, back)) => *back,
            _ => None,
        }
    }
}
