//! Answers from the cache, for a client that has no server.
//!
//! A segment is answered here only if all of it can be: it reads what a rule is for, and nothing of
//! the client's session is a server's alone. Otherwise the whole segment goes to a server, and if
//! its reply is to be kept, the generations of what the reply depends on are noted here, before
//! anything is sent.

use refrain_cache::{Asker, Fill, Found, Hit, Terms, Waiter};
use refrain_config::PoolMode;
use refrain_pg_wire::back::Status;
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_pool::Now;
use refrain_pool::client::WaitingFor;
use refrain_pool::ids::PoolId;
use refrain_pool::stats::Counters;

use crate::engine::Asking;
use crate::ground::stats::StatementCounters;
use crate::results::filling::Filling;
use crate::results::of_client::KeptRequest;
use crate::results::of_pool::{Bypass, Plan};
use crate::results::refresh::{Refresh, Sent};
use crate::results::rule::{Promise, Rule};
use crate::results::segment::{Form, Segment};
use crate::settings::session::AGE_REPORT;
use crate::state::parts::{Client, CoreState, Engine, conn_of, waiter};
use crate::statements::columns::{Columns, Shape};
use crate::statements::of_client::{ClientRef, ClientStatement};
use crate::step::refresh;
use crate::step::repeats::watch;
use crate::step::wanted::{Wanted, wanted};

/// Whether a segment was answered from the cache.
pub(crate) enum Answered {
    /// It was: this number of bytes has been handled.
    Now(usize),
    /// It will be: another client fetches the reply.
    Later,
    /// It goes to a server.
    No,
}

/// Work that is left behind a request.
pub(crate) enum Left {
    Nothing,
    /// A job is to fetch a reply for this pool.
    Fetch(PoolId),
    /// Clients waited for a reply that nobody fetches.
    Wake(Vec<Waiter>),
    /// Another login to a server of this pool is to be tried.
    TryLogin(PoolId),
}

/// Whether there are rules of the cache for a client's pool, or its requests are looked at to see
/// what rules would save, or because reads run on standbys.
#[inline]
pub(crate) fn looks_at_requests(client: &Client, core_state: &mut CoreState) -> bool {
    let pool = core_state.pool_in_use(client.pool());
    pool.settings.looks || pool.protocol.repeats.looks()
}

impl Asking<'_> {
    /// Answers the first segment of the client's input from the cache, if that is possible. Returns
    /// the work that is left as well.
    #[inline]
    pub(crate) fn answer_by_rule(&mut self, input: &[u8]) -> (Answered, Left) {
        let left = match self.answer(input) {
            Ok((Answered::No, left)) => left,
            Ok(answered) => return answered,
            Err(bypass) => self.count_bypass(bypass),
        };
        watch(self.now, self.core_state, self.client, input);
        (Answered::No, left)
    }

    /// Answers the first segment of the client's input, if that is possible.
    #[inline]
    fn answer(&mut self, input: &[u8]) -> Result<(Answered, Left), Bypass> {
        // The request is read once more, since its first server has gone.
        if self.client.session.results.is_awaited() {
            return Ok((Answered::No, Left::Nothing));
        }
        let segment = Segment::read(input).filter(|_| self.client.inbox.rest == 0);
        let segment = segment.ok_or(Bypass::Form)?;
        let pool = self.core_state.pool_in_use(self.client.pool());
        if !pool.settings.cache.keeps() {
            return Ok((Answered::No, Left::Nothing));
        }
        let session = pool.settings.options.pool_mode;
        if !self.client.session.may_share() || session == PoolMode::Session {
            return Err(Bypass::Session);
        }
        let mut key = std::mem::take(&mut self.core_state.protocol.result_key);
        key.clear();
        let answered = self.answer_segment(&segment, &mut key);
        self.core_state.protocol.result_key = key;
        answered
    }

    /// Answers a segment from the cache, if it can. `key` is an empty buffer.
    #[inline]
    fn answer_segment(
        &mut self,
        segment: &Segment<'_>,
        key: &mut Vec<u8>,
    ) -> Result<(Answered, Left), Bypass> {
        let (now, client) = (self.now, &mut *self.client);
        let wanted = wanted(self.core_state, client, segment.form, key)?;
        // A reply that another has asked for before is not new.
        let waited = client.session.results.waited(now);
        let until = client.session.results.may_wait(now).filter(|_| !wanted.anew);
        let own_waiter = waiter(self.core_state.core(), client);
        let asker = until.map_or(Asker::Alone, |_| Asker::Waits(own_waiter));
        let out = self.ports.out(client.conn());
        let before = out.len();
        let since = if wanted.anew { now.0 + 1 } else { 0 };
        let mut terms = Terms { since, waited, ..wanted.plan.rule.terms };
        if wanted.plan.rule.promise != Promise::Nothing {
            let kept = keep_promise(self.core_state, client, &wanted.plan, now, &mut terms);
            kept.inspect_err(|_| client.session.results.waits_no_more())?;
        }
        write_heads(out, wanted.form);
        let store = &self.core_state.shared.protocol.results;
        let found = store.cache.look(key, &wanted.plan.topics, &terms, now.0, asker, out);
        if !matches!(found, Found::Hit(_) | Found::Stale(..)) {
            out.truncate(before);
        }
        let counters = &mut self.core_state.pool_in_use(client.pool()).counters;
        count(&found, &wanted.plan.rule, counters);
        Ok(match found {
            Found::Hit(had) => {
                give(client, wanted, had, now, out);
                (Answered::Now(segment.bytes), Left::Nothing)
            }
            Found::Miss(fill) => (self.fetch(wanted, fill), Left::Nothing),
            Found::Wait => (self.await_reply(), Left::Nothing),
            Found::Alone => {
                client.session.results.waits_no_more();
                (Answered::No, Left::Nothing)
            }
            Found::Stale(had, fill) => {
                let left = self.fetch_again(&wanted, fill).unwrap_or_else(|fill| {
                    let store = &self.core_state.shared.protocol.results;
                    Left::Wake(store.cache.abandon(&fill))
                });
                give(self.client, wanted, had, now, self.ports.out(self.client.conn()));
                (Answered::Now(segment.bytes), left)
            }
            Found::Fetch(fill) => match self.fetch_again(&wanted, fill) {
                Ok(left) => (self.await_reply(), left),
                Err(fill) => (self.fetch(wanted, fill), Left::Nothing),
            },
        })
    }

    /// Has the client wait for a reply that is being fetched.
    fn await_reply(&mut self) -> Answered {
        let until = self.client.session.results.may_wait(self.now).unwrap_or(self.now);
        let own_waiter = waiter(self.core_state.core(), self.client);
        self.core_state.protocol.awaiting_fetch.push((own_waiter, until));
        self.client.await_fetch();
        Answered::Later
    }

    /// Has the reply to the client's request kept, which goes to a server.
    fn fetch(&mut self, wanted: Wanted<'_>, fill: Box<Fill>) -> Answered {
        let results = &mut self.client.session.results;
        results.waits_no_more();
        let store = &self.core_state.shared.protocol.results;
        let (rule, parses) = (wanted.plan.rule.clone(), wanted.unnamed.is_some());
        let statements = wanted.form.statements();
        let scan = wanted.text.as_ref().map(|text| text.statement.scan);
        let request = KeptRequest { rule, parses, statements, text: wanted.text, scan };
        results.begin(store, fill, request);
        Answered::No
    }

    /// Has a job fetch the reply to the client's request. Gives the fill back if that is not
    /// possible.
    #[cold]
    fn fetch_again(&mut self, wanted: &Wanted<'_>, fill: Box<Fill>) -> Result<Left, Box<Fill>> {
        let id = self.client.pool();
        if self.core_state.leaves(id, self.now) {
            return Err(fill);
        }
        let sent = refresh::sent(self.client, wanted.form).filter(Sent::is_short);
        let store = self.core_state.shared.protocol.results.clone();
        let pool = self.core_state.pool_in_use(id);
        let Some(sent) = sent.filter(|_| pool.protocol.refreshes.have_room()) else {
            return Err(fill);
        };
        let (rule, settings) = (&wanted.plan.rule, &self.client.session.settings);
        let filling = Filling::new(&store, fill, rule, (1, wanted.unnamed.is_some()));
        let (settings, defaults) = (settings.expected(), settings.defaults());
        let refresh = Refresh::new(filling, rule, sent, settings, defaults);
        pool.protocol.refreshes.push(Box::new(refresh));
        Ok(Left::Fetch(id))
    }
}

impl Asking<'_> {
    /// Counts a request that the cache has nothing to do with. If its client's login is to be
    /// confirmed, sees to it for the next one.
    #[cold]
    fn count_bypass(&mut self, bypass: Bypass) -> Left {
        let counters = &mut self.core_state.pool_in_use(self.client.pool()).counters.protocol;
        match bypass {
            Bypass::Form => counters.cache_bypass_form += 1,
            Bypass::Session => counters.cache_bypass_session += 1,
            Bypass::Rule => counters.cache_bypass_rule += 1,
            Bypass::Unknown => counters.cache_bypass_unknown += 1,
            Bypass::Statement => counters.cache_bypass_statement += 1,
            Bypass::Moment => counters.cache_bypass_moment += 1,
            Bypass::Unwanted => counters.cache_bypass_unwanted += 1,
            Bypass::Unproven => counters.cache_bypass_unproven += 1,
            Bypass::Uncovered => counters.cache_bypass_uncovered += 1,
            Bypass::Login => {
                counters.cache_bypass_login += 1;
                return self.confirm_login();
            }
        }
        Left::Nothing
    }

    /// Notes that a server has confirmed a client's login. If none has, another login is to be
    /// tried there.
    fn confirm_login(&mut self) -> Left {
        let Some(granted) = self.client.session.login.unconfirmed() else { return Left::Nothing };
        let id = self.client.pool();
        let shared = &self.core_state.pool_in_use(id).shared.protocol;
        if shared.confirmed.confirms(granted, &shared.database().roles) {
            self.client.session.login.confirm();
        } else if shared.confirmed.is_to_be_tried(self.now) {
            return Left::TryLogin(id);
        }
        Left::Nothing
    }

    /// Keeps what a client has got of a reply that is to be kept: all of its output behind `from`.
    /// Returns the clients that wait for the reply. Of a standby's reply, notes what the client has
    /// got.
    #[cold]
    pub(crate) fn keep_reply(&mut self, from: usize, ready: bool) -> Vec<Waiter> {
        let (now, client) = (self.now, &mut *self.client);
        let (queued, is_over) =
            (self.ports.out(client.conn()).len(), client.session.read.is_none());
        if client.session.results.end_bytes(queued, is_over) {
            return Vec::new();
        }
        if ready && let Some(watched) = client.session.results.take_watched() {
            let pool = self.core_state.pool_in_use(client.pool());
            pool.protocol.repeats.add(watched, now);
            return Vec::new();
        }
        let out = self.ports.out(client.conn());
        let unnamed = client.session.statements.unnamed().map(|own| own.columns);
        let bytes = out.get(from..).unwrap_or_default();
        let outcome = client.session.results.sent(bytes, ready, unnamed, now);
        refresh::count(self.core_state.pool_in_use(client.pool()), outcome)
    }
}

/// Returns the clients that have waited for too long for a reply that another fetches: they go to a
/// server.
pub(crate) fn end_long_waits(engine: &mut Engine, now: Now) -> Vec<Waiter> {
    let (waiting, connections) =
        (&mut engine.core_state.protocol.awaiting_fetch, &mut engine.connections);
    let mut due = Vec::new();
    waiting.retain(|(waiter, until)| {
        let client = connections.client(conn_of(waiter));
        let waits = client.is_some_and(|client| {
            client.serial().0 == waiter.request && client.waiting_for() == WaitingFor::Fetch
        });
        if waits && *until <= now {
            due.push(*waiter);
        }
        waits && *until > now
    });
    due
}

/// Counts the outcome of a look for a pool and for the rule.
#[inline]
fn count(found: &Found, rule: &Rule, counters: &mut Counters<StatementCounters>) {
    let pool = &mut counters.protocol;
    rule.count(|rule| match found {
        Found::Hit(Hit { took, stale, .. }) | Found::Stale(Hit { took, stale, .. }, _) => {
            counters.pool.queries += 1;
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

/// Changes the terms of a request to what its rule promises beside its topics.
///
/// # Errors
/// Why no reply of the rule may be given.
fn keep_promise(
    core_state: &mut CoreState,
    client: &mut Client,
    plan: &Plan,
    now: Now,
    terms: &mut Terms,
) -> Result<(), Bypass> {
    match plan.rule.promise {
        Promise::Nothing => Ok(()),
        Promise::OwnWrites => {
            terms.since = terms.since.max(client.session.results.wrote());
            Ok(())
        }
        Promise::Commits { .. } => {
            let results = &mut core_state.pool_in_use(client.pool()).protocol.results;
            results.as_mut().map_or(Ok(()), |results| results.look_at_changes(plan, now, terms))
        }
    }
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

/// Completes a reply that stands in a client's output but for its end.
#[inline]
fn give(client: &mut Client, wanted: Wanted<'_>, had: Hit, now: Now, out: &mut Vec<u8>) {
    wanted.plan.rule.count_hit(client.session.results.waited(now));
    client.session.results.waits_no_more();
    let tells_age = wanted.tells_age;
    hit(client, wanted, out);
    if tells_age {
        let milliseconds = had.age.div_ceil(1000).to_string();
        write::parameter_status(out, AGE_REPORT, milliseconds.as_bytes());
    }
    write::ready(out, Status::Idle);
    client.note_reply(now);
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
