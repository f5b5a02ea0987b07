//! Reads on standbys: what a standby says in front of a read, and reads that have to run on the
//! primary all the same.
//!
//! A standby that is not known to have what a read needs is asked in the same write. If it is too
//! late, or cannot say, nobody gets what it replies to the read, and the read runs on the primary.
//! So does a read that a standby refuses before the client has been sent anything of its reply
//! ([`crate::standbys::refusals`]).

use std::time::Duration;

use refrain_pg_wire::back::Fields;
use refrain_pg_wire::tag::{back, front};
use refrain_pg_wire::write;
use refrain_pool::Now;
use refrain_pool::server::HostFinding;

use crate::pipeline::outstanding::{Purpose, ReplyAction, RequestKind};
use crate::pipeline::purposes::OwnError;
use crate::relay::link::Link;
use crate::relay::message::Message;
use crate::relay::pipe::Pipeline;
use crate::relay::reader::Halt;
use crate::standbys::position::{OF_STANDBY, Position};
use crate::standbys::refusals::{is_of_standby, is_stop};
use crate::state::client::ClientSession;

/// Time for which a statement runs on the primary that a standby has refused.
const REST: Duration = Duration::from_secs(1);

/// Asks a standby how much it has replayed.
pub(crate) fn ask_replayed(pipe: &mut Pipeline<'_>) {
    write::query(pipe.out(), OF_STANDBY);
    pipe.owe_us(RequestKind::Query, Purpose::Replayed, 0);
    pipe.server.session.statements.forget_unnamed();
}

/// Reads the answer. The client's read, which the standby has got behind the question, runs
/// elsewhere unless the standby has what the read needs.
#[cold]
pub(crate) fn replayed_row(
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    row: &[u8],
) -> Result<(), Halt> {
    let now = pipe.now;
    let place = pipe.pool().shared.protocol.place().clone();
    let answer = Position::of_standby(row);
    let position = answer.map(|(position, _)| place.progress.heard(position));
    let lag = position.and_then(|position| place.progress.lag(&position, now));
    pipe.server.note_lag(lag);
    pipe.server.session.replayed.learn(position);
    if position.is_none() {
        pipe.find_host(HostFinding::Doubtful);
    }
    let away = session.away.as_ref().and_then(|away| Some((away.needs?, away.written.as_of.1)));
    if let Some(((needs, schema_changes), (_, started))) = away.zip(answer)
        && pipe.server.session.replayed.has(&needs)
    {
        let replayed = &mut pipe.server.session.replayed;
        let defaults = place.defaults.replays(started, schema_changes, replayed.begun());
        if let Some(defaults) = defaults {
            replayed.has_defaults(defaults);
            return Ok(());
        }
        // The session may have begun before the standby had replayed the change. The next one
        // begins behind it.
        pipe.server.close_later();
    }
    Err(leaves_unproven(pipe))
}

/// Whether an error of a standby, which is in another pool than the client, is to have the client's
/// read run elsewhere. If so, the client does not get the error.
#[cold]
pub(crate) fn refuses_read(link: &mut Link<'_>, fields: &Fields<'_>) -> Result<bool, Halt> {
    // Without the answer nothing is proven of what comes behind it.
    let asked = is_asked(&link.pipe);
    let may = || !is_stop(fields) && link.client.may_go_elsewhere(link.pipe.server);
    if !(asked || may() || is_of_standby(fields) && take_back(link)) {
        return Ok(false);
    }
    let Link { pipe, client } = link;
    if asked {
        pipe.note_unsaid(fields);
    }
    let failed = pipe.server.session.outstanding.fail()?;
    client.session.statements.undo(&failed);
    pipe.server.session.statements.undo(&failed);
    if !asked {
        rest(&mut client.session, pipe.now);
    }
    let own = failed.entry.action.own();
    if own.is_some_and(|own| own.error == OwnError::RefuseSettings) {
        // The query has failed half-way.
        pipe.server.session.soil();
    }
    if asked {
        leaves_unproven(pipe);
        pipe.server.session.replayed.could_not_say(pipe.now);
    } else {
        leaves(pipe);
    }
    Ok(true)
}

/// Whether a FATAL error of a standby, which is in another pool than the client, is to have the
/// client's read run elsewhere, and by what. If so, the client does not get the error.
#[cold]
pub(crate) fn ends_read(link: &mut Link<'_>, fields: &Fields<'_>) -> Option<Halt> {
    let stays = is_stop(fields) && !is_asked(&link.pipe);
    let may = !stays && link.client.may_go_elsewhere(link.pipe.server);
    if !(may || is_of_standby(fields) && take_back(link)) {
        return None;
    }
    let Link { pipe, client } = link;
    rest(&mut client.session, pipe.now);
    if may {
        return Some(Halt::Lost);
    }
    pipe.server.close_later();
    Some(leaves(pipe))
}

/// Whether a standby is to say next how much it has replayed.
fn is_asked(pipe: &Pipeline<'_>) -> bool {
    let front = pipe.server.session.outstanding.front().map(|entry| entry.action);
    front == Some(ReplyAction::Skip(Purpose::Replayed))
}

/// Takes back what is queued to a client of a standby's reply to its read, if none of that has been
/// sent: so the read can run elsewhere. PostgreSQL sends what comes in front of an error together
/// with the error, if that is short, and it often arrives in one piece. True if the client has got
/// nothing. The reply to a Parse stays, if the Parse is not sent again.
#[cold]
fn take_back(link: &mut Link<'_>) -> bool {
    let Link { pipe, client } = link;
    let Some(from) = client.session.results.unsent() else { return false };
    if !client.may_ask_again(pipe.server) {
        return false;
    }
    let parses = client.request().and_then(<[u8]>::first) == Some(&front::PARSE);
    let out = pipe.ports.out(client.conn());
    let Some(stays) = out.get(from..).and_then(|reply| answered_parse(reply, parses)) else {
        return false;
    };
    out.truncate(from + stays);
    true
}

/// Returns the bytes of a reply that answer a Parse, unless the request still `parses`. `None` if
/// the reply has something that came on its own, such as a notice: the client gets that once.
fn answered_parse(reply: &[u8], parses: bool) -> Option<usize> {
    let (mut at, mut stays) = (0, 0);
    while at < reply.len() {
        let message = Message::read(&reply[at..]).ok()?.filter(|message| message.complete)?;
        at += message.bytes.len();
        match message.header.tag {
            back::PARSE_COMPLETE if !parses => stays = at,
            back::PARSE_COMPLETE
            | back::BIND_COMPLETE
            | back::ROW_DESCRIPTION
            | back::NO_DATA
            | back::DATA_ROW => {}
            _ => return None,
        }
    }
    Some(stays)
}

/// Whether a client's read is to run elsewhere since its statement returns other columns on this
/// standby, or has other parameters, than the client was told: the schema has changed past Refrain,
/// and the standby is not as far as the primary, or further.
#[cold]
pub(crate) fn has_other_columns(link: &mut Link<'_>) -> bool {
    let Link { pipe, client } = link;
    if client.pool() == pipe.server.pool() || !client.may_go_elsewhere(pipe.server) {
        return false;
    }
    rest(&mut client.session, pipe.now);
    leaves(pipe);
    true
}

/// Has the statement of a client's read run on the primary for a while.
fn rest(session: &mut ClientSession, now: Now) {
    if let (Some(read), Some(away)) = (&session.read, &mut session.away) {
        away.rest(read.statement.id, now, REST);
    }
}

/// Notes that a client's read has to run on the primary, since nothing is proven of the standby.
fn leaves_unproven(pipe: &mut Pipeline<'_>) -> Halt {
    forget_unproven(pipe);
    leaves(pipe)
}

/// Trusts no statement of a standby from which nothing is proven: it may have parsed the last ones
/// for a schema from before the client's changes, or others' that the client needs.
pub(crate) fn forget_unproven(pipe: &mut Pipeline<'_>) {
    let statements = &mut pipe.server.session.statements;
    statements.doubt_all();
    statements.forget_unnamed();
}

/// Notes that a client's read has to run on the primary. The server is not asked again for a while.
fn leaves(pipe: &mut Pipeline<'_>) -> Halt {
    let now = pipe.now;
    pipe.server.session.replayed.was_late(now);
    pipe.server.session.front.end();
    Halt::Elsewhere
}
