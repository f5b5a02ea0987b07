//! The presence of a client's prepared statement on the server that it has: a server that lacks the
//! statement prepares it first.

use refrain_mysql_wire::reply::ErrPacket;
use refrain_mysql_wire::{Capabilities, Header, command, prepared::Execute};
use refrain_pool::{Conn, Linked, Step};

use crate::commands::{self, Purpose};
use crate::errors::{self, Brand, Fixed};
use crate::parts::{ClientSession, My, ServerSession};
use crate::slots::{Pending, Slot};
use crate::statement::Held;
use crate::{settle, train};

/// The part of `max_prepared_stmt_count` that the servers of a pool may use: a quarter.
const SHARE_OF_COUNT: usize = 4;

/// Whether a client's server has a statement of the client.
#[derive(Debug)]
pub(crate) enum Presence {
    /// It has.
    There,
    /// It will have when it gets the command, with a foretold number.
    Foretold,
    /// The command has to wait until it has.
    Waits,
    /// It cannot prepare the statement: the payload of its error.
    Refused(Box<[u8]>),
}

/// Has a client's server prepare the statement of the client that a command names, unless the
/// server has it. The command may be sent behind that at once if `may_follow` says so.
pub(crate) fn ensure(
    step: &mut Step<'_, My>,
    (client, conn): (Conn, Conn),
    (number, command, body): (u32, u8, &[u8]),
    may_follow: bool,
) -> Presence {
    let Linked { client: c, server, ports, .. } = step.linked(client, conn);
    let refused = c.session.statements.refused.take_if(|(its, _)| *its == number);
    if let Some((_, error)) = refused {
        return Presence::Refused(error);
    }
    let slots = &mut server.session.slots;
    let held = c.session.statements.edit(number, |held| held.copy = slots.copy_for(held));
    let Some(mut held) = held else { return Presence::There };
    let may_spoil = slots.fixes_types;
    if let Some(slot) = slots.get(held) {
        if held.is_full && slot.types != held.types {
            let mut error = Vec::new();
            let Fixed { code, words } = errors::unfit_execution(Brand::MySql);
            ErrPacket::new(code, words.as_bytes()).write(&mut error);
            return Presence::Refused(error.into());
        }
        if may_spoil && is_lost(slot, held, (command, body)) {
            if let Some(id) = slots.remove(held) {
                commands::close(ports.out(conn), id);
            }
            c.session.statements.edit(number, |held| {
                (held.has_cursor, held.has_long_data) = (false, false);
            });
            let mut error = Vec::new();
            let Fixed { code, words } = errors::NEEDS_REPREPARE;
            ErrPacket::new(code, words.as_bytes()).write(&mut error);
            return Presence::Refused(error.into());
        }
        if !may_spoil || !is_spoilt(slot, held, (command, body)) {
            return Presence::There;
        }
        if let Some(id) = slots.remove(held) {
            commands::close(ports.out(conn), id);
        }
        let without = c.session.statements.edit(number, |held| held.has_cursor = false);
        let Some(without) = without else { return Presence::There };
        held = without;
    }
    let (statement, copy) = (held.statement.clone(), held.copy.clone());
    // Settings are exact when nothing is under way or untold.
    if settle::has_to_learn(step, client) {
        return Presence::Waits;
    }
    let Linked { client: c, server, .. } = step.linked(client, conn);
    if c.session.settings.are_in(&statement.environment) {
        if train::waits(step, client, conn) {
            return Presence::Waits;
        }
    } else if !server.session.settings.are_in(&statement.environment) {
        server.session.slots.pending = Some(Pending::Again(statement.clone(), copy, number));
        train::detour(step, (client, conn), &statement.environment);
        return Presence::Waits;
    }
    make_room(step, (client, conn), statement.text.len());
    let Linked { client: c, server, ports, .. } = step.linked(client, conn);
    let (session, out) = (&mut server.session, ports.out(conn));
    let command = (command::STMT_PREPARE, &statement.text[..]);
    train::send(session, out, command, Purpose::Statement);
    // A statement of SQL's PREPARE has a number as well, and would be executed in the place of this
    // one. Whoever has one is pinned.
    let may_follow = may_follow && !c.session.pins.is_any();
    let is_foretold = may_follow && session.slots.foretell(&statement, copy.clone());
    session.slots.pending = Some(Pending::Again(statement, copy, number));
    session.slots.guess = None;
    // Nothing else may be sent before it is known that the number is right.
    c.await_replies();
    if is_foretold { Presence::Foretold } else { Presence::Waits }
}

/// Whether a server may not run a command with the copy of its statement that the server has. MySQL
/// 9.7 says OK in place of rows if a statement that has had a cursor is executed without one, and a
/// client that waits for rows waits for ever.
fn is_spoilt(slot: &Slot, held: &Held, (command, body): (u8, &[u8])) -> bool {
    match command {
        _ if !slot.has_had_cursor => false,
        // The execution may open no cursor, and finds the parts of its values here alone.
        command::STMT_SEND_LONG_DATA => slot.owner.is_none(),
        command::STMT_EXECUTE if !held.has_long_data => {
            let head = Execute::read(body, held.parameters, Capabilities::NONE, true);
            !head.ok().flatten().is_some_and(opens_cursor)
        }
        _ => false,
    }
}

/// Whether a server would not answer an execution with rows, as [`is_spoilt`] says, and no other
/// copy can take its place: the parts of its values came while the statement's own cursor was open.
fn is_lost(slot: &Slot, held: &Held, (command, body): (u8, &[u8])) -> bool {
    if command != command::STMT_EXECUTE || !slot.has_had_cursor || !held.has_long_data {
        return false;
    }
    let head = Execute::read(body, held.parameters, Capabilities::NONE, true);
    !head.ok().flatten().is_some_and(opens_cursor)
}

/// Whether an execution opens a cursor if it has rows. Servers have cursors to read with alone, and
/// leave out the other kinds that a client may name.
fn opens_cursor(head: Execute<'_>) -> bool {
    head.flags & Execute::CURSOR_READ_ONLY != 0
}

/// Closes the statements for which a server has no room beside a text of this length.
pub(crate) fn make_room(step: &mut Step<'_, My>, (client, conn): (Conn, Conn), text: usize) {
    let Linked { server, ports, core_state, .. } = step.linked(client, conn);
    let options = &core_state.pool(server.pool()).settings.options;
    let session = &mut server.session;
    let of_server = session.base.number(b"max_prepared_stmt_count").unwrap_or(usize::MAX);
    let share = of_server / SHARE_OF_COUNT / options.pool_size as usize;
    let count = share.min(options.max_server_statements as usize).max(1);
    let most = (count, options.max_server_statement_bytes);
    while !session.slots.has_room(text, most) {
        let Some(id) = session.slots.evict() else { return };
        commands::close(ports.out(conn), id);
    }
}

/// Closes half of the statements of a server that may have no more.
pub(crate) fn close_half(session: &mut ServerSession, out: &mut Vec<u8>) {
    for _ in 0..session.slots.len().div_ceil(2) {
        let Some(id) = session.slots.evict() else { return };
        commands::close(out, id);
    }
}

/// A command that names a statement, as far as it is here: its header, its byte, and the rest.
pub(crate) type Named<'a> = (Header, u8, &'a [u8]);

/// Appends a command that names a statement of the client for a server that has the statement. The
/// types of the parameters are those of the client's last execution: if the server has others, and
/// the command has none, they are put in.
pub(crate) fn put(
    (client, session): (&mut ClientSession, &mut ServerSession),
    number: u32,
    (header, command, body): Named<'_>,
    out: &mut Vec<u8>,
) {
    let Some(held) = client.statements.get(number) else { return };
    let Some(slot) = session.slots.get(held) else { return };
    let head = match command {
        command::STMT_EXECUTE => {
            // All of the head is here, or there would be no types to look for.
            Execute::read(body, held.parameters, Capabilities::NONE, true).ok()
        }
        _ => None,
    };
    let head = head.flatten();
    let missing = head.filter(|head| head.types.is_none() && slot.types != held.types);
    let missing = missing.filter(|_| held.parameters > 0);
    let types = missing.and(held.types.as_deref()).unwrap_or_default();
    let header = Header { payload: header.payload + types.len() as u32, ..header };
    out.reserve(header.packet_bytes().min(body.len() + types.len() + 8));
    out.extend_from_slice(&header.bytes());
    out.push(command);
    out.extend_from_slice(&slot.id.to_le_bytes());
    match head.filter(|_| !types.is_empty()) {
        Some(head) => {
            let flag = body.len() - head.values.len() - 1;
            out.extend_from_slice(&body[4..flag]);
            out.push(1);
            out.extend_from_slice(types);
            out.extend_from_slice(head.values);
        }
        None => out.extend_from_slice(&body[4..]),
    }
    let opens = head.is_some_and(opens_cursor);
    if head.is_some() {
        slot.types.clone_from(&held.types);
    }
    slot.has_had_cursor |= opens;
    if opens || command == command::STMT_SEND_LONG_DATA {
        slot.owner = Some(number);
    }
}
