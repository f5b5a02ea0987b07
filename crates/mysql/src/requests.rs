//! Input of clients that are logged in: commands go to servers, or are answered here.

use refrain_mysql_wire::packet::HEADER_BYTES;
use refrain_mysql_wire::request::Request;
use refrain_mysql_wire::{Header, Status, command};
use refrain_pool::client::{Client, WaitingFor};
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::inbox::Rest;
use refrain_pool::{Conn, Step};

use crate::client_state::ClientState;
use crate::commands::is_answered;
use crate::errors::{self, Brand};
use crate::insert_id::Effect;
use crate::login::LOGIN_BYTES_MAX;
use crate::parts::{ClientSession, My, Reading};
use crate::pins::Pins;
use crate::sending::{Incoming, Told, continued, has_to_wait, refuse, send};
use crate::text::{self, Calls, Facts, Marks, Reads, Tables, Verb};
use crate::{answers, entering, kill, settle, statements};

/// The handling of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handling {
    /// The session ends.
    Quit,
    /// A server gets it. Its text says what it may do.
    Text,
    /// A server gets it. Its text says what it may do when it is executed.
    Prepare,
    /// It names a prepared statement.
    Statement,
    /// A server gets it, when all of it is there.
    Whole,
    /// It is answered here if the client has no server, and a server gets it otherwise.
    Local,
    /// The client logs in again.
    ChangeUser,
    /// It is not served.
    Refuse,
}

/// Returns what is done with a command.
fn handling(command: u8) -> Handling {
    match command {
        command::QUIT => Handling::Quit,
        command::QUERY => Handling::Text,
        command::STMT_PREPARE => Handling::Prepare,
        command::INIT_DB
        | command::FIELD_LIST
        | command::STATISTICS
        | command::DEBUG
        | command::REFRESH
        | command::PROCESS_INFO => Handling::Whole,
        command::STMT_EXECUTE
        | command::STMT_SEND_LONG_DATA
        | command::STMT_CLOSE
        | command::STMT_RESET
        | command::STMT_FETCH => Handling::Statement,
        command::PING | command::RESET_CONNECTION | command::SET_OPTION => Handling::Local,
        command::CHANGE_USER => Handling::ChangeUser,
        _ => Handling::Refuse,
    }
}

/// Reads a client's input, as far as it can. Returns the number of bytes handled.
pub(crate) fn input(step: &mut Step<'_, My>, conn: Conn, input: &[u8]) -> usize {
    let mut used = 0;
    while used < input.len() {
        match next(step, conn, &input[used..]) {
            Some(bytes) => used += bytes,
            None => break,
        }
    }
    // Behind a change of user, a client may not have waited to be asked for a proof.
    if used < input.len() && is_logging_in(step, conn) {
        used += entering::input(step, conn, &input[used..]);
    }
    // The last commands may have been such that no reply to them gives the server back.
    if let Some(server) = step.server_of(conn) {
        settle::settle(step, conn, server);
    }
    match step.engine.connections.client(conn) {
        Some(client) if used == input.len() && lacks_rest(client) => {
            step.end_client(conn, DisconnectReason::ClientGone);
        }
        _ => step.leave_if_ended(conn),
    }
    used
}

/// Whether a client's login is not over.
fn is_logging_in(step: &mut Step<'_, My>, conn: Conn) -> bool {
    let client = step.engine.connections.client(conn);
    client.is_some_and(|client| matches!(client.session.state, ClientState::LoggingIn(_)))
}

/// Whether a client has ended its stream amid a command or a file.
fn lacks_rest(client: &Client<My>) -> bool {
    let is_within = client.session.reading != Reading::Commands || client.is_half_sent();
    client.has_ended() && is_within && client.waiting_for() == WaitingFor::Nothing
}

/// Handles the next part of a client's input. Returns the number of bytes handled; `None` if the
/// client has to wait, or is gone.
fn next(step: &mut Step<'_, My>, conn: Conn, input: &[u8]) -> Option<usize> {
    let client = step.engine.connections.client(conn)?;
    if client.inbox.rest > 0 {
        let bytes = client.inbox.take_rest(input);
        if client.inbox.rest_goes == Rest::On {
            pass(step, conn, &input[..bytes]);
        }
        return Some(bytes);
    }
    // Packets of a login are no commands.
    let is_login = matches!(client.session.state, ClientState::LoggingIn(_));
    if is_login || client.waiting_for() != WaitingFor::Nothing {
        return None;
    }
    let header = Header::parse(input)?;
    let reading = client.session.reading;
    // In a shutdown the command may be one too many: that shows when those before it are answered.
    let is_last = step.engine.core_state.is_shutting_down() && reading == Reading::Commands;
    if is_last && has_to_wait(step, conn) {
        return None;
    }
    let client = step.engine.connections.client(conn)?;
    match reading {
        Reading::Commands => begin(step, conn, header, input),
        Reading::Continuation => {
            let goes = client.inbox.rest_goes;
            client.session.reading = continued(header);
            client.session.place.sequence = header.sequence.wrapping_add(1);
            part(step, conn, (header, goes), input)
        }
        Reading::File => {
            if header.payload == 0 {
                client.session.reading = Reading::Commands;
            }
            client.session.place.sequence = header.sequence.wrapping_add(1);
            part(step, conn, (header, Rest::On), input)
        }
    }
}

/// Handles a packet that is no command: as much of it as is here goes to the server, or nowhere.
fn part(
    step: &mut Step<'_, My>,
    conn: Conn,
    (header, goes): (Header, Rest),
    input: &[u8],
) -> Option<usize> {
    let here = header.packet_bytes().min(input.len());
    let client = step.engine.connections.client(conn)?;
    client.inbox.expect(header.packet_bytes() - here, goes);
    if goes == Rest::On {
        pass(step, conn, &input[..here]);
    }
    Some(here)
}

/// Passes bytes on to a client's server.
fn pass(step: &mut Step<'_, My>, conn: Conn, bytes: &[u8]) {
    if let Some(server) = step.server_of(conn) {
        step.ports.out(server).extend_from_slice(bytes);
        step.push_back_on_client(conn, server);
    }
}

/// Handles the beginning of a command.
fn begin(step: &mut Step<'_, My>, conn: Conn, header: Header, input: &[u8]) -> Option<usize> {
    if header.sequence != 0 {
        step.end_client(conn, DisconnectReason::Synchronization);
        return None;
    }
    if header.payload == 0 {
        return refuse(step, conn, errors::UNKNOWN_COMMAND.into(), (header, HEADER_BYTES));
    }
    let command = *input.get(HEADER_BYTES)?;
    let here = header.packet_bytes().min(input.len());
    let body = &input[HEADER_BYTES + 1..here];
    let is_whole = here == header.packet_bytes();
    let mut handling = handling(command);
    // No login is so long, and none is waited for.
    if handling == Handling::ChangeUser && header.payload > LOGIN_BYTES_MAX {
        handling = Handling::Refuse;
    }
    if !is_whole && !matches!(handling, Handling::Quit | Handling::Refuse | Handling::Statement) {
        return None;
    }
    match handling {
        Handling::Quit => {
            // The replies to the commands before it come first.
            if has_to_wait(step, conn) {
                return None;
            }
            step.end_client(conn, DisconnectReason::Terminated);
            None
        }
        Handling::Refuse => refuse(step, conn, errors::UNKNOWN_COMMAND.into(), (header, here)),
        Handling::ChangeUser => change_user(step, conn, (header, here), &input[HEADER_BYTES..here]),
        Handling::Local if step.server_of(conn).is_none() => {
            answers::answer(step, conn, command, body);
            Some(here)
        }
        // An answer to a question behind the commands before it would be taken for that of the new
        // session.
        Handling::Local if command == command::RESET_CONNECTION && has_to_wait(step, conn) => None,
        Handling::Local | Handling::Whole => {
            let packet = Incoming { header, command, body, statement: 0 };
            send(step, conn, &packet, Facts::default())
        }
        Handling::Statement => statements::named(
            step,
            conn,
            Incoming { header, command, body, statement: 0 },
            is_whole,
        ),
        Handling::Text | Handling::Prepare => {
            let mut facts = read_text(step, conn, body)?;
            // The rest of a long text is not read, and may do anything.
            if header.is_continued() {
                facts.pins.add(Pins::VARIABLES);
                facts.tables = Tables::Change;
                facts.insert_id.effect = Effect::Untold;
            }
            if facts.verb == Verb::Kill && handling == Handling::Text {
                return kill::kill(step, conn, body, (header, here));
            }
            if facts.verb == Verb::Kill {
                let brand = step.engine.connections.client(conn)?.session.brand;
                let brand = brand.unwrap_or(Brand::MySql);
                let words = errors::not_supported("KILL behind a proxy", brand);
                let code = refrain_mysql_wire::error_code::NOT_SUPPORTED_YET;
                return refuse(step, conn, Told { code, words: &words }, (header, here));
            }
            let packet = Incoming { header, command, body, statement: 0 };
            match handling {
                Handling::Prepare => statements::prepare(step, conn, &packet, facts),
                _ => send(step, conn, &packet, facts),
            }
        }
    }
}

/// Answers the command of a client that waits for a server as one that KILL has ended. Returns the
/// number of bytes handled; `None` if it is none that has an answer.
pub(crate) fn interrupt(step: &mut Step<'_, My>, conn: Conn, input: &[u8]) -> Option<usize> {
    let header = Header::parse(input)?;
    let command = *input.get(HEADER_BYTES)?;
    let here = header.packet_bytes().min(input.len());
    let reading = step.engine.connections.client(conn)?.session.reading;
    let is_command = reading == Reading::Commands && is_answered(command);
    is_command.then(|| refuse(step, conn, errors::INTERRUPTED.into(), (header, here)))?
}

/// Returns how a client's texts are to be read.
fn reads(session: &ClientSession) -> Reads {
    Reads {
        plain_backslash: session.status.has(Status::NO_BACKSLASH_ESCAPES),
        is_multibyte: session.settings.has_multibyte_quotes(),
        ..Reads::default()
    }
}

/// Reads a text. Returns what it may do; `None` if the client is gone.
fn read_text(step: &mut Step<'_, My>, conn: Conn, text: &[u8]) -> Option<Facts> {
    let client = step.engine.connections.client(conn)?;
    let reads = reads(&client.session);
    let facts = text::facts(text, reads);
    if facts.marks == Marks::None {
        return Some(facts);
    }
    let base = step.engine.core_state.pool(client.pool()).shared.protocol.base();
    let ansi_quotes = client.session.settings.has_ansi_quotes(&base.unwrap_or_default());
    let mut facts = text::facts(text, Reads { ansi_quotes, ..reads });
    // What is under way may set `sql_mode`.
    if let Some(server) = step.server_of(conn)
        && step.linked(conn, server).server.session.commands.has_client_command()
    {
        facts.calls = Calls::Any;
    }
    Some(facts)
}

/// Has a client log in again. Returns the number of bytes handled; `None` if replies to the
/// commands before it are still to come.
fn change_user(
    step: &mut Step<'_, My>,
    conn: Conn,
    packet: (Header, usize),
    payload: &[u8],
) -> Option<usize> {
    if has_to_wait(step, conn) {
        return None;
    }
    let capabilities = step.engine.connections.client(conn)?.session.capabilities();
    let Ok(Request::ChangeUser(request)) = Request::read(payload, capabilities) else {
        return refuse(step, conn, errors::UNKNOWN_COMMAND.into(), packet);
    };
    entering::change_user(step, conn, &request);
    let (_, here) = packet;
    Some(here)
}
