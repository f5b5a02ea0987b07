//! Refusals: where Refrain has a limit, the server is made to fail, so that a pipeline fails as a
//! whole.

use refrain_pg_wire::write;

use crate::pipeline::outstanding::{OutstandingRequest, Refusal, ReplyAction, RequestKind};
use crate::relay::link::Stop;
use crate::relay::message::Message;
use crate::relay::pipe::Pipeline;
use crate::statements::of_core::CachedStatement;
use crate::statements::portals::Portals;

/// Makes the server fail in place of a message that is not passed on, by the name of a statement
/// that never exists. So the transaction fails with it. The error gets the words for `why` on its
/// way back.
pub(crate) fn refuse(
    pipe: &mut Pipeline<'_>,
    message: &Message<'_>,
    kind: RequestKind,
    why: Refusal,
) -> usize {
    let name = pipe.core_state.shared.protocol.registry.no_statement();
    let out = pipe.ports.out(pipe.server.conn());
    if kind == RequestKind::Query {
        let mut text = b"EXECUTE \"".to_vec();
        text.extend_from_slice(&name);
        text.push(b'"');
        write::query(out, &text);
    } else {
        write::describe_statement(out, &name);
    }
    pipe.owe(OutstandingRequest::new(kind, ReplyAction::Refuse(why)));
    message.bytes.len()
}

/// Whether the client's limits allow one more portal. Waits for replies before it refuses: some of
/// the portals may end with transactions that are under way.
pub(crate) fn has_room_for(
    pipe: &mut Pipeline<'_>,
    portals: &Portals,
    portal: &[u8],
    cached: &CachedStatement,
) -> Result<bool, Stop> {
    let options = &pipe.core_state.pool_in_use(pipe.server.pool()).settings.options;
    let bounds = (options.max_client_statements as usize, options.max_client_statement_bytes);
    match portals.has_room(portal, cached, bounds) {
        false if !pipe.server.session.outstanding.is_empty() => Err(Stop::Replies),
        room => Ok(room),
    }
}
