//! Statements on servers: Refrain finds a client's statement, and prepares it on a server that
//! lacks it.

use std::rc::Rc;
use std::sync::Arc;

use crate::ground::ids::EnvId;
use crate::ground::name::Name;
use crate::messages::wait::is_foreign;
use crate::pipeline::outstanding::{Purpose, ReplyAction};
use crate::relay::copies::Called;
use crate::relay::pipe::Pipeline;
use crate::settings::session::{self, Settings};
use crate::state::client::settings::ClientSettings;
use crate::state::client::statements::ClientStatements;
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::Identity;

/// Prepares a statement that the server lacks and that the client calls `name`. Returns the name it
/// got on the server.
pub(crate) fn prepare_for(
    pipe: &mut Pipeline<'_>,
    settings: &ClientSettings,
    name: &[u8],
    cached: &Rc<CachedStatement>,
) -> Called {
    pipe.count_miss();
    let action = ReplyAction::Skip(Purpose::Prepare);
    if is_foreign(&pipe.server.session.outstanding, settings, cached) {
        return prepare_foreign(pipe, settings, cached);
    }
    // The client's unnamed statement stays unnamed: PostgreSQL plans it for the values at hand, and
    // drops it with the next one (E19).
    if !name.is_empty() && cached.used() {
        pipe.send_parse_named(&cached.statement, action);
        Called::Named(cached.statement.generation())
    } else {
        pipe.send_parse_unnamed(&cached.statement, action);
        Called::Unnamed
    }
}

/// Prepares the statement under its internal name, unless the server has it.
pub(crate) fn ensure_named(
    pipe: &mut Pipeline<'_>,
    settings: &ClientSettings,
    cached: &Rc<CachedStatement>,
) {
    let statement = &cached.statement;
    if pipe.server.session.has(statement).is_some() {
        return;
    }
    if is_foreign(&pipe.server.session.outstanding, settings, cached) {
        prepare_foreign(pipe, settings, cached);
    } else {
        pipe.send_parse_named(&cached.statement, ReplyAction::Skip(Purpose::Prepare));
    }
}

/// Returns the statement with this text and these parameter types, in the client's environment: the
/// shared one, unless the text is too large, the registry is full, or the client's settings are
/// unknown.
pub(crate) fn intern(
    pipe: &mut Pipeline<'_>,
    settings: &ClientSettings,
    tail: &[u8],
) -> Rc<CachedStatement> {
    intern_in(pipe, settings, settings.env(), settings.current(), tail)
}

/// Returns the statement with this text and these parameter types that is analysed under `analysed`
/// and runs in this environment.
pub(crate) fn intern_in(
    pipe: &mut Pipeline<'_>,
    settings: &ClientSettings,
    env: EnvId,
    analysed: &Arc<Settings>,
    tail: &[u8],
) -> Rc<CachedStatement> {
    let identity = Identity { pool: pipe.home().shared.id, env, tail };
    let unsure = settings.unknown_since().is_some();
    let shared = pipe.core_state.shared.clone();
    let pool = pipe.home();
    let schema_version = pool.shared.protocol.schema_version();
    let small = tail.len() <= pool.settings.options.max_cached_statement_bytes;
    let room = shared.protocol.registry.bytes() <= shared.options().general.max_statement_bytes;
    if !small || !room || unsure {
        pool.counters.protocol.statements_not_kept += 1;
        let statement = shared.protocol.registry.make(identity);
        let cached = Rc::new(CachedStatement::new(statement, analysed));
        if unsure {
            // The statement gets a name on this server at once, and so stays there: Refrain does
            // not know under which settings to parse it again.
            cached.used();
        }
        cached.statement.start_schema_version(schema_version);
        return cached;
    }
    let cached =
        pipe.core_state.protocol.statements.intern(&shared.protocol.registry, identity, analysed);
    let statement = &cached.statement;
    if statement.schema_version() < schema_version {
        // The schema may have changed since this generation of the statement began. A new client
        // must not get a plan for the old schema (E65), nor a fake ParseComplete for a text that
        // the server would refuse now.
        if statement.is_new() {
            statement.start_schema_version(schema_version);
        } else if statement.begin_generation(statement.generation(), schema_version) {
            pipe.home().counters.protocol.statements_renewed += 1;
        }
    }
    cached
}

/// Whether one more statement of `bytes` exceeds the client's limits.
pub(crate) fn is_over_quota(
    pipe: &mut Pipeline<'_>,
    statements: &ClientStatements,
    bytes: usize,
) -> bool {
    let options = &pipe.home().settings.options;
    let bounds = (options.max_client_statements as usize, options.max_client_statement_bytes);
    !statements.have_room(bytes, bounds)
}

/// Prepares a statement under the settings of its Parse, which decide what its text means (E57),
/// and then goes back to the client's settings. If no segment is open, this gets a segment of its
/// own: PostgreSQL must not count it among the client's commands.
pub(crate) fn prepare_foreign(
    pipe: &mut Pipeline<'_>,
    settings: &ClientSettings,
    cached: &Rc<CachedStatement>,
) -> Called {
    let (own, other) = (settings.current().clone(), cached.settings.clone());
    let alone =
        !pipe.server.session.outstanding.is_open() && pipe.server.session.outstanding.is_empty();
    pipe.run_internal(&session::reading(&own, &other), Purpose::Environment);
    pipe.send_parse_named(&cached.statement, ReplyAction::Skip(Purpose::Prepare));
    pipe.run_internal(&session::reading(&other, &own), Purpose::Return);
    if alone {
        pipe.end_segment(Purpose::Prepare);
    }
    Called::Named(cached.statement.generation())
}

/// Sends a Parse: under the internal name if the statement is worth one (E88), else as the unnamed
/// statement.
pub(crate) fn send_parse(
    pipe: &mut Pipeline<'_>,
    cached: &Rc<CachedStatement>,
    action: ReplyAction,
) -> u64 {
    if cached.is_worth_a_name() {
        pipe.send_parse_named(&cached.statement, action)
    } else {
        pipe.send_parse_unnamed(&cached.statement, action)
    }
}

/// Returns the client's name, changed if it begins as internal names do: a client must not reach
/// statements that Refrain keeps for others (E9).
pub(crate) fn not_ours(pipe: &Pipeline<'_>, name: &[u8]) -> Name {
    let mut safe = Name::from_slice(name);
    if name.starts_with(pipe.core_state.shared.protocol.registry.prefix()) {
        safe[0] = b'-';
    }
    safe
}
