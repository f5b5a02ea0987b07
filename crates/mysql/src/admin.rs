//! Clients of the admin console: their commands, and the replies. The program makes the replies.

use refrain_config::ConsoleRights;
use refrain_mysql_wire::Header;
use refrain_mysql_wire::error_code;
use refrain_mysql_wire::packet::HEADER_BYTES;
use refrain_mysql_wire::request::Request as Command;
use refrain_pool::client::WaitingFor;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::{Action, Conn, Step};

use crate::console::reply::Form;
use crate::console::{About, Answer, COMMAND_BYTES_MAX, NextStep, Request};
use crate::parts::{My, Place};
use crate::{entering, errors};

/// Bytes of unread replies of a client of the console; beyond that its next command waits.
const UNREAD_BYTES_MAX: usize = 256 * 1024;

/// Handles bytes from a client of the console. One command at a time: the next is read once the
/// last has its reply.
pub(crate) fn input(step: &mut Step<'_, My>, conn: Conn, bytes: &[u8]) {
    let Some(client) = step.engine.connections.client(conn) else { return };
    let skipped = client.inbox.take_rest(bytes);
    let all = client.inbox.join(&bytes[skipped..]);
    let mut at = 0;
    while let Some(used) = command(step, conn, &all[at..]) {
        at += used;
    }
    let Some(client) = step.engine.connections.client(conn) else { return };
    let is_at_console = client.session.state.console().is_some();
    let has_more = at < all.len();
    client.inbox.put_back(all, at);
    if !is_at_console && has_more {
        // A client that logs in again may not have waited to be asked.
        step.engine.connections.read_on(conn);
    }
    step.leave_if_ended(conn);
    match step.ports.queued(conn) > UNREAD_BYTES_MAX {
        true => step.flow().stop_reading(conn),
        false => step.flow().regulate(conn),
    }
}

/// Handles a command. Returns the number of bytes handled; `None` if the command is not all there,
/// or has to wait, or the client is gone.
fn command(step: &mut Step<'_, My>, conn: Conn, input: &[u8]) -> Option<usize> {
    let queued = step.ports.queued(conn);
    let client = step.engine.connections.client(conn)?;
    let number = client.pid();
    let waits = client.waiting_for() != WaitingFor::Nothing || client.inbox.rest > 0;
    let at_console = client.session.state.console()?;
    if waits || queued > UNREAD_BYTES_MAX {
        return None;
    }
    let header = Header::parse(input)?;
    if header.sequence != 0 {
        step.end_client(conn, DisconnectReason::Synchronization);
        return None;
    }
    if header.payload > COMMAND_BYTES_MAX {
        return too_long(step, conn, header, input.len());
    }
    let used = header.packet_bytes();
    let payload = input.get(HEADER_BYTES..used)?;
    let version = step.engine.core_state.shared.protocol.flavour();
    let version = version.map(|flavour| String::from_utf8_lossy(&flavour.version).into_owned());
    let about = About {
        version: &version.unwrap_or_default(),
        number,
        user: &at_console.user,
        database: at_console.name,
    };
    let capabilities = at_console.agreed.capabilities;
    match at_console.session.command(payload, &about, step.ports.out(conn)) {
        NextStep::Read => {}
        NextStep::Ask(query, form) => ask(step, conn, query, form),
        NextStep::Leave => {
            step.end_client(conn, DisconnectReason::Terminated);
            return None;
        }
        NextStep::ChangeUser => match Command::read(payload, capabilities) {
            Ok(Command::ChangeUser(request)) => entering::change_user(step, conn, &request),
            _ => {
                errors::UNKNOWN_COMMAND.write(step.ports.out(conn), 1);
            }
        },
    }
    Some(used)
}

/// Refuses a command that is too long, and drops the rest of it as it comes. Returns the number of
/// bytes of it that are here.
fn too_long(step: &mut Step<'_, My>, conn: Conn, header: Header, here: usize) -> Option<usize> {
    let client = step.engine.connections.client(conn)?;
    let dropped = client.inbox.drop_message(header.packet_bytes(), here);
    let words = b"Got a packet bigger than 'max_allowed_packet' bytes";
    errors::write(step.ports.out(conn), 1, error_code::NET_PACKET_TOO_LARGE, words);
    Some(dropped)
}

fn ask(step: &mut Step<'_, My>, conn: Conn, query: String, form: Form) {
    let options = step.engine.core_state.shared.options();
    let Some(client) = step.engine.connections.client(conn) else { return };
    let serial = client.serial();
    let Some(at_console) = client.session.state.console() else { return };
    let user = at_console.user.clone();
    let rights = options.general.console_rights(&user);
    let admin = at_console.is_owner || rights == ConsoleRights::Change;
    client.session.place = Place { sequence: 1, ..Place::default() };
    client.await_replies();
    step.ports.act(Action::Ask(Request { client: serial, user, admin, query, form }));
}

/// Sends a client the program's reply to its command.
pub(crate) fn answered(step: &mut Step<'_, My>, Answer { client: serial, reply }: Answer) {
    let found = step.engine.connections.clients().find(|client| client.serial() == serial);
    let Some(conn) = found.map(|client| client.conn()) else { return };
    let Some(client) = step.engine.connections.client(conn) else { return };
    client.session.place = Place::default();
    let Some(at_console) = client.session.state.console() else { return };
    at_console.session.reply(reply, step.ports.out(conn));
    step.engine.connections.unblock(conn);
    dismiss(step, conn);
}

/// Ends the session of a client that may not use the console any more. A client that waits for a
/// reply gets the reply first.
pub(crate) fn dismiss(step: &mut Step<'_, My>, conn: Conn) {
    let options = step.engine.core_state.shared.options();
    let Some(client) = step.engine.connections.client(conn) else { return };
    let waits = client.waiting_for() != WaitingFor::Nothing;
    let Some(at_console) = client.session.state.console() else { return };
    let (name, user) = (at_console.name, &at_console.user);
    let may_look = options.general.console_rights(user) != ConsoleRights::Nothing;
    let may_stay = at_console.is_owner || may_look && options.admits(name, user);
    if !may_stay && !waits {
        step.end_client(conn, DisconnectReason::Removed);
    }
}
