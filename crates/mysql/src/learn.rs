//! The consequences of a reply for the sessions of both sides: changes that the server reports,
//! and flags.

use std::sync::Arc;

use refrain_mysql_wire::reply::{EofPacket, OkPacket, first};
use refrain_mysql_wire::track::Change;
use refrain_mysql_wire::{Capabilities, Malformed, Status, command};

use crate::commands::{Goes, Purpose, ReadPacket, Sent};
use crate::errors::Brand;
use crate::insert_id::Own;
use crate::parts::{ClientSession, Left, ServerSession, Transaction, Untold};
use crate::pins::Pins;
use crate::reply::Part;
use crate::settings::{Base, edit};
use crate::text::{Calls, Facts, Tables, Variables, Verb};
use crate::wishes::Wishes;

/// Learns from the flags at the end of a result, or from the error in their place.
pub(crate) fn learn_status(server: &mut ServerSession, packet: &ReadPacket<'_>) {
    match packet.taken.status {
        Some(status) if packet.taken.part == Part::End => {
            let is_ok = packet.payload.len() > EofPacket::BYTES;
            let tells_none = is_ok && !status.has(Status::SESSION_STATE_CHANGED);
            // In MariaDB there may be changes that the OK packet does not tell.
            if server.untold != Untold::Nothing && tells_none && !server.base.is_mariadb() {
                server.untold = Untold::Nothing;
            }
            let is_open = status.has(Status::IN_TRANS);
            server.transaction = if is_open { Transaction::Open } else { Transaction::None };
        }
        None if packet.is_error() => {
            match server.commands.first().map(|command| &command.goes) {
                // A statement that does nothing changes nothing if it is hit by KILL.
                Some(Goes::Here(Purpose::Absorb)) => return,
                Some(Goes::On(sent)) => server.untold = server.untold.max(untold(sent)),
                _ => {}
            }
            server.transaction = Transaction::Unsure;
        }
        _ => {}
    }
}

/// Returns the changes that a command may have made and that a reply does not tell.
pub(crate) fn untold(sent: &Sent) -> Untold {
    let is_set_back = sent.facts.variables == Variables::SetBack;
    if is_set_back && sets_only(sent) { Untold::SetBack } else { Untold::Any }
}

/// Whether a text sets variables or the schema, and does nothing else that servers report.
fn sets_only(sent: &Sent) -> bool {
    let Facts { verb, has_several, calls, tables, .. } = sent.facts;
    let sets = matches!(verb, Verb::Set | Verb::Use);
    sets && !has_several && calls != Calls::Any && tables == Tables::Stay
}

/// Learns from the flags that a client gets.
pub(crate) fn learn_flags(client: &mut ClientSession, status: Status) {
    let was_open = client.status.has(Status::IN_TRANS);
    if was_open && !status.has(Status::IN_TRANS) {
        client.pins.remove(Pins::SAVEPOINT);
        // A statement that fails and ends the transaction does not report it.
        client.pins.remove(Pins::NEXT_TRANSACTION);
    }
    client.status = status.of_session();
}

/// Learns what the end of a reply has left in the session. Returns the number of a row that an OK
/// packet has.
pub(crate) fn learn_left(
    client: &mut ClientSession,
    packet: &ReadPacket<'_>,
    agreed: Capabilities,
    sent: &Sent,
) -> Option<u64> {
    let is_statement = sent.is_statement();
    let had_warnings = client.left.warnings;
    let memory = &mut client.memory;
    // Lists such as SHOW WARNINGS leave the number, and which of them do differs.
    let counts_rows = is_statement && sent.facts.verb == Verb::Select;
    memory.found_rows |= counts_rows && packet.payload.first() == Some(&first::EOF);
    let ok = OkPacket::read(packet.payload, agreed).ok();
    client.left = if let Some(ok) = &ok {
        let counts = ok.affected_rows > 0 || ok.last_insert_id > 0;
        Left { warnings: ok.warnings > 0, counts }
    } else {
        let eof = EofPacket::read(packet.payload, Capabilities::NONE);
        let warnings = packet.is_error() || eof.is_ok_and(|eof| eof.warnings > 0);
        Left { warnings, counts: false }
    };
    // A list of them leaves them.
    client.left.warnings |= had_warnings && sent.facts.asks.conditions;
    memory.conditions |= client.left.warnings;
    // In MariaDB a statement without tables leaves those from before.
    let has_tables = sent.facts.verb == Verb::Write && !sent.facts.has_several;
    let is_clearing = client.brand == Some(Brand::MySql) || has_tables;
    let clears = is_statement && is_clearing && !sent.facts.asks.conditions;
    client.has_conditions = client.left.warnings || client.has_conditions && !clears;
    // The one behind rows has none.
    ok.filter(|_| packet.payload.first() == Some(&first::OK)).map(|ok| ok.last_insert_id)
}

/// Changes that the server reports without all that comes with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lacking {
    /// The collation, which may have been set with a character set.
    pub(crate) collation: bool,
}

/// Learns from the changes that a reply to a client's command reports.
pub(crate) fn learn_changes(
    client: &mut ClientSession,
    server: &mut ServerSession,
    (ok, sent): (&OkPacket<'_>, &Sent),
) -> Result<Lacking, Malformed> {
    server.untold = Untold::Nothing;
    let mut reported = Reported::default();
    for change in ok.changes.iter() {
        match change? {
            Change::SystemVariable { name, value } => {
                reported.note(name);
                if server.base.tracks(name) {
                    let base = server.base.clone();
                    edit(&mut client.settings, |settings| {
                        settings.forget_other(name);
                        settings.set(&base, name, value);
                    });
                } else if !(sent.facts.wishes && Wishes::have(name)) {
                    client.pins.add(Pins::SPECIAL);
                }
            }
            Change::Schema(name) => {
                reported.setting = true;
                if client.agreed().is_some_and(|agreed| agreed.schema.is_empty()) {
                    client.pins.add(Pins::SCHEMA);
                }
                let schema = (!name.is_empty()).then(|| name.into());
                edit(&mut client.settings, |settings| settings.schema = schema);
            }
            Change::State(_) => reported.state = true,
            Change::TransactionState(letters) => {
                client.pins.put(Pins::TABLE_LOCK, letters.last() == Some(&b'L'));
            }
            Change::TransactionCharacteristics(text) => {
                client.pins.put(Pins::NEXT_TRANSACTION, !text.is_empty());
            }
            Change::Other(..) => {}
        }
    }
    // A setting is a change of the state as well. Where both are reported and more than a setting
    // may have changed, the rest is taken to have changed, too.
    // What else a statement has set that may change what is reported is asked for.
    let is_setting = sets_only(sent) && (reported.setting || sent.facts.wishes);
    if reported.state && !is_setting && !is_schema_command(sent) {
        client.pins.add(Pins::VARIABLES);
    }
    server.settings = client.settings.clone();
    Ok(Lacking { collation: reported.character_set && !reported.collation })
}

/// Learns from the changes that an OK packet reports which answers a question of Refrain's own, or
/// from their absence.
pub(crate) fn learn_late(
    (client, server): (&mut ClientSession, &mut ServerSession),
    packet: &ReadPacket<'_>,
    purpose: Purpose,
) -> Result<Lacking, Malformed> {
    if !packet.has_changes() {
        // MariaDB reports at least the variable that it is asked by, unless reports are off. Then
        // the client's state there is not known.
        if server.base.is_mariadb() {
            server.untold = Untold::Nothing;
            client.pins.add(Pins::UNTOLD);
        }
        return Ok(Lacking::default());
    }
    let ok = OkPacket::read(packet.payload, server.agreed)?;
    let verb = if purpose == Purpose::AskSetBack { Verb::Set } else { Verb::Other };
    let facts = Facts { verb, ..Facts::default() };
    let command = command::QUERY;
    let sent = Sent { command, facts, statement: 0, is_foretold: false, text: 0 };
    if client.settings == server.settings {
        return learn_changes(client, server, (&ok, &sent));
    }
    // The server has others than its client, as behind a detour. The client has what has changed.
    let had = server.settings.clone();
    let own = std::mem::replace(&mut client.settings, had.clone());
    let lacking = learn_changes(client, server, (&ok, &sent));
    client.settings = own;
    edit(&mut client.settings, |settings| settings.follow(&had, &server.settings));
    lacking
}

/// Whether a command sets the schema and does nothing else.
fn is_schema_command(sent: &Sent) -> bool {
    sent.command == command::INIT_DB
}

/// Kinds of changes that a reply has reported.
#[derive(Default)]
struct Reported {
    setting: bool,
    state: bool,
    character_set: bool,
    collation: bool,
}

impl Reported {
    fn note(&mut self, variable: &[u8]) {
        self.setting = true;
        self.character_set |= variable == b"character_set_connection";
        self.collation |= variable == b"collation_connection";
    }
}

/// Learns that a client's session is as new, but for its schema and the option for several
/// statements. MariaDB keeps the collation of the login as well.
pub(crate) fn learn_reset(client: &mut ClientSession, base: &Base) {
    let mut settings = client.settings.reset();
    if client.brand == Some(Brand::MariaDb)
        && let Some(agreed) = client.agreed()
    {
        settings.set_collation(base, agreed.collation);
    }
    if client.capabilities().has(Capabilities::IGNORE_SPACE) && base.resets_to_login() {
        settings.ignore_space(base);
    }
    client.settings = Arc::new(settings);
    client.wishes = Wishes::of_base(base);
    client.statements.clear();
    client.pins = Pins::NONE;
    // A reset leaves the schema, which this client's servers cannot be without again.
    let began_without = client.agreed().is_some_and(|agreed| agreed.schema.is_empty());
    client.pins.put(Pins::SCHEMA, began_without && client.settings.schema.is_some());
    client.status = Status::AUTOCOMMIT;
    client.last_server = 0;
    client.insert_id = Own::default();
    client.has_conditions = false;
    client.ended_before += 1;
}

/// Learns from the report on settings that Refrain has set for a client: the server prints some
/// values in its own way.
pub(crate) fn learn_settings(
    client: &mut ClientSession,
    server: &mut ServerSession,
    ok: &OkPacket<'_>,
) -> Result<(), Malformed> {
    for change in ok.changes.iter() {
        if let Change::SystemVariable { name, value } = change?
            && server.base.tracks(name)
        {
            let base = server.base.clone();
            edit(&mut client.settings, |settings| settings.set(&base, name, value));
        }
    }
    server.settings = Arc::clone(&client.settings);
    Ok(())
}
