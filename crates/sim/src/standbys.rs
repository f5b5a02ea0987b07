//! Sessions of standbys: their answer to the engine's question for their state, and a check of
//! their messages.
//!
//! The check: *of clients' messages, only reads reach a session of a standby*, and none where reads
//! run on the primary alone. Sessions of a host end when the host is the primary no more, as
//! PostgreSQL's do, so a server has told the engine before that it is a standby. Those of a standby
//! go on when it is promoted.
//!
//! What reads on standbys may return, the checker of versions knows: all that their client has
//! written, and all that was committed `max_lag` before they were sent ([`crate::lagging`]).

use refrain_pg_wire::front::{Bind, Parse, query_text};
use refrain_pg_wire::tag::front;

use crate::backend::Backend;
use crate::lang::{self, Statement};
use crate::plant::Plant;
use crate::session::Session;

/// The beginning of the query by which the engine asks a server for its state.
const ASKS_FOR_STATE: &[u8] = b"SELECT pg_catalog.pg_is_in_recovery()";
/// Time for which a bug hides that a host was promoted, in microseconds.
const LATE: u64 = 2_000_000;

/// Answers the engine's question for the state of a server, so long after the last promotion.
/// Returns false if a message is another one.
pub(crate) fn tells_state(
    backend: &mut Backend,
    (tag, body): (u8, &[u8]),
    promoted_ago: u64,
    plant: Option<Plant>,
) -> bool {
    let asks = query_text(body).is_ok_and(|text| text.starts_with(ASKS_FOR_STATE));
    if tag != front::QUERY || !asks {
        return false;
    }
    let is_standby = match plant {
        // The bugs: the engine takes a standby for a primary, or a new primary for a standby.
        Some(Plant::HideStandby) => false,
        Some(Plant::LatePromotion) if promoted_ago < LATE => true,
        _ => backend.session.stand.is_standby,
    };
    backend.session.tell_state(if is_standby { "on" } else { "off" });
    true
}

/// Checks that a server that gets a message of a client may get it: it is at the primary, or the
/// message is of a read and reads run on standbys.
///
/// # Errors
/// The violation, in words.
pub(crate) fn check_host(
    backend: &Backend,
    client: usize,
    (tag, body): (u8, &[u8]),
    reads: bool,
) -> Result<(), String> {
    let session = &backend.session;
    if !session.stand.is_standby || reads && is_of_read(session, tag, body) {
        return Ok(());
    }
    let (host, number) = (backend.host, session.number);
    Err(format!("client {client} got session {number} at host {host}, a standby"))
}

/// Whether a message that names a client is part of a read.
fn is_of_read(session: &Session, tag: u8, body: &[u8]) -> bool {
    let reads = |text: &[u8]| {
        let statements = lang::parse(&String::from_utf8_lossy(text));
        statements.iter().all(Statement::is_read)
    };
    match tag {
        front::QUERY => query_text(body).is_ok_and(reads),
        front::PARSE => Parse::read(body).is_ok_and(|parse| reads(parse.text())),
        front::BIND => Bind::read(body, true).ok().flatten().is_some_and(|bind| {
            let name = String::from_utf8_lossy(bind.statement);
            let prepared = session.statements.get(&*name);
            // A cancel request may have prevented its Parse.
            prepared.is_none_or(|it| it.statement.as_ref().is_some_and(Statement::is_read))
        }),
        _ => false,
    }
}
