//! Replies to commands of Refrain's own.

use refrain_mysql_wire::packet;
use refrain_mysql_wire::reply::{ErrPacket, OkPacket};
use refrain_mysql_wire::row;
use refrain_mysql_wire::{Malformed, error_code};
use refrain_pool::client::Client;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::Level;
use refrain_pool::server::Server;
use refrain_pool::{Conn, Linked, Step};

use crate::client_state::ClientState;
use crate::commands::{Purpose, ReadPacket};
use crate::hidden::Catalog;
use crate::parts::{ClientSession, Leftover, My, Place, ServerSession, Transaction};
use crate::pins::Pins;
use crate::reply::Part;
use crate::settings::edit;
use crate::slots::Pending;
use crate::wishes::Wishes;
use crate::{entering, learn, prepared, preparing, settle, train};

/// Most rows of an answer. Servers have about a thousand variables, and as many collations.
const ROWS_MAX: usize = 8 * 1024;
/// Most bytes of such a row.
const ROW_BYTES_MAX: usize = 16 * 1024;

/// Handles a packet of the reply to a command of Refrain's own. `None` if the server is gone.
pub(crate) fn read(
    step: &mut Step<'_, My>,
    conn: Conn,
    packet: &ReadPacket<'_>,
    purpose: Purpose,
) -> Option<()> {
    let server = step.engine.connections.server(conn)?;
    if packet.is_row {
        let rows = &mut server.session.rows;
        let fits = packet.payload.len() <= ROW_BYTES_MAX && rows.len() < ROWS_MAX;
        let row = row::strings(packet.payload).filter(|_| fits);
        let Some(row) = row else { return preparing::broken(step, conn) };
        rows.push(row);
        return Some(());
    }
    if purpose == Purpose::Statement {
        prepared::note(&mut server.session, packet);
    }
    match packet.taken.part {
        Part::Within => return Some(()),
        Part::File => return preparing::broken(step, conn),
        Part::End => {}
    }
    server.session.commands.pop();
    let is_new = server.is_new();
    let client = server.client();
    if purpose == Purpose::Catalog {
        take_catalog(step, conn, packet);
    }
    if is_new {
        return preparing::answered(step, conn, packet, purpose);
    }
    if packet.is_error() && !purpose.may_fail() {
        return refused(step, conn, packet);
    }
    match client {
        Some(client) => for_client(step, (client, conn), packet, purpose),
        None => {
            let server = step.engine.connections.server(conn)?;
            server.session.rows.clear();
            if server.session.commands.is_empty() {
                step.make_fit(conn);
            }
            Some(())
        }
    }
}

/// Takes over what the catalog has of views and triggers.
fn take_catalog(step: &mut Step<'_, My>, conn: Conn, packet: &ReadPacket<'_>) {
    let Some(server) = step.engine.connections.server(conn) else { return };
    let (id, asked) = (server.pool(), server.session.asked.take());
    let rows = std::mem::take(&mut server.session.rows);
    let warnings = OkPacket::read(packet.payload, server.session.agreed).map(|ok| ok.warnings);
    if server.is_new() && warnings == Ok(0) {
        server.session.leftover = Leftover::Nothing;
    }
    let err = ErrPacket::read(packet.payload).ok().filter(|_| packet.is_error());
    // Somebody's KILL says nothing of the catalog: another server is asked.
    let is_hit = err.as_ref().is_some_and(|e| e.number == error_code::QUERY_INTERRUPTED.number);
    let Some(asked) = asked.filter(|_| !is_hit) else { return };
    let catalog = if err.is_some() { Catalog::unknown() } else { Catalog::read(&rows) };
    let pool = step.engine.core_state.pool(id);
    if !pool.shared.protocol.hidden.learn(catalog, &asked) {
        return;
    }
    let told = match err {
        Some(err) => {
            let words = String::from_utf8_lossy(err.message);
            format!("the catalog cannot be asked for views and triggers: {words}")
        }
        None => "the pool's user cannot see all triggers (GRANT TRIGGER): servers are reset \
                 behind each text that may run one, unless untold_changes is ignore"
            .to_owned(),
    };
    step.log().note_pool(id, Level::Warn, DisconnectReason::Settings, told);
}

/// Ends a server that refuses what Refrain needs. What its client has sent behind that may have run
/// under other settings, so the client's session ends as well.
fn refused(step: &mut Step<'_, My>, conn: Conn, packet: &ReadPacket<'_>) -> Option<()> {
    let server = step.engine.connections.server(conn)?;
    let (pool, pid, host) = (server.pool(), server.pid(), server.host().clone());
    if let Ok(err) = ErrPacket::read(packet.payload)
        && let Some(pool) = step.engine.core_state.find_pool(pool)
    {
        let (code, words) = (err.number.to_string(), String::from_utf8_lossy(err.message));
        refrain_pool::note_server_error(step.ports, (pool, &host, pid), Level::Warn, code, &words);
    }
    // A server that is about to end says so in place of any reply.
    let is_ending = ErrPacket::read(packet.payload)
        .is_ok_and(|err| err.number == error_code::SERVER_SHUTDOWN.number);
    let cause = if is_ending { DisconnectReason::ServerGone } else { DisconnectReason::Settings };
    step.end_server(conn, cause);
    None
}

/// Handles the end of a reply on a server that a client has.
fn for_client(
    step: &mut Step<'_, My>,
    (client, conn): (Conn, Conn),
    packet: &ReadPacket<'_>,
    purpose: Purpose,
) -> Option<()> {
    let Linked { client: c, server, ports, .. } = step.linked(client, conn);
    let agreed = server.session.agreed;
    if OkPacket::read(packet.payload, agreed).is_ok_and(|ok| ok.warnings > 0) {
        server.session.leftover = Leftover::Conditions;
    }
    let rows = std::mem::take(&mut server.session.rows);
    match purpose {
        Purpose::Settings if packet.has_changes() => {
            let ok = OkPacket::read(packet.payload, agreed);
            let learned =
                ok.and_then(|ok| learn::learn_settings(&mut c.session, &mut server.session, &ok));
            if learned.is_err() {
                return preparing::broken(step, conn);
            }
        }
        Purpose::Collation | Purpose::InsertId | Purpose::Wishes => {
            if take_row((c, server), &rows, purpose).is_none() {
                return preparing::broken(step, conn);
            }
        }
        Purpose::Schema => return checked(step, (client, conn), packet),
        Purpose::Statement if packet.is_error() => {
            prepared::refused(&mut c.session, &mut server.session, ports.out(conn), packet);
        }
        Purpose::DetourSchema if packet.is_error() => {
            if let Some(Pending::Again(_, _, number)) = server.session.slots.pending.take() {
                c.session.statements.refused = Some((number, packet.payload.into()));
            }
            // The server has the one before, which is not known here any more. No name is empty, so
            // the next command's train names one.
            edit(&mut server.session.settings, |s| s.schema = Some(Box::default()));
        }
        Purpose::Variables => take_variables(&mut c.session, &mut server.session, &rows),
        Purpose::Ask | Purpose::AskSetBack => {
            if let Some(status) = packet.taken.status {
                learn::learn_flags(&mut c.session, status);
            }
            let sides = (&mut c.session, &mut server.session);
            if take_late(sides, ports.out(conn), (packet, purpose)).is_err() {
                return preparing::broken(step, conn);
            }
        }
        // MySQL tells by the next OK packet, whatever that is for, what has changed untold.
        Purpose::Absorb if packet.has_changes() => {
            let asked = train::purpose_of_question(&server.session);
            let sides = (&mut c.session, &mut server.session);
            if take_late(sides, ports.out(conn), (packet, asked)).is_err() {
                return preparing::broken(step, conn);
            }
        }
        Purpose::Settings
        | Purpose::GiveInsertId
        | Purpose::Clear
        | Purpose::Reset
        | Purpose::Collations
        | Purpose::Tracking
        | Purpose::Statement
        | Purpose::Detour
        | Purpose::DetourSchema
        | Purpose::Catalog
        | Purpose::Absorb => {}
    }
    settle::settle(step, client, conn);
    Some(())
}

/// Takes over the answer to a question that has one row. `None` if it is none.
fn take_row(
    (client, server): (&mut Client<My>, &mut Server<My>),
    rows: &[Vec<Box<[u8]>>],
    purpose: Purpose,
) -> Option<()> {
    // The answer is in the character set that the client has chosen for results. UTF-16, UTF-32 and
    // UCS-2 have zero bytes beside those of ASCII.
    let row: Vec<Box<[u8]>> = rows.first()?.iter().map(|value| without_zeros(value)).collect();
    match (purpose, row.as_slice()) {
        (Purpose::Collation, [collation]) => {
            let base = server.session.base.clone();
            let name = b"collation_connection";
            for settings in [&mut client.session.settings, &mut server.session.settings] {
                edit(settings, |settings| settings.set(&base, name, collation));
            }
        }
        (Purpose::InsertId, [number]) => {
            let number = std::str::from_utf8(number).ok()?.parse().ok()?;
            train::insert_id(client, server).answered(number);
        }
        (Purpose::Wishes, [a, b, c, d]) => client.session.wishes = Wishes::of([a, b, c, d]),
        _ => return None,
    }
    Some(())
}

fn without_zeros(value: &[u8]) -> Box<[u8]> {
    value.iter().copied().filter(|byte| *byte != 0).collect()
}

/// Takes over what a server tells late, and asks for what it does not tell.
fn take_late(
    (client, server): (&mut ClientSession, &mut ServerSession),
    out: &mut Vec<u8>,
    (packet, purpose): (&ReadPacket<'_>, Purpose),
) -> Result<(), Malformed> {
    if learn::learn_late((client, server), packet, purpose)?.collation {
        train::ask_collation(server, out);
    }
    Ok(())
}

/// Takes over the values of all variables that a session can set.
fn take_variables(client: &mut ClientSession, server: &mut ServerSession, rows: &[Vec<Box<[u8]>>]) {
    let base = server.base.clone();
    // An error: limits on joins, time and memory are limits on this question, too.
    if rows.is_empty() {
        return client.pins.add(Pins::VARIABLES);
    }
    let rows = rows.iter().filter_map(|row| match row.as_slice() {
        // The server's own variable that somebody has set for all sessions meanwhile.
        [name, value, is_global] if **is_global == *b"1" && base.value(name) != Some(value) => None,
        [name, value, ..] if base.tracks(name) => Some((name, value)),
        _ => None,
    });
    edit(&mut client.settings, |settings| {
        rows.for_each(|(name, value)| settings.set(&base, name, value));
    });
    server.settings = client.settings.clone();
}

/// Handles the answer to the question whether the client's schema is there.
fn checked(
    step: &mut Step<'_, My>,
    (client, conn): (Conn, Conn),
    packet: &ReadPacket<'_>,
) -> Option<()> {
    if !packet.is_error() {
        let Linked { client: c, server, .. } = step.linked(client, conn);
        let schema = c.session.settings.schema.clone();
        edit(&mut server.session.settings, |settings| settings.schema = schema);
        let is_checking = matches!(c.session.state, ClientState::Checking(_));
        if is_checking {
            entering::welcome(step, client);
        }
        settle::settle(step, client, conn);
        return Some(());
    }
    // The client gets the server's own words, in place of the OK or of its command's reply.
    let Linked { client: c, server, ports, .. } = step.linked(client, conn);
    server.session.transaction = Transaction::None;
    let Place { sequence, .. } = c.session.place;
    packet::message(ports.out(client), sequence, |out| out.extend_from_slice(packet.payload));
    let told = ErrPacket::read(packet.payload).map(|err| err.message.to_vec());
    let told = String::from_utf8_lossy(&told.unwrap_or_default()).into_owned();
    step.log().note_client(client, Level::Warn, DisconnectReason::UnknownDatabase, told);
    step.remove_client(client, false);
    Some(())
}
