//! PostgreSQL's part of a snapshot: sessions, statements, normalized queries.

use std::collections::HashMap;
use std::sync::Arc;

use refrain_pool::ids::PoolId;

use crate::normalized::compare_times::TimeComparison;
use crate::normalized::query::{NormalizedQuery, Refused, Stage, State, Variant};
use crate::settings::session::Settings;
use crate::state::client::ClientSession;
use crate::state::parts::{Engine, Pool, PoolShared, Shared};
use crate::state::server::ServerSession;
use crate::state::snapshot::{
    CacheRuleRow, ClientSessionView, NormalizedQueryRow, ServerSessionView, StatementView,
};

/// Returns the IDs of the statements that clients of a core hold, each with its number of clients.
pub fn statement_clients(engine: &Engine) -> Vec<(u64, u32)> {
    engine.core_state.protocol.statements.clients()
}

/// Returns every statement, for the admin console.
pub fn statements(shared: &Shared) -> Vec<StatementView> {
    let pools: HashMap<PoolId, Arc<PoolShared>> =
        shared.pools().into_iter().map(|pool| (pool.id, pool)).collect();
    let mut views = Vec::new();
    shared.protocol.registry.for_each(|statement| {
        let Some(pool) = pools.get(&statement.pool) else { return };
        let (database, user) = (pool.database.clone(), pool.user.clone());
        let schema_changes = pool.protocol.schema_changes();
        views.push(StatementView::of(statement, database, user, schema_changes));
    });
    views.sort_by_key(|view| view.id);
    views
}

/// Returns a view of a client's session.
pub(crate) fn client_view(session: &ClientSession) -> ClientSessionView {
    ClientSessionView {
        pinned: session.pins.words(),
        statements: u32::try_from(session.statements.len()).unwrap_or(u32::MAX),
        application: application(session.settings.expected()),
    }
}

/// Returns a view of a server's session.
pub(crate) fn server_view(session: &ServerSession) -> ServerSessionView {
    let (hits, misses) = session.statements.uses();
    ServerSessionView {
        statements: u32::try_from(session.statements.len()).unwrap_or(u32::MAX),
        statement_bytes: session.statements.bytes() as u64,
        prepare_hits: hits,
        prepare_misses: misses,
        application: application(session.settings.current()),
    }
}

fn application(settings: &Settings) -> String {
    let name = settings.get(b"application_name").unwrap_or(b"");
    String::from_utf8_lossy(name).into_owned()
}

/// Returns the rows of a pool's normalized queries.
pub(crate) fn normalized_queries(pool: &Pool) -> impl Iterator<Item = NormalizedQueryRow> {
    pool.protocol.normalized_queries.iter().map(|normalized| normalized_query_row(pool, normalized))
}

/// Returns the rules of the cache that apply to a pool.
pub(crate) fn cache_rules(pool: &Pool) -> impl Iterator<Item = CacheRuleRow> {
    pool.settings.cache.rules.iter().enumerate().map(|(place, rule)| {
        let used = pool.protocol.results.as_ref().and_then(|results| results.rule(&rule.name));
        CacheRuleRow {
            database: pool.shared.database.clone(),
            user: pool.shared.user.clone(),
            place,
            rule: rule.clone(),
            counters: used.map(|rule| rule.counters().borrow().clone()).unwrap_or_default(),
        }
    })
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
        protocol: if normalized.unnamed { "extended" } else { "simple" },
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
