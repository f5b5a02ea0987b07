//! Texts: the statement that stands for a query string, where replies are kept.
//!
//! What Refrain finds out about a query string it finds out about that statement: whether it is a
//! read, and what it may change.

use std::rc::Rc;

use refrain_pool::ids::PoolId;
use refrain_sql::comments::without_comments;
use refrain_sql::normalize;

use crate::results::of_pool::{Bypass, PoolResults};
use crate::results::texts::{Seen, TextStatement, canonical};
use crate::state::client::settings::ClientSettings;
use crate::state::core::CorePart;
use crate::state::parts::CoreState;
use crate::state::shared::SharedPart;
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::Identity;

/// Most literals of a text for which no replies are kept.
const LITERALS_MAX: usize = 4096;

/// Calls `run` with the rules for a pool, which it makes if there are none of its settings.
#[inline]
pub(crate) fn with_results<T>(
    core_state: &mut CoreState,
    pool: PoolId,
    run: impl FnOnce(&mut PoolResults, StatementMaps<'_>) -> T,
) -> T {
    let (pool, core, shared) = core_state.pool_beside(pool);
    let results = match &mut pool.protocol.results {
        Some(results) if results.is_of(&pool.settings) => results,
        others => {
            let (store, seed) = (&shared.results, shared.registry.seed());
            let (place, before) = (pool.shared.protocol.place(), others.as_deref());
            let results = PoolResults::new(pool.settings.clone(), store, seed, place, before);
            others.insert(Box::new(results))
        }
    };
    run(results, StatementMaps { core, shared })
}

/// The statements that a core knows, and those that all cores know.
pub(crate) struct StatementMaps<'a> {
    pub(crate) core: &'a mut CorePart,
    pub(crate) shared: &'a SharedPart,
}

/// Returns the statement that stands for a text.
#[inline]
pub(crate) fn text_statement(
    results: &mut PoolResults,
    known: &mut StatementMaps<'_>,
    (pool, settings): (PoolId, &ClientSettings),
    seen: Seen<'_>,
) -> Result<TextStatement, Bypass> {
    let statement = match results.texts.find(seen) {
        Some(statement) => statement.clone(),
        None => add_text(results, known, (pool, settings), seen)?,
    };
    statement.cached.count_use();
    Ok(statement)
}

/// Finds the statement that stands for a text that was not seen before.
#[cold]
fn add_text(
    results: &mut PoolResults,
    known: &mut StatementMaps<'_>,
    (pool, settings): (PoolId, &ClientSettings),
    seen: Seen<'_>,
) -> Result<TextStatement, Bypass> {
    let settings = settings.expected();
    let plain = settings.reads.encoding.is_utf8() || seen.text.is_ascii();
    if !plain || settings.reads.backslash {
        return Err(Bypass::Session);
    }
    // A Parse of the text that stands for it, without parameters.
    let tail = [&canonical(seen.text, seen.spans)[..], &[0; 3]].concat();
    let identity = Identity { pool, env: seen.env, tail: &tail };
    let cached = known.core.statements.intern(&known.shared.registry, identity, settings);
    Ok(results.add_text(seen, cached))
}

/// Returns the statement that stands for a client's text, and counts a use of it: for texts that
/// may change rows, and for those that a rule of the cache could be for.
#[cold]
pub(crate) fn statement_of_text(
    core_state: &mut CoreState,
    pool: PoolId,
    settings: &ClientSettings,
    text: &[u8],
) -> Option<Rc<CachedStatement>> {
    let text = &*without_comments(text, false);
    with_results(core_state, pool, |results, mut known| {
        let mut spans = std::mem::take(&mut known.core.spans);
        let seed = known.shared.registry.seed();
        let found = normalize::normalize(text, seed, LITERALS_MAX, &mut spans).ok();
        let found = found.and_then(|key| {
            let seen = Seen { text, spans: &spans, key, env: settings.env() };
            text_statement(results, &mut known, (pool, settings), seen).ok()
        });
        known.core.spans = spans;
        found.map(|found| found.cached)
    })
}
