//! The train in front of a client's command: it gives a server the settings that it lacks.

use std::sync::Arc;

use refrain_mysql_wire::command;
use refrain_mysql_wire::request::{MULTI_STATEMENTS_OFF, MULTI_STATEMENTS_ON};
use refrain_pool::client::Client;
use refrain_pool::core_state::CoreState;
use refrain_pool::ids::PoolId;
use refrain_pool::server::Server;
use refrain_pool::{Conn, Linked, Now, Step};

use crate::commands::{self, Purpose};
use crate::hidden::{self, Asked, Caller, May};
use crate::insert_id::{self, Kept, Sides};
use crate::parts::{Leftover, My, ServerSession, Transaction, Untold};
use crate::settings::{self, Settings};
use crate::wishes::{self, Wishes};

/// Has KILL hit a statement that does nothing, if it may hit the next one. Returns whether it may.
/// MySQL forgets an error by such a statement, MariaDB does not.
pub(crate) fn absorb(session: &mut ServerSession, out: &mut Vec<u8>) -> bool {
    let is_due = std::mem::take(&mut session.is_struck);
    if is_due {
        let nothing = (command::QUERY, &b"DO 0"[..]);
        commands::send(&mut session.commands, out, nothing, Purpose::Absorb);
        let keeps_error = session.base.is_mariadb() && session.transaction == Transaction::Unsure;
        if !keeps_error {
            session.last_client = None;
        }
        // The statement has the error if it is hit.
        session.leftover = Leftover::Conditions;
    }
    is_due
}

/// Sends a server a command of Refrain's own. All of them go through here, since none may be hit by
/// KILL: in front of the first one goes the statement that is there to be hit. COM_PING is not hit,
/// and leaves KILL for the next statement.
pub(crate) fn send(
    session: &mut ServerSession,
    out: &mut Vec<u8>,
    (byte, body): (u8, &[u8]),
    purpose: Purpose,
) {
    if byte != command::PING {
        absorb(session, out);
    }
    commands::send(&mut session.commands, out, (byte, body), purpose);
}

/// Sends a server a statement of Refrain's own.
pub(crate) fn send_text(
    session: &mut ServerSession,
    out: &mut Vec<u8>,
    text: &[u8],
    purpose: Purpose,
) {
    send(session, out, (command::QUERY, text), purpose);
}

/// Gives a client's server the client's settings. Returns whether the client's command has to wait:
/// if the schema is not there any more, the command must not run in another one.
pub(crate) fn waits(step: &mut Step<'_, My>, client: Conn, conn: Conn) -> bool {
    let Linked { client, server, ports, core_state, .. } = step.linked(client, conn);
    let session = &mut server.session;
    if Arc::ptr_eq(&client.session.settings, &session.settings) {
        return false;
    }
    let interned = &mut core_state.protocol.settings;
    interned.intern(&mut client.session.settings);
    interned.intern(&mut session.settings);
    let wanted = client.session.settings.clone();
    if Arc::ptr_eq(&wanted, &session.settings) {
        return false;
    }
    let waits = give(session, ports.out(conn), &wanted, [Purpose::Settings, Purpose::Schema]);
    if waits {
        client.await_replies();
    }
    waits
}

/// Gives a client's server the settings under which a statement of the client was prepared, for the
/// time that it takes to prepare it again. The client's command waits for that.
pub(crate) fn detour(
    step: &mut Step<'_, My>,
    (client, conn): (Conn, Conn),
    environment: &Settings,
) {
    let Linked { client, server, ports, .. } = step.linked(client, conn);
    let session = &mut server.session;
    // Those of another client that do not change a text's meaning may still refuse the text, as the
    // access mode of transactions does.
    let wanted = Arc::new(client.session.settings.put_in(environment));
    give(session, ports.out(conn), &wanted, [Purpose::Detour, Purpose::DetourSchema]);
    client.await_replies();
}

/// Appends what gives a server other settings. The purposes are those of variables and of the
/// schema. Returns whether the schema is among them.
fn give(
    session: &mut ServerSession,
    out: &mut Vec<u8>,
    wanted: &Arc<Settings>,
    [variables, of_schema]: [Purpose; 2],
) -> bool {
    let has = session.settings.clone();
    if wanted.has_several != has.has_several {
        let option = if wanted.has_several { MULTI_STATEMENTS_ON } else { MULTI_STATEMENTS_OFF };
        let command = (command::SET_OPTION, &option.to_le_bytes()[..]);
        send(session, out, command, variables);
    }
    if let Some(text) = wanted.statement(&has, &session.base) {
        send_text(session, out, &text, variables);
    }
    let mut waits = false;
    if let Some(schema) = wanted.schema.as_deref().filter(|_| wanted.schema != has.schema) {
        let command = (command::INIT_DB, schema);
        send(session, out, command, of_schema);
        waits = true;
    }
    session.settings = wanted.clone();
    // These clear what the last statement has left to ask about, and the command that they are for
    // may never come.
    session.last_client = None;
    waits
}

/// Whether a server has noted that a client's statement may have left something in these ways.
pub(crate) fn has_noted(client: &Client<My>, server: &ServerSession, may: May) -> bool {
    let (serial, ended_before) = (client.serial(), client.session.ended_before);
    let has = |caller: &Caller| caller.may.has(may) && caller.is(serial, ended_before);
    server.caller.as_ref().is_some_and(has)
}

/// Notes what a client's statement may leave without a report.
pub(crate) fn note_caller(client: &Client<My>, server: &mut ServerSession, may: May) {
    if may.is_none() {
        return;
    }
    let ended_before = client.session.ended_before;
    match &mut server.caller {
        Some(caller) if caller.is(client.serial(), ended_before) => caller.may.add(may),
        other => *other = Some(Caller { client: client.serial(), ended_before, may }),
    }
}

/// Makes a server as new for a client's session, where the statements of another may have left
/// something without a report, which must not reach the client.
pub(crate) fn renew_for(step: &mut Step<'_, My>, (client, conn): (Conn, Conn)) {
    let Linked { now, client: c, server, ports, core_state } = step.linked(client, conn);
    let (serial, ended_before) = (c.serial(), c.session.ended_before);
    let others = server.session.caller.filter(|other| !other.is(serial, ended_before));
    let Some(caller) = others else { return };
    if leaves(core_state, c.pool(), caller.may, now) {
        renew(&mut server.session, ports.out(conn));
        let hidden = &core_state.pool_in_use(c.pool()).shared.protocol.hidden;
        // No transaction begins by that behind a reset.
        if let Some(asked) = hidden.ask(now) {
            ask_catalog(&mut server.session, ports.out(conn), asked);
        }
        return;
    }
    server.session.caller = None;
}

/// Whether statements have to be taken to have left something without a report, in a pool.
pub(crate) fn leaves(core_state: &mut CoreState<My>, pool: PoolId, may: May, now: Now) -> bool {
    let changed = core_state.shared.protocol.views_changed();
    let pool = core_state.pool_in_use(pool);
    pool.shared.protocol.hidden.matters(may, &pool.settings.options, (changed, now))
}

/// Has a server that owes nothing make its session as new.
pub(crate) fn renew(session: &mut ServerSession, out: &mut Vec<u8>) {
    (session.is_dirty, session.caller) = (false, None);
    send(session, out, (command::RESET_CONNECTION, b""), Purpose::Reset);
    session.settings = Arc::new(session.settings.reset());
    // MariaDB keeps the schema and forgets its character set, until it is named again.
    if session.base.is_mariadb() && session.settings.schema.is_some() {
        settings::edit(&mut session.settings, |settings| settings.schema = Some(Box::default()));
    }
    session.slots.clear();
    (session.untold, session.is_unasked) = (Untold::Nothing, false);
    session.leftover = Leftover::Nothing;
    session.insert_id = Kept::default();
    track(session, out);
}

/// Has a server report changes again, behind a reset.
pub(crate) fn track(session: &mut ServerSession, out: &mut Vec<u8>) {
    let text = session.base.tracking();
    send_text(session, out, &text, Purpose::Tracking);
}

/// Gives a server the wishes of a client, in front of a statement that may change them.
pub(crate) fn put_wishes(session: &mut ServerSession, out: &mut Vec<u8>, wishes: &Wishes) {
    let text = wishes.statement();
    send_text(session, out, &text, Purpose::Tracking);
}

/// Asks for the client's own wishes behind a statement that may have changed them, and has the
/// server report what Refrain needs. What else the statement may have set was not reported.
pub(crate) fn ask_wishes(session: &mut ServerSession, out: &mut Vec<u8>) {
    send_text(session, out, wishes::QUESTION, Purpose::Wishes);
    track(session, out);
    ask_variables(session, out);
    // The questions have cleared what the statement has left to ask about.
    session.last_client = None;
}

/// Has MariaDB report all changes that it has not reported, by a report on a variable that stays as
/// it is. Such a report says that the state has changed as well, unless that is not to be reported.
/// The statement leaves all that later statements may ask about but the count.
const TELL: &[u8] = b"SET @@session.session_track_state_change=OFF, \
    @@session.lock_wait_timeout=@@session.lock_wait_timeout";
/// Has MariaDB report changes of the state again.
const TELL_STATE: &[u8] = b"SET @@session.session_track_state_change=ON";

/// Returns the purpose of the question what has changed that no reply has told.
pub(crate) fn purpose_of_question(session: &ServerSession) -> Purpose {
    match session.untold {
        Untold::SetBack => Purpose::AskSetBack,
        Untold::Nothing | Untold::Any => Purpose::Ask,
    }
}

/// Asks whether a transaction is open, and what has changed that no reply has told. In MySQL each
/// OK packet has all of that, in MariaDB one that reports anything.
pub(crate) fn ask(session: &mut ServerSession, out: &mut Vec<u8>) {
    let purpose = purpose_of_question(session);
    if !session.base.is_mariadb() {
        return send(session, out, (command::PING, b""), purpose);
    }
    if std::mem::take(&mut session.is_unasked) {
        ask_variables(session, out);
        // The question clears what the statement has left to ask about.
        session.last_client = None;
        session.leftover = Leftover::Counts;
    }
    send_text(session, out, TELL, purpose);
    send_text(session, out, TELL_STATE, Purpose::Tracking);
}

/// Asks for all variables that a session can set.
fn ask_variables(session: &mut ServerSession, out: &mut Vec<u8>) {
    let text = match session.base.is_mariadb() {
        true => settings::SETTABLE_OF_MARIADB,
        false => settings::SETTABLE_OF_MYSQL,
    };
    send_text(session, out, text, Purpose::Variables);
}

/// Asks for the collation that a statement has set without a report.
pub(crate) fn ask_collation(session: &mut ServerSession, out: &mut Vec<u8>) {
    // LIMIT is for sessions whose `sql_select_limit` is 0.
    let text = b"SELECT @@collation_connection LIMIT 1";
    send_text(session, out, text, Purpose::Collation);
    session.last_client = None;
}

/// Returns the number that LAST_INSERT_ID() tells, on both sides.
pub(crate) fn insert_id<'a>(client: &'a mut Client<My>, server: &'a mut Server<My>) -> Sides<'a> {
    Sides {
        client: client.serial(),
        own: &mut client.session.insert_id,
        server: server.serial(),
        kept: &mut server.session.insert_id,
    }
}

/// Asks for the number that LAST_INSERT_ID() tells.
pub(crate) fn ask_insert_id(session: &mut ServerSession, out: &mut Vec<u8>) {
    send_text(session, out, insert_id::QUESTION, Purpose::InsertId);
    session.last_client = None;
}

/// Asks the catalog for views and triggers that may leave something in a session.
pub(crate) fn ask_catalog(session: &mut ServerSession, out: &mut Vec<u8>, asked: Asked) {
    let text = hidden::QUESTION.as_bytes();
    send_text(session, out, text, Purpose::Catalog);
    session.asked = Some(asked);
    session.last_client = None;
    // Views that a server cannot read leave warnings.
    session.leftover = Leftover::Conditions;
}

/// Gives a server the number that LAST_INSERT_ID() tells.
pub(crate) fn give_insert_id(session: &mut ServerSession, out: &mut Vec<u8>, number: u64) {
    let text = format!("SET @@session.last_insert_id={number}");
    send_text(session, out, text.as_bytes(), Purpose::GiveInsertId);
    session.last_client = None;
}

/// Clears the warnings and the error that other clients have left.
pub(crate) fn clear_conditions(session: &mut ServerSession, out: &mut Vec<u8>) {
    // Only statements that use a table clear them in MariaDB.
    let text = b"DO (SELECT 1 FROM (SELECT 1) AS t)";
    send_text(session, out, text, Purpose::Clear);
    session.last_client = None;
    session.leftover = Leftover::Counts;
}
