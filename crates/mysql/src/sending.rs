//! Commands on their way to a server, or answered before they get there.

use refrain_mysql_wire::error_code::ErrorCode;
use refrain_mysql_wire::packet::{HEADER_BYTES, message};
use refrain_mysql_wire::{Header, Status, command};
use refrain_pool::client::Client;
use refrain_pool::core_state::CoreState;
use refrain_pool::ids::PoolId;
use refrain_pool::inbox::Rest;
use refrain_pool::server::Server;
use refrain_pool::{Conn, Linked, Now, Step};

use crate::commands::{self, Command, Sent};
use crate::errors::{self, Fixed};
use crate::hidden::May;
use crate::insert_id::{Before, Uses};
use crate::parts::{ClientSession, Leftover, My, Place, Reading, ServerSession};
use crate::pins::Pins;
use crate::presence::{self, Presence};
use crate::settings::Settings;
use crate::slots::{Guess, Outcome};
use crate::text::{Facts, Memory, Number, Tables, Verb};
use crate::{answers, settings, settle, train};

/// The serial of no server: none has what the client was told last.
const NOWHERE: u64 = u64::MAX;

/// The longest execution that is sent with a foretold number.
const FORETOLD_BYTES_MAX: usize = 64 * 1024;

/// A command, as far as it is here.
pub(crate) struct Incoming<'a> {
    pub(crate) header: Header,
    pub(crate) command: u8,
    /// The bytes behind the command's, as far as they are here.
    pub(crate) body: &'a [u8],
    /// The client's number of the prepared statement that it names; 0 for none.
    pub(crate) statement: u32,
}

impl Incoming<'_> {
    /// Returns the number of bytes that are here.
    pub(crate) fn here(&self) -> usize {
        HEADER_BYTES + 1 + self.body.len()
    }

    /// Whether the rest is still to come.
    fn is_part(&self) -> bool {
        self.here() < self.header.packet_bytes() || self.header.is_continued()
    }

    /// Whether it may be sent with a foretold number: it is kept until the number is known.
    fn may_follow(&self) -> bool {
        let is_whole = self.here() == self.header.packet_bytes();
        self.command == command::STMT_EXECUTE && is_whole && self.here() <= FORETOLD_BYTES_MAX
    }
}

/// Sends a command to a server, and notes what the server owes for it.
pub(crate) fn send(
    step: &mut Step<'_, My>,
    conn: Conn,
    packet: &Incoming<'_>,
    facts: Facts,
) -> Option<usize> {
    // What is sent behind a text that loads a file, of Refrain's own as well, would be taken for
    // the file. What a savepoint means depends on the replies before it. What the replies before a
    // part of a command have Refrain send would be taken for the rest.
    let waits = facts.manual_pins.is_any() || packet.is_part() || loads(step, conn, facts);
    if waits && has_to_wait(step, conn) {
        return None;
    }
    let linked = step.server_of(conn);
    if !linked.is_some_and(|server| owes(step, conn, server)) {
        let client = step.engine.connections.client(conn)?;
        let sequence = u8::from(commands::is_answered(packet.command));
        client.session.place = Place { sequence, ..Place::default() };
    }
    let server = match linked {
        Some(server) => server,
        None => step.lend(conn)?,
    };
    let Linked { client, server: s, .. } = step.linked(conn, server);
    // What a side connection is to end may be over, and nothing else may be hit.
    if s.session.commands.are_many() || s.is_cancelled() {
        client.await_replies();
        return None;
    }
    // A client that has waited for the server has it by now.
    train::renew_for(step, (conn, server));
    if let Some(handled) = insert_id_first(step, (conn, server), packet, facts.insert_id) {
        return handled;
    }
    // What gives a server the client's settings may leave warnings.
    let is_lent = linked.is_none() && facts.asks.conditions;
    if is_lent && (train::waits(step, conn, server) || has_to_wait(step, conn)) {
        return None;
    }
    if facts.asks != Memory::default() && !remembers(step, (conn, server), facts.asks) {
        let told = errors::DIAGNOSTICS_GONE.into();
        return refuse(step, conn, told, (packet.header, packet.here()));
    }
    let is_foretold = match present(step, (conn, server), packet) {
        Ok(is_foretold) => is_foretold,
        Err(handled) => return handled,
    };
    if train::waits(step, conn, server) {
        return None;
    }
    if packet.command == command::STMT_PREPARE {
        presence::make_room(step, (conn, server), packet.body.len());
    }
    step.request_begins(server);
    let Linked { now, client, server: s, ports, core_state } = step.linked(conn, server);
    if facts.wishes {
        train::put_wishes(&mut s.session, ports.out(server), &client.session.wishes);
    }
    write((&mut client.session, &mut s.session), packet, is_foretold, ports.out(server));
    let missing = packet.header.packet_bytes() - packet.here();
    client.inbox.expect(missing, Rest::On);
    let session = &mut client.session;
    session.reading = continued(packet.header);
    session.pins.add(facts.pins);
    note_verb(session, facts);
    let Incoming { command, statement, .. } = *packet;
    let text = number_of_text((core_state, s.pool()), &session.settings, packet);
    let sent = Sent { command, facts, statement, is_foretold, text };
    let command = Command::of_client(sent);
    let is_silent = command.is_none() && missing == 0;
    match command {
        Some(command) => s.session.commands.push(command),
        None if !s.session.commands.has_client_command() => session.place = Place::default(),
        None => {}
    }
    note_run((client, s), (core_state, now), packet, facts);
    note_effects(step, (conn, server), packet, facts);
    step.push_back_on_client(conn, server);
    if is_silent {
        // Nothing comes that would give the server back.
        settle::settle(step, conn, server);
    }
    Some(packet.here())
}

/// Returns the number under which a command's text is counted; 0 if it has none, or is counted with
/// others.
#[inline]
fn number_of_text(
    (core_state, pool): (&mut CoreState<My>, PoolId),
    settings: &Settings,
    packet: &Incoming<'_>,
) -> u64 {
    let core = &mut core_state.protocol;
    let text = (packet.body, || settings.has_multibyte_quotes());
    match packet.command {
        command::QUERY => core.texts.number(pool, text, &core.figures),
        _ => 0,
    }
}

/// Does what has to be done about the number that LAST_INSERT_ID() tells before a text that uses
/// it. Returns what [`send`] returns, if the text does not go.
fn insert_id_first(
    step: &mut Step<'_, My>,
    (conn, server): (Conn, Conn),
    packet: &Incoming<'_>,
    uses: Uses,
) -> Option<Option<usize>> {
    if uses == Uses::default() {
        return None;
    }
    let Linked { client, server: s, core_state, .. } = step.linked(conn, server);
    let readers = &core_state.pool(client.pool()).shared.protocol.readers;
    let before = train::insert_id(client, s).before(uses, readers);
    // The replies before may change it.
    if before != Before::Nothing && has_to_wait(step, conn) {
        return Some(None);
    }
    let Linked { client, server: s, ports, .. } = step.linked(conn, server);
    match before {
        Before::Nothing => None,
        Before::Give(number) => {
            train::insert_id(client, s).given(number);
            train::give_insert_id(&mut s.session, ports.out(server), number);
            None
        }
        Before::Ask => {
            train::ask_insert_id(&mut s.session, ports.out(server));
            client.await_replies();
            Some(None)
        }
        Before::Refuse => {
            let told = errors::DIAGNOSTICS_GONE.into();
            Some(refuse(step, conn, told, (packet.header, packet.here())))
        }
    }
}

/// Has a server get the statement that a command names. Returns whether its number is foretold; as
/// an error what [`send`] returns, if the command does not go.
fn present(
    step: &mut Step<'_, My>,
    (conn, server): (Conn, Conn),
    packet: &Incoming<'_>,
) -> Result<bool, Option<usize>> {
    if packet.statement == 0 {
        return Ok(false);
    }
    let brief = (packet.header, packet.here());
    let named = (packet.statement, packet.command, packet.body);
    match presence::ensure(step, (conn, server), named, packet.may_follow()) {
        Presence::There => Ok(false),
        Presence::Foretold => Ok(true),
        Presence::Waits => Err(None),
        Presence::Refused(error) if packet.command == command::STMT_SEND_LONG_DATA => {
            // It has no reply: the execution has the error.
            let client = step.engine.connections.client(conn).ok_or(None)?;
            let statements = &mut client.session.statements;
            statements.refused = Some((packet.statement, error));
            statements.edit(packet.statement, |held| held.has_long_data = false);
            let handled = skip(step, conn, brief);
            settle::settle(step, conn, server);
            Err(handled)
        }
        Presence::Refused(error) => {
            let handled = tell(step, conn, brief, |out, _| {
                message(out, 1, |out| out.extend_from_slice(&error));
            });
            Err(handled.and_then(|bytes| note_own_error(step, conn, bytes)))
        }
    }
}

/// Appends a command for a server, as far as it is here.
fn write(
    (client, server): (&mut ClientSession, &mut ServerSession),
    packet: &Incoming<'_>,
    is_foretold: bool,
    out: &mut Vec<u8>,
) {
    if packet.statement == 0 {
        out.reserve(packet.here());
        out.extend_from_slice(&packet.header.bytes());
        out.push(packet.command);
        return out.extend_from_slice(packet.body);
    }
    let (at, named) = (out.len(), (packet.header, packet.command, packet.body));
    presence::put((client, server), packet.statement, named, out);
    if is_foretold {
        server.slots.guess = Some(Guess { sent: out[at..].into(), outcome: Outcome::Right });
    }
}

/// Whether a server owes a client a reply.
fn owes(step: &mut Step<'_, My>, client: Conn, server: Conn) -> bool {
    step.linked(client, server).server.session.commands.has_client_command()
}

/// Whether a client's server has what the client's statements have left that a text asks about. If
/// they have left no warnings, those of others are cleared.
fn remembers(step: &mut Step<'_, My>, (conn, server): (Conn, Conn), asked: Memory) -> bool {
    let Linked { client, server: s, ports, .. } = step.linked(conn, server);
    // A list is that of the last statement.
    let of_last = Memory { last: asked.conditions, ..asked };
    let memory = memory(client, s);
    if memory.has(of_last) {
        return true;
    }
    let has_rest = memory.has(Memory { conditions: false, ..asked });
    // What is under way may leave some.
    let is_clear = !client.session.has_conditions && s.session.commands.is_empty();
    if !asked.conditions || !has_rest || !is_clear {
        return false;
    }
    if s.session.leftover == Leftover::Conditions {
        train::clear_conditions(&mut s.session, ports.out(server));
    }
    true
}

/// Returns what a server remembers of a client. The session of a client that has run nothing is as
/// new as that of a new server. Where a statement leaves the warnings of those before, another
/// server may have the client's.
fn memory(client: &Client<My>, server: &Server<My>) -> Memory {
    let is_last = server.session.last_client == Some(client.serial());
    if is_last && client.session.last_server == server.serial() {
        return client.session.memory;
    }
    let session = &client.session;
    let is_elsewhere = session.has_conditions
        && server.session.base.is_mariadb()
        && session.last_server != NOWHERE;
    let leftover = server.session.leftover;
    let conditions = leftover != Leftover::Conditions && !is_elsewhere;
    Memory { conditions, ..Memory::default() }
}

/// Notes that a client's command runs on a server. What is no statement leaves the counts and the
/// warnings of the one before, which may be another client's. SHOW WARNINGS leaves the counts.
fn note_run(
    (client, server): (&mut Client<My>, &mut Server<My>),
    (core_state, now): (&mut CoreState<My>, Now),
    packet: &Incoming<'_>,
    facts: Facts,
) {
    let mut memory = memory(client, server);
    let is_statement = commands::is_statement(packet.command);
    let is_new = is_statement && !facts.asks.conditions;
    (memory.last, memory.counts) = (memory.last | is_new, memory.counts | is_new);
    // Others leave KILL for the next statement.
    server.session.is_struck &= !is_statement;
    client.session.memory = memory;
    client.session.last_server = server.serial();
    server.session.last_client = Some(client.serial());
    if server.session.leftover == Leftover::Nothing {
        server.session.leftover = Leftover::Counts;
    }
    let may = if is_statement { May::of(&facts) } else { May::default() };
    if !may.is_none() && !train::has_noted(client, &server.session, may) {
        let may = may_leave(client, (core_state, now), packet, may);
        train::note_caller(client, &mut server.session, may);
    }
    if let (Number::Asked, Some(listed)) = (facts.number, &mut client.session.listed) {
        listed.note_told(server.pid());
    }
}

/// Returns in which of these ways a client's statement may leave something without a report.
fn may_leave(
    client: &Client<My>,
    (core_state, now): (&mut CoreState<My>, Now),
    packet: &Incoming<'_>,
    may: May,
) -> May {
    let changed = core_state.shared.protocol.views_changed();
    let pool = core_state.pool_in_use(client.pool());
    let (hidden, options) = (&pool.shared.protocol.hidden, &pool.settings.options);
    // The names of an old answer may lack the view that the text names.
    if !hidden.has_views() || !hidden.is_current(options, (changed, now)) {
        return may;
    }
    let text = match client.session.statements.get(packet.statement) {
        Some(held) if held.statement.is_whole => Some(&*held.statement.text),
        Some(_) => None,
        None => (!packet.header.is_continued()).then_some(packet.body),
    };
    let names = text.is_none_or(|text| hidden.names_view(text));
    if names { may } else { may.without_views() }
}

/// Notes what follows from the beginning of a text.
fn note_verb(session: &mut ClientSession, facts: Facts) {
    if facts.verb == Verb::Unlock {
        session.pins.remove(Pins::GLOBAL_LOCK);
    }
    // One statement of several may set `autocommit`.
    let is_manual = facts.has_several || !session.status.has(Status::AUTOCOMMIT);
    if is_manual {
        session.pins.add(facts.manual_pins);
    }
}

/// Does what has to follow a command at once.
fn note_effects(
    step: &mut Step<'_, My>,
    (conn, server): (Conn, Conn),
    packet: &Incoming<'_>,
    facts: Facts,
) {
    let Linked { now, client, server: s, core_state, ports } = step.linked(conn, server);
    let session = &mut client.session;
    if facts.tables == Tables::ChangeViews {
        core_state.shared.protocol.change(facts.tables, now);
    }
    match packet.command {
        command::RESET_CONNECTION => {
            // The server forgets what it has to report, and the client what it has. What comes
            // behind it counts from then on.
            train::track(&mut s.session, ports.out(server));
            client.await_replies();
        }
        command::SET_OPTION => {
            if let Some(has_several) = answers::option(packet.body) {
                settings::edit(&mut session.settings, |s| s.has_several = has_several);
                s.session.settings = session.settings.clone();
            }
        }
        _ => {}
    }
    // Behind a statement that loads a file comes the file.
    if facts.loads && client.session.has_files() {
        client.await_replies();
    } else if facts.wishes {
        train::ask_wishes(&mut s.session, ports.out(server));
    }
}

/// Whether a client's command may ask for a file.
fn loads(step: &mut Step<'_, My>, conn: Conn, facts: Facts) -> bool {
    let client = step.engine.connections.client(conn).filter(|_| facts.loads);
    client.is_some_and(|client| client.session.has_files())
}

/// An error that a client is told.
#[derive(Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) code: ErrorCode,
    pub(crate) words: &'a str,
}

impl From<Fixed> for Told<'static> {
    fn from(Fixed { code, words }: Fixed) -> Self {
        Self { code, words }
    }
}

/// Whether a client has to wait until its server owes nothing. Then it waits for the replies.
pub(crate) fn has_to_wait(step: &mut Step<'_, My>, conn: Conn) -> bool {
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
pub(crate) fn refuse(
    step: &mut Step<'_, My>,
    conn: Conn,
    told: Told<'_>,
    packet: (Header, usize),
) -> Option<usize> {
    let bytes = tell(step, conn, packet, |out, _| {
        errors::write(out, 1, told.code, told.words.as_bytes());
    })?;
    note_own_error(step, conn, bytes)
}

/// Notes that a client has got an error that no server has to ask about. Returns the number of
/// bytes handled.
fn note_own_error(step: &mut Step<'_, My>, conn: Conn, bytes: usize) -> Option<usize> {
    let session = &mut step.engine.connections.client(conn)?.session;
    (session.last_server, session.has_conditions) = (NOWHERE, true);
    Some(bytes)
}

/// Answers a command here, and drops it, as [`refuse`] does.
pub(crate) fn tell(
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
pub(crate) fn skip(
    step: &mut Step<'_, My>,
    conn: Conn,
    (header, here): (Header, usize),
) -> Option<usize> {
    let client = step.engine.connections.client(conn)?;
    client.session.reading = continued(header);
    client.inbox.expect(header.packet_bytes() - here, Rest::Nowhere);
    Some(here)
}

/// Returns what the packet behind one is.
pub(crate) fn continued(header: Header) -> Reading {
    if header.is_continued() { Reading::Continuation } else { Reading::Commands }
}
