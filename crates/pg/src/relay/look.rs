//! The look at a session: a query for the state that functions, triggers, procedures and DO have
//! left there.
//!
//! A text that may run users' code is noted when it is sent ([`suspect`]). When its transaction is
//! over, and before another client gets the server, one query asks for settings, role, temporary
//! objects, locks, subscriptions, prepared statements and cursors, and for the newest objects of
//! the schema. State that it finds counts as if the text had set it openly: it pins the client to
//! its server, or is a setting of the client's own. The client's next message waits for the answer,
//! since it is not known before under which settings the server would read it. Calls that leave
//! nothing become known as harmless ([`crate::pipeline::calls`]), and no look follows them from
//! then on.

use std::sync::Arc;

use refrain_config::TrackFunctions;
use refrain_pg_wire::back::Fields;
use refrain_sql::{Kind, Scan, Traits, VAGUE};

use crate::pipeline::calls::Repute;
use crate::relay::beside::has_hidden_role;
use crate::relay::effects::pin;
use crate::relay::learn::{hide_settings, may_change_settings, note_name};
use crate::relay::pipe::Pipeline;
use crate::relay::restore::may_reset_unseen;
use crate::settings::session::Settings;
use crate::settings::value::write_literal;
use crate::state::client::ClientSession;
use crate::state::client::pins::Pins;
use crate::state::options::tracks;
use crate::state::pool_shared::CATALOGS;

/// Most custom parameters (`my.tenant`) found in functions that a look asks for.
const PARAMETERS_MAX: usize = 256;
/// Most bytes of the name of such a parameter.
const PARAMETER_BYTES_MAX: usize = 128;
/// A mask that keeps the hash of a function called by its OID apart from hashes of names.
const BY_OID: u64 = 0x9e37_79b9_7f4a_7c15;

/// The kinds of state that may be left: a name for the answer's row, the pin that it becomes, and
/// the SQL condition that it is there. No condition reads anything that takes long.
const LEFT: &[(&str, Pins, &str)] = &[
    (
        "temp",
        Pins::TEMP,
        "CASE WHEN pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.=) 0 THEN false ELSE EXISTS(SELECT 1 FROM pg_catalog.pg_depend \
         WHERE refclassid OPERATOR(pg_catalog.=) 2615 \
         AND refobjid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) END",
    ),
    (
        "advisory",
        Pins::ADVISORY,
        "EXISTS(SELECT 1 FROM pg_catalog.pg_locks \
         WHERE locktype OPERATOR(pg_catalog.=) 'advisory' \
         AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid())",
    ),
    ("listen", Pins::LISTEN, "EXISTS(SELECT 1 FROM pg_catalog.pg_listening_channels())"),
    (
        "prepared",
        Pins::PREPARED,
        "EXISTS(SELECT 1 FROM pg_catalog.pg_prepared_statements WHERE from_sql)",
    ),
    ("hold", Pins::HOLD, "EXISTS(SELECT 1 FROM pg_catalog.pg_cursors WHERE is_holdable)"),
    // A role with which the session began (ALTER ROLE or ALTER DATABASE … SET role) is no pin.
    (
        "role",
        Pins::ROLE,
        "CASE WHEN pg_catalog.current_setting('role') OPERATOR(pg_catalog.=) 'none' THEN false \
         ELSE NOT EXISTS(SELECT 1 FROM pg_catalog.pg_db_role_setting s \
         WHERE pg_catalog.concat('role=',pg_catalog.current_setting('role')) \
         OPERATOR(pg_catalog.=) ANY (s.setconfig) \
         AND (s.setdatabase OPERATOR(pg_catalog.=) 0 OR s.setdatabase OPERATOR(pg_catalog.=) \
         (SELECT d.oid FROM pg_catalog.pg_database d \
         WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())) \
         AND (s.setrole OPERATOR(pg_catalog.=) 0 OR s.setrole OPERATOR(pg_catalog.=) \
         (SELECT r.oid FROM pg_catalog.pg_roles r \
         WHERE r.rolname OPERATOR(pg_catalog.=) SESSION_USER))) END",
    ),
];

/// The index of `pg_proc` among [`CATALOGS`].
const FUNCTIONS: usize = 1;
/// The first OID that does not come with PostgreSQL.
const FIRST_OWN_OID: u32 = 16_384;

/// The SQL for the newest object of each of the [`CATALOGS`], without temporary tables.
const NEWEST: &str = " UNION ALL SELECT '=newest',pg_catalog.concat_ws(' ',\
    (SELECT pg_catalog.max(oid) FROM pg_catalog.pg_class \
    WHERE relpersistence OPERATOR(pg_catalog.<>) 't'),\
    (SELECT pg_catalog.max(oid) FROM pg_catalog.pg_proc),\
    (SELECT pg_catalog.max(oid) FROM pg_catalog.pg_type WHERE typtype OPERATOR(pg_catalog.<>) 'c' \
    AND typcategory OPERATOR(pg_catalog.<>) 'A'),\
    (SELECT pg_catalog.max(oid) FROM pg_catalog.pg_operator),\
    (SELECT pg_catalog.max(oid) FROM pg_catalog.pg_trigger),\
    (SELECT pg_catalog.max(oid) FROM pg_catalog.pg_cast))";

/// The SQL for the custom parameters that users' functions set, as far as their source shows them.
const PARAMETERS: &str = r" UNION ALL SELECT DISTINCT '=parameter',pg_catalog.lower(COALESCE(m[1],m[2]))
    FROM pg_catalog.pg_proc p,
    pg_catalog.regexp_matches(p.prosrc,E'set_config\\s*\\(\\s*''+([a-z_][\\w$]*\\.[\\w$.]+)'
    '|\\mset\\s+(?:session\\s+)?([a-z_][\\w$]*\\.[\\w$.]+)','gi') m
    WHERE p.prolang OPERATOR(pg_catalog.<>) 12 AND p.prolang OPERATOR(pg_catalog.<>) 13
    AND p.prosrc OPERATOR(pg_catalog.~*) E'set_config|\\mset\\s'";

/// Notes a text that may run users' code: unless its calls are known as harmless, a look follows
/// when the transaction is over. Returns the hash under which the calls are learned, if there is
/// something to learn.
#[inline]
pub(crate) fn suspect(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    scan: &Scan,
) -> Option<u64> {
    let tracks = tracks(pipe.pool());
    let runs = scan.calls != 0
        || scan.traits.intersects(Traits::PROCEDURAL | Traits::PREPARE | Traits::EXECUTE);
    match tracks {
        TrackFunctions::On if runs => suspect_call(pipe, session, scan),
        TrackFunctions::Off | TrackFunctions::On => None,
        TrackFunctions::Strict => suspect_strictly(pipe, session, scan),
    }
}

fn suspect_call(pipe: &mut Pipeline<'_>, session: &mut ClientSession, scan: &Scan) -> Option<u64> {
    let suspicion = &mut session.suspicion;
    let mut calls = scan.calls;
    if scan.traits.contains(Traits::PREPARE) {
        suspicion.prepare(calls);
        if calls != 0 && scan.kind == Kind::Many {
            suspicion.look_later();
        }
        return None;
    }
    if scan.traits.contains(Traits::EXECUTE) {
        if suspicion.has_prepared_anything() {
            may_change_settings(pipe, &mut session.settings);
            return look_later(session, VAGUE);
        }
        calls ^= suspicion.prepared();
    }
    let hidden = scan.traits.contains(Traits::PROCEDURAL);
    match repute(pipe, session, calls) {
        // A text that hides what it calls, such as DO, is never known as harmless, unless it is a
        // single CALL.
        Repute::Harmless if !hidden || is_harmless(pipe, session, scan) => return None,
        _ if calls == 0 && !hidden => return None,
        Repute::Loud => hide_settings(pipe, &mut session.settings),
        Repute::Harmless | Repute::Unknown => {}
    }
    // The newest objects do not show that hidden code has renamed something.
    if hidden {
        pipe.server.session.transaction.change_schema();
    }
    look_later(session, calls)
}

fn suspect_strictly(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    scan: &Scan,
) -> Option<u64> {
    let own = matches!(
        scan.kind,
        Kind::Empty | Kind::Begin | Kind::TransactionEnd | Kind::Chain | Kind::Deallocate(_)
    );
    if own {
        return None;
    }
    session.suspicion.look_later();
    suspect_call(pipe, session, scan)
}

/// Notes a FunctionCall. Its `body` begins with the function's OID.
pub(crate) fn suspect_function(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    body: &[u8],
) -> Option<u64> {
    if tracks(pipe.pool()) == TrackFunctions::Off {
        return None;
    }
    let oid = body.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let calls = u64::from(oid) ^ BY_OID;
    if repute(pipe, session, calls) == Repute::Harmless {
        return None;
    }
    look_later(session, calls)
}

/// Notes that a statement runs which the client has prepared on this server alone.
pub(crate) fn suspect_prepared(pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    let suspicion = &session.suspicion;
    if suspicion.has_prepared_anything() {
        may_change_settings(pipe, &mut session.settings);
    } else if suspicion.prepared() == 0 {
        return;
    }
    suspect_anything(pipe, session);
}

/// Has a look at the session follow, since a statement runs whose text is not known.
pub(crate) fn suspect_anything(pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    if tracks(pipe.pool()) != TrackFunctions::Off {
        session.suspicion.look_later();
        may_reset_unseen(session, []);
    }
}

fn look_later(session: &mut ClientSession, calls: u64) -> Option<u64> {
    session.suspicion.look_later();
    may_reset_unseen(session, []);
    let vague = calls == 0 || calls == VAGUE;
    (!vague).then(|| here(session, calls))
}

#[inline]
fn repute(pipe: &mut Pipeline<'_>, session: &ClientSession, calls: u64) -> Repute {
    let (calls, now) = (here(session, calls), pipe.now);
    let pool = pipe.pool();
    pool.protocol.calls.repute(calls, pool.shared.protocol.code(), now)
}

/// Returns the hash of these calls in a session like this one. Calls that leave nothing new here
/// may leave something in another session, so a finding is only valid for sessions with the same
/// beginning, unreported settings and pins.
fn here(session: &ClientSession, calls: u64) -> u64 {
    calls
        ^ session.settings.expected().hidden
        ^ u64::from(session.pins.bits()) << 48
        ^ session.settings.beginning()
}

/// Whether a text may run code that leaves something in the session.
pub(crate) fn is_suspect(pipe: &mut Pipeline<'_>, session: &ClientSession, scan: &Scan) -> bool {
    scan.calls != 0
        && tracks(pipe.pool()) != TrackFunctions::Off
        && repute(pipe, session, scan.calls) != Repute::Harmless
}

/// Whether a single command that hides what it does (CALL) is known to leave nothing.
pub(crate) fn is_harmless(pipe: &mut Pipeline<'_>, session: &ClientSession, scan: &Scan) -> bool {
    scan.statements == 1
        && scan.calls != 0
        && tracks(pipe.pool()) == TrackFunctions::On
        && repute(pipe, session, scan.calls) == Repute::Harmless
}

/// Sends the query of a look.
pub(crate) fn look(pipe: &mut Pipeline<'_>, session: &mut ClientSession) {
    let names = session.settings.names();
    let mut text = pipe.server.session.settings.read(names);
    for (name, _, there) in LEFT {
        let row = format!(" UNION ALL SELECT '={name}','' WHERE {there}");
        text.extend_from_slice(row.as_bytes());
    }
    let pool = pipe.core_state.pool(pipe.server.pool());
    text.extend_from_slice(
        b" UNION ALL SELECT '=role','' WHERE SESSION_USER OPERATOR(pg_catalog.<>) ",
    );
    let user = pool.settings.server.user.as_deref().unwrap_or(&pool.shared.user);
    write_literal(&mut text, user.as_bytes());
    text.extend_from_slice(NEWEST.as_bytes());
    let code = pool.shared.protocol.code();
    let known = pool.protocol.calls.parameters(code);
    match known {
        None => text.extend_from_slice(PARAMETERS.as_bytes()),
        Some(names) => names.iter().for_each(|name| ask_parameter(&mut text, name)),
    }
    session.suspicion.ask(code, known.is_none());
    pool.counters.protocol.session_checks += 1;
    pipe.run_reading(&text, session.settings.are_hurried());
}

/// Handles a row of the answer that is not a setting.
pub(crate) fn look_row(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    what: &[u8],
    value: &[u8],
) {
    let suspicion = &mut session.suspicion;
    if let Some((_, pin, _)) = LEFT.iter().find(|(name, ..)| name.as_bytes() == what) {
        suspicion.found(*pin);
    } else if what == b"newest" {
        let mut newest = [0; CATALOGS];
        let numbers = value.split(|byte| *byte == b' ');
        for (newest, number) in newest.iter_mut().zip(numbers) {
            *newest = std::str::from_utf8(number).ok().and_then(|n| n.parse().ok()).unwrap_or(0);
        }
        let shared = &pipe.core_state.pool(pipe.server.pool()).shared.protocol;
        let before = shared.code();
        shared.see(newest);
        suspicion.found_code(newest[FUNCTIONS] >= FIRST_OWN_OID, before, shared.code());
    } else if value.len() <= PARAMETER_BYTES_MAX {
        suspicion.found_parameter(value, PARAMETERS_MAX);
    }
}

/// Draws the conclusions from a complete answer. `before` are the client's settings as Refrain knew
/// them before the look; `None` if the answer has more of them than is kept.
pub(crate) fn looked(
    pipe: &mut Pipeline<'_>,
    session: &mut ClientSession,
    before: Option<&Arc<Settings>>,
) {
    let now = pipe.now;
    let code = pipe.core_state.pool(pipe.server.pool()).shared.protocol.code();
    let Some(answer) = session.suspicion.answered(code) else { return };
    let news = session.pins.missing(answer.found);
    // If another look follows, it judges the calls.
    let calls = match session.suspicion.is_due() {
        true => Vec::new(),
        false => session.evidence.take(),
    };
    // Custom parameters that have a value are asked for whenever this client's settings are read
    // from now on.
    let settings = session.settings.expected().clone();
    let own = settings.iter().map(|(name, _)| name).filter(|name| name.contains(&b'.'));
    own.for_each(|name| note_name(pipe, session, name));
    let said = session.settings.are_to_be_read();
    let expected = session.settings.expected();
    let changed =
        !said && before.is_none_or(|before| !Arc::ptr_eq(before, expected)) || answer.restored;
    let pool = pipe.core_state.pool(pipe.server.pool());
    if let Some((parameters, code)) = answer.parameters {
        pool.protocol.calls.learn_parameters(parameters, code, now);
    }
    if !said || !news.is_empty() {
        pool.protocol.calls.found(&calls, answer.has_code, changed || !news.is_empty());
    }
    if !news.is_empty() {
        pool.counters.protocol.pins += u64::from(session.pins.is_empty());
        if news.has(Pins::ROLE) {
            has_hidden_role(pipe, &mut session.settings);
        }
        pin(pipe, session, news);
    }
}

/// Handles the error of a look. True if the error has no further consequence: a look that was
/// merely interrupted is repeated once, and a server about to be closed is let go.
pub(crate) fn look_again(
    pipe: &Pipeline<'_>,
    session: &mut ClientSession,
    fields: &Fields<'_>,
) -> bool {
    if !session.suspicion.is_asked() {
        return false;
    }
    let again = session.suspicion.failed(fields.sqlstate().starts_with(b"57"));
    // A server that is about to be closed may fail for the very reason that closes it (E38).
    let goes = pipe.server.is_close_needed() && session.pins.is_empty();
    if !again {
        session.evidence.take();
    }
    again || goes
}

fn ask_parameter(text: &mut Vec<u8>, name: &[u8]) {
    text.extend_from_slice(b" UNION ALL SELECT ");
    write_literal(text, name);
    text.extend_from_slice(b",v FROM (SELECT pg_catalog.current_setting(");
    write_literal(text, name);
    text.extend_from_slice(b",true) AS v) x WHERE v OPERATOR(pg_catalog.<>) ''");
}
