//! Unnamed statements that run as named ones: from the client to the server.
//!
//! Many drivers send Parse, Bind, Describe, Execute and Sync for each query, all without a name.
//! PostgreSQL then parses and plans the text each time. If autoprepare is on and the server has the
//! statement under a name, Refrain answers the Parse and sends the Bind by that name. Everything
//! that makes it right for query strings is used here too: the analysis, the verification, jobs and
//! the comparison of times. The text keeps its literals.
//!
//! Refrain looks at a Parse only if all messages up to the Sync have come with it and nothing is
//! outstanding. So a driver that sends several statements in one pipeline loses nothing by waiting:
//! its statements run as they were sent. The messages have one of two forms: they run the
//! statement, or they ask what it returns and run it in a segment of their own. Their replies:
//! [`crate::relay::unnamed_run`].

use refrain_pool::Conn;
use std::rc::Rc;

use refrain_pg_wire::back::Status;
use refrain_pg_wire::front::{Bind, Target};
use refrain_pg_wire::tag::front as tag;
use refrain_sql::normalize::{self, Key};

use crate::autoprepare::send::{SeenText, advice, is_plain, is_read_plainly, lacks, stands_alone};
use crate::normalized::compare_times::{Draw, Turn};
use crate::normalized::queries::Advice;
use crate::normalized::query::QueryPlace;
use crate::normalized::unnamed_run::{ParseWay, UnnamedRun};
use crate::relay::copies::Called;
use crate::relay::link::Stop;
use crate::relay::message::{Message, Next};
use crate::relay::pipe::Pipeline;
use crate::state::client::ClientSession;
use crate::state::options::autoprepares;
use crate::state::server::ServerSession;
use crate::statements::of_core::CachedStatement;

/// Most bytes of the messages behind a Parse: Refrain keeps a copy of them while they run.
const BEHIND_MAX: usize = 16 * 1024;

/// The messages behind a Parse of the unnamed statement, up to the Sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// They run it.
    Runs,
    /// They ask what it returns.
    Asks,
}

/// Decides how a Parse of the client's unnamed statement goes. `next` is the input behind it.
#[inline]
pub(crate) fn parse_way(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    message: &Message<'_>,
    cached: &Rc<CachedStatement>,
    next: &[u8],
) -> Result<ParseWay, Stop> {
    if !autoprepares(pipe.pool()) {
        return Ok(ParseWay::Usual);
    }
    session.expected_run = None;
    match behind(next) {
        Some(behind) => way_of_known(conn, pipe, session, message, cached, next, behind),
        None => Ok(ParseWay::Usual),
    }
}

fn way_of_known(
    conn: Conn,
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    message: &Message<'_>,
    cached: &Rc<CachedStatement>,
    next: &[u8],
    behind: Behind,
) -> Result<ParseWay, Stop> {
    let statement = &cached.statement;
    let unknown = session.settings.unknown_since().is_some();
    if unknown
        || !stands_alone(pipe, message)
        || !is_plain(&statement.scan)
        || !normalize::has_plan(statement.text())
        || !is_read_plainly(pipe, &session.settings)
    {
        return Ok(ParseWay::Usual);
    }
    let seen = SeenText {
        text: statement.text(),
        spans: &[],
        key: Key(statement.id),
        tail: Some(statement.tail()),
        values: if behind == Behind::Runs { next } else { &[] },
    };
    match advice(conn, pipe, session, &seen)? {
        Advice::Watch(place) => {
            begin_unnamed(&mut pipe.server.session, place, None, behind, next);
            // Its time stands for those of statements that are planned for their values.
            Ok(if place.draw == Draw::None { ParseWay::Usual } else { ParseWay::Sent })
        }
        Advice::Sent => Ok(ParseWay::Sent),
        Advice::Run(place, _, found) if found.statement.id == statement.id => {
            run_unnamed(pipe, session, place, cached, behind, next)
        }
        _ => Ok(ParseWay::Usual),
    }
}

/// Runs the client's unnamed statement under its name, if the server has it.
fn run_unnamed(
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    place: QueryPlace,
    cached: &Rc<CachedStatement>,
    behind: Behind,
    next: &[u8],
) -> Result<ParseWay, Stop> {
    if pipe.server.session.has(&cached.statement).is_none() {
        lacks(pipe, session, place, cached)?;
        begin_unnamed(&mut pipe.server.session, place.without_choice(), None, behind, next);
        return Ok(ParseWay::Usual);
    }
    begin_unnamed(&mut pipe.server.session, place, Some(cached), behind, next);
    pipe.pool().counters.protocol.auto_unnamed += 1;
    Ok(ParseWay::Named)
}

/// Notes that the client's messages run or describe its unnamed statement, as the `named` one if
/// there is one.
fn begin_unnamed(
    server: &mut ServerSession,
    place: QueryPlace,
    named: Option<&Rc<CachedStatement>>,
    behind: Behind,
    next: &[u8],
) {
    let executes = behind == Behind::Runs;
    let run = match named {
        None => UnnamedRun::new(place, Turn::Simple, executes),
        Some(cached) => {
            let planned = executes && server.statements.is_planned(cached.statement.id);
            let place = if planned { place.on_new_server() } else { place };
            let alone = server.outstanding.status() == Status::Idle;
            let repeats = alone.then(|| cached.statement.clone());
            UnnamedRun { repeats, ..UnnamedRun::new(place, Turn::Prepared, executes) }
        }
    };
    server.last_mut().unnamed.begin(run, if named.is_some() { next } else { &[] });
}

/// Notes that a Bind runs the client's unnamed statement, which an earlier segment has parsed and
/// described.
#[inline]
pub(crate) fn begin_expected(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    called: Called,
    alone: bool,
) {
    if let Some((place, turn)) = session.expected_run.take() {
        begin_run(&mut pipe.server.session, place, turn, called, alone);
    }
}

fn begin_run(
    server: &mut ServerSession,
    place: QueryPlace,
    turn: Turn,
    called: Called,
    alone: bool,
) {
    let named = matches!(called, Called::Named(_));
    // If the client's server is another one than at the Parse, the statement may go another way
    // than was drawn.
    let busy = server.last().unnamed.under_way().is_some();
    if !alone || busy || named != (turn == Turn::Prepared) {
        return;
    }
    let planned = named && server.statements.is_planned(place.key.0);
    let place = if planned { place.on_new_server() } else { place };
    server.last_mut().unnamed.begin(UnnamedRun::new(place, turn, true), &[]);
}

/// Returns what the messages behind a Parse of the unnamed statement do, if they go on to a Sync,
/// nothing follows it, and they are about this statement alone.
pub(crate) fn behind(next: &[u8]) -> Option<Behind> {
    if next.len() > BEHIND_MAX {
        return None;
    }
    let mut rest = Next(next);
    let mut message = rest.take()?;
    let described = message.is_about(tag::DESCRIBE, Target::Statement(b""));
    if described {
        message = rest.take()?;
    }
    if described && message.header.tag == tag::SYNC {
        return rest.are_ended_by(&message).then_some(Behind::Asks);
    }
    if message.header.tag != tag::BIND {
        return None;
    }
    let Ok(Some(Bind { portal, statement: b"" })) = Bind::read(message.body(), true) else {
        return None;
    };
    rest.runs_at_once(portal).then_some(Behind::Runs)
}
