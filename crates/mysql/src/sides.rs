//! The purposes of side connections.

use std::sync::Arc;

use refrain_config::Host;
use refrain_pool::ids::PoolId;

use crate::login::{ServerLogin, Tls};

/// The purpose of a side connection.
#[derive(Debug)]
pub enum Side {
    /// It reads a server's greeting.
    Probe(Probe),
    /// It ends what a server does for a client.
    Killing(Killing),
}

/// A side connection that reads a server's greeting, so that clients can be greeted as that server
/// would greet them.
#[derive(Debug)]
pub struct Probe {
    /// The number of the host among those of the databases of MySQL.
    pub(crate) number: usize,
}

/// A side connection that ends a statement.
#[derive(Debug)]
pub struct Killing {
    /// The pool of the server.
    pub(crate) pool: PoolId,
    /// Where the server is.
    pub(crate) host: Arc<Host>,
    /// The number that the host has given the server.
    pub(crate) number: u32,
    /// Whether the connection is encrypted: as the server's.
    pub(crate) tls: Tls,
    /// How far it has come.
    pub(crate) stage: Progress,
}

/// How far a side connection that ends a statement has come.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The connection is being made.
    Connecting,
    /// The host lets Refrain in.
    LoggingIn(Box<ServerLogin>),
    /// KILL is sent.
    Asked,
}
