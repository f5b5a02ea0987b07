//! Messages between cores.

use std::sync::Arc;

use crate::ids::{ClientSerial, Conn, Core, PoolId};
use crate::time::Now;

/// What one core tells another.
#[derive(Clone, Debug)]
pub enum CoreMessage {
    /// A client of `core` waits for a server of this pool, since then.
    WantsServer {
        /// Which pool.
        pool: PoolId,
        /// Who asks.
        core: Core,
        /// Since when its first client waits.
        since: Now,
    },
    /// `core` does not wait any more.
    GotServer {
        /// Which pool.
        pool: PoolId,
        /// Who asked.
        core: Core,
    },
    /// A server of the pool is gone: there may be room for a new one.
    Room {
        /// Which pool.
        pool: PoolId,
    },
    /// Cancel the statement of one of your clients.
    Cancel {
        /// What CancelRequest said.
        pid: u32,
        /// What CancelRequest said.
        key: Box<[u8]>,
    },
    /// A connection of yours that has not logged in has to make way for a later one.
    MakeWay {
        /// Its number.
        conn: Conn,
        /// What it is called: the number may be another's by now.
        serial: ClientSerial,
    },
    /// A client wants everybody to leave a database.
    DrainDatabase {
        /// Its name at the server.
        database: Arc<[u8]>,
    },
    /// Nobody need leave the database any more.
    DatabaseDrained {
        /// Its name at the server.
        database: Arc<[u8]>,
    },
    /// The pool's server was reached, or was not: see what waits for it.
    ServerReached {
        /// Which pool.
        pool: PoolId,
    },
}
