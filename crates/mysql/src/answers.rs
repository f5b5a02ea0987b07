//! Answers to commands of clients that have no server, and that need none.

use refrain_mysql_wire::packet;
use refrain_mysql_wire::reply::{EofPacket, OkPacket, first};
use refrain_mysql_wire::request::{MULTI_STATEMENTS_OFF, MULTI_STATEMENTS_ON};
use refrain_mysql_wire::{Capabilities, Status, command};
use refrain_pool::{Conn, Step};

use crate::errors::{self, Brand};
use crate::parts::My;
use crate::{learn, settings};

/// Reads the option of COM_SET_OPTION.
pub(crate) fn option(body: &[u8]) -> Option<bool> {
    let (&option, _) = body.split_first_chunk::<2>()?;
    match u16::from_le_bytes(option) {
        MULTI_STATEMENTS_ON => Some(true),
        MULTI_STATEMENTS_OFF => Some(false),
        _ => None,
    }
}

/// Tells a client that its command has succeeded, and has changed nothing.
pub(crate) fn ok(out: &mut Vec<u8>, status: Status) {
    let ok = OkPacket { status, ..OkPacket::default() };
    packet::message(out, 1, |out| ok.write(out, first::OK, Capabilities::NONE));
}

/// Answers a command of a client that has no server.
pub(crate) fn answer(step: &mut Step<'_, My>, conn: Conn, command: u8, body: &[u8]) {
    let Some(client) = step.engine.connections.client(conn) else { return };
    let session = &mut client.session;
    let status = session.status;
    let out = step.ports.out(conn);
    match command {
        command::SET_OPTION => {
            let Some(has_several) = option(body) else {
                let brand = session.brand.unwrap_or(Brand::MySql);
                let is_short = body.len() < size_of::<u16>();
                let told =
                    if is_short { errors::malformed(brand) } else { errors::UNKNOWN_COMMAND };
                told.write(out, 1);
                return;
            };
            settings::edit(&mut session.settings, |s| s.has_several = has_several);
            packet::message(out, 1, |out| {
                // Servers send the OK packet of DEPRECATE_EOF, and else the short one.
                if session.capabilities().has(Capabilities::DEPRECATE_EOF) {
                    let ok = OkPacket { status, ..OkPacket::default() };
                    ok.write(out, first::EOF, Capabilities::NONE);
                } else {
                    EofPacket { warnings: 0, status }.write(out);
                }
            });
        }
        command::RESET_CONNECTION => {
            let base = step.engine.core_state.pool(client.pool()).shared.protocol.base();
            let session = &mut client.session;
            learn::learn_reset(session, &base.unwrap_or_default());
            ok(out, Status::AUTOCOMMIT);
        }
        _ => ok(out, status),
    }
    let now = step.now;
    client.note_reply(now);
    step.reads_slowly(conn);
}
