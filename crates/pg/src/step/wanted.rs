//! Wanted: the reply that a client's request asks for: how it is kept, and its key.

use std::rc::Rc;

use refrain_sql::comments::without_comments;
use refrain_sql::hint;
use refrain_sql::normalize;

use crate::relay::texts::{StatementMaps, text_statement, with_results};
use crate::results::of_client::{CacheWish, Scope};
use crate::results::of_pool::{About, Bypass, Plan, PoolResults};
use crate::results::segment::{Form, Several, binds_moment};
use crate::results::texts::{LITERALS_MAX, Seen};
use crate::state::parts::{Client, CoreState};
use crate::statements::columns::{Columns, Shape};
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::Identity;

/// A client's request, as far as it decides which reply it gets.
#[derive(Clone)]
pub(crate) struct Wanted<'a> {
    pub(crate) plan: Rc<Plan>,
    pub(crate) form: Form<'a>,
    /// The statement that the client's unnamed statement is from now on.
    pub(crate) unnamed: Option<Rc<CachedStatement>>,
    /// The statement that stands for a query string.
    pub(crate) text: Option<Rc<CachedStatement>>,
    /// Whether the reply is to be fetched now, though one is there.
    pub(crate) anew: bool,
    /// Whether the client is told how old the reply is.
    pub(crate) tells_age: bool,
}

/// Kinds of replies, which are never taken for each other.
const SIMPLE: u8 = 0;
const BOUND: u8 = 1;
const PARSED: u8 = 2;
/// Added if the client asks for the columns.
const DESCRIBED: u8 = 4;
/// The begin of the key of several statements. No settings have this number.
const SEVERAL: u64 = u64::MAX;

/// Finds how the reply to a request is kept, and writes its key.
#[inline]
pub(crate) fn wanted<'a>(
    core_state: &mut CoreState,
    client: &mut Client,
    form: Form<'a>,
    key: &mut Vec<u8>,
) -> Result<Wanted<'a>, Bypass> {
    with_results(core_state, client.pool(), |results, mut known| match form {
        Form::Query(text) => of_query(results, &mut known, client, (text, form), key),
        Form::Extended { .. } => of_statement(results, &mut known, client, form, key),
        Form::Several(several) => of_several(results, &mut known, client, several, key),
    })
}

/// Returns the scope of a client's settings, unless they say that it wants nothing of the cache.
#[inline]
fn scope(results: &PoolResults, client: &mut Client) -> Result<Scope, Bypass> {
    let session = &mut client.session;
    let (settings, defaults) = (session.settings.expected(), &session.settings.defaults().settings);
    let is_confirmed = || session.login.unconfirmed().is_none();
    let store = results.store();
    let scope = session.results.scope(store, is_confirmed, results.place(), settings, defaults);
    match scope.wish {
        CacheWish::Replies | CacheWish::NewReplies => Ok(scope),
        CacheWish::Nothing => Err(Bypass::Unwanted),
        CacheWish::Unconfirmed => Err(Bypass::Login),
    }
}

/// Returns what decides how the reply to a client's request is kept, its text aside.
#[inline]
fn about<'a>(results: &PoolResults, client: &'a Client, scope: Scope) -> About<'a> {
    let settings = client.session.settings.expected();
    let schema_changes = results.schema_changes();
    About { schema_changes, text: None, settings, application: scope.application }
}

/// Writes the beginning of a key: whose reply it is, under which settings, and to which statement.
#[inline(always)]
fn begin_key(scope: Scope, plan: &Plan, kind: u8, key: &mut Vec<u8>) {
    let numbers = [scope.number, plan.rule.whose, plan.number].map(u64::to_le_bytes);
    // In one piece: the room is looked for once.
    let mut begin = [kind; size_of::<[u64; 3]>() + 1];
    begin[..size_of::<[u64; 3]>()].copy_from_slice(numbers.as_flattened());
    key.extend_from_slice(&begin);
}

/// Finds the plan for a query string.
#[inline]
fn of_query<'a>(
    results: &mut PoolResults,
    known: &mut StatementMaps<'_>,
    client: &mut Client,
    (text, form): (&[u8], Form<'a>),
    key: &mut Vec<u8>,
) -> Result<Wanted<'a>, Bypass> {
    let hint = if results.takes_hints() { hint::hint_of(text) } else { None };
    if hint.is_none() && results.needs_hint() {
        return Err(Bypass::Rule);
    }
    let uncommented = without_comments(text, false);
    let text = &*uncommented;
    let mut spans = std::mem::take(&mut known.core.spans);
    let seed = known.shared.registry.seed();
    let env = client.session.settings.env();
    let literals = normalize::normalize(text, seed, LITERALS_MAX, &mut spans);
    let planned = literals.map_err(|_| Bypass::Statement).and_then(|hash| {
        let seen = Seen { text, spans: &spans, key: hash, env };
        let statement =
            text_statement(results, known, (client.pool(), &client.session.settings), seen)?;
        let scope = scope(results, client)?;
        let text_of = Some((statement.number, hint));
        let about = About { text: text_of, ..about(results, client, scope) };
        let plan = results.plan(&statement.cached, about)?;
        begin_key(scope, &plan, SIMPLE, key);
        for span in &spans {
            let literal = span.of(text);
            if span.names_moment(text) {
                return Err(Bypass::Moment);
            }
            key.extend_from_slice(&(literal.len() as u32).to_le_bytes());
            key.extend_from_slice(literal);
        }
        let (anew, tells_age) = (scope.wish == CacheWish::NewReplies, scope.tells_age);
        Ok(Wanted { plan, form, unnamed: None, text: Some(statement.cached), anew, tells_age })
    });
    known.core.spans = spans;
    planned
}

/// Finds the plan for a statement that is bound to values.
#[inline]
fn of_statement<'a>(
    results: &mut PoolResults,
    known: &mut StatementMaps<'_>,
    client: &mut Client,
    form: Form<'a>,
    key: &mut Vec<u8>,
) -> Result<Wanted<'a>, Bypass> {
    let Form::Extended { parse, name, values, describes } = form else { return Err(Bypass::Form) };
    let (cached, seen) = match parse {
        Some(tail) => {
            let (pool, env) = (client.pool(), client.session.settings.env());
            let identity = Identity { pool, env, tail };
            let found = known.core.statements.find(&known.shared.registry, identity);
            (found.ok_or(Bypass::Unknown)?, None)
        }
        None => {
            let own = client.session.statements.get(name).ok_or(Bypass::Statement)?;
            let seen = match own.columns {
                Columns::Known(Shape { types, whole }) => {
                    [types, whole.into(), own.parameters.into()]
                }
                Columns::Fixed => [0, 0, own.parameters.into()],
                Columns::Of { .. } => return Err(Bypass::Unknown),
            };
            (own.held.cached().clone(), Some(seen))
        }
    };
    if cached.statement.env != client.session.settings.env() {
        return Err(Bypass::Session);
    }
    cached.count_use();
    if results.needs_hint() && hint::hint_of(cached.statement.text()).is_none() {
        return Err(Bypass::Rule);
    }
    let scope = scope(results, client)?;
    let plan = results.plan(&cached, about(results, client, scope))?;
    if binds_moment(values, plan.suspects) {
        return Err(Bypass::Moment);
    }
    let kind = if parse.is_some() { PARSED } else { BOUND };
    let kind = if describes { kind | DESCRIBED } else { kind };
    let (anew, tells_age) = (scope.wish == CacheWish::NewReplies, scope.tells_age);
    begin_key(scope, &plan, kind, key);
    // What the client knows of its statement, which the server compares with what it finds.
    if let Some(numbers) = seen {
        key.extend_from_slice(numbers.map(u64::to_le_bytes).as_flattened());
    }
    key.extend_from_slice(values);
    Ok(Wanted { plan, form, unnamed: parse.map(|_| cached), text: None, anew, tells_age })
}

/// Finds the plan for several statements under one Sync, to all of which one rule applies. Their
/// replies are kept as one.
#[cold]
fn of_several<'a>(
    results: &mut PoolResults,
    known: &mut StatementMaps<'_>,
    client: &mut Client,
    several: Several<'a>,
    key: &mut Vec<u8>,
) -> Result<Wanted<'a>, Bypass> {
    key.extend_from_slice(&SEVERAL.to_le_bytes());
    let (mut first, mut plans): (Option<Wanted<'a>>, Vec<Rc<Plan>>) = (None, Vec::new());
    for part in several.parts() {
        let begins = key.len();
        key.extend_from_slice(&[0; size_of::<u64>()]);
        let wanted = of_statement(results, known, client, part, key)?;
        // The length in front keeps the end of one part from being taken for the begin of the next.
        let length = (key.len() - begins) as u64;
        key[begins..begins + size_of::<u64>()].copy_from_slice(&length.to_le_bytes());
        plans.push(wanted.plan.clone());
        let all = first.get_or_insert_with(|| Wanted { unnamed: None, ..wanted.clone() });
        all.unnamed = wanted.unnamed.or(all.unnamed.take());
    }
    let all = first.ok_or(Bypass::Form)?;
    let plan = results.plan_of_several(&plans).ok_or(Bypass::Rule)?;
    Ok(Wanted { plan, form: Form::Several(several), ..all })
}
