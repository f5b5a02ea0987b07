//! Making a [`Snapshot`] of a core.

use crate::client::{Blocked, Client, Phase};
use crate::engine::Engine;
use crate::guard::Guard;
use crate::hub::Hub;
use crate::pool::Pool;
use crate::roles::{Role, Roles};
use crate::server::{Custody, Server};
use crate::snapshot::{
    ClientState, ClientView, PoolView, ServerState, ServerView, Snapshot, TemplateRow,
};
use crate::template::{Refused, Stage, State, Template, Variant};
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
            forgotten: self.hub.forgotten.clone(),
            clients,
            servers: self.roles.servers().filter_map(|s| self.server_view(s)).collect(),
            templates: self.hub.pools().flat_map(templates).collect(),
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
            asking: u32::try_from(pool.asking.len()).unwrap_or(u32::MAX),
            max_wait_us,
            counters: pool.counters.clone(),
        }
    }

    fn server_view(&self, server: &Server) -> Option<ServerView> {
        let pool = self.hub.peek_pool(server.pool)?;
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
                Custody::Resetting | Custody::Job(_) => ServerState::Resetting,
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
            let pool = hub.peek_pool(client.pool)?;
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

/// The templates of a pool.
fn templates(pool: &Pool) -> impl Iterator<Item = TemplateRow> {
    pool.templates.iter().map(|template| template_row(pool, template))
}

fn template_row(pool: &Pool, template: &Template) -> TemplateRow {
    let (state, reason) = standing(template);
    let guards = || template.variants.iter().map(|variant| &variant.guard);
    let slower = |v: &&Variant| matches!(v.stage, Stage::Never { why: Refused::Slower { .. }, .. });
    let (text, kept) = match &template.state {
        State::Planned(plan) => {
            let (text, spans) = (template.exemplar.text(), template.exemplar.spans());
            let mut rendered = Vec::new();
            plan.render(text, spans, &mut rendered);
            (rendered, plan.kept(text, spans).count() as u64)
        }
        State::Counted | State::Judged(_) | State::Never(_) => {
            (template.exemplar.text().to_vec(), 0)
        }
    };
    TemplateRow {
        database: pool.shared.database.clone(),
        user: pool.shared.user.clone(),
        template: String::from_utf8_lossy(&text).into_owned(),
        state,
        reason,
        seen: template.seen,
        hits: guards().map(|guard| guard.hits).sum(),
        time_saved_us: guards().map(|guard| guard.saved_us).sum(),
        slow_texts: guards().map(Guard::slow_texts).sum(),
        kept,
        demotions: template.variants.iter().filter(slower).count() as u64,
    }
}

/// How far the farthest of a template's variants has come, and what holds up those that were refused.
fn standing(template: &Template) -> (&'static str, String) {
    let plan = match &template.state {
        State::Counted => return ("counted", String::new()),
        State::Judged(_) => return ("judged", String::new()),
        State::Never(reason) => return ("never", reason.name.to_owned()),
        State::Planned(_) => &template.variants,
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
