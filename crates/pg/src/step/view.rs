//! Makes a [`Snapshot`] of a core, for the console and the metrics.

use crate::engine::Engine;
use crate::ground::time::Now;
use crate::normalized::compare_times::TimeComparison;
use crate::normalized::query::{NormalizedQuery, Refused, Stage, State, Variant};
use crate::state::client::{Client, ClientState, WaitingFor};
use crate::state::connections::{Connection, Connections};
use crate::state::core_state::CoreState;
use crate::state::pool::Pool;
use crate::state::server::{Server, ServerState};
use crate::state::snapshot::{
    ClientView, ClientViewState, NormalizedQueryRow, PoolView, ServerView, ServerViewState,
    Snapshot,
};

impl Engine {
    /// Returns a snapshot of this core.
    pub fn snapshot(&self, now: Now) -> Snapshot {
        let clients: Vec<_> = self
            .connections
            .clients()
            .filter_map(|c| client_view(&self.core_state, &self.connections, c))
            .collect();
        let known = u32::try_from(clients.len()).unwrap_or(u32::MAX);
        Snapshot {
            core: self.core_state.core,
            now,
            pools: self.core_state.pools().map(|pool| self.pool_view(pool, now)).collect(),
            forgotten: self.core_state.forgotten.clone(),
            clients,
            servers: self.connections.servers().filter_map(|s| self.server_view(s)).collect(),
            normalized_queries: self.core_state.pools().flat_map(normalized_queries).collect(),
            logging_in: u32::try_from(self.clients).unwrap_or(u32::MAX).saturating_sub(known),
        }
    }

    /// Returns the IDs of the statements that clients of this core hold, each with its number of
    /// clients.
    pub fn statement_clients(&self) -> Vec<(u64, u32)> {
        self.core_state.statements.clients()
    }

    fn pool_view(&self, pool: &Pool, now: Now) -> PoolView {
        let first = pool.first_waiting().map(|conn| self.connections.get(conn));
        let max_wait_us = match first {
            Some(Connection::Client(client)) => now.since(client.waiting),
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
            asking: u32::try_from(pool.asking.len()).unwrap_or(u32::MAX),
            max_wait_us,
            counters: pool.counters.clone(),
        }
    }

    fn server_view(&self, server: &Server) -> Option<ServerView> {
        let pool = self.core_state.peek_pool(server.pool)?;
        let client = server.client().and_then(|conn| match self.connections.get(conn) {
            Connection::Client(client) => Some(client.serial),
            Connection::Server(_) | Connection::Cancel(_) | Connection::Free => None,
        });
        Some(ServerView {
            serial: server.serial,
            database: pool.shared.database.clone(),
            user: pool.shared.user.clone(),
            host: pool.settings.host.clone(),
            state: match server.state {
                ServerState::Connecting | ServerState::Login(_) => ServerViewState::Login,
                ServerState::Idle => ServerViewState::Idle,
                ServerState::Lent(_) => ServerViewState::Active,
                ServerState::Resetting | ServerState::Job(_) => ServerViewState::Resetting,
                ServerState::Cancelling => ServerViewState::Cancelling,
            },
            client,
            pid: server.pid,
            connected: server.connected,
            lent: server.since,
            statements: u32::try_from(server.session.statements.len()).unwrap_or(u32::MAX),
            statement_bytes: server.session.statements.bytes() as u64,
            prepare_hits: server.session.hits,
            prepare_misses: server.session.misses,
            application: application(&server.session.settings),
            close_needed: server.close_needed,
        })
    }
}

fn client_view(
    core_state: &CoreState,
    connections: &Connections,
    client: &Client,
) -> Option<ClientView> {
    let (database, user) = match &client.session.state {
        ClientState::Ready(_) => {
            let pool = core_state.peek_pool(client.pool)?;
            (pool.shared.database.clone(), pool.shared.user.clone())
        }
        ClientState::Console(authenticated, name) => ((*name).into(), authenticated.user().into()),
        ClientState::Opening
        | ClientState::Proving(..)
        | ClientState::Entering(..)
        | ClientState::Checking(..) => {
            return None;
        }
    };
    let server = client.link.and_then(|conn| match connections.get(conn) {
        Connection::Server(server) => Some(server.serial),
        Connection::Client(_) | Connection::Cancel(_) | Connection::Free => None,
    });
    let waits = client.waiting_for == WaitingFor::Server;
    Some(ClientView {
        serial: client.serial,
        database,
        user,
        peer: client.peer.clone(),
        state: match client.session.state {
            ClientState::Console(..) => ClientViewState::Admin,
            _ if waits => ClientViewState::Waiting,
            _ => ClientViewState::Active,
        },
        server,
        pinned: client.session.pins.words(),
        connected: client.connected,
        requested: client.requested,
        waiting: waits.then_some(client.waiting),
        statements: u32::try_from(client.session.names.len()).unwrap_or(u32::MAX),
        application: application(&client.session.settings),
    })
}

fn application(settings: &crate::settings::session::Settings) -> String {
    let name = settings.get(b"application_name").unwrap_or(b"");
    String::from_utf8_lossy(name).into_owned()
}

/// The normalized queries of a pool.
fn normalized_queries(pool: &Pool) -> impl Iterator<Item = NormalizedQueryRow> {
    pool.protocol.normalized_queries.iter().map(|normalized| normalized_query_row(pool, normalized))
}

fn normalized_query_row(pool: &Pool, normalized: &NormalizedQuery) -> NormalizedQueryRow {
    let (state, reason) = knowledge(normalized);
    let comparisons = || normalized.variants.iter().map(|variant| &variant.comparison);
    let slower = |v: &&Variant| matches!(v.stage, Stage::Never { why: Refused::Slower { .. }, .. });
    let (text, kept) = match &normalized.state {
        State::Planned(plan) => {
            let (text, spans) = (normalized.sample.text(), normalized.sample.spans());
            let mut rendered = Vec::new();
            plan.render(text, spans, &mut rendered);
            (rendered, plan.kept(text, spans).count() as u64)
        }
        State::Counted | State::Analysed(_) | State::Never(_) => {
            (normalized.sample.text().to_vec(), 0)
        }
    };
    NormalizedQueryRow {
        database: pool.shared.database.clone(),
        user: pool.shared.user.clone(),
        query: String::from_utf8_lossy(&text).into_owned(),
        state,
        reason,
        seen: normalized.seen,
        hits: comparisons().map(|comparison| comparison.hits).sum(),
        time_saved_us: comparisons().map(|comparison| comparison.saved_us).sum(),
        slow_texts: comparisons().map(TimeComparison::slow_texts).sum(),
        kept,
        demotions: normalized.variants.iter().filter(slower).count() as u64,
    }
}

/// Returns the state of a normalized query for the console: that of its most advanced variant, and
/// the reason of a refusal.
fn knowledge(normalized: &NormalizedQuery) -> (&'static str, String) {
    let plan = match &normalized.state {
        State::Counted => return ("counted", String::new()),
        State::Analysed(_) => return ("judged", String::new()),
        State::Never(reason) => return ("never", reason.name.to_owned()),
        State::Planned(_) => &normalized.variants,
    };
    let ready = plan.iter().any(|variant| matches!(variant.stage, Stage::Ready { .. }));
    let refused = plan.iter().find_map(|variant| match variant.stage {
        Stage::Never { why, .. } => Some(why.name()),
        Stage::Counted | Stage::Due | Stage::Asked { .. } | Stage::Ready { .. } => None,
    });
    match refused {
        _ if ready => ("ready", String::new()),
        Some(why) => ("refused", why),
        None => ("planned", String::new()),
    }
}
