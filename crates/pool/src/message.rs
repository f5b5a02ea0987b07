//! Messages between cores. A core reads no other core's connections: it asks with a message.

use std::sync::Arc;

use crate::hosts::HostPlace;
use crate::ids::{ClientSerial, Conn, Core, PoolId};
use crate::time::Now;

/// The wish of a core's part of a pool that a server of another pool makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomWish {
    /// The pool.
    pub pool: PoolId,
    /// The core.
    pub core: Core,
    /// When the client began to wait that has waited longest.
    pub since: Now,
    /// When the core asked.
    pub asked: Now,
}

/// A message from one core to another.
#[derive(Clone, Debug)]
pub enum CoreMessage {
    /// A client of `core` waits for a server of this pool.
    WantsServer {
        /// The pool.
        pool: PoolId,
        /// The core that asks.
        core: Core,
        /// The time at which the core asked.
        since: Now,
    },
    /// No client of `core` waits for a server of this pool any more.
    GotServer {
        /// The pool.
        pool: PoolId,
        /// The core that asked.
        core: Core,
    },
    /// There may be room for a new server of the pool, because a server has gone.
    Room {
        /// The pool.
        pool: PoolId,
    },
    /// Clients of a core wait for a server of a pool, and a limit is reached that the pool shares
    /// with others.
    WantsRoom {
        /// The wish.
        wish: RoomWish,
    },
    /// A server of another pool has made room for one of the receiving core's part of this pool.
    RoomFor {
        /// The pool.
        pool: PoolId,
        /// Whether the server to connect is counted already. If not, there is room at the host.
        is_counted: bool,
    },
    /// A cancel request came for a client of the receiving core.
    Cancel {
        /// The process ID in the request: another client may have the connection by now.
        pid: u32,
        /// The key in the request.
        key: Box<[u8]>,
    },
    /// A client of the receiving core is to be killed: it came from another core when that had not
    /// got the command yet, and this one had.
    Kill {
        /// The client's serial.
        serial: ClientSerial,
    },
    /// A connection of the receiving core that has not logged in has to make way for a later one.
    MakeWay {
        /// The connection's number.
        conn: Conn,
        /// The client's serial: another client may have the connection's number by now.
        serial: ClientSerial,
    },
    /// A client's command needs all idle servers to disconnect from a database.
    DrainDatabase {
        /// The database's name at the server.
        database: Arc<[u8]>,
    },
    /// The client's command has ended: servers may stay at the database.
    DatabaseDrained {
        /// The database's name at the server.
        database: Arc<[u8]>,
    },
    /// The reply that a client of the receiving core waits for was fetched, or will not come.
    Fetched {
        /// The client's connection.
        conn: Conn,
        /// The client's serial: another client may have the connection's number by now.
        serial: ClientSerial,
    },
    /// A host is not in the state that pools want: no server there is lent again.
    HostUnsuited {
        /// The host, among those of the pools.
        place: HostPlace,
        /// The pool of the receiving core whose server has shown it.
        shown_by: Option<PoolId>,
    },
    /// A server of the receiving core may be at a host that is not in the state that pools want. A
    /// login is to show.
    HostDoubted {
        /// The server's pool.
        pool: PoolId,
    },
    /// A server of the pool is logged in: logins that waited for one go on.
    ServerReached {
        /// The pool.
        pool: PoolId,
    },
}
