//! Commands that prepare statements, or name them.

use refrain_mysql_wire::error_code::{self, ErrorCode};
use refrain_mysql_wire::packet::PAYLOAD_BYTES_MAX;
use refrain_mysql_wire::prepared::{self, Execute};
use refrain_mysql_wire::{Capabilities, command};
use refrain_pool::{Conn, Linked, Step};

use crate::errors::{self, Brand};
use crate::parts::{ClientSession, My};
use crate::pins::Pins;
use crate::presence::Named;
use crate::sending::{Incoming, Told, has_to_wait, refuse, send, skip, tell};
use crate::slots::Pending;
use crate::statement::Draft;
use crate::text::{Facts, Variables};
use crate::{answers, commands, settle};

/// The handling of a command that names a prepared statement.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// More of it has to be here.
    Reads,
    /// It has to wait for the replies that are to come: they say which types a server has read.
    Waits,
    /// It is dropped in silence.
    Drop,
    /// The client's statement is forgotten.
    Close,
    /// The client is told that it has succeeded.
    Answer,
    /// The client gets this error.
    Refuse(ErrorCode, String),
    /// The client's server gets it.
    Send,
    /// The client's server gets it, and it does what the statement's text says.
    Execute,
}

/// Sends a text to be prepared.
pub(crate) fn prepare(
    step: &mut Step<'_, My>,
    conn: Conn,
    packet: &Incoming<'_>,
    facts: Facts,
) -> Option<usize> {
    // The settings under which it is prepared are exact when nothing is under way or untold.
    if settle::has_to_learn(step, conn) {
        return None;
    }
    let client = step.engine.connections.client(conn)?;
    let options = &step.engine.core_state.pool(client.pool()).settings.options;
    let most = options.max_client_statements;
    let limits = (most as usize, options.max_client_statement_bytes);
    if !client.session.statements.has_room(packet.body.len(), limits) {
        let code = error_code::MAX_PREPARED_STMT_COUNT_REACHED;
        let words = errors::too_many_statements(most);
        return refuse(step, conn, Told { code, words: &words }, (packet.header, packet.here()));
    }
    let is_whole = !packet.header.is_continued();
    if is_whole && let Some(handled) = prepare_here(step, conn, packet) {
        return Some(handled);
    }
    // What preparing leaves behind is the statement alone, unless its text is not known whole. It
    // sets variables that are for the time of one statement, and sets them back.
    let pins = if is_whole { Pins::NONE } else { facts.pins };
    let (verb, variables) = match facts.variables {
        Variables::SetBack => (facts.verb, facts.variables),
        Variables::Stay => <_>::default(),
    };
    let now = Facts { pins, verb, variables, ..Facts::default() };
    let bytes = send(step, conn, packet, now)?;
    let server = step.server_of(conn)?;
    let since = step.engine.core_state.shared.protocol.moment(step.now);
    let Linked { server, .. } = step.linked(conn, server);
    let draft = Draft { text: packet.body.into(), is_whole, facts, since };
    server.session.slots.pending = Some(Pending::New(draft));
    Some(bytes)
}

/// Answers a PREPARE whose reply is known, for a client whose session has nothing that another
/// would not have. Returns the number of bytes handled; `None` if a server has to prepare the text.
fn prepare_here(step: &mut Step<'_, My>, conn: Conn, packet: &Incoming<'_>) -> Option<usize> {
    let client = step.engine.connections.client(conn)?;
    // A server that prepares forgets the warnings of the statement before.
    if client.session.pins.is_any() || client.session.left.warnings {
        return None;
    }
    let core_state = &mut step.engine.core_state;
    let now = core_state.shared.protocol.moment(step.now);
    let age_max = core_state.pool(client.pool()).settings.options.definition_max_age;
    let age_max = u64::try_from(age_max.as_micros()).unwrap_or(u64::MAX);
    let identity = (client.pool(), &*client.session.settings, packet.body);
    let (statement, definitions) = core_state.protocol.statements.find(identity)?;
    if !definitions.hold(now, age_max) {
        return None;
    }
    let (statement, definitions) = (statement.clone(), definitions.clone());
    let number = client.session.statements.add(statement, definitions.parameters);
    tell(step, conn, (packet.header, packet.here()), |out, session| {
        definitions.write(out, number, session.status);
    })
}

/// Handles a command that names a prepared statement.
pub(crate) fn named(
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
            (true, false) => {
                let brand = step.engine.connections.client(conn)?.session.brand;
                let told = errors::malformed(brand.unwrap_or(Brand::MySql));
                refuse(step, conn, told.into(), brief)
            }
        };
    };
    if number == prepared::LAST_PREPARED && has_to_wait(step, conn) {
        return None;
    }
    // An execution under way takes the parts that have come before it alone.
    if packet.command == command::STMT_SEND_LONG_DATA && has_to_wait(step, conn) {
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
    let parts = (packet.header, packet.command, packet.body);
    let mut plan = decide(session, number, parts, (is_complete, false));
    if plan == Plan::Waits && !has_to_wait(step, conn) {
        let session = &mut step.engine.connections.client(conn)?.session;
        plan = decide(session, number, parts, (is_complete, true));
    }
    match plan {
        Plan::Reads | Plan::Waits => None,
        Plan::Refuse(code, words) => {
            let bytes = refuse(step, conn, Told { code, words: &words }, brief)?;
            if packet.command == command::STMT_EXECUTE {
                drop_parts(step, conn, number);
            }
            Some(bytes)
        }
        Plan::Drop => skip(step, conn, brief),
        Plan::Close => {
            close(step, conn, number);
            skip(step, conn, brief)
        }
        Plan::Answer if !settle::has_to_learn(step, conn) => {
            tell(step, conn, brief, |out, session| answers::ok(out, session.status))
        }
        Plan::Answer => None,
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

/// Drops the parts of values that a statement of a client has got, as a server does that refuses an
/// execution.
fn drop_parts(step: &mut Step<'_, My>, conn: Conn, number: u32) {
    let Some(client) = step.engine.connections.client(conn) else { return };
    let statements = &mut client.session.statements;
    if !statements.get(number).is_some_and(|held| held.has_long_data) {
        return;
    }
    let Some(server) = step.server_of(conn) else { return };
    let Linked { client, server: s, ports, .. } = step.linked(conn, server);
    let statements = &mut client.session.statements;
    let held =
        statements.edit(number, |held| (held.has_long_data, held.has_cursor) = (false, false));
    if let Some(id) = held.and_then(|held| s.session.slots.remove(held)) {
        commands::close(ports.out(server), id);
    }
    settle::settle(step, conn, server);
}

/// Decides on a command that names a statement of the client by this number, and notes what it
/// leaves in the statement. `is_free` says that no reply is to come.
fn decide(
    session: &mut ClientSession,
    number: u32,
    named: Named<'_>,
    (is_complete, is_free): (bool, bool),
) -> Plan {
    let brand = session.brand.unwrap_or(Brand::MySql);
    let (_, command, _) = named;
    let Some(held) = session.statements.get(number) else { return unknown(command, number, brand) };
    match command {
        command::STMT_CLOSE => Plan::Close,
        command::STMT_RESET if !held.is_bound() => Plan::Answer,
        command::STMT_FETCH if !held.has_cursor => {
            let words = errors::no_cursor(number, brand);
            Plan::Refuse(error_code::STMT_HAS_NO_OPEN_CURSOR, words)
        }
        command::STMT_SEND_LONG_DATA => {
            session.statements.edit(number, |held| held.has_long_data = true);
            Plan::Send
        }
        command::STMT_EXECUTE => execute(session, number, named, (is_complete, is_free)),
        _ => Plan::Send,
    }
}

/// Decides on a command with a number that the client does not have.
fn unknown(command: u8, number: u32, brand: Brand) -> Plan {
    let function = match command {
        command::STMT_EXECUTE => "mysqld_stmt_execute",
        command::STMT_RESET => "mysqld_stmt_reset",
        command::STMT_FETCH => "mysqld_stmt_fetch",
        _ => return Plan::Drop,
    };
    let words = errors::unknown_statement(number, function, brand);
    Plan::Refuse(error_code::UNKNOWN_STMT_HANDLER, words)
}

/// Decides on an execution, and notes its types.
fn execute(
    session: &mut ClientSession,
    number: u32,
    (header, _, body): Named<'_>,
    (is_complete, is_free): (bool, bool),
) -> Plan {
    let brand = session.brand.unwrap_or(Brand::MySql);
    let unfit = || {
        let fixed = errors::unfit_execution(brand);
        Plan::Refuse(fixed.code, fixed.words.to_owned())
    };
    let Some(held) = session.statements.get(number) else { return Plan::Drop };
    let head = match Execute::read(body, held.parameters, Capabilities::NONE, is_complete) {
        Err(_) => return unfit(),
        Ok(None) => return Plan::Reads,
        Ok(Some(head)) => head,
    };
    let has_others = head.types != held.types.as_deref();
    // The error of an execution under way may be about the types of that, and not about these.
    let replaces = head.types.is_some() && held.types.is_some();
    if has_others && !is_free && (replaces || held.before.is_some()) {
        return Plan::Waits;
    }
    // NULL needs no type.
    let has_values = (0..usize::from(held.parameters))
        .any(|at| head.nulls.get(at / 8).is_none_or(|byte| byte >> (at % 8) & 1 == 0));
    if head.types.is_none() && held.types.is_none() && has_values {
        return unfit();
    }
    // Types cannot be put into a packet that is full: the client keeps the server that has them.
    let room = PAYLOAD_BYTES_MAX - 2 * u32::from(held.parameters);
    let is_full = header.payload >= room;
    if is_full {
        session.pins.add(Pins::VARIABLES);
    }
    let types = head.types.filter(|_| has_others).map(|types| held.statement.types(types));
    session.statements.edit(number, |held| {
        held.is_full = is_full && head.types.is_none();
        if let Some(types) = types {
            held.take_types(types);
        }
    });
    Plan::Execute
}
