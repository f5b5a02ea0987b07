//! A snapshot of one core, for the admin console and the metrics. Plain data, made between two
//! steps; the hot path does not touch it.

use std::sync::Arc;

use refrain_config::{Host, PoolMode};

use crate::ground::ids::{ClientSerial, Core, Peer};
use crate::ground::stats::Counters;
use crate::ground::time::Now;
use crate::statements::statement::Statement;

/// One core at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Which core.
    pub core: Core,
    /// When.
    pub now: Now,
    /// Its pools.
    pub pools: Vec<PoolView>,
    /// What was done for pools that it has forgotten.
    pub forgotten: Counters,
    /// Its clients.
    pub clients: Vec<ClientView>,
    /// Its servers.
    pub servers: Vec<ServerView>,
    /// The normalized queries it has seen.
    pub normalized_queries: Vec<NormalizedQueryRow>,
    /// Connections still at their login, and cancel requests.
    pub logging_in: u32,
}

/// A pool, as one core has it.
#[derive(Clone, Debug)]
pub struct PoolView {
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
    pub counters: Counters,
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
pub struct ClientView {
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
    /// Why the server cannot be taken from it, in words; empty when it can.
    pub pinned: String,
    /// When it connected.
    pub connected: Now,
    /// When it last asked for something.
    pub requested: Now,
    /// Since when it waits.
    pub waiting: Option<Now>,
    /// Prepared statements it has.
    pub statements: u32,
    /// Its application_name.
    pub application: String,
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
pub struct ServerView {
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
    /// Statements it has.
    pub statements: u32,
    /// Bytes of their texts.
    pub statement_bytes: u64,
    /// Uses of a statement that it had already.
    pub prepare_hits: u64,
    /// Uses of a statement that it had to be sent first.
    pub prepare_misses: u64,
    /// Its application_name.
    pub application: String,
    /// Whether it is closed when its client is done.
    pub close_needed: bool,
}

/// A statement of the registry, for `SHOW STATEMENTS`.
#[derive(Clone, Debug)]
pub struct StatementView {
    /// Its number, which the process gives once.
    pub id: u64,
    /// The pool it belongs to.
    pub database: Arc<str>,
    /// The pool it belongs to.
    pub user: Arc<str>,
    /// Its text.
    pub text: String,
    /// The OIDs that its Parse gave.
    pub parameter_types: Vec<u32>,
    /// Client statements that refer to it; cores, where nobody has asked them.
    pub clients: u32,
    /// Servers that have it.
    pub servers: u32,
    /// Times it was parsed by clients, and then some: counted on prepare and close only.
    pub uses: u64,
    /// How often a change of schema began it anew.
    pub generation: u32,
    /// Bytes it takes here.
    pub bytes: u64,
}

impl StatementView {
    /// What is known of a statement.
    pub fn of(statement: &Statement, database: Arc<str>, user: Arc<str>) -> Self {
        let (text, types) =
            refrain_wire::frame::split_string(&statement.tail).unwrap_or((&statement.tail, &[]));
        let (clients, servers, uses) = statement.counts();
        Self {
            id: statement.id,
            database,
            user,
            text: String::from_utf8_lossy(text).into_owned(),
            parameter_types: types
                .get(2..)
                .unwrap_or(&[])
                .chunks_exact(4)
                .map(|oid| u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]]))
                .collect(),
            clients,
            servers,
            uses,
            generation: statement.generation(),
            bytes: statement.bytes() as u64,
        }
    }
}

/// A normalized query of simple queries, as one core knows it, for `SHOW AUTOPREPARE`.
#[derive(Clone, Debug)]
pub struct NormalizedQueryRow {
    /// The pool it belongs to.
    pub database: Arc<str>,
    /// The pool it belongs to.
    pub user: Arc<str>,
    /// The text that is or would be prepared; where there is none, one that was sent.
    pub query: String,
    /// What is done with its queries, in a word.
    pub state: &'static str,
    /// Why, in words; empty where there is nothing to say.
    pub reason: String,
    /// Queries of it that were sent.
    pub seen: u64,
    /// How many of them were run as a prepared statement.
    pub hits: u64,
    /// By how much these were faster than as many queries run as they were sent, in microseconds;
    /// below zero if they were slower.
    pub time_saved_us: i64,
    /// Texts that are run as they were sent, because the kept plan does not fit their values.
    pub slow_texts: u64,
    /// Literals that stay in the text.
    pub kept: u64,
    /// How often it was given up because it was slower when prepared.
    pub demotions: u64,
}
