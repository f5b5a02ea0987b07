//! Numbers of connections, cores, clients and pools, and the peer of a connection.

use std::sync::Arc;

/// The number of a connection at one core. Numbers are small and used again after a close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conn(pub u32);

/// One of the threads that run an engine, from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Core(pub u16);

/// The peer of an accepted connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A TCP peer.
    Tcp(std::net::SocketAddr),
    /// A process on this machine, with its user ID if the kernel tells it.
    Unix {
        /// The process's effective user ID.
        uid: Option<u32>,
        /// Whether this process has the same one.
        is_own: bool,
        /// The name that the operating system has for this user, if a login may depend on it.
        name: Option<Arc<str>>,
    },
}

/// The number of a client. The process never gives it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientSerial(pub u64);

/// The number of a pool, which is one user of one database. The process never gives it again. The
/// number's lower half is a place in a table, which another pool gets when this one is forgotten.
/// The upper half is the number of pools that had the place before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u64);

impl PoolId {
    /// The number of no pool.
    pub const NONE: Self = Self(u64::MAX);

    /// Makes the number of a pool from a place and the number of pools that had it before.
    pub fn new(place: u32, time: u32) -> Self {
        Self(u64::from(time) << 32 | u64::from(place))
    }

    /// Returns the pool's place in tables of pools.
    #[inline]
    pub fn place(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }
}
