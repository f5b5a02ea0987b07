//! The settings of a client, as Refrain learns them: when it asks the server, and for which names.

use crate::ground::ids::Segment;
use crate::pipeline::outstanding::Purpose;
use crate::relay::effects::pin;
use crate::relay::link::Stop;
use crate::relay::pipe::Pipeline;
use crate::settings::placeholders::is_placeholder;
use crate::settings::session::Since;
use crate::settings::value;
use crate::state::client::ClientSession;
use crate::state::client::pins::Pins;
use crate::state::client::settings::ClientSettings;

/// Asks the server which settings the client has made.
pub(crate) fn read_settings(pipe: &mut Pipeline<'_>, settings: &ClientSettings) {
    // The server counts an internal query among the commands of an open segment: it refuses DISCARD
    // ALL behind it, and PostgreSQL 18 makes a block of what follows. So as long as the client's
    // transaction has run nothing, the question stands in a segment of its own.
    if pipe.server.session.outstanding.is_barely_open() {
        pipe.end_segment(Purpose::ReadSettings);
    }
    let names = settings.names();
    let text = pipe.server.session.settings.read(names);
    pipe.run_reading(&text, settings.are_hurried());
}

/// Waits until Refrain knows how the server reads the constants of the next text (E57, E58). The
/// server reports changed settings at the end of the segment; before that Refrain asks it.
pub(crate) fn know_settings(pipe: &mut Pipeline<'_>, session: &ClientSession) -> Result<(), Stop> {
    let outstanding = &pipe.server.session.outstanding;
    let Some(since) = session.settings.unknown_since() else { return Ok(()) };
    if session.pins.has(Pins::SETTINGS) || outstanding.has_failed() {
        return Ok(());
    }
    // Without the settings the statement could not be shared. A reply on its way is worth waiting
    // for.
    if !since.reads && !outstanding.reads_settings() {
        return Ok(());
    }
    if outstanding.is_empty() {
        read_settings(pipe, &session.settings);
    }
    Err(Stop::Replies)
}

/// Notes that settings may change without a report by the server.
pub(crate) fn hide_settings(pipe: &Pipeline<'_>, settings: &mut ClientSettings) {
    let segment = pipe.server.session.outstanding.segment();
    settings_change(pipe, settings, Since { segment, reads: false, hidden: true, decides: false });
}

/// Notes that a text in the current segment may change any settings.
pub(crate) fn may_change_settings(pipe: &Pipeline<'_>, settings: &mut ClientSettings) {
    let segment = pipe.server.session.outstanding.segment();
    may_change_settings_in(pipe, settings, segment);
}

/// Notes the same of a text in this segment.
pub(crate) fn may_change_settings_in(
    pipe: &Pipeline<'_>,
    settings: &mut ClientSettings,
    segment: Segment,
) {
    settings_change(pipe, settings, Since { segment, reads: true, hidden: true, decides: true });
}

/// Notes that a text may change settings, as `change` says.
pub(crate) fn settings_change(pipe: &Pipeline<'_>, settings: &mut ClientSettings, change: Since) {
    let shared = &pipe.core_state.shared.protocol;
    settings.may_change(change, || shared.own_environment());
}

/// Notes that the client and its server have a parameter of the client's own from now on.
pub(crate) fn note_placeholder(
    pipe: &mut Pipeline<'_>,
    settings: &mut ClientSettings,
    name: &[u8],
) {
    if is_placeholder(name) {
        settings.placeholders.add(name);
        pipe.note_placeholder(name);
    }
}

/// Notes the name of a custom setting. A client that has too many keeps its server.
pub(crate) fn note_name(pipe: &mut Pipeline<'_>, session: &mut ClientSession, name: &[u8]) {
    note_placeholder(pipe, &mut session.settings, name);
    let settings = &session.settings;
    let encoding = settings.current().get(b"client_encoding").unwrap_or_default();
    let name = value::keep(name, encoding, pipe.server.session.settings.encoding());
    if !session.settings.note_name(&name) {
        session.pins.pin(Pins::SETTINGS);
    }
}

/// Pins a client whose settings are too large to be kept. Its texts get a parse environment of
/// their own.
pub(crate) fn keeps_settings(pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    if session.pins.is_empty() {
        pipe.pool().counters.protocol.pins += 1;
    }
    pin(pipe, session, Pins::SETTINGS);
    let segment = pipe.server.session.outstanding.segment();
    let env = pipe.core_state.shared.protocol.own_environment();
    session.settings.are_too_large(segment, env);
}
