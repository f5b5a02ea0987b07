//! Simple queries as prepared statements: from the client to the server; and the advice about any
//! text.
//!
//! A text whose normalized query is prepared is sent as Bind, Describe, Execute and Sync. The
//! client gets the replies of a query string: BindComplete and NoData are skipped. The client's
//! next message waits for these replies, since the text itself may have to be run after all: see
//! [`crate::relay::run`].
//!
//! Autoprepare takes a text if nothing is outstanding before it, the transaction has not failed,
//! the settings under which the server reads it are known, and it leaves nothing behind in the
//! session.
//!
//! This module prepares nothing. A text runs prepared if the server has its statement. Any other
//! text runs as it was sent, and Refrain notes the statement that the server lacked, for a job: see
//! [`crate::step::jobs`].

use refrain_pool::Conn;
use std::rc::Rc;

use refrain_pg_wire::back::Status;
use refrain_pg_wire::tag::front;
use refrain_pg_wire::write;
use refrain_sql::normalize::{self, Plan, Span};
use refrain_sql::{Kind, Scan, Traits};

use crate::normalized::queries::{Advice, Sight};
use crate::normalized::query::{Bounds, QueryPlace};
use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind};
use crate::relay::learn::read_settings;
use crate::relay::link::Stop;
use crate::relay::look::is_suspect;
use crate::relay::message::Message;
use crate::relay::pipe::Pipeline;
use crate::state::client::ClientSession;
use crate::state::client::pins::Pins;
use crate::state::client::settings::ClientSettings;
use crate::state::client::statements::ClientStatements;
use crate::state::options::{autoprepares, bounds};
use crate::state::parts::Action;
use crate::state::requests::{Case, Request};
use crate::state::server::ServerSession;
use crate::statements::of_core::CachedStatement;

/// Effects on the session that do not keep a text from being prepared.
const HARMLESS: Traits = Traits::SEQUENCE_STATE;

/// Runs a simple query as a prepared statement, if that is known to be right; `None` for any other.
#[inline]
pub(crate) fn autoprepare(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    message: &Message<'_>,
    text: &[u8],
    scan: &Scan,
) -> Result<Option<usize>, Stop> {
    if !session.statements.are_managed() || !autoprepares(pipe.pool()) {
        return Ok(None);
    }
    look_at(conn, pipe, session, message, text, scan)
}

fn look_at(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    message: &Message<'_>,
    text: &[u8],
    scan: &Scan,
) -> Result<Option<usize>, Stop> {
    if !stands_alone(pipe, message) || !is_plain(scan) || !is_read_plainly(pipe, &session.settings)
    {
        return Ok(None);
    }
    // Startup settings that the text resets out of sight are restored behind a query string.
    if session.settings.have_startup() && is_suspect(pipe, session, scan) {
        return Ok(None);
    }
    let mut spans = std::mem::take(&mut pipe.core_state.protocol.spans);
    let most = pipe.pool().settings.options.autoprepare_max_literals as usize;
    let key = normalize::normalize(
        text,
        pipe.core_state.shared.protocol.registry.seed(),
        most,
        &mut spans,
    );
    let runs = match key {
        Ok(key) => {
            let seen = SeenText { text, spans: &spans, key, tail: None, values: text };
            advised(conn, pipe, session, &seen, scan.traits)
        }
        Err(_) => Ok(false),
    };
    pipe.core_state.protocol.spans = spans;
    Ok(runs?.then_some(message.bytes.len()))
}

/// Whether a message has arrived in full, no request of the client is outstanding before it, and
/// the transaction has not failed. If the server has requests behind that of its holder, they are
/// those of other clients: the client has just joined them.
pub(crate) fn stands_alone(pipe: &Pipeline<'_>, message: &Message<'_>) -> bool {
    let outstanding = &pipe.server.session.outstanding;
    message.complete
        && (pipe.server.requests_behind() > 0 || outstanding.owes_client_nothing())
        && !outstanding.is_open()
        && outstanding.status() != Status::Failed
        && pipe.server.session.last().run.under_way().is_none()
        && pipe.server.session.last().unnamed.under_way().is_none()
}

/// Whether each byte of a text means what it looks like, and the text means the same as outside its
/// transaction: no settings end with the transaction, and no transaction under way may change the
/// schema.
pub(crate) fn is_read_plainly(pipe: &mut Pipeline<'_>, settings: &ClientSettings) -> bool {
    let plain = settings.current().reads.is_plain(pipe.server.session.settings.encoding());
    if !plain || settings.have_changed_locally() {
        return false;
    }
    let free = pipe.server.session.outstanding.status() == Status::Idle;
    free || !settings.are_queried() && !pipe.pool().shared.protocol.is_being_defined()
}

/// Handles a text as its normalized query advises. True if a statement runs in its place.
fn advised(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    seen: &SeenText<'_>,
    traits: Traits,
) -> Result<bool, Stop> {
    if !knows_settings(pipe, session)? {
        return Ok(false);
    }
    match advice(conn, pipe, session, seen)? {
        Advice::Watch(place) => {
            watch(&mut pipe.server.session, place);
            Ok(false)
        }
        Advice::Run(place, plan, cached) => {
            let run = PreparedRun { place, plan: &plan, cached: &cached };
            run_prepared(pipe, session, &run, seen.text, seen.spans, traits)
        }
        _ => Ok(false),
    }
}

/// Asks for advice about a text, and follows it as far as it does not say how the text runs: to
/// have the text analysed, or to wait.
pub(crate) fn advice(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    seen: &SeenText<'_>,
) -> Result<Advice, Stop> {
    // A role or a path of the moment decides what names mean.
    if session.settings.beside().is_some() {
        return Ok(Advice::Pass);
    }
    let SeenText { text, spans, key, tail, values } = *seen;
    let free = pipe.server.session.outstanding.status() == Status::Idle;
    let (own, now) = (is_like_any(session), pipe.now);
    let pool = pipe.core_state.pool_in_use(pipe.server.pool());
    let settings = session.settings.current();
    let bounds = bounds(pool);
    let schema_version = pool.shared.protocol.schema_changes();
    let sight = Sight { text, spans, key, tail, values, settings, schema_version, now, free, own };
    match pool.protocol.normalized_queries.look(&sight, &bounds) {
        Advice::Wait => Err(wait_for_news(conn, pipe)),
        Advice::Analyse => {
            let pool = pipe.server.pool();
            let case = Case { pool, key, text: text.into(), spans: spans.into() };
            pipe.ports.act(Action::Ask(Request::Analyse(Box::new(case))));
            if bounds.is_eager() { Err(wait_for_news(conn, pipe)) } else { Ok(Advice::Pass) }
        }
        Advice::Due if may_wait_for_job(pipe, session, &bounds) => Err(wait_for_job(pipe)),
        advice => Ok(advice),
    }
}

/// Whether the settings under which the server reads a text are known. If not, and outside of
/// transactions, asks for them.
fn knows_settings(pipe: &mut Pipeline<'_>, session: &ClientSession) -> Result<bool, Stop> {
    let Some(since) = session.settings.unknown_since() else { return Ok(true) };
    let idle = pipe.server.session.outstanding.status() == Status::Idle;
    if !idle || session.pins.has(Pins::SETTINGS) {
        return Ok(false);
    }
    // What a text calls is noted behind the Sync of the statement that ran in its place: in a
    // segment of which nothing was sent.
    let outstanding = &pipe.server.session.outstanding;
    debug_assert!(outstanding.is_over(since.segment) || outstanding.is_empty(), "nothing is owed");
    read_settings(pipe, &session.settings);
    Err(Stop::Replies)
}

/// Whether the client's texts mean what they mean to any other with its settings. What a session
/// has of its own, a temporary table for one, says nothing of another client's text.
fn is_like_any(session: &ClientSession) -> bool {
    session.settings.are_known() && !session.suspicion.is_due() && session.pins.is_empty()
}

/// Makes the client wait for news of a normalized query.
fn wait_for_news(conn: Conn, pipe: &mut Pipeline<'_>) -> Stop {
    // A tick reads the client again if no news comes.
    pipe.core_state.pool(pipe.server.pool()).protocol.wait_for_news(conn);
    Stop::Replies
}

/// Whether the client is to wait until a job is done, and may: outside of any transaction.
fn may_wait_for_job(pipe: &mut Pipeline<'_>, session: &ClientSession, bounds: &Bounds) -> bool {
    let now = pipe.now;
    bounds.is_eager()
        && pipe.server.session.outstanding.status() == Status::Idle
        && is_like_any(session)
        && !pipe.pool().protocol.normalized_queries.rests(now)
}

/// Makes the client wait for a job, which its own server does once nothing is outstanding.
fn wait_for_job(pipe: &Pipeline<'_>) -> Stop {
    if pipe.server.session.outstanding.quiescent().is_some() { Stop::Job } else { Stop::Replies }
}

/// Notes a text that runs by the simple protocol, to measure its time.
fn watch(server: &mut ServerSession, place: QueryPlace) {
    server.last_mut().run.watch(place);
}

/// Runs a statement in place of a text. False if the server lacks the statement, or a value cannot
/// be read.
fn run_prepared(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    run: &PreparedRun<'_>,
    text: &[u8],
    spans: &[Span],
    traits: Traits,
) -> Result<bool, Stop> {
    let alone = pipe.server.session.outstanding.status() == Status::Idle;
    let statement = &run.cached.statement;
    if pipe.server.session.has(statement).is_none() {
        lacks(pipe, session, run.place, run.cached)?;
        watch(&mut pipe.server.session, run.place.without_choice());
        return Ok(false);
    }
    let mut values = std::mem::take(&mut pipe.core_state.protocol.scratch);
    values.clear();
    let utf8 = session.settings.current().reads.encoding.is_utf8();
    let bindable = write_values(run.plan, text, spans, utf8, &mut values);
    if bindable {
        pipe.count_hit();
        send_run(pipe, &mut session.statements, run.cached, &values, alone, traits);
        let writes = !run.plan.mentions.writes.is_empty();
        let planned = pipe.server.session.statements.is_planned(statement.id);
        let place = if planned { run.place.on_new_server() } else { run.place };
        pipe.server.session.last_mut().run.begin(place, alone, writes, text);
    }
    pipe.core_state.protocol.scratch = values;
    Ok(bindable)
}

/// Notes a statement that the server lacks, to be prepared once no client holds the server, if it
/// is used often enough.
#[cold]
pub(crate) fn lacks(
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    place: QueryPlace,
    cached: &Rc<CachedStatement>,
) -> Result<(), Stop> {
    let statement = &cached.statement;
    let servers = statement.counts().1;
    let pool = pipe.pool();
    let bounds = bounds(pool);
    let worth = pool.protocol.normalized_queries.is_worth_a_server(place, servers, &bounds);
    if worth && is_like_any(session) {
        pipe.server.session.wishes.add(place, statement, &cached.settings);
        if may_wait_for_job(pipe, session, &bounds) {
            return Err(wait_for_job(pipe));
        }
    }
    pipe.count_miss();
    Ok(())
}

/// Sends the messages that run a statement.
fn send_run(
    pipe: &mut Pipeline<'_>,
    statements: &mut ClientStatements,
    cached: &Rc<CachedStatement>,
    values: &[u8],
    alone: bool,
    traits: Traits,
) {
    cached.count_use();
    let statement = &cached.statement;
    let generation = statement.generation();
    let out = pipe.ports.out(pipe.server.conn());
    write::message(out, front::BIND, |out| {
        out.push(0);
        statement.write_name(out, generation);
        out.push(0);
        out.extend_from_slice(values);
    });
    write::describe_portal(out, b"");
    write::execute(out, b"");
    if !alone {
        // An open portal would keep its tables open; a query string leaves no portal behind.
        write::close_portal(out, b"");
    }
    write::sync(out);
    let ours = ReplyAction::Skip(Purpose::Autoprepare);
    pipe.owe(OutstandingRequest::new(RequestKind::Bind, ours).about(statement.id));
    pipe.owe(
        OutstandingRequest::new(RequestKind::DescribePortal, ReplyAction::Rows).about(statement.id),
    );
    pipe.owe(
        OutstandingRequest::new(RequestKind::Execute, ReplyAction::Forward)
            .about(statement.id)
            .with(traits),
    );
    if !alone {
        pipe.owe(OutstandingRequest::new(RequestKind::Close, ours));
    }
    pipe.owe(OutstandingRequest::new(RequestKind::Sync, ReplyAction::Forward));
    // Any query string drops the unnamed statement. The server still has it: see `hide_unnamed`.
    statements.drop_unnamed_now(&pipe.server.session.outstanding);
    pipe.pool().counters.protocol.auto_hits += 1;
}

/// A text about which autoprepare is asked: see [`Sight`].
pub(crate) struct SeenText<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) spans: &'a [Span],
    pub(crate) key: normalize::Key,
    pub(crate) tail: Option<&'a [u8]>,
    pub(crate) values: &'a [u8],
}

/// A statement that is to be run in the place of a text.
struct PreparedRun<'a> {
    place: QueryPlace,
    plan: &'a Plan,
    cached: &'a Rc<CachedStatement>,
}

/// Whether a text is one command that may be prepared.
pub(crate) fn is_plain(scan: &Scan) -> bool {
    let known = matches!(
        scan.kind,
        Kind::Select | Kind::Insert | Kind::Update | Kind::Delete | Kind::With | Kind::Other
    );
    known && HARMLESS.contains(scan.traits)
}

/// Appends the part of a Bind behind the names: all values, and the results, are in text format.
/// False if a value could not be read.
fn write_values(plan: &Plan, text: &[u8], spans: &[Span], utf8: bool, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(&[0; 4]);
    let mut count = 0_u16;
    for bound in plan.bound(spans) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        if bound.value(text, utf8, out).is_err() {
            return false;
        }
        let length = u32::try_from(out.len() - start - 4).unwrap_or(u32::MAX);
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        count = count.wrapping_add(1);
    }
    out[2..4].copy_from_slice(&count.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    true
}
