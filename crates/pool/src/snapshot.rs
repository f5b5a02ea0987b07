//! The snapshot of one core, for the admin console and the metrics. A snapshot is plain data, which
//! the core makes between two steps. The hot path does not touch it.

use std::net::IpAddr;
use std::sync::Arc;

use refrain_config::{Host, PoolMode, ShareServers};

use crate::ids::{ClientSerial, Core, Peer};
use crate::parts::Parts;
use crate::secured::Secured;
use crate::stats::Counters;
use crate::time::Now;

/// The part of a core that a snapshot has: what a core does for it grows with that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The clients that the snapshot has.
    pub clients: Clients,
    /// Whether the protocol's part has what grows with the texts of clients.
    pub texts: bool,
}

impl Extent {
    /// All there is.
    pub const WHOLE: Self = Self { clients: Clients::All, texts: true };
    /// All but texts.
    pub const CLIENTS: Self = Self { clients: Clients::All, texts: false };
    /// Pools and servers, whose number is limited. No client is looked at.
    pub const OUTLINE: Self = Self { clients: Clients::None, texts: false };
    /// Pools and servers, and those of the clients that an operator looks for.
    pub const NOTABLE: Self = Self { clients: Clients::Notable, texts: false };
    /// Pools, servers and texts.
    pub const TEXTS: Self = Self { clients: Clients::None, texts: true };

    /// Returns the least that has all of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { clients: self.clients.max(other.clients), texts: self.texts || other.texts }
    }
}

/// The clients that a snapshot has, the fewest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clients {
    /// None.
    None,
    /// Clients that wait, or that keep a server, up to a limit. All are counted.
    Notable,
    /// Every client that is logged in.
    All,
}

/// The state of one core at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot<P: Parts> {
    /// The core's number.
    pub core: Core,
    /// The moment.
    pub now: Now,
    /// The core's parts of pools.
    pub pools: Vec<PoolView<P>>,
    /// Sum of the counters of the pools that the core has closed.
    pub forgotten: Counters<P::Counters>,
    /// The clients of the core that are logged in, as far as the extent has them.
    pub clients: Vec<ClientView<P>>,
    /// The servers of the core.
    pub servers: Vec<ServerView<P>>,
    /// The protocol's part.
    pub protocol: P::View,
    /// Commands of clients by their time ([`crate::figures::StatementFigures::calls_by_time`]).
    pub commands: Vec<u64>,
    /// Number of connections of clients, at their login or logged in.
    pub connections: u32,
    /// Number of connections still at their login, including those that send a cancel request; zero
    /// if no client was looked at.
    pub logging_in: u32,
}

/// One core's part of a pool.
#[derive(Clone, Debug)]
pub struct PoolView<P: Parts> {
    /// The database as clients name it.
    pub database: Arc<str>,
    /// The user as clients name themselves.
    pub user: Arc<str>,
    /// The mode, which says when a server goes back.
    pub mode: PoolMode,
    /// Number of servers at most over all cores, without the reserve.
    pub size: u32,
    /// The host of the pool's servers.
    pub host: Arc<Host>,
    /// The database's name at the server.
    pub server_database: Arc<str>,
    /// Whether the pool is paused.
    pub paused: bool,
    /// Whether each server has one client alone ([`Parts::is_dedicated`]).
    pub is_dedicated: bool,
    /// Number of clients that are logged in and do not wait; zero if no client was looked at.
    pub active: u32,
    /// Number of clients that wait for a server.
    pub waiting: u32,
    /// Number of other cores that have asked this core for a server.
    pub asking: u32,
    /// Microseconds that the first client has waited for a server to be lent.
    pub max_wait_us: u64,
    /// Which statements share servers.
    pub share_servers: ShareServers,
    /// Number of servers over all cores on which reads run before they share one.
    pub share_width: u32,
    /// Number of servers of this core that several clients share now.
    pub servers_shared: u32,
    /// Number of requests under way on these servers.
    pub requests_on_shared: u32,
    /// The most requests under way on one server.
    pub longest_line: u32,
    /// The counters of the core's part.
    pub counters: Counters<P::Counters>,
}

/// The activity of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientViewState {
    /// The client is logged in, and does not wait for a server.
    Active,
    /// The client waits for a server.
    Waiting,
    /// The client talks to the admin console.
    Admin,
}

/// A client that is logged in, as the console shows it.
#[derive(Clone, Debug)]
pub struct ClientView<P: Parts> {
    /// The client's number, by which an operator can end the session.
    pub serial: ClientSerial,
    /// The database that the client asked for.
    pub database: Arc<str>,
    /// The client's user.
    pub user: Arc<str>,
    /// The user of the client's pool, which may be one that users share.
    pub pool_user: Arc<str>,
    /// The address that the client connects from.
    pub peer: Peer,
    /// The client's activity.
    pub state: ClientViewState,
    /// The number of the server lent to the client, if any.
    pub server: Option<u64>,
    /// When the client connected.
    pub connected: Now,
    /// When the client last got the whole reply to a request, or was let in.
    pub requested: Now,
    /// When the client began to wait for a server, if it waits.
    pub waiting: Option<Now>,
    /// The encryption of the connection, if there is one.
    pub secured: Option<Arc<Secured>>,
    /// The protocol's part.
    pub session: P::ClientView,
}

/// The activity of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerViewState {
    /// Refrain is connecting or logging in to the server.
    Login,
    /// The server waits to be lent.
    Idle,
    /// The server is lent to a client.
    Active,
    /// The server is being made fit for the next client, or does a job for Refrain.
    Resetting,
    /// The server is held back while a cancel request is under way.
    Cancelling,
}

/// A connection to a server, as the console shows it.
#[derive(Clone, Debug)]
pub struct ServerView<P: Parts> {
    /// The server's number, which the process gives once.
    pub serial: u64,
    /// The database of the server's pool, as clients name it.
    pub database: Arc<str>,
    /// The user of the server's pool.
    pub user: Arc<str>,
    /// The server's host.
    pub host: Arc<Host>,
    /// The address that the connection leads to, if the host has any.
    pub address: Option<IpAddr>,
    /// The server's activity.
    pub state: ServerViewState,
    /// The client that holds the server, or gets it back after a job.
    pub client: Option<ClientSerial>,
    /// The process ID that the server told Refrain at the login.
    pub pid: u32,
    /// When the login ended, or before that when the connection began.
    pub connected: Now,
    /// When the server was last lent, given back or put to a job, or ended a transaction.
    pub lent: Now,
    /// Whether the server is to be closed once its client is done.
    pub close_needed: bool,
    /// Whether it has one client alone ([`Parts::is_dedicated`]).
    pub is_dedicated: bool,
    /// The encryption of the connection, if there is one.
    pub secured: Option<Arc<Secured>>,
    /// The protocol's part.
    pub session: P::ServerView,
}

impl<P: Parts> Snapshot<P> {
    /// Returns the snapshot as that of a core of another protocol. Sessions are turned into those
    /// of that protocol; its other parts are empty.
    #[must_use]
    pub fn of_another<Q: Parts>(
        self,
        client: fn(P::ClientView) -> Q::ClientView,
        server: fn(P::ServerView) -> Q::ServerView,
    ) -> Snapshot<Q> {
        Snapshot {
            core: self.core,
            now: self.now,
            pools: self.pools.into_iter().map(PoolView::of_another).collect(),
            forgotten: self.forgotten.of_another(),
            clients: self.clients.into_iter().map(|view| view.of_another(client)).collect(),
            servers: self.servers.into_iter().map(|view| view.of_another(server)).collect(),
            protocol: Q::View::default(),
            commands: self.commands,
            connections: self.connections,
            logging_in: self.logging_in,
        }
    }
}

impl<P: Parts> PoolView<P> {
    fn of_another<Q: Parts>(self) -> PoolView<Q> {
        PoolView {
            database: self.database,
            user: self.user,
            mode: self.mode,
            size: self.size,
            host: self.host,
            server_database: self.server_database,
            paused: self.paused,
            is_dedicated: self.is_dedicated,
            active: self.active,
            waiting: self.waiting,
            asking: self.asking,
            max_wait_us: self.max_wait_us,
            share_servers: self.share_servers,
            share_width: self.share_width,
            servers_shared: self.servers_shared,
            requests_on_shared: self.requests_on_shared,
            longest_line: self.longest_line,
            counters: self.counters.of_another(),
        }
    }
}

impl<P: Parts> ClientView<P> {
    fn of_another<Q: Parts>(self, turn: fn(P::ClientView) -> Q::ClientView) -> ClientView<Q> {
        ClientView {
            serial: self.serial,
            database: self.database,
            user: self.user,
            pool_user: self.pool_user,
            peer: self.peer,
            state: self.state,
            server: self.server,
            connected: self.connected,
            requested: self.requested,
            waiting: self.waiting,
            secured: self.secured,
            session: turn(self.session),
        }
    }
}

impl<P: Parts> ServerView<P> {
    fn of_another<Q: Parts>(self, turn: fn(P::ServerView) -> Q::ServerView) -> ServerView<Q> {
        ServerView {
            serial: self.serial,
            database: self.database,
            user: self.user,
            host: self.host,
            address: self.address,
            state: self.state,
            client: self.client,
            pid: self.pid,
            connected: self.connected,
            lent: self.lent,
            close_needed: self.close_needed,
            is_dedicated: self.is_dedicated,
            secured: self.secured,
            session: turn(self.session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_has_what_each_of_two_needs() {
        let both = Extent::NOTABLE.with(Extent::TEXTS);
        assert_eq!(both, Extent { clients: Clients::Notable, texts: true });
        assert_eq!(Extent::CLIENTS.with(both), Extent::WHOLE);
        assert_eq!(Extent::OUTLINE.with(Extent::OUTLINE), Extent::OUTLINE);
    }
}
