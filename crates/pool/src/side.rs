//! Side connections: connections of Refrain's own to the host of servers, which are in no pool.
//!
//! A side connection is for what no server of a pool can be asked. A server that works for a client
//! is told by another connection to stop; and before anybody has logged in to a host, a protocol
//! may need to know what speaks there. The protocol owns what is said, in both directions. The pool
//! opens the connection, limits its time and the number of its kind, and closes it.
//!
//! They are rare, so what a step does for them is kept out of the way of what it does for others.
//!
//! One that cancels a request holds the server of the request: no other client gets the server
//! meanwhile, whom the cancel could hit.

use crate::ids::Conn;
use crate::inbox::Inbox;
use crate::parts::Parts;
use crate::time::Now;

/// A side connection.
#[derive(Debug)]
pub struct Side<P: Parts> {
    /// The server that the connection holds.
    pub(crate) holds: Option<HeldServer>,
    /// When the connection is given up.
    pub(crate) deadline: Now,
    /// Input that has not been handled yet.
    pub(crate) inbox: Inbox,
    /// The protocol's part.
    pub session: P::Side,
}

/// A server that a side connection holds, for as long as the server is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldServer {
    /// The server's connection.
    pub(crate) conn: Conn,
    /// The server's serial. The connection's number may belong to another server by now, and two
    /// servers may choose the same process ID.
    pub(crate) serial: u64,
}

/// Why a side connection is over that the protocol has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEnd<'a> {
    /// The peer has ended its stream in order.
    Closed,
    /// The host could not be connected to, the connection broke, or the peer sent too much.
    Failed(&'a str),
    /// Its time is over. A server that it holds will be closed once its client is done: what was
    /// asked of the server may still happen.
    Late,
    /// Refrain stops.
    Stopped,
}
