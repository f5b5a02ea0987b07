//! PostgreSQL's part of a snapshot: sessions, statements, normalized queries.

use std::collections::HashMap;
use std::sync::Arc;

use refrain_config::{Options, PoolRule};
use refrain_pool::ids::PoolId;
use refrain_sql::comments::without_comments;
use refrain_sql::normalize::Reason;
use refrain_sql::reads::{Objection, Unkept, may_be_read};

use crate::normalized::compare_times::TimeComparison;
use crate::normalized::query::{NormalizedQuery, Refused, Stage, State, Variant};
use crate::results::texts;
use crate::settings::session::Settings;
use crate::state::client::ClientSession;
use crate::state::parts::{Engine, Pool, PoolShared, Shared};
use crate::state::server::ServerSession;
use crate::state::snapshot::{
    CacheRuleRow, CacheVerdict, ClientSessionView, NormalizedQueryRow, ServerSessionView,
    StatementView,
};
use crate::statements::registry::Seed;
use crate::statements::relations::Table;
use crate::statements::statement::Statement;
use crate::statements::verdict::Read;

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

/// Returns the cache's verdict on a text for each pool that has rules: whether replies to it are
/// kept, and why not.
///
/// Nothing is asked of a server: what depends on the catalog is known once clients have run the
/// text.
pub fn explain_cache(shared: &Shared, options: &Options, text: &str) -> Vec<CacheVerdict> {
    let (store, seed) = (&shared.protocol.results, shared.protocol.registry.seed());
    let text = without_comments(text.trim().as_bytes(), false);
    let number = texts::number(store, seed, &text);
    let mut pools: Vec<_> = shared.pools();
    pools.sort_by_key(|pool| (pool.database.clone(), pool.user.clone()));
    let verdict = |pool: &Arc<PoolShared>| {
        let rules = options.cache.of(&pool.database, &pool.user).rules;
        let applies = |rule: &PoolRule, reads: Option<&[Table]>| {
            let of = rule.rule.statement.as_ref();
            let names = |table: &String| reads.is_none_or(|r| r.iter().any(|t| t.is_called(table)));
            of.is_none_or(|of| texts::number(store, seed, of.trim().as_bytes()) == number)
                && rule.rule.table.as_ref().is_none_or(names)
        };
        let known = known(shared, pool, number);
        let tables = known.as_ref().map(|statement| statement.relations.reads());
        let found = rules.iter().find(|rule| applies(rule, tables.as_deref())).cloned();
        let (kept, reason) = kept(&text, seed, known.as_deref(), pool, found.as_ref());
        let tables = tables.iter().flat_map(|tables| tables.iter());
        (!rules.is_empty()).then(|| CacheVerdict {
            database: pool.database.clone(),
            user: pool.user.clone(),
            kept,
            rule: found,
            tables: tables.map(|table| table.name.to_string()).collect(),
            reason,
        })
    };
    pools.iter().filter_map(verdict).collect()
}

/// Returns the statement of a pool that has the text of this number, of several the one of which
/// most is known.
fn known(shared: &Shared, pool: &PoolShared, number: u64) -> Option<Arc<Statement>> {
    let (store, seed) = (&shared.protocol.results, shared.protocol.registry.seed());
    let mut known: Option<Arc<Statement>> = None;
    let changes = pool.protocol.schema_changes();
    shared.protocol.registry.for_each(|statement| {
        let same = || texts::number(store, seed, statement.text()) == number;
        let better = || known.as_ref().is_none_or(|known| known.verdict.known(changes).is_none());
        if statement.pool == pool.id && better() && same() {
            known = Some(statement.clone());
        }
    });
    known
}

/// Returns whether replies to a text are kept, as far as that is known, and the reason.
fn kept(
    text: &[u8],
    seed: &Seed,
    known: Option<&Statement>,
    pool: &PoolShared,
    rule: Option<&PoolRule>,
) -> (Option<bool>, String) {
    let objected = |reason: &Reason| (Some(false), format!("{}: {}", reason.name, reason.text));
    let scan = refrain_sql::scan_with(text, false);
    let verdict = known.and_then(|known| known.verdict.known(pool.protocol.schema_changes()));
    match verdict {
        _ if !may_be_read(&scan) => objected(Objection::Kind.reason()),
        Some(Err(objection)) => objected(objection.reason()),
        Some(Ok(Read::Unkept(unkept))) => objected(unkept.reason()),
        _ if texts::name_moment(text, seed) => objected(Unkept::Word.reason()),
        _ if rule.is_none() => (Some(false), "no rule applies".to_owned()),
        Some(Ok(Read::Timeless)) => (Some(true), String::new()),
        None if known.is_some() => (None, "the server has not been asked about it".to_owned()),
        None => (None, "no client has run it".to_owned()),
    }
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
