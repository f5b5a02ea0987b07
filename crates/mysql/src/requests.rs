//! Input of clients that are logged in: commands go to servers, or are answered here.

use refrain_mysql_wire::error_code::ErrorCode;
use refrain_mysql_wire::packet::HEADER_BYTES;
use refrain_mysql_wire::request::Request;
use refrain_mysql_wire::{Capabilities, Header, Status, command};
use refrain_pool::client::WaitingFor;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::inbox::Rest;
use refrain_pool::{Conn, Linked, Step};

use crate::commands::Command;
use crate::errors::{self, Brand, Fixed};
use crate::login::LOGIN_BYTES_MAX;
use crate::parts::{ClientSession, My, Place, Reading};
use crate::pins::Pins;
use crate::text::{self, Facts, Reads, Verb};
use crate::{answers, entering, settings, settle, train};

/// The handling of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handling {
    /// The session ends.
    Quit,
    /// A server gets it. Its text says what it may do.
    Text,
    /// A server gets it, when all of it is there.
    Whole,
    /// A server gets it, as it comes.
    Stream,
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
        command::QUERY | command::STMT_PREPARE => Handling::Text,
        command::INIT_DB
        | command::FIELD_LIST
        | command::STATISTICS
        | command::DEBUG
        | command::REFRESH
        | command::PROCESS_INFO
        | command::STMT_CLOSE
        | command::STMT_RESET
        | command::STMT_FETCH => Handling::Whole,
        command::STMT_EXECUTE | command::STMT_SEND_LONG_DATA => Handling::Stream,
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
    step.leave_if_ended(conn);
    used
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
    if client.waiting_for() != WaitingFor::Nothing {
        return None;
    }
    let header = Header::parse(input)?;
    match client.session.reading {
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

/// Returns what the packet behind one is.
fn continued(header: Header) -> Reading {
    if header.is_continued() { Reading::Continuation } else { Reading::Commands }
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
    if !is_whole && !matches!(handling, Handling::Quit | Handling::Refuse | Handling::Stream) {
        return None;
    }
    match handling {
        Handling::Quit => {
            step.end_client(conn, DisconnectReason::Terminated);
            None
        }
        Handling::Refuse => refuse(step, conn, errors::UNKNOWN_COMMAND.into(), (header, here)),
        Handling::ChangeUser => change_user(step, conn, (header, here), &input[HEADER_BYTES..here]),
        Handling::Local if step.server_of(conn).is_none() => {
            answers::answer(step, conn, command, body);
            Some(here)
        }
        Handling::Local | Handling::Whole | Handling::Stream => {
            let packet = Incoming { header, command, body, bytes: &input[..here] };
            send(step, conn, &packet, Facts::default())
        }
        Handling::Text => {
            let client = step.engine.connections.client(conn)?;
            let mut facts = text::facts(body, reads(&client.session));
            // The rest of a long text is not read, and may do anything.
            if header.is_continued() {
                facts.pins.add(Pins::VARIABLES);
            }
            if facts.verb == Verb::Kill {
                let brand = client.session.brand.unwrap_or(Brand::MySql);
                let words = errors::not_supported("KILL behind a proxy", brand);
                let code = refrain_mysql_wire::error_code::NOT_SUPPORTED_YET;
                return refuse(step, conn, Told { code, words: &words }, (header, here));
            }
            let packet = Incoming { header, command, body, bytes: &input[..here] };
            send(step, conn, &packet, facts)
        }
    }
}

/// Returns how a client's texts are to be read.
fn reads(session: &ClientSession) -> Reads {
    Reads {
        plain_backslash: session.status.has(Status::NO_BACKSLASH_ESCAPES),
        is_multibyte: session.settings.has_multibyte_quotes(),
    }
}

/// A command, as far as it is here.
struct Incoming<'a> {
    header: Header,
    command: u8,
    body: &'a [u8],
    bytes: &'a [u8],
}

/// Sends a command to a server, and notes what the server owes for it.
fn send(step: &mut Step<'_, My>, conn: Conn, packet: &Incoming<'_>, facts: Facts) -> Option<usize> {
    let linked = step.server_of(conn);
    if !linked.is_some_and(|server| owes(step, conn, server)) {
        let client = step.engine.connections.client(conn)?;
        client.session.place = Place { sequence: 1, ..Place::default() };
    }
    let server = match linked {
        Some(server) => server,
        None => step.lend(conn)?,
    };
    if facts.asks_back && !remembers(step, conn, server) {
        let told = errors::DIAGNOSTICS_GONE.into();
        return refuse(step, conn, told, (packet.header, packet.bytes.len()));
    }
    if train::waits(step, conn, server) {
        return None;
    }
    step.request_begins(server);
    let Linked { client, server: s, ports, .. } = step.linked(conn, server);
    ports.out(server).extend_from_slice(packet.bytes);
    let missing = packet.header.packet_bytes() - packet.bytes.len();
    client.inbox.expect(missing, Rest::On);
    let session = &mut client.session;
    session.reading = continued(packet.header);
    session.pins.add(facts.pins);
    note_verb(session, facts);
    let command = Command::of_client(packet.command, facts);
    let is_silent = command.is_none() && missing == 0;
    match command {
        Some(command) => s.session.commands.push(command),
        None if !s.session.commands.has_client_command() => session.place = Place::default(),
        None => {}
    }
    s.session.last_client = Some(client.serial());
    client.session.last_server = s.serial();
    note_effects(step, (conn, server), packet, facts);
    step.push_back_on_client(conn, server);
    if is_silent {
        // Nothing comes that would give the server back.
        settle::settle(step, conn, server);
    }
    Some(packet.bytes.len())
}

/// Whether a server owes a client a reply.
fn owes(step: &mut Step<'_, My>, client: Conn, server: Conn) -> bool {
    step.linked(client, server).server.session.commands.has_client_command()
}

/// Whether a client's server still has what the client's last statement has left to ask about.
fn remembers(step: &mut Step<'_, My>, conn: Conn, server: Conn) -> bool {
    let Linked { client, server, .. } = step.linked(conn, server);
    let is_last = server.session.last_client == Some(client.serial());
    is_last && client.session.last_server == server.serial()
}

/// Notes what follows from the beginning of a text.
fn note_verb(session: &mut ClientSession, facts: Facts) {
    match facts.verb {
        Verb::Unlock => session.pins.remove(Pins::GLOBAL_LOCK),
        Verb::Savepoint if !session.status.has(Status::AUTOCOMMIT) => {
            session.pins.add(Pins::SAVEPOINT);
        }
        _ => {}
    }
}

/// Does what has to follow a command at once.
fn note_effects(
    step: &mut Step<'_, My>,
    (conn, server): (Conn, Conn),
    packet: &Incoming<'_>,
    facts: Facts,
) {
    let Linked { client, server: s, ports, .. } = step.linked(conn, server);
    let session = &mut client.session;
    match packet.command {
        command::STMT_CLOSE => {
            if let Some((number, _)) = refrain_mysql_wire::prepared::statement(packet.body) {
                session.statements.retain(|statement| *statement != number);
            }
        }
        command::RESET_CONNECTION => {
            // The server forgets what it has to report.
            train::track(&mut s.session, ports.out(server));
        }
        command::SET_OPTION => {
            if let Some(has_several) = answers::option(packet.body) {
                settings::edit(&mut session.settings, |s| s.has_several = has_several);
                s.session.settings = session.settings.clone();
            }
        }
        _ => {}
    }
    if facts.wishes {
        train::ask_wishes(&mut s.session, ports.out(server));
    }
    // Behind a statement that loads a file comes the file.
    if facts.loads && session_has_files(&client.session) {
        client.await_replies();
    }
}

fn session_has_files(session: &ClientSession) -> bool {
    session.capabilities().has(Capabilities::LOCAL_FILES)
}

/// An error that a client is told.
#[derive(Clone, Copy)]
struct Told<'a> {
    code: ErrorCode,
    words: &'a str,
}

impl From<Fixed> for Told<'static> {
    fn from(Fixed { code, words }: Fixed) -> Self {
        Self { code, words }
    }
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

/// Whether a client has to wait until its server owes nothing. Then it waits for the replies.
fn has_to_wait(step: &mut Step<'_, My>, conn: Conn) -> bool {
    let Some(server) = step.server_of(conn) else { return false };
    let Linked { client, server, .. } = step.linked(conn, server);
    let owes = !server.session.commands.is_empty();
    if owes {
        client.await_replies();
    }
    owes
}

/// Refuses a command with an error, and drops it. Returns the number of bytes handled; `None` if
/// replies to the commands before it are still to come, which the error may not overtake.
fn refuse(
    step: &mut Step<'_, My>,
    conn: Conn,
    told: Told<'_>,
    (header, here): (Header, usize),
) -> Option<usize> {
    if has_to_wait(step, conn) {
        return None;
    }
    errors::write(step.ports.out(conn), 1, told.code, told.words.as_bytes());
    let client = step.engine.connections.client(conn)?;
    client.session.place = Place::default();
    client.session.reading = continued(header);
    client.inbox.expect(header.packet_bytes() - here, Rest::Nowhere);
    if let Some(server) = step.server_of(conn) {
        settle::settle(step, conn, server);
    }
    Some(here)
}
