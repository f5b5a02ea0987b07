//! SQL that names prepared statements or cursors, above all EXECUTE (E51), where Refrain cannot
//! replace the name.
//!
//! The columns of an EXECUTE or FETCH in a Parse depend on what has the name at that moment. So no
//! two such Parses share a statement: each has its own
//! (`docs/decisions/0018-names-in-sql-execute.md`).
//!
//! PostgreSQL looks for the statement that an EXECUTE names when the EXECUTE is parsed, bound and
//! run. The server knows the client's statement by another name. So before each of these messages
//! Refrain lends the server a statement of the client's name, and the client keeps the server from
//! then on. It does the same in front of query strings of several commands, and of PREPARE, which
//! has to find the name taken.

use std::rc::Rc;

use refrain_pg_wire::back::Status;
use refrain_pg_wire::front::Parse;
use refrain_pg_wire::write;
use refrain_sql::{Kind, Scan, Traits};

use crate::ground::ids::Segment;
use crate::ground::name::Name;
use crate::messages::fits::ask_behind_parse;
use crate::messages::prepare::{ensure_named, intern, not_ours};
use crate::messages::wait::{is_foreign, wait_for_reading, wait_until_quiet, wait_until_settled};
use crate::pipeline::outstanding::{
    Outstanding, OutstandingRequest, Purpose, ReplyAction, RequestKind, Seq,
};
use crate::relay::copies::Called;
use crate::relay::effects::pin;
use crate::relay::knowledge::note_settings;
use crate::relay::link::Stop;
use crate::relay::look::suspect;
use crate::relay::message::Message;
use crate::relay::pipe::Pipeline;
use crate::relay::restore::first_settings;
use crate::settings::queries::Restores;
use crate::settings::session;
use crate::state::client::ClientSession;
use crate::state::client::pins::Pins;
use crate::state::client::reading::Reading;
use crate::state::client::statements::{ClientStatements, Parsed};
use crate::statements::of_client::ByName;
use crate::statements::of_core::CachedStatement;
use crate::statements::statement::{Identity, Statement};

/// The traits of a text that names prepared statements.
const NAMING: Traits = Traits::EXECUTE.union(Traits::PREPARE).union(Traits::DEALLOCATE);

/// Returns the name of the statement that a command runs or prepares.
fn used(kind: Kind) -> Option<refrain_sql::Name> {
    match kind {
        Kind::Execute(name)
        | Kind::ExplainExecute(name)
        | Kind::CreateAsExecute(name)
        | Kind::Prepare(name) => Some(name),
        _ => None,
    }
}

/// The part of a statement that a command needs when it names one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WantedName {
    /// The name alone: the command finds it taken, or drops it.
    Name,
    /// The statement, which the command runs.
    Statement,
}

/// Returns the part of a statement that a command of this kind needs.
fn wanted(kind: Kind) -> WantedName {
    match kind {
        Kind::Execute(_) | Kind::ExplainExecute(_) | Kind::CreateAsExecute(_) => {
            WantedName::Statement
        }
        _ => WantedName::Name,
    }
}

/// The effects of a query string on the statements that were lent to the server for it. The string
/// itself is passed on unchanged.
#[derive(Default)]
pub(crate) struct Lent {
    /// The effects that the lent statements may have on the session when they run.
    pub(crate) traits: Traits,
    /// The startup settings that are to be restored behind them.
    pub(crate) first: Option<Box<Restores>>,
    /// The number of commands in the string.
    commands: u32,
    /// The statements that it drops, each with the number of commands from the dropping one on.
    drops: Vec<(u32, Name)>,
}

/// Returns the statement of a Parse. A text that names something of the session (EXECUTE, FETCH)
/// gets a statement that it shares with no other Parse.
pub(crate) fn intern_parse(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    tail: &[u8],
) -> Result<Rc<CachedStatement>, Stop> {
    let cached = intern(pipe, &session.settings, tail);
    if !cached.statement.names {
        return Ok(cached);
    }
    lend_name(pipe, session, &cached.statement)?;
    let pool = pipe.home().shared.id;
    let identity = Identity { pool, env: session.settings.env(), tail };
    let statement = pipe.core_state.shared.protocol.registry.make(identity);
    statement.start_schema_version(cached.statement.schema_version());
    let own = Rc::new(CachedStatement::new(statement, session.settings.current()));
    // The statement gets a name on this server at once, and so stays there: on another server the
    // name may mean another statement.
    own.used();
    Ok(own)
}

/// Lends the server the client's statement that `statement` names, before `statement` is parsed,
/// bound or run. Returns what the lent one may do to the session.
pub(crate) fn lend_name(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    statement: &Statement,
) -> Result<Traits, Stop> {
    let kind = statement.scan.kind;
    let Some(name) = used(kind) else { return Ok(Traits::NONE) };
    let name = Name::from_slice(&name.fold(statement.text()));
    wait_until_settled(&pipe.server.session.outstanding, &session.statements)?;
    let outstanding = &pipe.server.session.outstanding;
    if outstanding.may_have_failed()
        && !outstanding.is_empty()
        && session.statements.contains(&name)
    {
        return Err(Stop::Replies);
    }
    wait_for_lent(pipe, session, kind, &name)?;
    let traits = runs(pipe, session, kind, &name);
    // In a failed transaction the server refuses the command in any case.
    if !pipe.server.session.outstanding.has_failed() {
        lend_if_need_be(pipe, session, &name, wanted(kind));
    }
    Ok(traits)
}

/// Notes that a command runs a statement of the client's, and returns what that may do to the
/// session.
fn runs(pipe: &mut Pipeline<'_>, session: &mut ClientSession, kind: Kind, name: &Name) -> Traits {
    let Some(cached) = run_by_name(&mut session.statements, kind, name) else {
        return Traits::NONE;
    };
    suspect(pipe, session, &cached.statement.scan);
    note_settings(pipe, session, cached.statement.text(), &cached.statement.scan);
    cached.statement.scan.traits
}

/// Returns the statement of the client's that a command of this kind runs.
fn run_by_name(
    statements: &mut ClientStatements,
    kind: Kind,
    name: &[u8],
) -> Option<Rc<CachedStatement>> {
    let own = statements.named(name);
    let own = own.filter(|_| wanted(kind) == WantedName::Statement)?;
    Some(own.held.cached().clone())
}

/// Returns the startup settings that are to be restored behind EXECUTE of a client's statement.
pub(crate) fn first_settings_by_name(
    session: &mut ClientSession,
    statement: &Statement,
) -> Option<Box<Restores>> {
    let kind = statement.scan.kind;
    first_settings_of(session, kind, &used(kind)?.fold(statement.text()))
}

/// The same for the statement of this name.
pub(crate) fn first_settings_of(
    session: &mut ClientSession,
    kind: Kind,
    name: &[u8],
) -> Option<Box<Restores>> {
    // EXPLAIN and CREATE TABLE AS run no RESET.
    let Kind::Execute(_) = kind else { return None };
    let cached = run_by_name(&mut session.statements, kind, name)?;
    first_settings(&session.settings, cached.statement.text(), &cached.statement.scan)
}

/// Returns the client's statement of this name if the server lacks what a command needs of it.
pub(crate) fn lacked(
    outstanding: &Outstanding,
    statements: &mut ClientStatements,
    name: &Name,
    wanted: WantedName,
) -> Option<Rc<CachedStatement>> {
    let own = statements.named(name)?;
    let since = match own.lent() {
        ByName::Statement(since) => Some(since),
        ByName::Empty(since) if wanted == WantedName::Name => Some(since),
        ByName::Empty(_) | ByName::Nothing => None,
    };
    let there = since.is_some_and(|since| !outstanding.is_unsettled(since));
    (!there).then(|| own.held.cached().clone())
}

/// Waits, if a statement must be lent, until the settings are known under which the server would
/// parse it.
fn wait_for_lent(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    kind: Kind,
    name: &Name,
) -> Result<(), Stop> {
    match wanted(kind) {
        WantedName::Name => Ok(()),
        WantedName::Statement => {
            let lacked = lacked(
                &pipe.server.session.outstanding,
                &mut session.statements,
                name,
                WantedName::Statement,
            );
            lacked.map_or(Ok(()), |cached| wait_for_reading(pipe, session, &cached))
        }
    }
}

/// Lends the server what a command needs of the client's statement of this name, if there is such a
/// statement and the server lacks it. True if it was lent now.
fn lend_if_need_be(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    name: &Name,
    wanted: WantedName,
) -> bool {
    let Some(cached) =
        lacked(&pipe.server.session.outstanding, &mut session.statements, name, wanted)
    else {
        return false;
    };
    match wanted {
        WantedName::Name => lend_empty(pipe, &mut session.statements, name),
        WantedName::Statement => lend(pipe, session, name, &cached),
    }
    pin(pipe, session, Pins::PREPARED);
    true
}

/// Lends the server the statements that a query string names, if the string is passed on unchanged.
/// Ends their segment with a Sync unless a segment of the client's is open. The string waits for
/// the statements that it runs: if the server cannot parse one of them again, the string is not
/// run. An empty statement can always be parsed.
pub(crate) fn lend_named(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    message: &Message<'_>,
    text: &[u8],
    scan: &Scan,
) -> Result<Lent, Stop> {
    let as_it_is = match scan.kind {
        Kind::Many | Kind::Prepare(_) => true,
        Kind::Deallocate(name) => name.is_long(),
        kind => used(kind).is_some_and(|name| name.is_long()),
    };
    if !as_it_is || !scan.traits.intersects(NAMING) {
        return Ok(Lent::default());
    }
    // A name that was closed is there again if the Close turns out to have been skipped.
    wait_until_quiet(&pipe.server.session.outstanding)?;
    if session.statements.len() == 0 {
        return Ok(Lent::default());
    }
    let (mut lent, named) = named_by(session, text);
    // If only the beginning of the text has arrived, the number of its commands is unknown.
    let unknown = !message.complete && !lent.drops.is_empty();
    if named.is_empty() || unknown {
        return Ok(Lent::default());
    }
    let open = pipe.server.session.outstanding.is_open();
    if pipe.server.session.outstanding.status() != Status::Failed {
        named.iter().try_for_each(|(kind, name)| wait_for_lent(pipe, session, *kind, name))?;
        let mut lends = |wants: WantedName| {
            let named = named.iter().filter(|(kind, _)| wanted(*kind) == wants);
            named.filter(|(_, name)| lend_if_need_be(pipe, session, name, wants)).count() > 0
        };
        let (statements, names) = (lends(WantedName::Statement), lends(WantedName::Name));
        if (statements || names) && !open {
            pipe.end_segment(Purpose::Prepare);
        }
        if statements {
            session.reading.prepare_ahead();
            return Err(Stop::Replies);
        }
    }
    for (kind, name) in &named {
        lent.traits |= runs(pipe, session, *kind, name);
        lent.first = Restores::both(lent.first, first_settings_of(session, *kind, name));
    }
    Ok(lent)
}

/// Returns the client's statements that the commands of a query string name, and the string's
/// effects on them.
fn named_by(session: &ClientSession, text: &[u8]) -> (Lent, Vec<(Kind, Name)>) {
    let (mut lent, mut named) = (Lent::default(), Vec::new());
    let mut all_dropped = false;
    for kind in refrain_sql::kinds(text, session.settings.reads_backslash()) {
        let dropped = matches!(kind, Kind::Deallocate(_));
        let name = if let Kind::Deallocate(name) = kind { Some(name) } else { used(kind) };
        let name = name.map(|name| Name::from_slice(&name.fold(text)));
        // Behind the command that drops a statement, its name means another one.
        all_dropped |= kind == Kind::DeallocateAll;
        let gone = |name: &Name| all_dropped || lent.drops.iter().any(|(_, it)| it == name);
        let own = name.filter(|name| session.statements.contains(name) && !gone(name));
        if let Some(name) = own {
            named.push((kind, name.clone()));
            lent.drops.extend(dropped.then_some((lent.commands, name)));
        }
        lent.commands += 1;
    }
    lent.drops.iter_mut().for_each(|(at, _)| *at = lent.commands - *at);
    (lent, named)
}

/// Makes the client's next message wait for the reply to such a query string, if the string drops
/// statements.
pub(crate) fn bar_drops(reading: &mut Reading, seq: Seq, lent: Lent) {
    let Lent { commands, drops, .. } = lent;
    if drops.is_empty() {
        return;
    }
    reading.bar_drops(seq, commands, drops);
}

/// Sends a Parse by the client's name first, and then by the internal name. The client may have a
/// statement of the same name by SQL PREPARE: then the server reports that the name is taken.
pub(crate) fn parse_by_name(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    parse: &Parse<'_>,
    cached: &Rc<CachedStatement>,
    next: &[u8],
) {
    let safe = not_ours(pipe, parse.name);
    write::parse(pipe.out(), &safe, parse.tail);
    pipe.pool().counters.protocol.server_parses += 1;
    let seq = pipe.owe(
        OutstandingRequest::new(RequestKind::Parse, ReplyAction::Forward)
            .about(cached.statement.id),
    );
    let lacks = pipe.server.session.has(&cached.statement).is_none();
    ensure_named(pipe, &session.settings, cached);
    let called = Called::Named(cached.statement.generation());
    let lent = ByName::Statement(pipe.server.session.outstanding.segment());
    let mut statement = pipe.client_statement(cached.clone(), called);
    statement.lend(lent);
    let outstanding = &pipe.server.session.outstanding;
    let (name, parsed) = (Name::from_slice(parse.name), (seq, Parsed::There));
    session.statements.parse(name, statement, parsed, outstanding);
    if lacks {
        ask_behind_parse(pipe, called, cached, parse.name, next);
    }
}

/// Prepares a statement of the client's on the server under the client's name, in place of any
/// statement that had this name.
fn lend(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    name: &Name,
    cached: &Rc<CachedStatement>,
) {
    let (own, other) = (session.settings.current().clone(), cached.settings.clone());
    let foreign = is_foreign(&pipe.server.session.outstanding, &session.settings, cached);
    if foreign {
        pipe.run_internal(&session::reading(&own, &other), Purpose::Environment);
    }
    let safe = not_ours(pipe, name);
    let out = pipe.ports.out(pipe.server.conn());
    write::close_statement(out, &safe);
    write::parse(out, &safe, cached.statement.tail());
    pipe.pool().counters.protocol.server_parses += 1;
    pipe.owe_us(RequestKind::Close, Purpose::Prepare, 0);
    let seq = pipe.owe_us(RequestKind::Parse, Purpose::Prepare, cached.statement.id);
    lent(&pipe.server.session.outstanding, &mut session.statements, seq, name, ByName::Statement);
    if foreign {
        pipe.run_internal(&session::reading(&other, &own), Purpose::Return);
    }
}

/// Prepares an empty statement on the server under this name, which the client gave to a Parse.
pub(crate) fn lend_empty(pipe: &mut Pipeline<'_>, statements: &mut ClientStatements, name: &Name) {
    let safe = not_ours(pipe, name);
    let seq = pipe.take_name(&safe);
    lent(&pipe.server.session.outstanding, statements, seq, name, ByName::Empty);
}

/// Notes what the server now has under a name of the client's, and how to undo that.
fn lent(
    outstanding: &Outstanding,
    statements: &mut ClientStatements,
    seq: Seq,
    name: &Name,
    what: fn(Segment) -> ByName,
) {
    let what = what(outstanding.segment());
    statements.lend(seq, name, what, outstanding);
}
