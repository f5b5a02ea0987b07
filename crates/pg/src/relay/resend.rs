//! Messages that a server gets again: an unnamed statement ran as a named one, and was refused
//! before it did anything.

use refrain_pg_wire::back::Fields;
use refrain_pg_wire::front::Target;
use refrain_pg_wire::tag::front as tag;

use crate::normalized::compare_times::Turn;
use crate::normalized::run::is_passing;
use crate::normalized::unnamed_run::UnnamedRun;
use crate::pipeline::outstanding::{Outstanding, OutstandingRequest, ReplyAction, RequestKind};
use crate::relay::message::Message;
use crate::statements::statement::Statement;

/// Whether the error is the refusal of a statement that runs as a named one.
pub(crate) fn is_refused(run: &UnnamedRun, entry: &OutstandingRequest) -> bool {
    let uses = matches!(entry.kind, RequestKind::Bind | RequestKind::DescribeStatement);
    run.turn == Turn::Prepared && uses && entry.action == ReplyAction::Forward
}

/// Whether the client's messages may be sent again after this error: none has had a reply or an
/// effect, and the server has got all of them, so that it goes on behind their Sync.
pub(crate) fn may_be_repeated(
    run: &UnnamedRun,
    outstanding: &Outstanding,
    fields: &Fields<'_>,
) -> bool {
    let synced = outstanding.front().is_some_and(|next| next.kind == RequestKind::Sync);
    run.repeats.is_some() && synced && !is_passing(fields)
}

/// Reads the messages that a client sent in one piece, from its Parse to its Sync.
pub(crate) fn messages(mut input: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let message = Message::read(input).ok().flatten()?;
        input = &input[message.bytes.len()..];
        Some(message)
    })
}

/// Returns the request that such a message makes when it is sent again.
pub(crate) fn request(
    message: &Message<'_>,
    statement: &Statement,
    action: ReplyAction,
) -> OutstandingRequest {
    let (id, traits) = (statement.id, statement.scan.traits);
    let of = |kind| OutstandingRequest::new(kind, action);
    match (message.header.tag, Target::read(message.body())) {
        (tag::BIND, _) => of(RequestKind::Bind).about(id).called(b""),
        (tag::DESCRIBE, Ok(Target::Statement(_))) => {
            of(RequestKind::DescribeStatement).about(id).called(b"")
        }
        (tag::DESCRIBE, _) => of(RequestKind::DescribePortal),
        (tag::EXECUTE, _) => of(RequestKind::Execute).with(traits),
        (tag::CLOSE, _) => of(RequestKind::Close),
        _ => of(RequestKind::Sync),
    }
}
