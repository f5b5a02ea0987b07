//! State: PostgreSQL's parts of clients, servers, pools, and of everything that cores share. The
//! other folders decide what to do with it.

pub mod snapshot;
pub mod requests;
pub(crate) mod hba_uses;
pub(crate) mod replication;
pub(crate) mod standbys;
pub(crate) mod peer_keys;
pub(crate) mod pool_shared;
pub(crate) mod shared;
pub(crate) mod core;
pub(crate) mod cancel;
pub(crate) mod client;
pub(crate) mod server;
pub(crate) mod last_login;
pub(crate) mod pool;
pub mod parts;
pub(crate) mod options;
