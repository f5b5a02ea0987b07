//! Replies to unnamed statements that run as named ones.
//!
//! A named statement that is refused before its values are bound has done nothing. Outside a
//! transaction Refrain then parses the text as the client sent it, and sends the client's messages
//! again: PostgreSQL may have refused the plan of an older schema, which a new Parse would not have
//! had. Within a transaction the error stands.

use refrain_pg_wire::back::Fields;
use refrain_pg_wire::front;
use refrain_pool::Conn;

use crate::normalized::run::Again;
use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind};
use crate::relay::copies::Called;
use crate::relay::pipe::Pipeline;
use crate::relay::resend::{is_refused, may_be_repeated, messages, request};
use crate::relay::run::{Ran, held_replies, ran, refutes};
use crate::state::client::ClientSession;
use crate::state::server::ServerSession;
use crate::statements::statement::Statement;

/// Handles an error while an unnamed statement runs. True if the client's messages now run as they
/// were sent.
pub(crate) fn run_unnamed_again(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    entry: &OutstandingRequest,
    fields: &Fields<'_>,
) -> bool {
    let server = &pipe.server.session;
    let Some(run) = server.front.unnamed.under_way() else { return false };
    let place = run.place;
    let alone = run.repeats.is_some();
    let refused = is_refused(run, entry);
    let repeats = run
        .repeats
        .clone()
        .filter(|_| refused && may_be_repeated(run, &server.outstanding, fields));
    let changed = refused && refutes(pipe, place, fields, alone);
    let sqlstate = fields.sqlstate().first_chunk().copied();
    if let (Some(statement), Some(sqlstate)) = (repeats, sqlstate)
        && repeat(pipe, session, &statement, Again { sqlstate, changed })
    {
        return true;
    }
    let held = held_replies(&mut pipe.server.session).unwrap_or_default();
    pipe.ports.out(conn).extend_from_slice(&held);
    pipe.server.session.front.unnamed.fail();
    false
}

/// Notes that the server has described a statement: from now on the client has replies.
pub(crate) fn run_is_described(server: &mut ServerSession) {
    server.front.unnamed.answer();
}

/// Whether to hold back the first half of the answer to a Describe.
pub(crate) fn hold_parameters(
    server: &mut ServerSession,
    entry: &OutstandingRequest,
    reply: &[u8],
) -> bool {
    entry.action.is_for_client() && server.front.unnamed.hold_reply(reply)
}

/// Sends the client's messages again, behind a Parse of the text as the client sent it. False if
/// the client's unnamed statement is another one.
fn repeat(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    statement: &Statement,
    again: Again,
) -> bool {
    let own = session.statements.unnamed().map(|own| own.held.cached().clone());
    let Some(cached) = own.filter(|cached| cached.statement.id == statement.id) else {
        return false;
    };
    // The client has sent one Sync, and gets one ReadyForQuery.
    pipe.server.session.outstanding.skip_first(Purpose::Autoprepare);
    let seq = pipe.send_parse_unnamed(&cached.statement, ReplyAction::Skip(Purpose::Prepare));
    let parsed = pipe.client_statement(cached, Called::Unnamed);
    let outstanding = &pipe.server.session.outstanding;
    session.statements.replace_unnamed(seq, Some(parsed), outstanding);
    let behind = pipe.server.session.front.unnamed.behind().to_vec();
    pipe.out().extend_from_slice(&behind);
    for message in messages(&behind) {
        let entry = request(&message, statement, ReplyAction::Forward);
        let seq = pipe.server.session.outstanding.next_seq();
        match entry.kind {
            RequestKind::DescribeStatement => pipe.asks(Called::Unnamed, entry),
            _ => drop(pipe.owe(entry)),
        }
        if entry.kind == RequestKind::Execute
            && let Ok(portal) = front::execute_portal(message.body())
        {
            session.evidence.execute(portal, seq);
        }
    }
    pipe.pool().counters.protocol.auto_fallbacks += 1;
    pipe.server.session.front.unnamed.repeat(again);
    true
}

/// Ends an unnamed statement that autoprepare has looked at. If the client only asked what it
/// returns, the time of its next Bind will count.
#[inline]
pub(crate) fn unnamed_ends(pipe: &mut Pipeline<'_>, session: &mut ClientSession, took: u64) {
    let run = pipe.server.session.front.unnamed.end();
    let Some(run) = run.filter(|run| !run.failed) else { return };
    if run.executes || run.again.is_some() {
        ran(pipe, &Ran { place: run.place, turn: run.turn, again: run.again, unnamed: true }, took);
    } else {
        session.expected_run = Some((run.place, run.turn));
    }
}
