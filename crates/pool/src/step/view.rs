//! Makes a [`Snapshot`] of a core, for the console and the metrics.

use std::collections::HashMap;
use std::sync::Arc;

use crate::client::{Client, Phase, WaitingFor};
use crate::connections::{Connection, Connections};
use crate::core_state::CoreState;
use crate::engine::Engine;
use crate::ids::PoolId;
use crate::pool::Pool;
use crate::protocol::Protocol;
use crate::server::{Holder, Server, ServerState};
use crate::snapshot::{
    ClientView, ClientViewState, Clients, Extent, PoolView, ServerView, ServerViewState, Snapshot,
};
use crate::time::Now;

/// Most clients of a snapshot that has the notable ones.
const NOTABLE_MAX: usize = 256;

/// The clients that were looked at.
struct Looked<P: Protocol> {
    clients: Vec<ClientView<P>>,
    /// Clients that do not wait, by their pool.
    active: HashMap<PoolId, u32>,
    logged_in: u32,
}

impl<P: Protocol> Engine<P> {
    /// Returns a snapshot of the whole core.
    pub fn snapshot(&self, now: Now) -> Snapshot<P> {
        self.snapshot_of(now, Extent::WHOLE)
    }

    /// Returns a snapshot of a part of this core.
    pub fn snapshot_of(&self, now: Now, extent: Extent) -> Snapshot<P> {
        let Looked { clients, active, logged_in } = self.look_at_clients(extent.clients);
        let connections = u32::try_from(self.client_count()).unwrap_or(u32::MAX);
        let logging_in = match extent.clients {
            Clients::None => 0,
            Clients::Notable | Clients::All => connections.saturating_sub(logged_in),
        };
        let pool_view = |pool: &Pool<P>| {
            let active = active.get(&pool.shared.id).copied().unwrap_or(0);
            self.pool_view(pool, now, active)
        };
        Snapshot {
            core: self.core_state.core,
            now,
            pools: self.core_state.pools().map(pool_view).collect(),
            forgotten: self.core_state.forgotten.clone(),
            clients,
            servers: self.connections.servers().filter_map(|s| self.server_view(s)).collect(),
            protocol: P::view(self, extent),
            commands: P::commands(&self.core_state.protocol),
            connections,
            logging_in,
        }
    }

    /// Looks at every client, unless none is wanted.
    fn look_at_clients(&self, wanted: Clients) -> Looked<P> {
        let mut looked = Looked { clients: Vec::new(), active: HashMap::new(), logged_in: 0 };
        let clients = self.connections.clients().filter(|_| wanted != Clients::None);
        for client in clients {
            let phase = P::phase(&client.session);
            if !matches!(phase, Phase::Ready | Phase::Console) {
                continue;
            }
            looked.logged_in += 1;
            let waits = client.waiting_for == WaitingFor::Server;
            if phase == Phase::Ready && !waits {
                *looked.active.entry(client.pool).or_default() += 1;
            }
            let is_notable = || {
                let room = looked.clients.len() < NOTABLE_MAX;
                room && (waits || P::keeps_server(&client.session))
            };
            if wanted == Clients::All || is_notable() {
                let view = client_view(&self.core_state, &self.connections, client);
                looked.clients.extend(view);
            }
        }
        looked
    }

    fn pool_view(&self, pool: &Pool<P>, now: Now, active: u32) -> PoolView<P> {
        let first = pool.waiters.first_client().map(|conn| self.connections.get(conn));
        let max_wait_us = match first {
            Some(Connection::Client(client)) => now.since(client.waiting),
            _ => 0,
        };
        let lines = || {
            let servers =
                self.lines.servers.iter().filter_map(|line| match self.connections.get(*line) {
                    Connection::Server(server) if server.pool == pool.shared.id => Some(server),
                    _ => None,
                });
            servers.filter(|server| !server.line.is_empty()).map(|server| server.line.len() + 1)
        };
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let options = &pool.settings.options;
        PoolView {
            database: pool.shared.database.clone(),
            user: pool.shared.user.clone(),
            mode: pool.settings.options.pool_mode,
            size: pool.settings.options.pool_size,
            host: pool.settings.host.clone(),
            server_database: pool.server_database().into(),
            paused: pool.choice.paused,
            is_dedicated: P::is_dedicated(pool.shared.variant),
            active,
            waiting: u32::try_from(pool.waiting() + pool.entering.len()).unwrap_or(u32::MAX),
            asking: u32::try_from(pool.asking.len()).unwrap_or(u32::MAX),
            max_wait_us,
            share_servers: options.share_servers,
            share_width: pool
                .shared
                .width()
                .map_or(options.share_min_servers.min(options.pool_size), number),
            servers_shared: number(lines().count()),
            requests_on_shared: number(lines().sum()),
            longest_line: number(lines().max().unwrap_or(0)),
            counters: pool.counters.clone(),
        }
    }

    fn server_view(&self, server: &Server<P>) -> Option<ServerView<P>> {
        let pool = self.core_state.peek_pool(server.pool)?;
        let client = server.client().and_then(|conn| match self.connections.get(conn) {
            Connection::Client(client) => Some(client.serial),
            Connection::Server(_) | Connection::Side(_) | Connection::Free => None,
        });
        Some(ServerView {
            serial: server.serial,
            database: pool.shared.database.clone(),
            user: pool.shared.user.clone(),
            host: server.host.clone(),
            address: server.address,
            state: match server.state {
                ServerState::Connecting | ServerState::Login(_) => ServerViewState::Login,
                ServerState::Idle => ServerViewState::Idle,
                ServerState::Held(Holder::Client(_)) => ServerViewState::Active,
                ServerState::Resetting | ServerState::Held(Holder::Job(..)) => {
                    ServerViewState::Resetting
                }
                ServerState::Cancelling => ServerViewState::Cancelling,
            },
            client,
            pid: server.pid,
            connected: server.connected,
            lent: server.since,
            close_needed: server.close_needed,
            is_dedicated: P::is_dedicated(pool.shared.variant),
            secured: server.secured.clone(),
            session: P::server_view(&server.session),
        })
    }
}

fn client_view<P: Protocol>(
    core_state: &CoreState<P>,
    connections: &Connections<P>,
    client: &Client<P>,
) -> Option<ClientView<P>> {
    let phase = P::phase(&client.session);
    let (database, user, pool_user) = match phase {
        Phase::Ready => {
            let shared = &core_state.peek_pool(client.pool)?.shared;
            (shared.database.clone(), client.user.clone(), shared.user.clone())
        }
        Phase::Console => {
            let (database, user) = P::console_names(&client.session)?;
            let user: Arc<str> = user.into();
            (database.into(), user.clone(), user)
        }
        Phase::Login | Phase::Entering | Phase::Checking => return None,
    };
    let server = client.link.and_then(|conn| match connections.get(conn) {
        Connection::Server(server) => Some(server.serial),
        Connection::Client(_) | Connection::Side(_) | Connection::Free => None,
    });
    let waits = client.waiting_for == WaitingFor::Server;
    Some(ClientView {
        serial: client.serial,
        database,
        user,
        pool_user,
        peer: client.peer.clone(),
        state: match phase {
            Phase::Console => ClientViewState::Admin,
            _ if waits => ClientViewState::Waiting,
            _ => ClientViewState::Active,
        },
        server,
        connected: client.connected,
        requested: client.requested,
        waiting: waits.then_some(client.waiting),
        secured: client.secured.clone(),
        session: P::client_view(&client.session),
    })
}
