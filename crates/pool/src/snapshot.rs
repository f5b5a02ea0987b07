//! A snapshot of one core, for the admin console and the metrics. Plain data, made between two
//! steps; the hot path does not touch it.

use std::sync::Arc;

use refrain_config::{Host, PoolMode};

use crate::ids::{ClientSerial, Core, Peer};
use crate::parts::Parts;
use crate::stats::Counters;
use crate::time::Now;

/// One core at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot<P: Parts> {
    /// Which core.
    pub core: Core,
    /// When.
    pub now: Now,
    /// Its pools.
    pub pools: Vec<PoolView<P>>,
    /// What was done for pools that it has forgotten.
    pub forgotten: Counters<P::Counters>,
    /// Its clients.
    pub clients: Vec<ClientView<P>>,
    /// Its servers.
    pub servers: Vec<ServerView<P>>,
    /// The protocol's part.
    pub protocol: P::View,
    /// Connections still at their login, and cancel requests.
    pub logging_in: u32,
}

/// A pool, as one core has it.
#[derive(Clone, Debug)]
pub struct PoolView<P: Parts> {
    /// The database as clients name it.
    pub database: Arc<str>,
    /// The user as clients name themselves.
    pub user: Arc<str>,
    /// When a server goes back.
    pub mode: PoolMode,
    /// Servers at most, over all cores.
    pub size: u32,
    /// Where its servers are.
    pub host: Arc<Host>,
    /// The database's name there.
    pub server_database: Arc<str>,
    /// Whether it is paused.
    pub paused: bool,
    /// Clients waiting for a server.
    pub waiting: u32,
    /// Other cores on which clients wait, as far as this core was told.
    pub asking: u32,
    /// How long the first of them has waited, in microseconds.
    pub max_wait_us: u64,
    /// What was done.
    pub counters: Counters<P::Counters>,
}

/// What a client is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientViewState {
    /// Has a server, or nothing to do.
    Active,
    /// Waits for a server.
    Waiting,
    /// Talks to the admin console.
    Admin,
}

/// A client that is logged in.
#[derive(Clone, Debug)]
pub struct ClientView<P: Parts> {
    /// Its serial, by which it can be killed.
    pub serial: ClientSerial,
    /// The database it asked for.
    pub database: Arc<str>,
    /// Its user.
    pub user: Arc<str>,
    /// Where it connects from.
    pub peer: Peer,
    /// What it is doing.
    pub state: ClientViewState,
    /// Whether a server is lent to it, and which.
    pub server: Option<u64>,
    /// When it connected.
    pub connected: Now,
    /// When it last asked for something.
    pub requested: Now,
    /// Since when it waits.
    pub waiting: Option<Now>,
    /// The protocol's part.
    pub session: P::ClientView,
}

/// What a server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerViewState {
    /// Connecting or logging in.
    Login,
    /// Waits to be lent.
    Idle,
    /// Lent to a client.
    Active,
    /// Being reset after a client left state behind.
    Resetting,
    /// Held back while a cancel request is under way.
    Cancelling,
}

/// A connection to a server.
#[derive(Clone, Debug)]
pub struct ServerView<P: Parts> {
    /// Its number, which the process gives once.
    pub serial: u64,
    /// Its pool's database, as clients name it.
    pub database: Arc<str>,
    /// Its pool's user.
    pub user: Arc<str>,
    /// Where it is.
    pub host: Arc<Host>,
    /// What it is doing.
    pub state: ServerViewState,
    /// The client it is lent to.
    pub client: Option<ClientSerial>,
    /// Its process ID there.
    pub pid: u32,
    /// When it was connected.
    pub connected: Now,
    /// When it was last lent.
    pub lent: Now,
    /// Whether it is closed when its client is done.
    pub close_needed: bool,
    /// The protocol's part.
    pub session: P::ServerView,
}
