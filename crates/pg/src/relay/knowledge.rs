//! Knowledge of a session's settings, between a change and the server's report of it.

use refrain_sql::{Kind, Scan, Traits};

use crate::relay::beside::note_beside;
use crate::relay::follow::claim;
use crate::relay::learn::{note_name, note_placeholder, settings_change};
use crate::relay::look::is_harmless;
use crate::relay::pipe::Pipeline;
use crate::relay::restore::may_reset_unseen;
use crate::settings::guard;
use crate::settings::session::{self, Since, decides};
use crate::state::client::ClientSession;
use crate::state::client::settings::ClientSettings;

/// The SQL command that runs a prepared statement.
const EXECUTE: &[u8] = b"execute";

/// The traits of texts that may set reported settings for the session.
const SETS: Traits = Traits::SET.union(Traits::SET_REPORTED).union(Traits::PROCEDURAL);

/// Notes that a text may change settings, or take a change back.
#[inline]
pub(crate) fn note_settings(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    text: &[u8],
    scan: &Scan,
) {
    // Nearly every text: a read or a write of rows, without a word that does more.
    let plain = matches!(scan.kind, Kind::Select | Kind::Insert | Kind::Update | Kind::Delete);
    if !(plain && scan.traits.is_empty()) {
        note_settings_of(pipe, session, text, scan);
    }
}

fn note_settings_of(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    text: &[u8],
    scan: &Scan,
) {
    note_beside(pipe, &mut session.settings, text, scan);
    let sets = scan.traits.intersects(SETS);
    pipe.server.session.settings.may_stick(sets || runs_prepared(text, scan.kind));
    if sets {
        claim(&mut session.settings, text, scan.traits);
        note_resets(pipe, session, text, scan);
    }
    let local =
        scan.traits.contains(Traits::LOCAL) && note_local(pipe, &mut session.settings, text);
    let hides = local
        || scan.traits.contains(Traits::SET)
        || scan.traits.contains(Traits::PROCEDURAL) && !is_harmless(pipe, session, scan);
    let goes_back = session.settings.have_changed() && may_go_back(text, scan.kind);
    let reads = scan.traits.contains(Traits::READING) || goes_back;
    if !(hides || reads) {
        return;
    }
    note_names(pipe, session, text);
    let backslash = session.settings.reads_backslash();
    if refrain_sql::set_names(text, backslash).any(|name| guard::is_timeout(&name)) {
        session.settings.hurry();
    }
    if scan.traits.contains(Traits::PROCEDURAL) {
        refrain_sql::set_names_within(text).for_each(|name| note_name(pipe, session, name));
        refrain_sql::placeholders_within(text)
            .for_each(|name| note_placeholder(pipe, &mut session.settings, name));
    }
    if local {
        session.settings.read_later();
    }
    let decides =
        reads || local || refrain_sql::set_names(text, backslash).any(|name| decides(&name));
    let segment = pipe.server.session.outstanding.segment();
    settings_change(pipe, &mut session.settings, Since { segment, reads, hidden: hides, decides });
}

/// Notes a text that may reset settings of the startup packet, though it does not say so.
fn note_resets(pipe: &mut Pipeline<'_>, session: &mut ClientSession, text: &[u8], scan: &Scan) {
    if !session.settings.have_startup() {
        return;
    }
    let backslash = session.settings.reads_backslash();
    for name in refrain_sql::reset_by_call(text, backslash) {
        match name == refrain_sql::ANY_PARAMETER {
            true => may_reset_unseen(session, []),
            false if session.settings.begin_with(name) => {
                may_reset_unseen(session, [name]);
            }
            false => {}
        }
    }
    if scan.traits.contains(Traits::PROCEDURAL) && !is_harmless(pipe, session, scan) {
        may_reset_unseen(session, []);
    }
}

/// Notes a text that sets something for its transaction. True if that may decide how constants are
/// read.
#[cold]
fn note_local(pipe: &mut Pipeline<'_>, settings: &mut ClientSettings, text: &[u8]) -> bool {
    if text.contains(&b'.') {
        refrain_sql::placeholders_within(text)
            .for_each(|name| note_placeholder(pipe, settings, name));
    }
    session::names_reading(text)
}

/// Notes the names of custom settings, which Refrain reads by name: `pg_settings` may not list
/// them.
pub(crate) fn note_names(pipe: &mut Pipeline<'_>, session: &mut ClientSession, text: &[u8]) {
    let backslash = session.settings.reads_backslash();
    for name in refrain_sql::set_names(text, backslash).filter(|name| name.contains(&b'.')) {
        note_name(pipe, session, &name);
    }
}

/// Notes at the end of a segment that PostgreSQL has sent its reports of changed settings.
pub(crate) fn settings_are_reported(pipe: &Pipeline<'_>, settings: &mut ClientSettings) {
    let outstanding = &pipe.server.session.outstanding;
    let shared = &pipe.core_state.shared.protocol;
    settings.are_reported(outstanding, || shared.own_environment());
}

/// Whether a text runs a prepared statement by name, which may set anything.
fn runs_prepared(text: &[u8], kind: Kind) -> bool {
    match kind {
        Kind::Execute(_) | Kind::CreateAsExecute(_) => true,
        Kind::Many => refrain_sql::has_word(text, EXECUTE),
        _ => false,
    }
}

/// Whether a text may take back settings that were made before it in its transaction.
fn may_go_back(text: &[u8], kind: Kind) -> bool {
    let to_savepoint =
        || text.trim_ascii_start().get(..8).is_some_and(|w| w.eq_ignore_ascii_case(b"rollback"));
    matches!(kind, Kind::TransactionEnd | Kind::Chain | Kind::Many) || to_savepoint()
}
