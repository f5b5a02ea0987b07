//! What connections, cores and pools are called by: numbers, and who is at the other end.

/// The number of a connection at one core. Numbers are small and used again after a close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conn(pub u32);

/// One of the threads that run an engine, from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Core(pub u16);

/// Who is at the other end of an accepted connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A TCP peer.
    Tcp(std::net::SocketAddr),
    /// A process on this machine, by its user ID where the kernel tells.
    Unix {
        /// The process's effective user ID.
        uid: Option<u32>,
    },
}

/// Names a client for as long as the process runs; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientSerial(pub u64);

/// Names a pool, which is one user of one database, for as long as the process runs;
/// never used again. Its lower half is a place in a table, which is used again when the pool is
/// forgotten; its upper half says for which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u64);

impl PoolId {
    /// No pool.
    pub const NONE: Self = Self(u64::MAX);

    /// The pool that has a place for the time being.
    pub fn new(place: u32, time: u32) -> Self {
        Self(u64::from(time) << 32 | u64::from(place))
    }

    /// Its place in tables of pools.
    #[inline]
    pub fn place(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }
}

/// Bits of a process ID that say which connection of a core; those above say which core.
const CONN_BITS: u32 = 20;

/// The process ID that a client is told.
pub fn pid_of(core: Core, conn: Conn) -> u32 {
    (u32::from(core.0) << CONN_BITS) | (conn.0 + 1)
}

/// The core and connection that a process ID of ours names.
pub fn whose(pid: u32) -> Option<(Core, Conn)> {
    let conn = (pid & ((1 << CONN_BITS) - 1)).checked_sub(1)?;
    Some((Core(u16::try_from(pid >> CONN_BITS).ok()?), Conn(conn)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_id_says_whose_it_is() {
        let pid = pid_of(Core(3), Conn(7));
        assert_eq!(whose(pid), Some((Core(3), Conn(7))));
        assert_eq!(whose(3 << CONN_BITS), None);
    }
}
