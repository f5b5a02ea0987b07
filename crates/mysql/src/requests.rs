//! Input of clients that are logged in: commands go to servers, or are answered here.

use refrain_mysql_wire::error_code::ErrorCode;
use refrain_mysql_wire::packet::{HEADER_BYTES, message};
use refrain_mysql_wire::prepared;
use refrain_mysql_wire::reply::{OkPacket, first};
use refrain_mysql_wire::request::Request;
use refrain_mysql_wire::{Capabilities, Header, Status, command};
use refrain_pool::client::WaitingFor;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::inbox::Rest;
use refrain_pool::{Conn, Linked, Step};

use crate::commands::{self, Command, Sent};
use crate::errors::{self, Brand, Fixed};
use crate::login::LOGIN_BYTES_MAX;
use crate::parts::{ClientSession, My, Place, Reading};
use crate::pins::Pins;
use crate::presence::{self, Named, Presence};
use crate::slots::{Guess, Outcome, Pending};
use crate::statement::Draft;
use crate::statements::{self, Plan};
use crate::text::{self, Facts, Reads, Verb};
use crate::{answers, entering, settings, settle, train};

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
    if !is_whole && !matches!(handling, Handling::Quit | Handling::Refuse | Handling::Statement) {
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
        Handling::Local | Handling::Whole => {
            let packet = Incoming { header, command, body, statement: 0 };
            send(step, conn, &packet, Facts::default())
        }
        Handling::Statement => {
            named(step, conn, Incoming { header, command, body, statement: 0 }, is_whole)
        }
        Handling::Text | Handling::Prepare => {
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
            let packet = Incoming { header, command, body, statement: 0 };
            match handling {
                Handling::Prepare => prepare(step, conn, &packet, facts),
                _ => send(step, conn, &packet, facts),
            }
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

/// The longest execution that is sent with a foretold number.
const FORETOLD_BYTES_MAX: usize = 64 * 1024;

/// A command, as far as it is here.
struct Incoming<'a> {
    header: Header,
    command: u8,
    /// The bytes behind the command's, as far as they are here.
    body: &'a [u8],
    /// The client's number of the prepared statement that it names; 0 for none.
    statement: u32,
}

impl Incoming<'_> {
    /// Returns the number of bytes that are here.
    fn here(&self) -> usize {
        HEADER_BYTES + 1 + self.body.len()
    }

    /// Whether it may be sent with a foretold number: it is kept until the number is known.
    fn may_follow(&self) -> bool {
        let is_whole = self.here() == self.header.packet_bytes();
        self.command == command::STMT_EXECUTE && is_whole && self.here() <= FORETOLD_BYTES_MAX
    }
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
        return refuse(step, conn, told, (packet.header, packet.here()));
    }
    let mut is_foretold = false;
    if packet.statement != 0 {
        match presence::ensure(step, (conn, server), packet.statement, packet.may_follow()) {
            Presence::There => {}
            Presence::Foretold => is_foretold = true,
            Presence::Waits => return None,
            Presence::Refused(error) if packet.command == command::STMT_SEND_LONG_DATA => {
                // It has no reply: the execution has the error.
                let statements = &mut step.engine.connections.client(conn)?.session.statements;
                statements.refused = Some((packet.statement, error));
                statements.edit(packet.statement, |held| held.has_long_data = false);
                return skip(step, conn, (packet.header, packet.here()));
            }
            Presence::Refused(error) => {
                return tell(step, conn, (packet.header, packet.here()), |out, _| {
                    message(out, 1, |out| out.extend_from_slice(&error));
                });
            }
        }
    }
    if train::waits(step, conn, server) {
        return None;
    }
    if packet.command == command::STMT_PREPARE {
        presence::make_room(step, conn, server);
    }
    step.request_begins(server);
    let Linked { client, server: s, ports, .. } = step.linked(conn, server);
    let out = ports.out(server);
    let named = (packet.header, packet.command, packet.body);
    if packet.statement == 0 {
        put(named, out);
    } else {
        let sides = (&mut client.session, &mut s.session);
        let at = out.len();
        presence::put(sides, packet.statement, named, out);
        if is_foretold {
            s.session.slots.guess = Some(Guess { sent: out[at..].into(), outcome: Outcome::Right });
        }
    }
    let missing = packet.header.packet_bytes() - packet.here();
    client.inbox.expect(missing, Rest::On);
    let session = &mut client.session;
    session.reading = continued(packet.header);
    session.pins.add(facts.pins);
    note_verb(session, facts);
    let Incoming { command, statement, .. } = *packet;
    let sent = Sent { command, facts, statement, is_foretold };
    let command = Command::of_client(sent);
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
    Some(packet.here())
}

/// Appends a command as it came.
fn put((header, command, body): Named<'_>, out: &mut Vec<u8>) {
    out.reserve(HEADER_BYTES + 1 + body.len());
    out.extend_from_slice(&header.bytes());
    out.push(command);
    out.extend_from_slice(body);
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
    packet: (Header, usize),
) -> Option<usize> {
    tell(step, conn, packet, |out, _| {
        errors::write(out, 1, told.code, told.words.as_bytes());
    })
}

/// Answers a command here, and drops it, as [`refuse`] does.
fn tell(
    step: &mut Step<'_, My>,
    conn: Conn,
    packet: (Header, usize),
    answer: impl FnOnce(&mut Vec<u8>, &ClientSession),
) -> Option<usize> {
    if has_to_wait(step, conn) {
        return None;
    }
    let client = step.engine.connections.client(conn)?;
    answer(step.ports.out(conn), &client.session);
    client.session.place = Place::default();
    skip(step, conn, packet)?;
    if let Some(server) = step.server_of(conn) {
        settle::settle(step, conn, server);
    }
    let (_, here) = packet;
    Some(here)
}

/// Drops a command. Returns the number of bytes handled; `None` if the client is gone.
fn skip(step: &mut Step<'_, My>, conn: Conn, (header, here): (Header, usize)) -> Option<usize> {
    let client = step.engine.connections.client(conn)?;
    client.session.reading = continued(header);
    client.inbox.expect(header.packet_bytes() - here, Rest::Nowhere);
    Some(here)
}

/// Sends a text to be prepared.
fn prepare(
    step: &mut Step<'_, My>,
    conn: Conn,
    packet: &Incoming<'_>,
    facts: Facts,
) -> Option<usize> {
    // The settings under which it is prepared are exact when nothing is under way.
    if has_to_wait(step, conn) {
        return None;
    }
    let client = step.engine.connections.client(conn)?;
    let options = &step.engine.core_state.pool(client.pool()).settings.options;
    let most = options.max_client_statements;
    if client.session.statements.len() >= most as usize {
        let code = refrain_mysql_wire::error_code::MAX_PREPARED_STMT_COUNT_REACHED;
        let words = errors::too_many_statements(most);
        return refuse(step, conn, Told { code, words: &words }, (packet.header, packet.here()));
    }
    let is_whole = !packet.header.is_continued();
    // What preparing leaves behind is the statement alone, unless its text is not known whole.
    let now = Facts { pins: if is_whole { Pins::NONE } else { facts.pins }, ..Facts::default() };
    let bytes = send(step, conn, packet, now)?;
    let server = step.server_of(conn)?;
    let Linked { server, .. } = step.linked(conn, server);
    let draft = Draft { text: packet.body.into(), is_whole, facts };
    server.session.slots.pending = Some(Pending::New(draft));
    Some(bytes)
}

/// Handles a command that names a prepared statement.
fn named(
    step: &mut Step<'_, My>,
    conn: Conn,
    mut packet: Incoming<'_>,
    is_whole: bool,
) -> Option<usize> {
    let brief = (packet.header, packet.here());
    let is_silent = matches!(packet.command, command::STMT_CLOSE | command::STMT_SEND_LONG_DATA);
    let Some((mut number, _)) = prepared::statement(packet.body) else {
        return match (is_whole, is_silent) {
            (false, _) => None,
            (true, true) => skip(step, conn, brief),
            (true, false) => refuse(step, conn, errors::MALFORMED.into(), brief),
        };
    };
    if number == prepared::LAST_PREPARED && has_to_wait(step, conn) {
        return None;
    }
    let session = &mut step.engine.connections.client(conn)?.session;
    let brand = session.brand.unwrap_or(Brand::MySql);
    if number == prepared::LAST_PREPARED && brand == Brand::MariaDb {
        number = session.statements.latest.unwrap_or(number);
    }
    let is_complete = is_whole && !packet.header.is_continued();
    let facts = session.statements.get(number).map(|held| held.statement.facts);
    packet.statement = number;
    let named = (packet.header, packet.command, packet.body);
    match statements::plan(session, number, named, is_complete) {
        Plan::Reads => None,
        Plan::Refuse(code, words) => refuse(step, conn, Told { code, words: &words }, brief),
        Plan::Drop => skip(step, conn, brief),
        Plan::Close => {
            close(step, conn, number);
            skip(step, conn, brief)
        }
        Plan::Answer => tell(step, conn, brief, |out, session| {
            let ok = OkPacket { status: session.status, ..OkPacket::default() };
            message(out, 1, |out| ok.write(out, first::OK, Capabilities::NONE));
        }),
        Plan::Send => send(step, conn, &packet, Facts::default()),
        Plan::Execute => send(step, conn, &packet, facts.unwrap_or_default()),
    }
}

/// Forgets a client's statement. Its server keeps it for others, unless something of the client is
/// in it.
fn close(step: &mut Step<'_, My>, conn: Conn, number: u32) {
    let Some(client) = step.engine.connections.client(conn) else { return };
    let Some(held) = client.session.statements.remove(number) else { return };
    let Some(server) = step.server_of(conn) else { return };
    let Linked { server: s, ports, .. } = step.linked(conn, server);
    let session = &mut s.session;
    if !held.is_bound() && session.commands.is_empty() {
        return;
    }
    if let Some(id) = session.slots.remove(&held) {
        commands::close(ports.out(server), id);
    }
    settle::settle(step, conn, server);
}
