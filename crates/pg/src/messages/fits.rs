//! Whether a server's copy of a statement is the one that the client prepared (E67).
//!
//! It is if it returns the same columns ([`crate::statements::columns`]). Refrain puts a Describe
//! behind the Parse of a copy, so mostly the columns are known when they are needed. If a server
//! lacks a statement that the client prepared before, the client waits until the columns of the new
//! copy are known: once for each statement and server, since a server keeps its statements. A
//! client does not wait if the server has the statement, nor behind its own Parse, nor where the
//! columns may be looked at behind the Bind ([`crate::messages::check`]).

use std::rc::Rc;

use refrain_pg_wire::front::{Bind, Target};
use refrain_pg_wire::tag::front;

use crate::messages::check::{Use, check_behind, may_check_behind};
use crate::messages::prepare::prepare_for;
use crate::messages::wait::{is_foreign, unnamed_is};
use crate::pipeline::outstanding::{OutstandingRequest, ReplyAction, RequestKind};
use crate::relay::copies::Called;
use crate::relay::described::differs;
use crate::relay::link::Stop;
use crate::relay::message::Message;
use crate::relay::pipe::Pipeline;
use crate::state::client::ClientSession;
use crate::state::client::settings::ClientSettings;
use crate::state::client::statements::ClientStatements;
use crate::statements::columns::{Agreement, Columns, Expected, Found};
use crate::statements::of_client::UNSEEN;
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::Statement;

/// Whether the server's copy of a statement fits the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The server has it, under this name.
    Has(Called),
    /// The server lacked it. It has got a Parse, under this name, and a Describe whose answer is
    /// looked at behind the Bind.
    Checked(Called),
    /// The server lacks it; a new copy will fit.
    Lacks,
    /// It returns other columns than the client's Parse found. This copy, if any, takes the same
    /// parameters.
    Stale(Option<Called>),
}

/// Returns whether the server has the statement that the client prepared under `name` (E67). If
/// that is not known, asks the server, and the client waits.
#[inline]
pub(crate) fn fit(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    name: &[u8],
    cached: &Rc<CachedStatement>,
    to: &Use<'_>,
) -> Result<Fit, Stop> {
    let copy = copy(pipe, session, name, cached, to);
    let Some(own) = session.statements.get(name) else { return Ok(Fit::Lacks) };
    if let Some((called, found)) = copy
        && found.columns == own.columns
        && (own.parameters == 0
            || found.parameters == own.parameters
            || found.parameters == 0 && own.generation == cached.statement.generation())
    {
        return Ok(Fit::Has(called));
    }
    fit_slowly(pipe, session, name, cached, copy, to)
}

/// Returns the server's copy of a statement, if it can be used.
#[inline]
fn copy(
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    name: &[u8],
    cached: &Rc<CachedStatement>,
    to: &Use<'_>,
) -> Option<(Called, Found)> {
    let statement = &cached.statement;
    if name.is_empty()
        && session.statements.unnamed_runs_named()
        && let Some(slot) = pipe.server.session.slot(statement)
    {
        return Some((Called::Named(slot.generation), slot.found));
    }
    if !name.is_empty() || is_foreign(&pipe.server.session.outstanding, &session.settings, cached) {
        if let Some(slot) = pipe.server.session.slot(statement) {
            return Some((Called::Named(slot.generation), slot.found));
        }
        if matches!(to, Use::Query) {
            return None;
        }
        // A Parse amid a segment counts as a command there: a portal before it that is not done
        // would be done. And Describe is no use: a statement that is only looked at is not worth a
        // name yet.
        let looks = matches!(to, Use::Describe);
        let goes_on =
            looks || pipe.server.session.outstanding.is_open() || !cached.is_worth_a_name();
        if !goes_on || pipe.server.session.statements.peek(statement.id).is_some() {
            return None;
        }
    }
    unnamed_is(&pipe.server.session, cached)
        .then_some((Called::Unnamed, pipe.server.session.statements.unnamed().found))
}

/// Does the work of [`fit`] if the columns are not known to be the same.
fn fit_slowly(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    name: &[u8],
    cached: &Rc<CachedStatement>,
    copy: Option<(Called, Found)>,
    to: &Use<'_>,
) -> Result<Fit, Stop> {
    let current = cached.statement.generation();
    let failed = pipe.server.session.outstanding.has_failed();
    if !failed && pipe.server.session.outstanding.is_in_doubt() {
        // A failed transaction would refuse a Describe by Refrain, with an error that the client's
        // own message would not get.
        return Err(Stop::Replies);
    }
    let Some(own) = session.statements.get(name) else { return Ok(Fit::Lacks) };
    let (columns, parameters, generation) = (own.columns, own.parameters, own.generation);
    let Some((called, found)) = copy else {
        // A failed transaction refuses the statement in any case. The columns that the client's own
        // Parse has just found will be found again: nothing has run since.
        let told = parameters != 0 && generation != current;
        let known = matches!(columns, Columns::Known(_)) || told;
        if failed || !known {
            return Ok(Fit::Lacks);
        }
        let expects = Expected { columns, parameters, generation, met: true };
        if name.is_empty() || !may_check_behind(pipe, session, cached, &expects, to) {
            return Err(await_copy(pipe, &session.settings, name, cached, to));
        }
        let called = prepare_for(pipe, &session.settings, name, cached);
        check_behind(pipe, called, cached, expects);
        return Ok(Fit::Checked(called));
    };
    // The parameters of a copy are unknown until it is described: the client's Parse may have named
    // all of them.
    let other = parameters != 0 && found.parameters != 0 && parameters != found.parameters;
    let blind = parameters != 0 && found.parameters == 0 && generation != current;
    match columns.compare(found.columns) {
        _ if failed => Ok(Fit::Has(called)),
        Agreement::Same if blind => Err(await_found(pipe, called, &cached.statement, found)),
        Agreement::Same if !other => {
            adopts(&mut session.statements, name, found);
            Ok(Fit::Has(called))
        }
        // The client has not prepared this copy: its own role or path has changed since. It may be
        // older than the schema, as which PostgreSQL would analyse the statement now.
        Agreement::Same | Agreement::Other if generation == UNSEEN && renew_older(pipe, cached) => {
            Err(await_copy(pipe, &session.settings, name, cached, to))
        }
        Agreement::Same | Agreement::Other => {
            differs(pipe, cached, generation);
            Ok(Fit::Stale((!other).then_some(called)))
        }
        Agreement::Unknown if matches!(columns, Columns::Of { .. }) => {
            // The columns that the client's Parse found were never shown to any client.
            adopts(&mut session.statements, name, found);
            Ok(Fit::Has(called))
        }
        Agreement::Unknown => Err(await_found(pipe, called, &cached.statement, found)),
    }
}

/// Records that the client uses this copy from now on.
fn adopts(statements: &mut ClientStatements, name: &[u8], found: Found) {
    let Some(own) = statements.get(name) else { return };
    own.generation = own.held.cached().statement.generation();
    let unseen = matches!(own.columns, Columns::Of { .. });
    if unseen {
        own.columns = found.columns;
    }
}

/// Begins a new generation of a statement, if the schema has changed since the last one began; true
/// if it has.
fn renew_older(pipe: &mut Pipeline<'_>, cached: &CachedStatement) -> bool {
    let schema_version = pipe.home().shared.protocol.schema_version();
    let statement = &cached.statement;
    statement.schema_version() < schema_version
        && statement.begin_generation(statement.generation(), schema_version)
}

/// Prepares a statement, asks for its columns, and makes the client wait for them.
fn await_copy(
    pipe: &mut Pipeline<'_>,
    settings: &ClientSettings,
    name: &[u8],
    cached: &Rc<CachedStatement>,
    to: &Use<'_>,
) -> Stop {
    let (id, current) = (cached.statement.id, cached.statement.generation());
    let outstanding = &pipe.server.session.outstanding;
    let statements = &pipe.server.session.statements;
    let unsettled = statements.peek(id).is_some_and(|slot| {
        slot.generation == current && !slot.doubtful && outstanding.is_unsettled(slot.segment)
    });
    let unnamed = statements.unnamed();
    let unnamed = unnamed.id == id
        && unnamed.generation == current
        && outstanding.is_unsettled(unnamed.segment);
    // If a segment that is not over has prepared the statement, the client waits for that.
    if unsettled || unnamed && name.is_empty() {
        return Stop::Replies;
    }
    let called = prepare_for(pipe, settings, name, cached);
    // If a Parse in a segment of its own fails, a Describe in the next one fails too. A query
    // string is answered without that segment, so the Describe waits for the Parse.
    let apart = !pipe.server.session.outstanding.is_open();
    if !(apart && matches!(to, Use::Query)) {
        pipe.ask_columns(called, &cached.statement);
    }
    Stop::Replies
}

/// Asks for the columns of the server's copy, and makes the client wait for them.
fn await_found(
    pipe: &mut Pipeline<'_>,
    called: Called,
    statement: &Statement,
    found: Found,
) -> Stop {
    if found.asked == 0 || !pipe.server.session.outstanding.owes(found.asked) {
        pipe.ask_columns(called, statement);
    }
    Stop::Replies
}

/// Asks for the columns behind a Parse of the client's, unless the client's next message asks for
/// them. A statement whose columns never change is asked about once, for
/// `describe_in_failed_transaction`.
pub(crate) fn ask_behind_parse(
    pipe: &mut Pipeline<'_>,
    called: Called,
    cached: &CachedStatement,
    name: &[u8],
    next: &[u8],
) {
    let statement = &cached.statement;
    let once = !name.is_empty() && !statement.names && !cached.is_described();
    if (statement.returns || once) && !tells(name, next) {
        pipe.ask_columns(called, statement);
    }
}

/// Asks for the columns of a copy that a client's Parse did not make: autoprepare asks for none.
pub(crate) fn ask_of_copy(pipe: &mut Pipeline<'_>, statement: &Statement) {
    let slot = pipe.server.session.statements.peek(statement.id);
    let unknown = |found: &Found| found.asked == 0 && found.columns.parse().is_some();
    if let Some(slot) = slot.filter(|slot| unknown(&slot.found)) {
        let called = Called::Named(slot.generation);
        pipe.ask_columns(called, statement);
    }
}

/// Adds the outstanding request of a Describe of a portal. If the portal was bound just before,
/// from the client's unnamed statement, the reply also tells the statement's columns.
pub(crate) fn describe_portal(pipe: &mut Pipeline<'_>, portal: &[u8]) {
    let entry = OutstandingRequest::new(RequestKind::DescribePortal, ReplyAction::Forward);
    let session = &pipe.server.session;
    let bound = session.outstanding.back().filter(|last| last.kind == RequestKind::Bind);
    let id = bound.map_or(0, |last| last.statement);
    let unasked = session.statements.bound_unasked(id, portal);
    match unasked.and_then(|(from, found)| Some((from, found.columns.parse()?))) {
        Some((None, _)) => pipe.asks(Called::Unnamed, entry.about(id)),
        // The copy is shared with clients who are told of modifiers, which this reply lacks: it
        // tells what this client has seen, and nothing of the copy.
        Some((Some(_), parse)) => {
            let behind = u32::try_from(session.outstanding.next_seq() - parse).unwrap_or(0);
            pipe.owe(OutstandingRequest { behind, ..entry.about(id) });
        }
        None => drop(pipe.owe(entry)),
    }
}

/// Whether the client's messages behind its Parse of `name` ask for the columns: a Describe, or for
/// the unnamed statement also a Bind and a Describe of that portal. Reads only messages that have
/// arrived.
fn tells(name: &[u8], next: &[u8]) -> bool {
    let whole = |input| Message::read(input).ok().flatten().filter(|message| message.complete);
    let target = |message: &Message<'_>| message.header.tag == front::DESCRIBE;
    let Some(first) = whole(next) else { return false };
    if target(&first) {
        return Target::read(first.body()) == Ok(Target::Statement(name));
    }
    if first.header.tag != front::BIND || !name.is_empty() {
        return false;
    }
    let Ok(Some(Bind { portal, statement: b"" })) = Bind::read(first.body(), true) else {
        return false;
    };
    let second = whole(&next[first.bytes.len()..]).filter(target);
    second.is_some_and(|second| Target::read(second.body()) == Ok(Target::Portal(portal)))
}
