//! Checks behind a Bind: Parse, Describe and Bind go in one write to a server that lacks a
//! statement.
//!
//! A client gets a copy of a statement only if it has the columns that the client's Parse found
//! ([`crate::messages::fits`]). The answer to the Describe comes before the first row, so the
//! client need not wait for it before the server gets the Bind. If the columns are others, the
//! client gets the error of a stale plan in place of the replies: nobody gets a row of them.
//!
//! By then the server has run the statement. So it goes this way only if its text writes nothing,
//! if its segment holds nothing else, outside of a transaction block, and if the schema has not
//! changed since the client's Parse, as far as passed through Refrain
//! (`docs/decisions/0079-columns-that-are-checked-behind.md`).

use refrain_pg_wire::back::Status;

use crate::messages::wait::is_foreign;
use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, RequestKind};
use crate::relay::copies::Called;
use crate::relay::message::Next;
use crate::relay::pipe::Pipeline;
use crate::state::client::ClientSession;
use crate::statements::columns::{Columns, Expected};
use crate::statements::of_core::CachedStatement;

/// The kind of message that uses a statement.
#[derive(Clone, Copy)]
pub(crate) enum Use<'a> {
    /// A Bind of this portal, and the client's input behind it.
    Bind { portal: &'a [u8], next: Next<'a> },
    /// A Describe.
    Describe,
    /// A query string that runs it by name.
    Query,
}

/// Whether a server that lacks a statement may run it before its columns are known, though the
/// client `expects` these.
pub(crate) fn may_check_behind(
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    cached: &CachedStatement,
    expects: &Expected,
    to: &Use<'_>,
) -> bool {
    let Use::Bind { portal, next } = *to else { return false };
    let statement = &cached.statement;
    let shared = &pipe.home().shared.protocol;
    let same_schema = expects.generation == statement.generation()
        && statement.schema_version() >= shared.schema_version()
        && !shared.is_being_defined();
    // What `*` stands for changes with each column that a table gets past Refrain.
    let reads = !statement.writes && !statement.acts() && !statement.text().contains(&b'*');
    let outstanding = &pipe.server.session.outstanding;
    let alone = outstanding.status() == Status::Idle
        && !outstanding.is_open()
        && outstanding.owes_client_nothing()
        && !pipe.server.is_shared();
    let plain = session.pins.is_empty()
        && !session.results.is_awaited()
        && !is_foreign(&pipe.server.session.outstanding, &session.settings, cached);
    let known = matches!(expects.columns, Columns::Known(_));
    known && same_schema && reads && alone && plain && next.runs_at_once(portal)
}

/// Asks for the columns of a copy that the server runs already.
pub(crate) fn check_behind(
    pipe: &mut Pipeline<'_>,
    called: Called,
    cached: &CachedStatement,
    expects: Expected,
) {
    pipe.server.session.expected = expects;
    pipe.describe_copy(called, &cached.statement);
    let action = ReplyAction::Skip(Purpose::Check);
    let entry = OutstandingRequest::new(RequestKind::DescribeStatement, action);
    pipe.asks(called, entry.about(cached.statement.id));
}
