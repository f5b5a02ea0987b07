//! Output of servers that are logged in: replies go to clients, or are Refrain's own.

use refrain_mysql_wire::packet::{self, HEADER_BYTES};
use refrain_mysql_wire::reply::{EofPacket, OkPacket};
use refrain_mysql_wire::{Capabilities, Header, Status, command};
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::inbox::Rest;
use refrain_pool::{Conn, Linked, Step};

use crate::commands::{Goes, ReadPacket, Run, Sent};
use crate::figures;
use crate::insert_id::Kept;
use crate::learn;
use crate::own;
use crate::parts::{Leftover, My, Place, Postponed, Reading, Untold};
use crate::prepared::{self, Told};
use crate::preparing;
use crate::reply::Part;
use crate::settle;
use crate::text::{Calls, Scope, Tables, Variables};
use crate::train;
use crate::wishes::Wishes;

/// Bytes that a server may send for a client that has left, before its connection is closed: those
/// that were under way when its statement was killed are fewer.
const DROPPED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Handles output of a server as far as it belongs to one command. Returns the number of bytes
/// handled; `None` if more has to come, or the server is gone.
pub(crate) fn next(step: &mut Step<'_, My>, conn: Conn, output: &[u8]) -> Option<usize> {
    let server = step.engine.connections.server(conn)?;
    if server.inbox.rest > 0 {
        let bytes = server.inbox.take_rest(output);
        pass(step, conn, &output[..bytes], None);
        return Some(bytes);
    }
    if server.session.commands.is_empty() {
        return unasked(step, conn, output);
    }
    let agreed = server.session.agreed;
    let Ok(run) = server.session.commands.follow(output, agreed) else {
        preparing::broken(step, conn)?;
        return None;
    };
    let Run { bytes, missing, sequence, packet } = run;
    if bytes == 0 && packet.is_none() {
        return None;
    }
    server.inbox.expect(missing, Rest::On);
    if bytes > 0 {
        pass(step, conn, &output[..bytes], sequence);
    }
    let Some(packet) = packet else { return Some(bytes) };
    read(step, conn, &packet)?;
    Some(bytes + packet.header.packet_bytes())
}

/// Handles output of a server that owes nothing: an error that says why it ends its session, or
/// what it may not say.
fn unasked(step: &mut Step<'_, My>, conn: Conn, output: &[u8]) -> Option<usize> {
    let whole = packet::split(output)?;
    let is_error = whole.payload.first() == Some(&refrain_mysql_wire::reply::first::ERR);
    let cause = match is_error {
        true => DisconnectReason::ServerGone,
        false => DisconnectReason::ServerProtocol,
    };
    step.end_server(conn, cause);
    None
}

/// Passes on bytes of the first command's reply. `sequence` is that of the last packet.
fn pass(step: &mut Step<'_, My>, conn: Conn, bytes: &[u8], sequence: Option<u8>) {
    let Some(server) = step.engine.connections.server(conn) else { return };
    let goes_on = server.session.commands.first().is_some_and(|c| matches!(c.goes, Goes::On(_)));
    let Some(client) = server.client().filter(|_| goes_on) else {
        server.session.dropped += bytes.len();
        // A side connection ends them, or is late.
        let are_ended = server.is_cancelled() || server.client().is_some();
        if server.session.dropped > DROPPED_BYTES_MAX && !are_ended {
            step.close_server(conn);
        }
        return;
    };
    let Linked { client: c, server, ports, .. } = step.linked(client, conn);
    ports.out(client).extend_from_slice(bytes);
    prepared::define(&mut server.session, bytes);
    if let Some(sequence) = sequence {
        let is_within = server.session.commands.is_within();
        c.session.place = Place { sequence: sequence.wrapping_add(1), has_begun: true, is_within };
    }
    step.push_back_on_server(client, conn);
}

/// Handles a packet that has to be read. `None` if the server is gone.
fn read(step: &mut Step<'_, My>, conn: Conn, packet: &ReadPacket<'_>) -> Option<()> {
    if packet.taken.status.is_some_and(|status| status.has(Status::METADATA_CHANGED)) {
        step.engine.core_state.shared.protocol.tables_change();
    }
    let server = step.engine.connections.server(conn)?;
    learn::learn_status(&mut server.session, packet);
    let client = server.client();
    match (server.session.commands.first()?.goes.clone(), client) {
        (Goes::On(sent), Some(client)) => to_client(step, (client, conn), packet, &sent),
        (Goes::Here(purpose), _) => own::read(step, conn, packet, purpose),
        (Goes::Nowhere | Goes::On(_), _) => nobody(step, conn, packet),
    }
}

/// Handles a packet for a client that has left.
fn nobody(step: &mut Step<'_, My>, conn: Conn, packet: &ReadPacket<'_>) -> Option<()> {
    match packet.taken.part {
        Part::Within => {}
        // Nobody has the file.
        Part::File => {
            step.close_server(conn);
            return None;
        }
        Part::End => {
            // What the client has sent is not known any more.
            let now = step.now;
            step.engine.core_state.shared.protocol.change(Tables::ChangeViews, now);
            let server = step.engine.connections.server(conn)?;
            server.session.commands.pop();
            server.session.defining = None;
            if server.session.commands.is_empty() {
                step.make_fit(conn);
            }
        }
    }
    Some(())
}

/// Handles a packet for a client.
fn to_client(
    step: &mut Step<'_, My>,
    (client, conn): (Conn, Conn),
    packet: &ReadPacket<'_>,
    sent: &Sent,
) -> Option<()> {
    if sent.is_foretold {
        let Linked { server, ports, .. } = step.linked(client, conn);
        match prepared::foretold(&mut server.session, ports.out(conn), (sent, packet)) {
            Told::It => {}
            Told::Error(error) => {
                let header = Header { payload: error.len() as u32, ..packet.header };
                let packet = ReadPacket { header, payload: &error, ..*packet };
                return answered(step, (client, conn), &packet, sent);
            }
            Told::Nothing => return Some(()),
            Told::Broken => return preparing::broken(step, conn),
        }
    }
    answered(step, (client, conn), packet, sent)
}

/// Handles a packet that a client gets.
fn answered(
    step: &mut Step<'_, My>,
    (client, conn): (Conn, Conn),
    packet: &ReadPacket<'_>,
    sent: &Sent,
) -> Option<()> {
    if packet.taken.part == Part::File && !may_ask_for_file(step, client, sent) {
        return preparing::broken(step, conn);
    }
    let Ok(asks_for_collation) = write(step, (client, conn), packet, sent) else {
        return preparing::broken(step, conn);
    };
    if asks_for_collation {
        let Linked { server, ports, .. } = step.linked(client, conn);
        match server.is_cancelled() {
            true => server.session.postponed = Postponed::Collation,
            false => train::ask_collation(&mut server.session, ports.out(conn)),
        }
    }
    match packet.taken.part {
        Part::Within => step.push_back_on_server(client, conn),
        Part::File => {
            let c = step.engine.connections.client(client)?;
            c.session.reading = Reading::File;
            step.engine.connections.unblock(client);
        }
        Part::End => {
            if sent.command == command::STMT_PREPARE {
                prepared::defined(step, (client, conn));
            }
            if sent.facts.tables != Tables::Stay {
                let now = step.now;
                step.engine.core_state.shared.protocol.change(sent.facts.tables, now);
            }
            let mut counted = sent.text;
            if sent.statement != 0 {
                let Linked { client: c, server, ports, .. } = step.linked(client, conn);
                let out = ports.out(conn);
                counted = prepared::over(&mut c.session, &mut server.session, (sent, packet), out);
            }
            if sent.command == command::RESET_CONNECTION && !packet.is_error() {
                let Linked { client: c, server, .. } = step.linked(client, conn);
                learn::learn_reset(&mut c.session, &server.session.base);
                server.session.settings = server.session.settings.reset().into();
                server.session.slots.clear();
                server.session.caller = None;
                server.session.leftover = Leftover::Nothing;
                server.session.insert_id = Kept::default();
            }
            if sent.facts.wishes && may_ask_for_file(step, client, sent) {
                // It could not be asked before the file was there.
                let Linked { server, ports, .. } = step.linked(client, conn);
                train::ask_wishes(&mut server.session, ports.out(conn));
            }
            if sent.facts.scope == Scope::Missing {
                let Linked { server, .. } = step.linked(client, conn);
                server.session.is_unasked |= server.session.base.is_mariadb();
            }
            if sent.facts.variables == Variables::SetBack {
                // The report on them is made before they are set back.
                let Linked { server, .. } = step.linked(client, conn);
                server.session.untold = server.session.untold.max(learn::untold(sent));
            }
            if sent.facts.releases && !packet.is_error() {
                let Linked { server, .. } = step.linked(client, conn);
                server.session.is_released = true;
                step.end_client(client, DisconnectReason::Terminated);
                return None;
            }
            over(step, (client, conn), counted, (packet, sent));
        }
    }
    Some(())
}

/// Whether a server may ask a client for a file: the client has offered files, and its command may
/// load one.
fn may_ask_for_file(step: &mut Step<'_, My>, client: Conn, sent: &Sent) -> bool {
    let client = step.engine.connections.client(client);
    sent.facts.loads && client.is_some_and(|client| client.session.has_files())
}

/// Writes a packet for a client, and learns from it. Returns whether the server has to be asked for
/// the collation.
fn write(
    step: &mut Step<'_, My>,
    (client, conn): (Conn, Conn),
    packet: &ReadPacket<'_>,
    sent: &Sent,
) -> Result<bool, refrain_mysql_wire::Malformed> {
    let is_prepare = sent.command == command::STMT_PREPARE;
    let number = if is_prepare { prepared::adopt(step, (client, conn), packet) } else { None };
    let Linked { client: c, server, ports, .. } = step.linked(client, conn);
    let (session, agreed) = (&mut c.session, server.session.agreed);
    let ReadPacket { header, payload, taken, .. } = *packet;
    let out = ports.out(client);
    session.place =
        Place { sequence: header.sequence.wrapping_add(1), has_begun: true, is_within: false };
    if let Some(status) = taken.status {
        learn::learn_flags(session, status);
    }
    if taken.part == Part::End {
        let told = learn::learn_left(session, packet, agreed, sent);
        if session.left.warnings {
            server.session.leftover = Leftover::Conditions;
        }
        if sent.is_statement() {
            train::insert_id(c, server).over(sent.facts.insert_id.effect, told);
        }
    }
    let session = &mut c.session;
    // In MySQL an EOF packet does not even say that something has changed.
    let is_short = taken.part == Part::End && payload.len() == EofPacket::BYTES;
    if is_short && sent.facts.calls == Calls::Any && !server.session.base.is_mariadb() {
        server.session.untold = Untold::Any;
    }
    if packet.has_untold_changes() {
        server.session.untold = server.session.untold.max(learn::untold(sent));
        let eof = EofPacket::read(payload, Capabilities::NONE)?;
        let status = eof.status.without(Status::SESSION_STATE_CHANGED);
        packet::message(out, header.sequence, |out| EofPacket { status, ..eof }.write(out));
        return Ok(false);
    }
    if packet.has_changes() {
        let ok = OkPacket::read(payload, agreed)?;
        let lacking = learn::learn_changes(session, &mut server.session, (&ok, sent))?;
        let capabilities = session.capabilities();
        packet::message(out, header.sequence, |out| match sent.facts.wishes {
            // The server has had the client's wishes.
            true => Wishes::all().write(out, (&ok, payload[0]), capabilities),
            false => session.wishes.write(out, (&ok, payload[0]), capabilities),
        });
        return Ok(lacking.collation);
    }
    out.reserve(HEADER_BYTES + payload.len());
    let at = out.len();
    out.extend_from_slice(&header.bytes());
    out.extend_from_slice(payload);
    match number {
        Some(number) => prepared::rename(&mut out[at + HEADER_BYTES..], number),
        None => prepared::define(&mut server.session, &out[at..]),
    }
    Ok(false)
}

/// Ends a client's command, whose reply is over.
fn over(
    step: &mut Step<'_, My>,
    (client, conn): (Conn, Conn),
    counted: u64,
    (packet, sent): (&ReadPacket<'_>, &Sent),
) {
    let Linked { now, client: c, server, core_state, .. } = step.linked(client, conn);
    // Each command is a request.
    let took = core_state.pool_in_use(server.pool()).request_over(c, server, now);
    figures::count((server, counted), (core_state, took), (packet, sent));
    let is_slow = took >= core_state.protocol.durations.least_us();
    server.session.commands.pop();
    let owes = server.session.commands.has_client_command();
    c.session.place = Place { sequence: u8::from(owes), ..Place::default() };
    if is_slow {
        figures::tell(step.linked(client, conn), (counted, took), (packet, sent));
    }
    step.push_back_on_server(client, conn);
    settle::settle(step, client, conn);
}
