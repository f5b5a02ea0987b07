//! Startup settings behind a RESET. PostgreSQL goes back to the values of the client's startup
//! packet, but a server was connected without that packet: it goes back to its own defaults. So a
//! query restores the startup settings behind whatever may have reset any, and the client hears of
//! them, and gets ReadyForQuery, once that is done.
//!
//! What resets settings is a text that says so, or code out of Refrain's sight: a function, DO, the
//! rest of a long text. Behind such code the query restores all startup settings that the session
//! does not have as its own, at the end of the segment.

use refrain_pg_wire::back::{self as read, Status};
use refrain_pg_wire::write;
use refrain_pool::Conn;
use refrain_sql::{ANY_PARAMETER, Kind, Scan, Traits};

use crate::pipeline::outstanding::{OutstandingRequest, Purpose, ReplyAction, Seq};
use crate::relay::pipe::Pipeline;
use crate::settings::queries::Restores;
use crate::settings::value;
use crate::state::client::ClientSession;
use crate::state::client::reading::{Reading, Restoring, Unseen};
use crate::state::client::settings::ClientSettings;
use crate::state::parts::intern_settings;

/// Returns the client's startup settings that a text may reset. The server would go back to its own
/// defaults, since it was connected without the client's startup packet.
pub(crate) fn first_settings(
    settings: &ClientSettings,
    text: &[u8],
    scan: &Scan,
) -> Option<Box<Restores>> {
    // The text may start a COPY, and no query can be sent while one is under way.
    let local = matches!(scan.kind, Kind::SetLocal { .. });
    let resets = local || scan.traits.contains(Traits::RESET);
    if !resets || scan.traits.contains(Traits::COPY) {
        return None;
    }
    let backslash = settings.reads_backslash();
    let mut settings = settings.startup()?;
    let names: Vec<_> = match local {
        true => refrain_sql::reset_locally(text, backslash),
        false => refrain_sql::set_names(text, backslash).collect(),
    };
    let has = |name: &[u8]| names.iter().any(|set| set.eq_ignore_ascii_case(name));
    let (all, discards) = (has(ANY_PARAMETER), scan.traits.contains(Traits::DISCARD_ALL));
    settings.retain(|name| match name {
        // RESET ALL leaves the role as it is. One comes back with the user of the session.
        b"role" => discards || has(name) || has(b"session_authorization"),
        _ => discards || all || has(name),
    });
    let restores = Restores { settings, local, unseen: false, named: true };
    (!restores.settings.is_empty()).then(|| Box::new(restores))
}

/// Notes that a request runs code out of Refrain's sight, which may reset startup settings, and
/// resets those that are `named` if it resets any.
pub(crate) fn may_reset_unseen<'n>(
    session: &mut ClientSession,
    named: impl IntoIterator<Item = &'n [u8]>,
) {
    if session.settings.have_startup() {
        let unseen = session.reading.unseen.get_or_insert_default();
        unseen.named.extend(named.into_iter().map(<[u8]>::to_vec));
    }
}

/// Has the startup settings restored behind request `seq`, which ends a segment with a request that
/// may have reset any out of sight.
#[cold]
pub(crate) fn restore_unseen(pipe: &mut Pipeline<'_>, session: &mut ClientSession, seq: Seq) {
    // Amid COPY data the server ignores a Sync, and the next request comes behind the data.
    if pipe.server.session.outstanding.may_copy_up_to(seq) {
        return;
    }
    let unseen = session.reading.unseen.take();
    if let Some(first) = unseen.and_then(|unseen| reset_unseen(&session.settings, &unseen)) {
        pipe.server.session.outstanding.hold(seq);
        session.reading.restore_behind(seq, first);
    }
}

/// Returns the startup settings that may have been reset out of sight. The role is not among them:
/// SET ROLE NONE would be taken for a RESET. Nor is a setting to which the client has given the
/// server's default, unless it is named: servers have it as if it were reset.
fn reset_unseen(settings: &ClientSettings, unseen: &Unseen) -> Option<Box<Restores>> {
    let own = settings;
    let mut settings = own.startup()?;
    let is_default = |name: &[u8]| {
        own.defaults().get(name).is_some_and(|value| own.current().get(name) == Some(value))
    };
    let is_named = |name: &[u8]| {
        let is = |it: &Vec<u8>| it.eq_ignore_ascii_case(name) || it == ANY_PARAMETER;
        unseen.named.iter().any(is)
    };
    settings.retain(|name| name != b"role" && (is_named(name) || !is_default(name)));
    let named = !unseen.named.is_empty();
    let restores = Restores { settings, local: false, unseen: true, named };
    (!restores.settings.is_empty()).then(|| Box::new(restores))
}

/// Restores the startup settings behind a Query, unless it has failed; true if it does. The client
/// gets ParameterStatus and ReadyForQuery once that is done: see [`tell_settings`].
pub(crate) fn restore_settings_behind(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    seq: Seq,
) -> bool {
    let Some(first) = session.reading.take_restores(seq) else { return false };
    // A block that has failed takes everything back.
    if pipe.server.session.outstanding.status() == Status::Failed {
        return false;
    }
    restore(pipe, &mut session.reading, Restoring::new(first), ReplyAction::Forward);
    true
}

/// Restores the startup settings in a separate transaction, so that an error in the client's next
/// message cannot roll them back. The message waits for it.
pub(crate) fn restore_apart(pipe: &mut Pipeline<'_>, reading: &mut Reading, first: Box<Restores>) {
    if pipe.server.session.outstanding.is_open() {
        pipe.end_segment(Purpose::Restore);
    }
    restore(pipe, reading, Restoring::new(first), ReplyAction::Skip(Purpose::Restore));
}

fn restore(pipe: &mut Pipeline<'_>, reading: &mut Reading, restoring: Restoring, end: ReplyAction) {
    let seq = pipe.restore_then(&restoring.settings, end);
    reading.bar_restoring(seq, restoring);
}

/// Notes the end of a query that restores settings. If it restored any that code had reset out of
/// sight, the code is not harmless, though a look finds nothing behind it.
pub(crate) fn restored(session: &mut ClientSession, body: &[u8]) {
    let restored = read::command_tag(body) != b"SELECT 0";
    if restored && session.reading.is_restoring_unseen() {
        session.suspicion.restored();
    }
}

/// Ends the restoring of settings up to a Sync, or begins it again if a cancel request has hit it;
/// true if so.
pub(crate) fn restore_again(
    pipe: &mut Pipeline<'_>,
    reading: &mut Reading,
    sync: &OutstandingRequest,
    seq: Seq,
) -> bool {
    let restoring = reading.take_restoring(seq);
    let Some(again) = restoring.and_then(Restoring::again) else { return false };
    restore(pipe, reading, again, sync.action);
    true
}

/// Sends ParameterStatus for the client's startup settings whose values have changed.
pub(crate) fn tell_settings(conn: Conn, pipe: &mut Pipeline<'_>, settings: &mut ClientSettings) {
    let Some(server_parameters) = pipe.pool().shared.protocol.server_parameters() else {
        return;
    };
    if !settings.have_startup() {
        return;
    }
    let mut edit = settings.expected().edit();
    // The names of PostgreSQL's reports, since `Settings` has them in lower case.
    for (name, _) in server_parameters.iter().filter(|(name, _)| settings.begin_with(name)) {
        let value = pipe.server.session.settings.current().get(name);
        if let Some(value) = value.filter(|value| edit.get(name) != Some(value)) {
            let out = pipe.ports.out(conn);
            write::parameter_status(out, name, value::bytes(value));
            edit.set(name, value);
        }
    }
    settings.expect(intern_settings(pipe.core_state, edit));
}
