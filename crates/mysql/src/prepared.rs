//! The consequences of replies for prepared statements.

use refrain_mysql_wire::error_code::{self, ErrorCode};
use refrain_mysql_wire::packet::HEADER_BYTES;
use refrain_mysql_wire::prepared::PrepareOk;
use refrain_mysql_wire::reply::ErrPacket;
use refrain_mysql_wire::{Status, command};
use refrain_pool::{Conn, Linked, Step};

use crate::commands::{self, Command, ReadPacket, Sent};
use crate::definitions::Coming;
use crate::errors::Brand;
use crate::parts::{ClientSession, My, ServerSession};
use crate::presence;
use crate::slots::{Guess, Outcome, Pending};

/// Takes in a statement that a server has prepared for a client. Returns the client's number for
/// it; `None` if the packet is not the head of a reply.
pub(crate) fn adopt(
    step: &mut Step<'_, My>,
    (client, conn): (Conn, Conn),
    packet: &ReadPacket<'_>,
) -> Option<u32> {
    let Linked { client: c, server, core_state, ports, .. } = step.linked(client, conn);
    let session = &mut server.session;
    if packet.is_error() {
        session.slots.fails();
        c.session.statements.latest = None;
        if number_of(packet) == Some(error_code::MAX_PREPARED_STMT_COUNT_REACHED.number) {
            presence::close_half(session, ports.out(conn));
        }
        return None;
    }
    let head = PrepareOk::read(packet.payload, session.agreed).ok()?;
    session.slots.counts(head.statement);
    let Pending::New(draft) = session.slots.pending.take()? else { return None };
    // What is only there for this client would be told to others.
    let coming = Coming::new(head, draft.since).filter(|_| !c.session.pins.is_any());
    let registry = &mut core_state.protocol.statements;
    let statement = registry.share(c.pool(), &c.session.settings, draft);
    session.defining = coming.map(|coming| (statement.clone(), coming));
    let number = c.session.statements.add(statement.clone(), head.parameters);
    let slots = &mut session.slots;
    let held = c.session.statements.edit(number, |held| held.copy = slots.copy_for(held))?;
    if let Some(old) = slots.insert(statement, held.copy.clone(), head.statement) {
        commands::close(ports.out(conn), old);
    }
    Some(number)
}

/// Takes in bytes of definitions that a client gets behind the head of its PREPARE's reply.
pub(crate) fn define(session: &mut ServerSession, bytes: &[u8]) {
    if let Some((_, coming)) = &mut session.defining
        && !coming.add(bytes)
    {
        session.defining = None;
    }
}

/// Keeps the definitions that a client has got. The reply is over.
pub(crate) fn defined(step: &mut Step<'_, My>, (client, conn): (Conn, Conn)) {
    let Linked { server, core_state, .. } = step.linked(client, conn);
    if let Some((statement, coming)) = server.session.defining.take() {
        core_state.protocol.statements.keep(&statement, coming.finish());
    }
}

/// Puts the client's number of a statement in place of the server's, in the head of a reply.
pub(crate) fn rename(head: &mut [u8], number: u32) {
    head[1..5].copy_from_slice(&number.to_le_bytes());
}

/// Takes in a statement that a server has prepared again.
pub(crate) fn note(session: &mut ServerSession, packet: &ReadPacket<'_>) {
    let Ok(head) = PrepareOk::read(packet.payload, session.agreed) else { return };
    let Some(Pending::Again(statement, copy, _)) = session.slots.pending.take() else { return };
    session.slots.confirm(statement, copy, head.statement);
}

/// The handling of the first packet of a reply to an execution whose number was foretold.
#[derive(Debug)]
pub(crate) enum Told {
    /// The client gets it.
    It,
    /// The client gets this error in its place.
    Error(Box<[u8]>),
    /// Nothing: the execution was sent again.
    Nothing,
    /// A server that has foreseen nothing does not say this.
    Broken,
}

/// Decides on the first packet of a reply to an execution whose number was foretold. With a number
/// that it does not have, a server does nothing.
pub(crate) fn foretold(
    session: &mut ServerSession,
    out: &mut Vec<u8>,
    (sent, packet): (&Sent, &ReadPacket<'_>),
) -> Told {
    let Some(Guess { sent: mut bytes, outcome }) = session.slots.guess.take() else {
        return Told::It;
    };
    let is_unknown = number_of(packet) == Some(error_code::UNKNOWN_STMT_HANDLER.number);
    match outcome {
        Outcome::Right => Told::It,
        Outcome::Refused(error) if is_unknown => Told::Error(error),
        Outcome::Wrong(id) if is_unknown => {
            bytes[HEADER_BYTES + 1..HEADER_BYTES + 5].copy_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&bytes);
            session.commands.pop();
            let again = Command::of_client(Sent { is_foretold: false, ..sent.clone() });
            session.commands.push(again.expect("an execution has a reply"));
            Told::Nothing
        }
        Outcome::Wrong(_) | Outcome::Refused(_) => Told::Broken,
    }
}

/// Notes that a server has not prepared a statement again. The client gets the server's words as
/// the answer to the command that waits, unless there is room to be made for another attempt.
pub(crate) fn refused(
    client: &mut ClientSession,
    session: &mut ServerSession,
    out: &mut Vec<u8>,
    packet: &ReadPacket<'_>,
) {
    let Some(Pending::Again(_, _, number)) = session.slots.fails() else { return };
    let is_full = number_of(packet) == Some(error_code::MAX_PREPARED_STMT_COUNT_REACHED.number);
    let before = session.slots.len();
    if is_full {
        presence::close_half(session, out);
    }
    if let Some(guess) = &mut session.slots.guess {
        guess.outcome = Outcome::Refused(packet.payload.into());
    } else if session.slots.len() == before {
        client.statements.refused = Some((number, packet.payload.into()));
    }
}

/// Returns the number of an error.
fn number_of(packet: &ReadPacket<'_>) -> Option<u16> {
    ErrPacket::read(packet.payload).ok().map(|err| err.number)
}

/// Errors behind which a server's statement is of no use any more.
const USELESS: [u16; 2] =
    [error_code::UNKNOWN_STMT_HANDLER.number, error_code::NEED_REPREPARE.number];

/// Whether a server that has refused an execution has read the types of its parameters. MySQL reads
/// them with the values, and MariaDB before these.
fn has_read_types(brand: Option<Brand>, packet: &ReadPacket<'_>) -> bool {
    let Ok(error) = ErrPacket::read(packet.payload) else { return true };
    let is = |code: ErrorCode| error.number == code.number;
    let is_unfit = is(error_code::WRONG_ARGUMENTS)
        && brand == Some(Brand::MySql)
        && error.message.ends_with(b"mysqld_stmt_execute");
    !is(error_code::MALFORMED_PACKET) && !is_unfit
}

/// Notes the end of the reply to a command that names a statement: what only this server has of the
/// statement now. Returns the number under which the statement is counted.
pub(crate) fn over(
    client: &mut ClientSession,
    session: &mut ServerSession,
    (sent, packet): (&Sent, &ReadPacket<'_>),
    out: &mut Vec<u8>,
) -> u64 {
    let (number, status) = (sent.statement, packet.taken.status.unwrap_or_default());
    let failed = packet.is_error();
    let are_read = !failed || has_read_types(client.brand, packet);
    let held = client.statements.edit(number, |held| match sent.command {
        command::STMT_EXECUTE => {
            held.has_cursor = !failed && status.has(Status::CURSOR_EXISTS);
            held.has_long_data &= failed;
            held.types_are_read(are_read);
        }
        command::STMT_FETCH => {
            held.has_cursor &= !failed && !status.has(Status::LAST_ROW_SENT);
        }
        command::STMT_RESET if !failed => (held.has_cursor, held.has_long_data) = (false, false),
        _ => {}
    });
    let Some(held) = held else { return 0 };
    let counted = held.statement.id;
    let Some(slot) = session.slots.get(held) else { return counted };
    slot.owner = held.is_bound().then_some(number);
    if failed {
        // The types may not have been read.
        slot.types = None;
    }
    let is_useless = failed && number_of(packet).is_some_and(|number| USELESS.contains(&number));
    if is_useless
        && !held.is_bound()
        && let Some(id) = session.slots.remove(held)
    {
        commands::close(out, id);
    }
    counted
}
