//! Transfer: a connection on its way from one core to another, with all that the first core knew of
//! it.

use std::sync::Arc;

use crate::ids::{ClientSerial, Peer};
use crate::inbox::Inbox;
use crate::lobby::Counted;
use crate::parts::Parts;
use crate::pool_shared::PoolShared;
use crate::secured::Secured;
use crate::server::Server;
use crate::time::Now;

/// A connection on its way from one core to another. No bytes are queued to it.
#[derive(Debug)]
pub struct Transfer<P: Parts>(pub(crate) Moving<P>);

/// The role of a connection that moves.
#[derive(Debug)]
pub(crate) enum Moving<P: Parts> {
    /// An idle server.
    Server(Server<P>),
    /// A client that waits for nothing.
    Client(Traveller<P>),
}

/// A client that is logged in, waits for nothing and has no server, on its way to another core.
#[derive(Debug)]
pub(crate) struct Traveller<P: Parts> {
    pub(crate) serial: ClientSerial,
    pub(crate) peer: Peer,
    pub(crate) secured: Option<Arc<Secured>>,
    pub(crate) counted: Counted,
    /// The client's pool, which is not forgotten meanwhile.
    pub(crate) pool: Arc<PoolShared<P>>,
    pub(crate) user: Arc<str>,
    pub(crate) inbox: Inbox,
    pub(crate) pid: u32,
    pub(crate) key: Box<[u8]>,
    pub(crate) connected: Now,
    pub(crate) requested: Now,
    pub(crate) session: P::Traveller,
}

impl<P: Parts> Transfer<P> {
    /// Keeps bytes that came on the way.
    pub fn hold(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Moving::Server(server) => server.inbox.hold(bytes),
            Moving::Client(traveller) => traveller.inbox.hold(bytes),
        }
    }

    /// Returns the address that a client connects from; `None` for a server.
    pub fn peer(&self) -> Option<&Peer> {
        match &self.0 {
            Moving::Server(_) => None,
            Moving::Client(traveller) => Some(&traveller.peer),
        }
    }
}
