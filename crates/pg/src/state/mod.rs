//! State: clients, servers, pools, and everything that cores share. The other folders decide what
//! to do with it.

pub(crate) mod server;
pub mod snapshot;
pub(crate) mod pauses;
pub(crate) mod pool_shared;
pub(crate) mod pools;
pub mod lobby;
pub mod shared;
pub mod event;
pub mod ports;
pub(crate) mod client;
pub(crate) mod pool;
pub(crate) mod database_drain;
pub(crate) mod core_state;
pub(crate) mod connections;
