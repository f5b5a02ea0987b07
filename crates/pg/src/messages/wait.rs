//! Messages that wait: what they mean depends on replies that are still to come.

use crate::pipeline::outstanding::Outstanding;
use crate::relay::learn::know_settings;
use crate::relay::link::Stop;
use crate::relay::pipe::Pipeline;
use crate::settings::session;
use crate::state::client::ClientSession;
use crate::state::client::settings::ClientSettings;
use crate::state::client::statements::ClientStatements;
use crate::state::server::ServerSession;
use crate::statements::of_core::CachedStatement;

/// Waits until no earlier segment can undo a change to the client's statements (E1, E2): a name
/// that was closed may be taken after all, and one that was parsed may be free.
pub(crate) fn wait_until_settled(
    outstanding: &Outstanding,
    statements: &ClientStatements,
) -> Result<(), Stop> {
    match statements.are_names_unsettled(outstanding) {
        true => Err(Stop::Replies),
        false => Ok(()),
    }
}

/// Waits until nothing is outstanding: a query that Refrain answers itself depends on the state of
/// the transaction.
pub(crate) fn wait_until_quiet(outstanding: &Outstanding) -> Result<(), Stop> {
    if outstanding.is_empty() { Ok(()) } else { Err(Stop::Replies) }
}

/// Waits until it is known whether the server still has a statement that Refrain closed there to
/// make room. An error before the Close would skip it, and the statement would still be there
/// (E24).
pub(crate) fn wait_in_doubt(server: &ServerSession, cached: &CachedStatement) -> Result<(), Stop> {
    if server.statements.is_closing(cached.statement.id) {
        return Err(Stop::Replies);
    }
    Ok(())
}

/// Whether a statement was parsed under other settings than the client has now, and these decide
/// how the server reads its constants (E57).
pub(crate) fn is_foreign(
    outstanding: &Outstanding,
    settings: &ClientSettings,
    cached: &CachedStatement,
) -> bool {
    // A failed transaction refuses a Parse under any settings.
    !session::read_alike(&cached.settings, settings.current())
        && cached.statement.has_constants()
        && !outstanding.has_failed()
}

/// Waits as [`wait_for_reading`] does, if the server lacks the statement.
#[inline]
pub(crate) fn wait_for_foreign(
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    name: &[u8],
    cached: &CachedStatement,
) -> Result<(), Stop> {
    if !may_be_read_otherwise(&pipe.server.session.outstanding, &session.settings, cached) {
        return Ok(());
    }
    let there = match name.is_empty() {
        true => unnamed_is(&pipe.server.session, cached),
        false => pipe.server.session.has(&cached.statement).is_some(),
    };
    if there { Ok(()) } else { wait_for_reading(pipe, session, cached) }
}

/// Waits until the client's settings are known, if the statement's constants depend on them (E57).
/// Requests under way may change the settings, or take a change back. Then Refrain knows whether to
/// prepare it under other settings.
pub(crate) fn wait_for_reading(
    pipe: &mut Pipeline<'_>,
    session: &ClientSession,
    cached: &CachedStatement,
) -> Result<(), Stop> {
    if !may_be_read_otherwise(&pipe.server.session.outstanding, &session.settings, cached) {
        return Ok(());
    }
    know_settings(pipe, session)?;
    let ready = pipe.server.session.outstanding.is_empty()
        || !is_foreign(&pipe.server.session.outstanding, &session.settings, cached);
    if ready { Ok(()) } else { Err(Stop::Replies) }
}

/// Whether a statement has constants that the server may read in another way than at the client's
/// Parse.
#[inline]
fn may_be_read_otherwise(
    outstanding: &Outstanding,
    settings: &ClientSettings,
    cached: &CachedStatement,
) -> bool {
    let unknown = || settings.unknown_since();
    let unsure = || unknown().is_some_and(|since| since.reads);
    (unsure() || is_foreign(outstanding, settings, cached)) && cached.statement.has_constants()
}

/// Whether the server's unnamed statement is this one for certain, in its current generation.
pub(crate) fn unnamed_is(server: &ServerSession, cached: &CachedStatement) -> bool {
    let unnamed = server.statements.unnamed();
    unnamed.id == cached.statement.id
        && unnamed.generation == cached.statement.generation()
        && !server.outstanding.is_unsettled(unnamed.segment)
}
