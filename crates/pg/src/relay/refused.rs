//! Refused settings: a server refuses the settings of the client that got it.
//!
//! Settings that a server may refuse ([`crate::settings::refusals`]) are synced by a query that
//! stands alone: the client's request waits for the answer. If the server refuses, it keeps what it
//! had, and the request goes to another. What a server refuses that had done nothing before, all
//! refuse: the request fails with the server's error, and the session goes on without the setting.

use refrain_pg_wire::back::{Fields, field};
use refrain_pg_wire::tag::back;
use refrain_pg_wire::write;
use refrain_pool::disconnect::DisconnectReason;
use refrain_pool::event::Level;
use refrain_pool::{ClientNote, Now, note_client};

use crate::pipeline::outstanding::{Failed, Purpose, ReplyAction, Seq};
use crate::relay::pipe::Pipeline;
use crate::relay::reader::Halt;
use crate::relay::words::logged;
use crate::settings::session::differences;
use crate::settings::{guard, refusals};
use crate::state::client::ClientSession;
use crate::state::client::reading::Reading;
use crate::state::client::settings::ClientSettings;
use crate::state::parts::{Client, Pool, Ports, intern_settings};

/// Servers that may refuse a client's settings one after the other until its request fails.
const REFUSALS_MAX: u8 = 100;

/// The number of the first request to a server.
const FIRST: Seq = 0;

/// Whether the client's request waits for the answer to a query that syncs settings, so that the
/// server has got nothing of it.
pub(crate) fn is_unused(pipe: &Pipeline<'_>, session: &ClientSession) -> bool {
    let (client, outstanding) = (session, &pipe.server.session.outstanding);
    let syncs = ReplyAction::Skip(Purpose::SyncSettings);
    client.pins.is_empty()
        && client.reading.is_barred_by(outstanding.oldest())
        && outstanding.front().is_some_and(|oldest| oldest.action == syncs)
}

/// Has the client go to another server, since this one ends. False if too many did so before.
pub(crate) fn miss_server(pipe: &mut Pipeline<'_>, reading: &mut Reading) -> bool {
    pipe.server.close_later();
    reading.note_miss(REFUSALS_MAX)
}

/// Handles the error of the query that syncs settings. Returns what is to become of the client: one
/// whose request or session ends with the error is to be told.
pub(crate) fn settings_refused(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    failed: &Failed,
    fields: &Fields<'_>,
) -> Halt {
    let checks = session.login.is_checking();
    let waits = session.reading.is_barred_by(failed.seq);
    let (has, wanted) = pipe.server.session.settings.sync_refused();
    let (has, sqlstate) = (has.clone(), fields.sqlstate());
    if !checks && (!waits || !session.pins.is_empty()) {
        return Halt::Refused;
    }
    let cancelled = matches!(sqlstate, b"57014" | b"55P03");
    let more = session.reading.note_miss(REFUSALS_MAX);
    // The former client's timeout has ended the query.
    if cancelled && more && guard::are_hurried(&has) {
        return Halt::Unused;
    }
    let message = fields.get(field::MESSAGE).unwrap_or_default();
    let names = differences(&has, &wanted).map(|(name, _)| name);
    let given_up = refusals::to_give_up(names, message);
    if !cancelled && !given_up.is_empty() && more && failed.seq != FIRST {
        pipe.server.close_later();
        return Halt::Unused;
    }
    if checks {
        return Halt::Refused;
    }
    if !cancelled {
        give_up(pipe, &mut session.settings, &given_up);
    }
    Halt::Failed
}

/// Has the session go on with the defaults of these settings.
fn give_up(pipe: &mut Pipeline<'_>, settings: &mut ClientSettings, names: &[Box<[u8]>]) {
    settings.disclaim(names.iter());
    let mut edit = settings.expected().edit();
    for name in names {
        match settings.defaults().get(name) {
            Some(value) => edit.set(name, value),
            None => edit.remove(name),
        }
    }
    settings.expect(intern_settings(pipe.core_state, edit));
}

/// Logs that a client's session ends since a server has refused its settings.
pub(crate) fn log_refusal(
    (client, pool): (&Client, Option<&Pool>),
    (ports, now): (&mut Ports, Now),
    fields: &Fields<'_>,
) {
    let why = logged(fields.get(field::MESSAGE).unwrap_or_default());
    let note = ClientNote::new(Level::Warn, DisconnectReason::Settings);
    let (code, detail) = (logged(fields.sqlstate()), format!("settings refused: {why}"));
    note_client((ports, now), (client, pool), ClientNote { code: Some(&*code), detail, ..note });
}

/// Appends the error of a server that has refused a client's settings; `ends` says whether the
/// session ends with it.
pub(crate) fn write_refusal(out: &mut Vec<u8>, fields: &Fields<'_>, ends: bool) {
    write::message(out, back::ERROR_RESPONSE, |out| {
        for (code, value) in fields.iter() {
            let severity = matches!(code, field::SEVERITY | field::SEVERITY_PLAIN);
            // No text of the client's is the one with the position.
            if code != field::POSITION {
                out.push(code);
                write::string(out, if ends && severity { b"FATAL" } else { value });
            }
        }
        out.push(0);
    });
}
