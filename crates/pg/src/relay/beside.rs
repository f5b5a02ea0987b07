//! Commands that change what stands beside a client's settings: see
//! [`crate::state::client::beside`].
//!
//! A command counts from the moment that it is sent, since texts behind it in the same write are
//! analysed behind it. If it fails, the client is like no other from then on: which role it has is
//! for the server to know.

use std::sync::Arc;

use refrain_config::TrackFunctions;
use refrain_pg_wire::back::Status;
use refrain_sql::{Kind, Scan, Traits, has_word};

use crate::ground::ids::EnvId;
use crate::pipeline::outstanding::Failed;
use crate::relay::pipe::Pipeline;
use crate::state::client::ClientSession;
use crate::state::client::beside::{Beside, Lease, Part};
use crate::state::client::pins::Pins;
use crate::state::client::settings::ClientSettings;
use crate::state::options::tracks;

/// Bytes of a command that stands for what it makes, at most.
const COMMAND_MAX: usize = 256;
/// Words in a command that has another path or role for its transaction.
const LOCAL_WORDS: [&[u8]; 4] = [b"search_path", b"schema", b"role", b"authorization"];
/// The parameter that is the path, and the name in it of the schema of temporary objects.
const PATH: &[u8] = b"search_path";
const TEMP: &[u8] = b"pg_temp";
/// The names of the parameters that a role and a user of the session are.
const ROLE: &[u8] = b"role";
const USER: &[u8] = b"session_authorization";

/// Notes that a text may change the role or the path.
#[inline]
pub(crate) fn note_beside(
    pipe: &Pipeline<'_>,
    settings: &mut ClientSettings,
    text: &[u8],
    scan: &Scan,
) {
    if scan.traits.contains(Traits::ROLE) {
        note_role(pipe, settings, text, scan);
    }
    if scan.traits.contains(Traits::LOCAL) && LOCAL_WORDS.iter().any(|w| has_word(text, w)) {
        let lease = match text.len() <= COMMAND_MAX {
            true => said(pipe, settings, Part::Local, text),
            false => like_no_other(pipe),
        };
        put_beside(pipe, settings, Part::Local, Some(lease));
    }
}

/// Notes a text that may change the role. Within a transaction, an error or a rollback would take
/// that back.
fn note_role(pipe: &Pipeline<'_>, settings: &mut ClientSettings, text: &[u8], scan: &Scan) {
    let outstanding = &pipe.server.session.outstanding;
    let alone = outstanding.status() == Status::Idle && !outstanding.has_unsettled();
    let backslash = settings.reads_backslash();
    let mut names = refrain_sql::set_names(text, backslash);
    let part = match names.next().as_deref() {
        Some(ROLE) => Part::Role,
        Some(USER) => Part::User,
        _ => return put_beside(pipe, settings, Part::Role, Some(like_no_other(pipe))),
    };
    let plain = matches!(scan.kind, Kind::Set { .. } | Kind::Reset { .. });
    let (resets, open) = (scan.traits.contains(Traits::RESET), outstanding.is_open());
    let lease = match alone && plain && text.len() <= COMMAND_MAX {
        true if resets && !open => None,
        true if !resets => Some(said(pipe, settings, part, text)),
        _ => Some(like_no_other(pipe)),
    };
    put_beside(pipe, settings, part, lease);
}

/// Makes a client with temporary objects of its own like no other: any name may be theirs.
pub(crate) fn has_temporary_objects(pipe: &Pipeline<'_>, settings: &mut ClientSettings) {
    let lease = like_no_other(pipe);
    put_beside(pipe, settings, Part::Temporary, Some(lease));
}

/// Notes that a command has made an object, which is temporary if the path begins with `pg_temp`. A
/// look finds out, unless the path is known to have no such schema.
pub(crate) fn may_be_temporary(pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    let settings = &session.settings;
    let local = settings.beside().is_some_and(Beside::has_local);
    let path = settings.expected().get(PATH);
    let may = local || settings.are_to_be_read() || path.is_some_and(|it| has_word(it, TEMP));
    if may && tracks(pipe.pool()) != TrackFunctions::Off {
        session.suspicion.look_later();
    }
    // Others that have said the same have not made the same.
    if local {
        let lease = like_no_other(pipe);
        put_beside(pipe, &mut session.settings, Part::Local, Some(lease));
    }
}

/// Notes that a function has changed the role.
pub(crate) fn has_hidden_role(pipe: &Pipeline<'_>, settings: &mut ClientSettings) {
    let known = settings.beside().is_some_and(|beside| beside.has_role());
    if !known {
        let lease = like_no_other(pipe);
        put_beside(pipe, settings, Part::Role, Some(lease));
    }
}

/// Notes that an error may have taken back a change of the role.
pub(crate) fn role_may_be_back(
    pipe: &Pipeline<'_>,
    settings: &mut ClientSettings,
    failed: &Failed,
) {
    let Some(beside) = settings.beside() else { return };
    if failed.covers(beside.changed()) {
        let lease = like_no_other(pipe);
        put_beside(pipe, settings, Part::Role, Some(lease));
    }
}

/// Returns the number of what a command makes: clients for which the same stands beneath, and that
/// say the same, are alike.
fn said(pipe: &Pipeline<'_>, settings: &ClientSettings, part: Part, text: &[u8]) -> Lease {
    let below = settings.beside().map_or(0, |beside| beside.below(part));
    let what = [b"said\0", &below.to_le_bytes()[..], text].concat();
    pipe.core_state.shared.protocol.beside(&what)
}

fn like_no_other(pipe: &Pipeline<'_>) -> Lease {
    let own = pipe.core_state.shared.protocol.own_environment();
    Arc::new(EnvId { settings: 0, beside: own.settings })
}

fn put_beside(
    pipe: &Pipeline<'_>,
    settings: &mut ClientSettings,
    part: Part,
    lease: Option<Lease>,
) {
    let segment = pipe.server.session.outstanding.segment();
    settings.put_beside(part, lease, segment);
}

/// Notes what pins stand for that were found, or that a command has made.
pub(crate) fn stands_apart(pipe: &Pipeline<'_>, session: &mut ClientSession, pins: Pins) {
    if pins.has(Pins::TEMP) && !session.pins.has(Pins::TEMP) {
        has_temporary_objects(pipe, &mut session.settings);
    }
}
