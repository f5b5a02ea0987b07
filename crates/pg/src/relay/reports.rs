//! Messages from a server that are not part of the hot path: ParameterStatus, and rows that answer
//! Refrain's queries about settings.

use refrain_pg_wire::back as read;
use refrain_pool::Conn;
use refrain_sql::Traits;

use crate::pipeline::outstanding::{OutstandingRequest, ReplyAction, RequestKind};
use crate::pipeline::purposes::Reports;
use crate::relay::follow::{explains_settings, learn_defaults, suspect_defaults};
use crate::relay::learn::keeps_settings;
use crate::relay::look::{look_row, looked};
use crate::relay::pipe::Pipeline;
use crate::relay::reader::{Goes, Halt};
use crate::results::filling::reported_age;
use crate::results::of_client::tells_age;
use crate::settings::guard::GUARDED;
use crate::settings::of_server::Reported;
use crate::settings::queries::UNSET;
use crate::settings::session::{AGE_REPORT, is_settable};
use crate::settings::value;
use crate::state::client::ClientSession;
use crate::state::parts::intern_settings;

/// Handles the report of a setting. `value` is `None` if it is too long to be held.
#[inline(never)]
pub(crate) fn tell_report(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    name: &[u8],
    value: Option<&[u8]>,
) -> Result<Goes, Halt> {
    // Refrain sets other settings for one Parse and goes back (E57). The client must not hear of
    // that.
    let own = pipe.server.session.outstanding.front().and_then(|entry| entry.action.own());
    if own.is_some_and(|own| own.reports == Reports::Hidden) {
        return Ok(Goes::Nowhere);
    }
    if name == AGE_REPORT {
        session.results.note_age(reported_age(value));
        let told = tells_age(session.settings.expected());
        return Ok(if told { Goes::On } else { Goes::Nowhere });
    }
    if !is_settable(name) {
        return Ok(Goes::On);
    }
    // A new default does not change a setting that the client has made itself, though the server
    // may have had its default in place of the client's value.
    let by_default = pipe.server.session.settings.is_default(name);
    let follows = by_default
        && session.settings.owns(name)
        && !explains_settings(&pipe.server.session, session);
    let held = is_held(pipe, session, name) || follows;
    let client = (!held).then_some(&**session.settings.expected());
    match pipe.server.session.settings.report(name, value, client) {
        Reported::News => Ok(Goes::On),
        Reported::Known => Ok(Goes::Nowhere),
        Reported::TooMuch => Err(Halt::Broken),
    }
}

/// Records the settings that were reported since the last call.
#[inline]
pub(crate) fn take_reported(conn: Conn, pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    if !pipe.server.session.settings.is_recorded() {
        record_reported(conn, pipe, session);
    }
}

#[inline(never)]
fn record_reported(conn: Conn, pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    let Some(reported) = pipe.server.session.settings.take_reported() else { return };
    suspect_defaults(conn, pipe, session, reported.by_server());
    let settings = &mut pipe.server.session.settings;
    settings.were_reported(&reported, |edit| intern_settings(pipe.core_state, edit));
    let database = pipe.server.session.settings.encoding();
    if let Some(edit) = reported.of_client(session.settings.expected(), database) {
        session.settings.expect(intern_settings(pipe.core_state, edit));
    }
    if reported.has_lost() {
        keeps_settings(pipe, session);
    }
}

/// Whether the client hears of this setting later: a RESET is under way, behind which Refrain
/// restores it.
fn is_held(pipe: &Pipeline<'_>, session: &ClientSession, name: &[u8]) -> bool {
    let later = |entry: &OutstandingRequest| {
        let own = entry.action.own().is_some_and(|own| own.reports == Reports::Later);
        own || entry.action == ReplyAction::Held || restores(entry)
    };
    pipe.server.session.outstanding.front().is_some_and(later) && session.settings.begin_with(name)
}

/// Reads a row that answers the query for settings: a setting that was set in the session, and its
/// value.
pub(crate) fn read_settings_row(pipe: &mut Pipeline<'_>, session: &mut ClientSession, body: &[u8]) {
    let mut columns = read::columns(body);
    if let (Some(Some(name)), Some(Some(value))) = (columns.next(), columns.next()) {
        if let Some(what) = name.strip_prefix(b"=") {
            return look_row(pipe, session, what, value);
        }
        let name = name.strip_prefix(GUARDED).unwrap_or(name);
        let unset = name.strip_suffix(UNSET);
        let name = unset.unwrap_or(name);
        pipe.server.session.settings.read_row(name, unset.is_some(), value);
    }
}

/// Ends a reading of settings: the rows, with what PostgreSQL reports, are the session's settings.
pub(crate) fn read_settings_ends(conn: Conn, pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    let Some((mut edit, unset)) = pipe.server.session.settings.take_read() else {
        looked(pipe, session, None);
        return keeps_settings(pipe, session);
    };
    let outstanding = &pipe.server.session.outstanding;
    // A reading amid the client's segment holds for that transaction. One in a segment of its own
    // says nothing of a segment that the client has begun behind it.
    if outstanding.is_open() && !outstanding.reads_settings_apart() {
        let intern = |edit| intern_settings(pipe.core_state, edit);
        let segment = outstanding.segment();
        return session.settings.were_queried(segment, edit, intern);
    }
    let settled = session.settings.are_settled(outstanding);
    let settings = &mut pipe.server.session.settings;
    settings.were_read(edit.clone(), |has| intern_settings(pipe.core_state, has));
    pipe.close_if_brief();
    // Reported values take precedence over the rows, for the client as for the server.
    for (name, _) in pipe.server.session.settings.defaults().settings.iter() {
        let value = session.settings.expected().get(name);
        let value = value.filter(|value| !value::is_foreign(value));
        value.into_iter().for_each(|value| edit.set(name, value));
    }
    let intern = |edit| intern_settings(pipe.core_state, edit);
    let before = session.settings.were_read(edit, intern);
    learn_defaults(conn, pipe, session, unset.iter());
    looked(pipe, session, Some(&before));
    session.settings.reading_ends(settled);
}

/// Whether the request is the Sync that ends restoring settings behind a RESET.
pub(crate) fn restores(entry: &OutstandingRequest) -> bool {
    entry.kind == RequestKind::Sync && entry.traits.contains(Traits::RESET)
}
