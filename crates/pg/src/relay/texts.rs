//! Texts: the statement that stands for a query string, where replies are kept.
//!
//! What Refrain finds out about a query string it finds out about that statement: whether it is a
//! read, and what it may change.

use std::rc::Rc;

use refrain_sql::comments::without_comments;
use refrain_sql::normalize;

use crate::results::of_pool::{Bypass, PoolResults};
use crate::results::texts::{Seen, TextStatement, canonical};
use crate::state::parts::{Client, CoreState};
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::Identity;

/// Most literals of a text for which no replies are kept.
const LITERALS_MAX: usize = 4096;

/// Calls `run` with the rules for a client's pool, which it makes if there are none of its
/// settings.
#[inline]
pub(crate) fn with_results<T>(
    core_state: &mut CoreState,
    client: &mut Client,
    run: impl FnOnce(&mut PoolResults, &mut CoreState, &mut Client) -> T,
) -> T {
    let pool = core_state.pool_in_use(client.pool());
    let mut results = match pool.protocol.results.take() {
        Some(results) if results.is_of(&pool.settings) => results,
        before => {
            let (settings, shared) = (pool.settings.clone(), pool.shared.clone());
            let protocol = &core_state.shared.protocol;
            let (store, seed) = (&protocol.results, protocol.registry.seed());
            let (place, before) = (shared.protocol.place(), before.as_deref());
            Box::new(PoolResults::new(settings, store, seed, place, before))
        }
    };
    let result = run(&mut results, core_state, client);
    core_state.pool_in_use(client.pool()).protocol.results = Some(results);
    result
}

/// Returns the statement that stands for a text.
#[inline]
pub(crate) fn text_statement(
    results: &mut PoolResults,
    core_state: &mut CoreState,
    client: &Client,
    seen: Seen<'_>,
) -> Result<TextStatement, Bypass> {
    let known = match results.texts.find(seen) {
        Some(known) => known.clone(),
        None => add_text(results, core_state, client, seen)?,
    };
    known.cached.count_use();
    Ok(known)
}

/// Finds the statement that stands for a text that was not seen before.
#[cold]
fn add_text(
    results: &mut PoolResults,
    core_state: &mut CoreState,
    client: &Client,
    seen: Seen<'_>,
) -> Result<TextStatement, Bypass> {
    let settings = client.session.settings.expected();
    let plain = settings.reads.encoding.is_utf8() || seen.text.is_ascii();
    if !plain || settings.reads.backslash {
        return Err(Bypass::Session);
    }
    // A Parse of the text that stands for it, without parameters.
    let tail = [&canonical(seen.text, seen.spans)[..], &[0; 3]].concat();
    let identity = Identity { pool: client.pool(), env: seen.env, tail: &tail };
    let registry = &core_state.shared.protocol.registry;
    let cached = core_state.protocol.statements.intern(registry, identity, settings);
    Ok(results.add_text(seen, cached))
}

/// Returns the statement that stands for a text, and counts a use of it: for texts that may change
/// rows, and for those that a rule of the cache could be for.
#[cold]
pub(crate) fn statement_of_text(
    core_state: &mut CoreState,
    client: &mut Client,
    text: &[u8],
) -> Option<Rc<CachedStatement>> {
    let text = &*without_comments(text, false);
    with_results(core_state, client, |results, core_state, client| {
        let mut spans = std::mem::take(&mut core_state.protocol.spans);
        let seed = core_state.shared.protocol.registry.seed();
        let found = normalize::normalize(text, seed, LITERALS_MAX, &mut spans).ok();
        let found = found.and_then(|key| {
            let seen = Seen { text, spans: &spans, key, env: client.session.settings.env() };
            text_statement(results, core_state, client, seen).ok()
        });
        core_state.protocol.spans = spans;
        found.map(|found| found.cached)
    })
}
