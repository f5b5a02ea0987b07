//! Replies to simple queries that run as prepared statements.
//!
//! A statement that fails before its values are bound has done nothing. Outside a transaction
//! Refrain then runs the text as the client sent it, so that the client gets PostgreSQL's own
//! error, or none. Within a transaction the error stands, and its position is that in the client's
//! text.

use refrain_pg_wire::back::{Fields, field};
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_pool::Conn;
use refrain_sql::normalize::{Plan, Span};

use crate::normalized::compare_times::Turn;
use crate::normalized::query::{CHANGES_MAX, QueryPlace, Refused};
use crate::normalized::run::{Again, Run};
use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind};
use crate::relay::pipe::Pipeline;
use crate::relay::resend::{is_refused, may_be_repeated};
use crate::relay::to_server::forget_unnamed;
use crate::state::client::ClientSession;
use crate::state::client::settings::ClientSettings;
use crate::state::server::ServerSession;
use crate::statements::statement::is_stale;

/// A text that has run without an error.
pub(crate) struct Ran {
    pub(crate) place: QueryPlace,
    pub(crate) turn: Turn,
    pub(crate) again: Option<Again>,
    /// Whether it is that of an unnamed statement.
    pub(crate) unnamed: bool,
}

/// Holds a reply back if it is not known yet that no error follows; true if so. The reply is the
/// first `length` bytes of `input`.
pub(crate) fn hold_back(
    server: &mut ServerSession,
    entry: &OutstandingRequest,
    input: &[u8],
    length: usize,
) -> bool {
    entry.action.is_for_client() && server.front.run.hold_reply(input, length)
}

/// Takes the replies that were held back, for the client.
#[inline]
pub(crate) fn held_replies(server: &mut ServerSession) -> Option<Vec<u8>> {
    let front = &mut server.front;
    front.run.take_replies().or_else(|| front.unnamed.take_reply())
}

/// Holds a notice back that came before the values of an autoprepared statement were bound; true if
/// it does. Leaves the parameter out of the notice's context: the client's text has none.
pub(crate) fn hold_notice_back(server: &mut ServerSession, body: &[u8]) -> bool {
    let Some(notices) = server.front.run.hold_notice() else { return false };
    write::message(notices, back::NOTICE_RESPONSE, |out| {
        for (code, value) in Fields(body).iter() {
            let value = match parameter(value).filter(|_| code == field::CONTEXT) {
                Some((_, b"")) => continue,
                Some((_, before)) => before,
                None => value,
            };
            out.push(code);
            write::string(out, value);
        }
        out.push(0);
    });
    true
}

/// Takes the notices that were held back.
#[inline]
pub(crate) fn held_notices(server: &mut ServerSession) -> Option<Vec<u8>> {
    server.front.run.take_notices()
}

/// Handles an error of a statement that ran in place of a text. True if the text now runs by the
/// simple protocol.
pub(crate) fn run_again(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    entry: &OutstandingRequest,
    fields: &Fields<'_>,
) -> bool {
    let Some(run) = pipe.server.session.front.run.under_way() else { return false };
    let repeated = run.may_be_repeated(fields);
    let (place, unbound, amid) = (run.place(), run.is_unbound(), run.is_in_transaction());
    let changed = unbound && refutes(pipe, place, fields, !amid);
    let notices = held_notices(&mut pipe.server.session).filter(|_| !repeated).unwrap_or_default();
    pipe.ports.out(conn).extend_from_slice(&notices);
    if !repeated {
        pipe.server.session.front.run.fail();
        return false;
    }
    debug_assert!(entry.action == ReplyAction::Skip(Purpose::Autoprepare), "nothing is bound");
    let sqlstate = fields.sqlstate().first_chunk().copied();
    let again = sqlstate.map(|sqlstate| Again { sqlstate, changed });
    pipe.server.session.front.run.repeat(again);
    pipe.server.session.outstanding.skip_first(Purpose::Autoprepare);
    forget_unnamed(pipe, &mut session.statements);
    let out = pipe.ports.out(pipe.server.conn());
    write::query(out, pipe.server.session.front.run.text());
    pipe.owe(OutstandingRequest::new(RequestKind::Query, ReplyAction::Forward));
    session.evidence.send_again();
    pipe.pool().counters.protocol.auto_fallbacks += 1;
    true
}

/// Gives the client's turn up if the statement in place of a text has failed before it did
/// anything; true if so. On a shared server the text cannot run in its place: the clients behind it
/// would get its replies.
#[cold]
pub(crate) fn give_way(
    pipe: &mut Pipeline<'_>,
    entry: &OutstandingRequest,
    fields: &Fields<'_>,
) -> bool {
    let session = &pipe.server.session;
    let (query, unnamed) = (session.front.run.under_way(), session.front.unnamed.under_way());
    let query = query.filter(|run| run.may_be_repeated(fields)).map(Run::place);
    let unnamed = unnamed
        .filter(|run| is_refused(run, entry) && may_be_repeated(run, &session.outstanding, fields));
    let Some(place) = query.or(unnamed.map(|run| run.place)) else { return false };
    refutes(pipe, place, fields, true);
    pipe.server.session.front.end();
    true
}

/// Whether the error of a prepared statement says that the schema has changed since it was
/// verified. Then all statements are verified again before they run.
pub(crate) fn refutes(
    pipe: &mut Pipeline<'_>,
    place: QueryPlace,
    fields: &Fields<'_>,
    alone: bool,
) -> bool {
    // If the error is about a value, such as the name of a table that does not exist, the text
    // would have failed as well.
    let of_value = fields.get(field::CONTEXT).is_some_and(|it| parameter(it).is_some());
    let lost = is_stale(fields) || fields.sqlstate() == b"26000";
    if !lost || of_value {
        return false;
    }
    let pool = pipe.pool();
    let changes = pool.protocol.normalized_queries.at(place).map_or(0, |variant| variant.changes);
    if changes < CHANGES_MAX {
        // Other statements that were planned before the change may be refused as well. None of them
        // runs before it is verified again.
        pool.shared.protocol.schema_change();
    }
    pool.counters.protocol.auto_failures_in_transaction += u64::from(!alone);
    true
}

/// Ends a text that autoprepare has looked at.
#[inline]
pub(crate) fn run_ends(pipe: &mut Pipeline<'_>, took: u64) {
    let run = pipe.server.session.front.run.end();
    if let Some(run) = run.filter(|run| !run.has_failed()) {
        let (place, turn, again) = (run.place(), run.turn(), run.again());
        ran(pipe, &Ran { place, turn, again, unnamed: false }, took);
    }
}

/// Records the time of a text that has run without an error.
pub(crate) fn ran(pipe: &mut Pipeline<'_>, ran: &Ran, took: u64) {
    let Ran { place, turn, again, unnamed } = *ran;
    let front = &pipe.server.session.front;
    let text = if unnamed { front.unnamed.behind() } else { front.run.text() };
    let now = pipe.now;
    let pool = pipe.core_state.pool_in_use(pipe.server.pool());
    let schema_version = pool.shared.protocol.schema_changes();
    if let Some(Again { sqlstate, changed }) = again {
        // The statement failed and the text did not: the cause is the preparing.
        if let Some(variant) = pool.protocol.normalized_queries.at(place) {
            variant.distrust(Refused::Server(sqlstate), changed, schema_version, now);
        }
    } else if let Some(why) = pool.protocol.normalized_queries.ran(place, turn, text, took) {
        pool.protocol.normalized_queries.refuse(place, why, schema_version, now);
        pool.counters.protocol.auto_too_slow += 1;
    }
}

/// Returns the fields of an error as they would be for the text that the client sent.
pub(crate) fn as_client_sent<'a>(
    pipe: &Pipeline<'_>,
    settings: &ClientSettings,
    entry: &OutstandingRequest,
    fields: &Fields<'a>,
) -> Vec<(u8, Vec<u8>)> {
    let own = |(code, value): (u8, &'a [u8])| (code, value.to_vec());
    let fields: Vec<_> = fields.iter().map(own).collect();
    let front = &pipe.server.session.front;
    let Some(run) = front.run.under_way().filter(|run| run.turn() == Turn::Prepared) else {
        return fields;
    };
    let (text, utf8) = (front.run.text(), settings.current().reads.encoding.is_utf8());
    let plan = pipe
        .core_state
        .peek_pool(pipe.server.pool())
        .and_then(|pool| pool.protocol.normalized_queries.plan(run.place().key));
    let Some((plan, spans)) = plan.zip(spans(pipe, text)) else { return fields };
    as_sent(fields, entry.kind == RequestKind::Bind, &plan, text, &spans, utf8)
}

/// Returns the literals of a text of a normalized query.
fn spans(pipe: &Pipeline<'_>, text: &[u8]) -> Option<Vec<Span>> {
    let mut spans = Vec::new();
    let seed = pipe.core_state.shared.protocol.registry.seed();
    refrain_sql::normalize::normalize(text, seed, usize::MAX, &mut spans).ok()?;
    Some(spans)
}

/// Returns the fields of an error about a statement, as they would be about the text. `bind` says
/// that the error came for the Bind: then PostgreSQL names the parameter at the end of the context,
/// where for a text it would give the position of the literal. It gives no position for a violated
/// constraint of a domain, which for a text is found only when it runs.
fn as_sent(
    fields: Vec<(u8, Vec<u8>)>,
    bind: bool,
    plan: &Plan,
    text: &[u8],
    spans: &[Span],
    utf8: bool,
) -> Vec<(u8, Vec<u8>)> {
    // For a text, bytes that are no characters are found before it is parsed: without a position.
    let pointless = |(code, value): &(u8, Vec<u8>)| {
        *code == field::SQLSTATE && (value.starts_with(b"23") || value == b"22021")
    };
    let points = !fields.iter().any(pointless);
    let mut made = Vec::with_capacity(fields.len());
    for (code, value) in fields {
        match code {
            field::POSITION => {
                let place = std::str::from_utf8(&value).ok().and_then(|it| it.parse().ok());
                let mapped = place.map(|place| plan.position(text, spans, place, utf8));
                made.push((code, mapped.map_or(value, |it| it.to_string().into_bytes())));
            }
            field::CONTEXT if bind => match parameter(&value) {
                None => made.push((code, value)),
                Some((number, before)) => {
                    if !before.is_empty() {
                        made.push((code, before.to_vec()));
                    }
                    let place = plan.place(text, spans, number, utf8).filter(|_| points);
                    made.extend(place.map(|it| (field::POSITION, it.to_string().into_bytes())));
                }
            },
            _ => made.push((code, value)),
        }
    }
    made
}

/// Returns the parameter that a context names, such as `unnamed portal parameter $1 = '...'`, and
/// the lines before that one. The lines behind it are the value. The words depend on the language.
fn parameter(context: &[u8]) -> Option<(usize, &[u8])> {
    let mut start = 0;
    for line in context.split(|&byte| byte == b'\n') {
        if let Some(number) = named(line) {
            return Some((number, context[..start].strip_suffix(b"\n").unwrap_or_default()));
        }
        start += line.len() + 1;
    }
    None
}

/// Returns the number behind `$`, if it ends a line or a value follows. In a list of all parameters
/// a colon stands before it: such a line gives `None`.
fn named(line: &[u8]) -> Option<usize> {
    let at = line.iter().position(|&byte| byte == b'$')? + 1;
    if line[..at].ends_with(b": $") {
        return None;
    }
    let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, behind) = line[at..].split_at(digits);
    let ends = behind.is_empty() || behind.starts_with(b" = ");
    std::str::from_utf8(number).ok().filter(|_| ends)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_names_the_parameter() {
        let first = b"unnamed portal parameter $12 = '...'";
        assert_eq!(parameter(first), Some((12, &b""[..])));
        let last = b"JSON data, line 1: {a...\nunnamed portal parameter $1 = '{a: \n1'";
        assert_eq!(parameter(last), Some((1, &b"JSON data, line 1: {a..."[..])));
        assert_eq!(parameter(b"SQL function \"f\" statement 1"), None);
        assert_eq!(parameter(b"unnamed portal with parameters: $1 = '5', $2 = 'x'"), None);
    }
}
