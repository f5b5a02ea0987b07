//! Making a [`Snapshot`] of a core.

use crate::client::{Blocked, Client, Phase};
use crate::engine::Engine;
use crate::hub::Hub;
use crate::pool::Pool;
use crate::roles::{Role, Roles};
use crate::server::{Custody, Server};
use crate::snapshot::{ClientState, ClientView, PoolView, ServerState, ServerView, Snapshot};
use crate::time::Now;

impl Engine {
    /// What this core looks like now.
    pub fn snapshot(&self, now: Now) -> Snapshot {
        let clients: Vec<_> =
            self.roles.clients().filter_map(|c| client_view(&self.hub, &self.roles, c)).collect();
        let known = u32::try_from(clients.len()).unwrap_or(u32::MAX);
        Snapshot {
            core: self.hub.core,
            now,
            pools: self.hub.pools().map(|pool| self.pool_view(pool, now)).collect(),
            clients,
            servers: self.roles.servers().filter_map(|s| self.server_view(s)).collect(),
            templates: Vec::new(),
            logging_in: u32::try_from(self.clients).unwrap_or(u32::MAX).saturating_sub(known),
        }
    }

    /// The statements that clients of this core hold, by ID, and how many clients each.
    pub fn statement_clients(&self) -> Vec<(u64, u32)> {
        self.hub.texts.clients()
    }

    fn pool_view(&self, pool: &Pool, now: Now) -> PoolView {
        let first = pool.first_waiting().map(|conn| self.roles.get(conn));
        let max_wait_us = match first {
            Some(Role::Client(client)) => now.since(client.waiting),
            _ => 0,
        };
        PoolView {
            database: pool.shared.database.clone(),
            user: pool.shared.user.clone(),
            mode: pool.settings.options.pool_mode,
            size: pool.settings.options.pool_size,
            host: pool.settings.host.clone(),
            server_database: pool.server_database().into(),
            paused: pool.paused,
            waiting: u32::try_from(pool.waiting() + pool.entering.len()).unwrap_or(u32::MAX),
            max_wait_us,
            counters: pool.counters.clone(),
        }
    }

    fn server_view(&self, server: &Server) -> Option<ServerView> {
        let pool = self.hub.pools().find(|pool| pool.shared.id == server.pool)?;
        let client = server.client().and_then(|conn| match self.roles.get(conn) {
            Role::Client(client) => Some(client.serial),
            Role::Server(_) | Role::Cancel(_) | Role::Free => None,
        });
        Some(ServerView {
            serial: server.serial,
            database: pool.shared.database.clone(),
            user: pool.shared.user.clone(),
            host: pool.settings.host.clone(),
            state: match server.custody {
                Custody::Connecting | Custody::Login(_) => ServerState::Login,
                Custody::Idle => ServerState::Idle,
                Custody::Lent(_) => ServerState::Active,
                Custody::Resetting => ServerState::Resetting,
                Custody::Cancelling => ServerState::Cancelling,
            },
            client,
            pid: server.pid,
            connected: server.connected,
            lent: server.since,
            statements: u32::try_from(server.slots.len()).unwrap_or(u32::MAX),
            statement_bytes: server.slots.bytes() as u64,
            prepare_hits: server.hits,
            prepare_misses: server.misses,
            application: application(&server.profile),
            close_needed: server.close_needed,
        })
    }
}

fn client_view(hub: &Hub, roles: &Roles, client: &Client) -> Option<ClientView> {
    let (database, user) = match &client.phase {
        Phase::Ready(_) => {
            let pool = hub.pools().find(|pool| pool.shared.id == client.pool)?;
            (pool.shared.database.clone(), pool.shared.user.clone())
        }
        Phase::Console(authenticated, name) => ((*name).into(), authenticated.user().into()),
        Phase::Opening | Phase::Proving(..) | Phase::Entering(..) | Phase::Checking(..) => {
            return None;
        }
    };
    let server = client.link.and_then(|conn| match roles.get(conn) {
        Role::Server(server) => Some(server.serial),
        Role::Client(_) | Role::Cancel(_) | Role::Free => None,
    });
    let waits = client.blocked == Blocked::Waiting;
    Some(ClientView {
        serial: client.serial,
        database,
        user,
        peer: client.peer.clone(),
        state: match client.phase {
            Phase::Console(..) => ClientState::Admin,
            _ if waits => ClientState::Waiting,
            _ => ClientState::Active,
        },
        server,
        pinned: client.pins.words(),
        connected: client.connected,
        requested: client.requested,
        waiting: waits.then_some(client.waiting),
        statements: u32::try_from(client.names.len()).unwrap_or(u32::MAX),
        application: application(&client.profile),
    })
}

fn application(profile: &crate::settings::Profile) -> String {
    let name = profile.get(b"application_name").unwrap_or(b"");
    String::from_utf8_lossy(name).into_owned()
}
