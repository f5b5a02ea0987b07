//! Statements with `prepared_statements = false`: they belong to the server on which they were
//! prepared, and every message is passed on as it came.
//!
//! Refrain has to know their effects on the session all the same. So it remembers the texts that a
//! client has sent to its server, under the client's names, while the client has that server. A
//! name that the client did not give, or gave twice, may mean any statement: behind its Bind
//! Refrain asks for the session's state ([`crate::relay::look`]).

use std::rc::Rc;

use refrain_pg_wire::front::{Bind, Parse};
use refrain_sql::{Kind, Scan, Traits};

use crate::ground::name::Name;
use crate::messages::prepare::{intern, is_over_quota};
use crate::messages::refuse::has_room_for;
use crate::pipeline::outstanding::{Outstanding, OutstandingRequest, ReplyAction, RequestKind};
use crate::relay::link::Stop;
use crate::relay::look::{suspect, suspect_anything};
use crate::relay::message::Message;
use crate::relay::pipe::Pipeline;
use crate::relay::unread::watch_parse;
use crate::state::client::ClientSession;
use crate::state::client::pins::Pins;
use crate::state::client::statements::{ClientStatements, Parsed};
use crate::statements::columns::Columns;
use crate::statements::of_client::{ClientRef, ClientStatement};
use crate::statements::of_core::CachedStatement;

/// Records a Parse that is passed on unchanged: the client's statements are not managed, or the
/// text is too large to be kept (E13).
fn parse_unkept(pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    if session.statements.are_managed() {
        // The statement exists on this server alone, so the client keeps the server.
        session.pins.pin(Pins::PREPARED);
        session.suspicion.prepare_anything();
        session.statements.drop_unnamed();
        pipe.server.session.statements.forget_unnamed();
        pipe.pool().counters.protocol.statements_not_kept += 1;
    }
    pipe.server.session.soil();
    pipe.pool().counters.protocol.server_parses += 1;
    pipe.owe(OutstandingRequest::new(RequestKind::Parse, ReplyAction::Forward));
}

/// Records a Parse of which just the beginning is read: its text is too long to be kept.
pub(crate) fn parse_long(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    message: &Message<'_>,
) {
    if !session.statements.are_managed() {
        // The name is not read. It may replace any of the names.
        session.statements.forget_all();
    }
    parse_unkept(pipe, session);
    watch_parse(pipe, session, message);
}

/// Records a Parse that is passed on, and remembers its text.
pub(crate) fn parse_unmanaged(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    parse: &Parse<'_>,
) {
    let seq = pipe.server.session.outstanding.next_seq();
    parse_unkept(pipe, session);
    let cached = intern(pipe, &session.settings, parse.tail);
    match parse.name {
        b"" => {
            remember_unnamed(&pipe.server.session.outstanding, &mut session.statements, seq, cached)
        }
        name => remember(pipe, session, seq, name, cached),
    }
}

fn remember_unnamed(
    outstanding: &Outstanding,
    statements: &mut ClientStatements,
    seq: u64,
    cached: Rc<CachedStatement>,
) {
    statements.replace_unnamed(seq, Some(known(cached)), outstanding);
}

fn remember(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    seq: u64,
    name: &[u8],
    cached: Rc<CachedStatement>,
) {
    let again = session.statements.remove(name).is_some();
    if again || is_over_quota(pipe, &session.statements, cached.statement.tail().len()) {
        return;
    }
    let (name, outstanding) = (Name::from_slice(name), &pipe.server.session.outstanding);
    let parse = (seq, Parsed::There);
    session.statements.parse(name, known(cached), parse, outstanding);
}

/// Records a Bind that is passed on, and the effects of its portal. If the text is unknown, a look
/// at the session follows.
pub(crate) fn bind_unmanaged(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    bind: &Bind<'_>,
) -> Result<(), Stop> {
    pipe.sends_unknown();
    let outstanding = &pipe.server.session.outstanding;
    let cached = find_unmanaged(outstanding, &mut session.statements, bind.statement)?;
    let mut portal = None;
    if let Some(cached) = cached {
        let acts = cached.statement.acts();
        let room = !acts || has_room_for(pipe, &session.portals, bind.portal, &cached)?;
        let calls = suspect(pipe, session, &cached.statement.scan);
        session.evidence.bind(bind.portal, calls);
        portal = Some(cached).filter(|_| acts && room);
        if !room {
            suspect_anything(pipe, session);
        }
    } else {
        session.evidence.bind(bind.portal, None);
        suspect_anything(pipe, session);
    }
    pipe.owe(OutstandingRequest::new(RequestKind::Bind, ReplyAction::Forward));
    session.portals.set(bind.portal, portal, pipe.server.session.outstanding.segment());
    Ok(())
}

/// Returns the statement under a name, if its text is known. Waits while an earlier segment may
/// still undo a change to the names.
fn find_unmanaged(
    outstanding: &Outstanding,
    statements: &mut ClientStatements,
    name: &[u8],
) -> Result<Option<Rc<CachedStatement>>, Stop> {
    if statements.is_unsettled(name, outstanding) {
        return Err(Stop::Replies);
    }
    Ok(statements.get(name).map(|statement| statement.held.cached().clone()))
}

/// Forgets the statement under a name, because the client closes it. If the server skips the Close,
/// the name keeps its statement there, but Refrain no longer knows its text.
pub(crate) fn close_unmanaged(session: &mut ClientSession, name: &[u8]) {
    match name.is_empty() {
        true => session.statements.drop_unnamed(),
        false => drop(session.statements.remove(name)),
    }
}

/// Records the effects of a query string on the statements that it names.
pub(crate) fn query_unmanaged(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    text: &[u8],
    scan: &Scan,
) {
    match scan.kind {
        Kind::Deallocate(name) => close_unmanaged(session, &name.fold(text)),
        // The calls of statements that were prepared by SQL are known.
        _ if scan.traits.contains(Traits::EXECUTE) && !session.pins.has(Pins::PREPARED) => {
            suspect_anything(pipe, session);
        }
        _ => {}
    }
}

fn known(cached: Rc<CachedStatement>) -> ClientStatement {
    let generation = cached.statement.generation();
    let held = ClientRef::new(cached);
    ClientStatement::new(held, generation, Columns::Fixed)
}
