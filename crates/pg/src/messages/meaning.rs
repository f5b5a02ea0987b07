//! The statement that a client's text is after the client's settings, role or path have changed.
//!
//! PostgreSQL analyses a kept statement again, from its parse tree, when the path is another, or a
//! table behind it has changed, or the plans were dropped, and it does so under the settings of
//! that moment. A server's copy is shared, so a client whose settings are other than those of the
//! copy would leave it analysed under its own. So a copy runs under no settings but those of its
//! identity, and a client that has changed its own uses another copy from then on.
//!
//! What the other copy means follows PostgreSQL. After a change of the path or the role it is
//! analysed under the settings of now. After a change of the settings by which constants are read
//! it is still analysed under those of its Parse, as PostgreSQL keeps what it has, and it runs, and
//! is analysed again, under those of now: such a copy belongs to both. So does the copy of a client
//! that has changed how texts are scanned (`standard_conforming_strings`), whatever else it has
//! changed: the parse tree stays.

use std::rc::Rc;

use crate::ground::ids::EnvId;
use crate::messages::prepare::{intern, intern_in};
use crate::messages::wait::{wait_for_foreign, wait_in_doubt};
use crate::relay::learn::know_settings;
use crate::relay::link::Stop;
use crate::relay::pipe::Pipeline;
use crate::settings::session;
use crate::state::client::ClientSession;
use crate::state::client::settings::ClientSettings;
use crate::statements::of_client::{ClientRef, UNSEEN};
use crate::statements::of_core::CachedStatement;

/// The effect that a change of the client's environment has on a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MeaningChange {
    /// It is the same statement.
    Nothing,
    /// It is one that was analysed under the settings of its Parse and runs under others.
    Kept,
    /// It is one that is analysed under other settings, by which names mean the same.
    Other,
    /// It is the one that a Parse would make now.
    Anew,
}

/// Returns the client's statement of this name, `None` if it has none. Waits while an earlier
/// segment may undo a change to it.
#[inline]
pub(crate) fn statement_of(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    name: &[u8],
) -> Result<Option<Rc<CachedStatement>>, Stop> {
    let statements = &mut session.statements;
    if statements.is_unsettled(name, &pipe.server.session.outstanding) {
        return Err(Stop::Replies);
    }
    let cached = meant(pipe, session, name)?;
    if let Some(cached) = &cached {
        wait_in_doubt(&pipe.server.session, cached)?;
        wait_for_foreign(pipe, session, name, cached)?;
    }
    Ok(cached)
}

/// Returns the statement that the client's statement of this name is in the client's environment of
/// now. Waits while that may depend on replies to come.
#[inline]
pub(crate) fn meant(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    name: &[u8],
) -> Result<Option<Rc<CachedStatement>>, Stop> {
    let env = session.settings.env();
    match session.statements.get(name) {
        Some(own) if own.env() == env => Ok(Some(own.held.cached().clone())),
        Some(_) => meant_elsewhere(pipe, session, name),
        None => Ok(None),
    }
}

/// Does the work of [`meant`] if the environment is not the one of the last use.
#[cold]
fn meant_elsewhere(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    name: &[u8],
) -> Result<Option<Rc<CachedStatement>>, Stop> {
    let Some(own) = session.statements.get(name) else { return Ok(None) };
    let (cached, before) = (own.held.cached().clone(), own.env());
    // No other client runs a statement that is in no table. A failed transaction refuses it.
    let alone = !cached.is_in_table() || pipe.server.session.outstanding.has_failed();
    if alone || !cached.statement.has_constants() {
        return Ok(Some(cached));
    }
    let unknown = session.settings.unknown_since();
    if let Some(since) = unknown {
        if !since.decides && before.beside == session.settings.env().beside {
            return Ok(Some(cached));
        }
        know_settings(pipe, session)?;
    }
    let env = session.settings.env();
    let settings = &session.settings;
    let change = match settings.unknown_since() {
        // PostgreSQL reports by what it scans.
        Some(_) if !session::scanned_alike(&cached.settings, settings.current()) => {
            MeaningChange::Kept
        }
        Some(_) => MeaningChange::Anew,
        None => change(&session.settings, &cached, before, env),
    };
    if change != MeaningChange::Nothing && !pipe.server.session.outstanding.is_empty() {
        return Err(Stop::Replies);
    }
    let made = made_by(pipe, &session.settings, change, cached, env);
    let Some(own) = session.statements.get(name) else { return Ok(None) };
    own.is_right_in(env);
    if change != MeaningChange::Nothing {
        let is_current = own.generation == own.held.cached().statement.generation();
        own.generation = match is_current && change != MeaningChange::Anew {
            true => made.statement.generation(),
            false => UNSEEN,
        };
        session.statements.replace(name, ClientRef::new(made.clone()));
    }
    Ok(Some(made))
}

/// Returns the statement that a change makes of another.
fn made_by(
    pipe: &mut Pipeline<'_>,
    settings: &ClientSettings,
    change: MeaningChange,
    cached: Rc<CachedStatement>,
    env: EnvId,
) -> Rc<CachedStatement> {
    let tail = cached.statement.tail();
    match change {
        MeaningChange::Nothing => cached,
        MeaningChange::Kept => {
            let analysed = cached.settings.env.settings.to_le_bytes();
            let what = [&b"kept\0"[..], &env.beside.to_le_bytes(), &analysed].concat();
            let kept = pipe.core_state.shared.protocol.beside(&what);
            let both = EnvId { beside: kept.beside, ..env };
            intern_in(pipe, settings, both, &cached.settings, tail)
        }
        MeaningChange::Other | MeaningChange::Anew => intern(pipe, settings, tail),
    }
}

/// Returns what a change makes of a statement, where all settings are known.
fn change(
    settings: &ClientSettings,
    cached: &CachedStatement,
    before: EnvId,
    now: EnvId,
) -> MeaningChange {
    let settings = settings.current().reading();
    let (then, same_role) = (&cached.settings, before.beside == now.beside);
    if then == settings && cached.statement.env.beside == now.beside {
        // Parameters of the user's own differ. Functions alone read these.
        let reads = cached.statement.scan.calls != 0;
        return if reads { MeaningChange::Other } else { MeaningChange::Nothing };
    }
    match same_role && !session::is_analysed_again(then, settings) {
        true if session::read_alike(then, settings) => MeaningChange::Other,
        true => MeaningChange::Kept,
        // PostgreSQL analyses again what it has scanned at Parse, not the text.
        false if !session::scanned_alike(then, settings) => MeaningChange::Kept,
        false => MeaningChange::Anew,
    }
}
