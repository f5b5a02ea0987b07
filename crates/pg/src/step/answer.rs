//! Answers from the cache, for a client that has no server.
//!
//! A segment is answered here only if all of it can be: it reads what a rule is for,
//! and nothing of the client's session is a server's alone. Otherwise the whole segment goes to a
//! server, and if its reply is to be kept, the generations of what the reply depends on are noted
//! here, before anything is sent.

use std::rc::Rc;

use refrain_cache::{Asker, Fill, Found, Hit, Waiter};
use refrain_config::PoolMode;
use refrain_pool::client::WaitingFor;
use refrain_pool::ids::{Conn, Core};
use refrain_sql::Scan;
use refrain_sql::comments::without_comments;
use refrain_sql::hint;
use refrain_sql::normalize;
use refrain_wire::back::Status;
use refrain_wire::tag::back;
use refrain_wire::write;

use crate::engine::Step;
use crate::ground::stats::StatementCounters;
use crate::relay::texts::{text_statement, with_results};
use crate::results::filling::Filling;
use crate::results::of_client::{Request, Scope, Wish};
use crate::results::of_pool::{About, Bypass, Plan, PoolResults};
use crate::results::refresh::{Refresh, Sent};
use crate::results::rule::Rule;
use crate::results::segment::{Form, Segment, Several, binds_moment};
use crate::results::texts::{LITERALS_MAX, Seen};
use crate::settings::session::AGE_REPORT;
use crate::state::parts::{Client, CoreState};
use crate::statements::columns::{Columns, Shape};
use crate::statements::of_client::{ClientRef, ClientStatement};
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::Identity;
use crate::step::refresh;

/// Whether a segment was answered from the cache.
pub(crate) enum Answered {
    /// It was: this number of bytes has been handled.
    Now(usize),
    /// It will be: another client fetches the reply.
    Later,
    /// It goes to a server.
    No,
}

/// A client's request, as far as it decides which reply it gets.
#[derive(Clone)]
struct Wanted<'a> {
    plan: Rc<Plan>,
    form: Form<'a>,
    /// The statement that the client's unnamed statement is from now on.
    unnamed: Option<Rc<CachedStatement>>,
    /// The scan of a query string.
    scan: Option<Scan>,
    /// Whether the reply is to be fetched now, though one is there.
    anew: bool,
    /// Whether the client is told how old the reply is.
    tells_age: bool,
}

/// Kinds of replies, which are never taken for each other.
const SIMPLE: u8 = 0;
const BOUND: u8 = 1;
const PARSED: u8 = 2;
/// Added if the client asks for the columns.
const DESCRIBED: u8 = 4;
/// The begin of the key of several statements. No settings have this number.
const SEVERAL: u64 = u64::MAX;

impl Step<'_, '_> {
    /// Whether there are rules of the cache for a client's pool, or its requests are looked at to
    /// see what rules would save.
    #[inline]
    pub(crate) fn looks_at_requests(&mut self, conn: Conn) -> bool {
        let Some(client) = self.step.engine.connections.client(conn) else { return false };
        let id = client.pool();
        let pool = self.step.engine.core_state.pool_in_use(id);
        pool.settings.cache.keeps() || pool.protocol.repeats.looks()
    }

    /// Answers the first segment of a client's input from the cache, if it can.
    pub(crate) fn answer(&mut self, conn: Conn, input: &[u8]) -> Answered {
        let answered = self.answer_by_rule(conn, input).unwrap_or_else(|bypass| {
            self.count_bypass(conn, bypass);
            Answered::No
        });
        if matches!(answered, Answered::No) {
            self.watch(conn, input);
        }
        answered
    }

    fn answer_by_rule(&mut self, conn: Conn, input: &[u8]) -> Result<Answered, Bypass> {
        let now = self.step.now;
        let client = self.step.engine.connections.client(conn).ok_or(Bypass::Session)?;
        // The request is read once more, since its first server has gone.
        if client.session.results.is_awaited() {
            return Ok(Answered::No);
        }
        let core_state = &mut self.step.engine.core_state;
        let segment = Segment::read(input).filter(|_| client.inbox.rest == 0);
        let segment = segment.ok_or(Bypass::Form)?;
        let pool = core_state.pool_in_use(client.pool());
        if !pool.settings.cache.keeps() {
            return Ok(Answered::No);
        }
        let session = pool.settings.options.pool_mode;
        if !client.session.may_share() || session == PoolMode::Session {
            return Err(Bypass::Session);
        }
        let own_waiter = waiter(core_state.core(), client);
        let mut key = std::mem::take(&mut core_state.protocol.result_key);
        key.clear();
        let wanted = wanted(core_state, client, segment.form, &mut key);
        let found = wanted.map(|wanted| {
            // A reply that another has asked for before is not new.
            let waited = client.session.results.waited(now);
            let until = client.session.results.may_wait(now).filter(|_| !wanted.anew);
            let asker = until.map_or(Asker::Alone, |_| Asker::Waits(own_waiter));
            let out = self.step.ports.out(conn);
            let before = out.len();
            let terms = refrain_cache::Terms {
                since: if wanted.anew { now.0 + 1 } else { since(&wanted.plan, client) },
                waited,
                ..wanted.plan.rule.terms
            };
            write_heads(out, wanted.form);
            let store = &core_state.shared.protocol.results;
            let found = store.cache.look(&key, &wanted.plan.topics, &terms, now.0, asker, out);
            if !matches!(found, Found::Hit(_) | Found::Stale(..)) {
                out.truncate(before);
            }
            (wanted, found)
        });
        core_state.protocol.result_key = key;
        let (wanted, found) = found?;
        let counters = &mut core_state.pool_in_use(client.pool()).counters;
        count(&found, &wanted.plan.rule, &mut counters.protocol);
        Ok(match found {
            Found::Hit(had) => self.give(conn, wanted, had, segment.bytes),
            Found::Miss(fill) => self.fetch(conn, wanted, fill),
            Found::Wait => self.await_reply(conn),
            Found::Alone => {
                client.session.results.waits_no_more();
                Answered::No
            }
            Found::Stale(had, fill) => {
                if let Err(fill) = self.fetch_again(conn, &wanted, fill) {
                    let store = &self.step.engine.core_state.shared.protocol.results;
                    let waiters = store.cache.abandon(&fill);
                    self.wake_for_reply(waiters);
                }
                self.give(conn, wanted, had, segment.bytes)
            }
            Found::Fetch(fill) => match self.fetch_again(conn, &wanted, fill) {
                Ok(()) => self.await_reply(conn),
                Err(fill) => self.fetch(conn, wanted, fill),
            },
        })
    }

    /// Completes a reply that stands in a client's output but for its end.
    #[inline]
    fn give(&mut self, conn: Conn, wanted: Wanted<'_>, had: Hit, bytes: usize) -> Answered {
        let now = self.step.now;
        let Some(client) = self.step.engine.connections.client(conn) else { return Answered::No };
        wanted.plan.rule.count_hit(client.session.results.waited(now));
        client.session.results.waits_no_more();
        let out = self.step.ports.out(conn);
        let tells_age = wanted.tells_age;
        hit(client, wanted, out);
        if tells_age {
            let milliseconds = had.age.div_ceil(1000).to_string();
            write::parameter_status(out, AGE_REPORT, milliseconds.as_bytes());
        }
        write::ready(out, Status::Idle);
        client.note_reply(now);
        self.step.engine.core_state.pool_in_use(client.pool()).counters.pool.queries += 1;
        Answered::Now(bytes)
    }

    /// Has a client wait for a reply that is being fetched.
    fn await_reply(&mut self, conn: Conn) -> Answered {
        let now = self.step.now;
        let core_state = &mut self.step.engine.core_state;
        let Some(client) = self.step.engine.connections.client(conn) else { return Answered::No };
        let until = client.session.results.may_wait(now).unwrap_or(now);
        core_state.protocol.awaiting_fetch.push((waiter(core_state.core(), client), until));
        client.await_fetch();
        Answered::Later
    }

    /// Has the reply to a client's request kept, which goes to a server.
    fn fetch(&mut self, conn: Conn, wanted: Wanted<'_>, fill: Box<Fill>) -> Answered {
        let Some(client) = self.step.engine.connections.client(conn) else { return Answered::No };
        client.session.results.waits_no_more();
        let store = &self.step.engine.core_state.shared.protocol.results;
        let (rule, parses) = (wanted.plan.rule.clone(), wanted.unnamed.is_some());
        let statements = wanted.form.statements();
        let request = Request { rule, parses, statements, scan: wanted.scan };
        client.session.results.begin(store, fill, request);
        Answered::No
    }

    /// Has a job fetch the reply to a client's request. Gives the fill back if that is not
    /// possible.
    #[cold]
    fn fetch_again(
        &mut self,
        conn: Conn,
        wanted: &Wanted<'_>,
        fill: Box<Fill>,
    ) -> Result<(), Box<Fill>> {
        let core_state = &mut self.step.engine.core_state;
        let Some(client) = self.step.engine.connections.client(conn) else { return Err(fill) };
        let id = client.pool();
        if core_state.leaves(id, self.step.now) {
            return Err(fill);
        }
        let sent = refresh::sent(client, wanted.form).filter(Sent::is_short);
        let store = core_state.shared.protocol.results.clone();
        let pool = core_state.pool_in_use(id);
        let Some(sent) = sent.filter(|_| pool.protocol.refreshes.have_room()) else {
            return Err(fill);
        };
        let (rule, settings) = (&wanted.plan.rule, &client.session.settings);
        let filling = Filling::new(&store, fill, rule, (1, wanted.unnamed.is_some()));
        let (settings, defaults) = (settings.expected(), settings.defaults());
        let refresh = Refresh::new(filling, rule, sent, settings, defaults);
        pool.protocol.refreshes.push(Box::new(refresh));
        self.queue_what_is_due(id);
        Ok(())
    }

    /// Counts a request that the cache has nothing to do with.
    #[cold]
    fn count_bypass(&mut self, conn: Conn, bypass: Bypass) {
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        let counters =
            &mut self.step.engine.core_state.pool_in_use(client.pool()).counters.protocol;
        match bypass {
            Bypass::Form => counters.cache_bypass_form += 1,
            Bypass::Session => counters.cache_bypass_session += 1,
            Bypass::Rule => counters.cache_bypass_rule += 1,
            Bypass::Unknown => counters.cache_bypass_unknown += 1,
            Bypass::Statement => counters.cache_bypass_statement += 1,
            Bypass::Moment => counters.cache_bypass_moment += 1,
            Bypass::Unwanted => counters.cache_bypass_unwanted += 1,
        }
    }

    /// Keeps what a client has got of a reply that is to be kept: all of its output behind `from`.
    #[cold]
    pub(crate) fn keep_reply(&mut self, conn: Conn, from: usize, ready: bool) {
        let now = self.step.now;
        let Some(client) = self.step.engine.connections.client(conn) else { return };
        if ready && let Some(watched) = client.session.results.take_watched() {
            let pool = self.step.engine.core_state.pool_in_use(client.pool());
            return pool.protocol.repeats.add(watched, now);
        }
        let out = self.step.ports.out(conn);
        let unnamed = client.session.statements.unnamed().map(|own| own.columns);
        let bytes = out.get(from..).unwrap_or_default();
        let outcome = client.session.results.sent(bytes, ready, unnamed, now);
        let pool = self.step.engine.core_state.pool_in_use(client.pool());
        let waiters = refresh::count(pool, outcome);
        self.wake_for_reply(waiters);
    }

    /// Does what the cache has to do at a tick.
    pub(crate) fn tick_results(&mut self) {
        let core_state = &self.step.engine.core_state;
        let stranded = core_state.shared.protocol.results.tick(self.step.now, core_state.core().0);
        self.wake_for_reply(stranded);
        self.end_long_waits();
    }

    /// Has clients go to a server that have waited for too long for a reply that another fetches.
    fn end_long_waits(&mut self) {
        let (now, engine) = (self.step.now, &mut *self.step.engine);
        let (waiting, connections) =
            (&mut engine.core_state.protocol.awaiting_fetch, &mut engine.connections);
        let mut due = Vec::new();
        waiting.retain(|(waiter, until)| {
            let client = connections.client(refresh::conn_of(waiter));
            let waits = client.is_some_and(|client| {
                client.serial().0 == waiter.request && client.waiting_for() == WaitingFor::Fetch
            });
            if waits && *until <= now {
                due.push(*waiter);
            }
            waits && *until > now
        });
        self.wake_for_reply(due);
    }
}

/// Counts the outcome of a look for a pool and for the rule.
#[inline]
fn count(found: &Found, rule: &Rule, pool: &mut StatementCounters) {
    rule.count(|rule| match found {
        Found::Hit(Hit { took, stale, .. }) | Found::Stale(Hit { took, stale, .. }, _) => {
            pool.cache_hits += 1;
            pool.cache_stale_hits += u64::from(*stale);
            pool.cache_saved_us += took;
            rule.hits += 1;
            rule.stale_hits += u64::from(*stale);
            rule.saved_us += took;
        }
        Found::Wait | Found::Fetch(_) => {
            pool.cache_waits += 1;
            rule.waits += 1;
        }
        Found::Miss(_) | Found::Alone => {
            pool.cache_misses += 1;
            rule.misses += 1;
        }
    });
}

/// Returns a client as one that waits.
fn waiter(core: Core, client: &Client) -> Waiter {
    Waiter { core: core.0, client: u64::from(client.conn().0), request: client.serial().0 }
}

/// Returns the earliest request of whose reply a client may get.
fn since(plan: &Plan, client: &Client) -> u64 {
    if plan.rule.own_writes { client.session.results.wrote() } else { 0 }
}

/// Writes the replies to the first Parse and Bind. Those to later ones are part of the reply.
#[inline]
fn write_heads(out: &mut Vec<u8>, form: Form<'_>) {
    let parses = match form {
        Form::Query(_) => return,
        Form::Extended { parse, .. } => parse.is_some(),
        Form::Several(several) => several.parses_first,
    };
    if parses {
        write::bare(out, back::PARSE_COMPLETE);
    }
    write::bare(out, back::BIND_COMPLETE);
}

/// Changes a client's unnamed statement as the server would have.
#[inline]
fn hit(client: &mut Client, wanted: Wanted<'_>, out: &mut Vec<u8>) {
    match (wanted.form, wanted.unnamed) {
        // PostgreSQL drops the unnamed statement at any query string (E17).
        (Form::Query(_), _) => client.session.statements.drop_unnamed(),
        (_, Some(cached)) => {
            let generation = cached.statement.generation();
            // The columns stand behind the reply of a request with a Parse.
            let columns = Shape::take(out).map(Columns::Known).unwrap_or_default();
            let statement = ClientStatement::new(ClientRef::new(cached), generation, columns);
            client.session.statements.set_unnamed(statement);
        }
        (_, None) => {}
    }
}

/// Finds how the reply to a request is kept, and writes its key.
#[inline]
fn wanted<'a>(
    core_state: &mut CoreState,
    client: &mut Client,
    form: Form<'a>,
    key: &mut Vec<u8>,
) -> Result<Wanted<'a>, Bypass> {
    let pool = core_state.pool_in_use(client.pool());
    let schema_changes = pool.shared.protocol.schema_changes();
    with_results(core_state, client, |results, core_state, client| match form {
        Form::Query(text) => {
            of_query(results, core_state, client, (text, form), schema_changes, key)
        }
        Form::Extended { .. } => {
            of_statement(results, core_state, client, form, schema_changes, key)
        }
        Form::Several(several) => {
            of_several(results, core_state, client, several, schema_changes, key)
        }
    })
}

/// Returns the scope of a client's settings, unless they say that it wants nothing of the cache.
#[inline]
fn scope(results: &PoolResults, client: &mut Client) -> Result<Scope, Bypass> {
    let session = &mut client.session;
    let (settings, defaults) = (session.settings.expected(), &session.settings.defaults().settings);
    let scope = session.results.scope(results.store(), results.place(), settings, defaults);
    if scope.wish == Wish::Nothing { Err(Bypass::Unwanted) } else { Ok(scope) }
}

/// Returns what decides how the reply to a client's request is kept, its text aside.
#[inline]
fn about(client: &Client, scope: Scope, schema_changes: u64) -> About<'_> {
    let settings = client.session.settings.expected();
    let name = settings.get(b"application_name").unwrap_or_default();
    About { schema_changes, text: None, application: (name, scope.application) }
}

/// Writes the beginning of a key: whose reply it is, under which settings, and to which statement.
#[inline]
fn begin_key(scope: Scope, plan: &Plan, kind: u8, key: &mut Vec<u8>) {
    for number in [scope.number, plan.rule.whose, plan.number] {
        key.extend_from_slice(&number.to_le_bytes());
    }
    key.push(kind);
}

/// Finds the plan for a query string.
#[inline]
fn of_query<'a>(
    results: &mut PoolResults,
    core_state: &mut CoreState,
    client: &mut Client,
    (text, form): (&[u8], Form<'a>),
    schema_changes: u64,
    key: &mut Vec<u8>,
) -> Result<Wanted<'a>, Bypass> {
    let hint = if results.takes_hints() { hint::hint_of(text) } else { None };
    if hint.is_none() && results.needs_hint() {
        return Err(Bypass::Rule);
    }
    let uncommented = without_comments(text, false);
    let text = &*uncommented;
    let mut spans = std::mem::take(&mut core_state.protocol.spans);
    let seed = core_state.shared.protocol.registry.seed();
    let env = client.session.settings.env();
    let literals = normalize::normalize(text, seed, LITERALS_MAX, &mut spans);
    let planned = literals.map_err(|_| Bypass::Statement).and_then(|hash| {
        let seen = Seen { text, spans: &spans, key: hash, env };
        let known = text_statement(results, core_state, client, seen)?;
        let scope = scope(results, client)?;
        let text_of = Some((known.number, hint));
        let about = About { text: text_of, ..about(client, scope, schema_changes) };
        let plan = results.plan(&known.cached, about)?;
        begin_key(scope, &plan, SIMPLE, key);
        for span in &spans {
            let literal = span.of(text);
            if span.names_moment(text) {
                return Err(Bypass::Moment);
            }
            key.extend_from_slice(&(literal.len() as u32).to_le_bytes());
            key.extend_from_slice(literal);
        }
        let scan = Some(known.cached.statement.scan);
        let (anew, tells_age) = (scope.wish == Wish::NewReplies, scope.tells_age);
        Ok(Wanted { plan, form, unnamed: None, scan, anew, tells_age })
    });
    core_state.protocol.spans = spans;
    planned
}

/// Finds the plan for a statement that is bound to values.
#[inline]
fn of_statement<'a>(
    results: &mut PoolResults,
    core_state: &mut CoreState,
    client: &mut Client,
    form: Form<'a>,
    schema_changes: u64,
    key: &mut Vec<u8>,
) -> Result<Wanted<'a>, Bypass> {
    let Form::Extended { parse, name, values, describes } = form else { return Err(Bypass::Form) };
    let (cached, known) = match parse {
        Some(tail) => {
            let (pool, env) = (client.pool(), client.session.settings.env());
            let identity = Identity { pool, env, tail };
            let registry = &core_state.shared.protocol.registry;
            let found = core_state.protocol.statements.find(registry, identity);
            (found.ok_or(Bypass::Unknown)?, None)
        }
        None => {
            let own = client.session.statements.get(name).ok_or(Bypass::Statement)?;
            let known = match own.columns {
                Columns::Known(Shape { types, whole }) => [types, whole, own.parameters],
                Columns::Fixed => [0, 0, own.parameters],
                Columns::Of { .. } => return Err(Bypass::Unknown),
            };
            (own.held.cached().clone(), Some(known))
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
    let plan = results.plan(&cached, about(client, scope, schema_changes))?;
    if binds_moment(values, plan.suspects) {
        return Err(Bypass::Moment);
    }
    let kind = if parse.is_some() { PARSED } else { BOUND };
    let kind = if describes { kind | DESCRIBED } else { kind };
    let (anew, tells_age) = (scope.wish == Wish::NewReplies, scope.tells_age);
    begin_key(scope, &plan, kind, key);
    // What the client knows of its statement, which the server compares with what it finds.
    for number in known.into_iter().flatten() {
        key.extend_from_slice(&number.to_le_bytes());
    }
    key.extend_from_slice(values);
    Ok(Wanted { plan, form, unnamed: parse.map(|_| cached), scan: None, anew, tells_age })
}

/// Finds the plan for several statements under one Sync, to all of which one rule applies. Their
/// replies are kept as one.
#[cold]
fn of_several<'a>(
    results: &mut PoolResults,
    core_state: &mut CoreState,
    client: &mut Client,
    several: Several<'a>,
    schema_changes: u64,
    key: &mut Vec<u8>,
) -> Result<Wanted<'a>, Bypass> {
    key.extend_from_slice(&SEVERAL.to_le_bytes());
    let (mut first, mut plans): (Option<Wanted<'a>>, Vec<Rc<Plan>>) = (None, Vec::new());
    for part in several.parts() {
        let begins = key.len();
        key.extend_from_slice(&[0; size_of::<u64>()]);
        let wanted = of_statement(results, core_state, client, part, schema_changes, key)?;
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
