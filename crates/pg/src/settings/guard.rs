//! Guards: what stands in front of Refrain's own queries, so that nothing that a client may set for
//! its session spoils them.
//!
//! Refrain's queries run in sessions that have a client's settings. Under
//! `default_transaction_isolation = serializable`, read only and deferrable, a query waits until
//! the transactions of strangers are over; on a standby it fails. A short timeout cancels it, and
//! `search_path` may put other operators in front of PostgreSQL's own. So a query of Refrain's
//! names the mode of its transaction where the defaults may make it wait, switches short timeouts
//! off, and says of which schema its operators are.
//!
//! A mode is named by SET alone: it needs no snapshot, and waits for nothing.

use std::time::Duration;

use crate::settings::session::Settings;

/// Names the mode of a transaction that has run nothing yet. PostgreSQL warns of SET LOCAL and SET
/// TRANSACTION there, since they stand outside of a block.
pub(crate) const READ_COMMITTED: &[u8] = b"SET transaction_isolation TO 'read committed'";

/// The same in a query string of several commands, which is a block.
const READ_COMMITTED_IN_STRING: &[u8] = b"SET TRANSACTION ISOLATION LEVEL READ COMMITTED;";

/// Makes the session's later transactions wait for nobody. DISCARD ALL, which needs a transaction
/// of its own, takes it back.
pub(crate) const READ_COMMITTED_LATER: &[u8] =
    b"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// Has operators that stand without a schema be PostgreSQL's own, until the transaction ends. Names
/// of relations go on meaning what they mean in the client's session.
pub(crate) const OWN_OPERATORS: &[u8] = b"SELECT pg_catalog.set_config('search_path',\
    pg_catalog.rtrim(pg_catalog.concat('pg_catalog,',pg_catalog.current_setting('search_path')),', \
    '),true)";

/// The timeouts that may end a query of Refrain's own. PostgreSQL has the last one since version
/// 17.
const TIMEOUTS: [&str; 3] = ["statement_timeout", "lock_timeout", "transaction_timeout"];

/// The end of the value of a timeout that is not in whole seconds: a query may take as long.
const SHORT: &str = "ms";

/// The shortest `idle_session_timeout` with which a server may be idle until the next ticks.
const BRIEF: Duration = Duration::from_secs(1);

/// Stands before the name of a setting that a guard has changed for its transaction, in the row
/// that has its value.
pub(crate) const GUARDED: &[u8] = b"!";

/// True if a transaction may have to wait for others, or fail, unless it names its mode: it is read
/// only by default.
pub(crate) fn may_wait(settings: &Settings) -> bool {
    settings.get(b"default_transaction_read_only") == Some(b"on")
}

/// True if a timeout is so short that it may end a query of Refrain's own.
pub(crate) fn are_hurried(settings: &Settings) -> bool {
    short(settings).next().is_some()
}

/// True if PostgreSQL may end the session as soon as it is idle.
pub(crate) fn is_brief(settings: &Settings) -> bool {
    settings.idle_timeout.is_some_and(|timeout| timeout < BRIEF)
}

/// True for the names of timeouts.
pub(crate) fn is_timeout(name: &[u8]) -> bool {
    TIMEOUTS.iter().any(|timeout| name.eq_ignore_ascii_case(timeout.as_bytes()))
}

fn short(settings: &Settings) -> impl Iterator<Item = &'static str> {
    TIMEOUTS.into_iter().filter(move |name| is_short(settings, name))
}

fn is_short(settings: &Settings, timeout: &str) -> bool {
    let value = settings.get(timeout.as_bytes());
    value.is_some_and(|value| value.ends_with(SHORT.as_bytes()))
}

/// Writes the query that switches short timeouts off for its transaction. A row tells of each, with
/// the session's value.
pub(crate) fn no_hurry() -> Vec<u8> {
    let guard = String::from_utf8_lossy(GUARDED);
    let rows = TIMEOUTS.map(|name| {
        let value = format!("pg_catalog.current_setting('{name}',true)");
        format!(
            "SELECT '{guard}{name}',{value},pg_catalog.set_config('{name}','0',true) \
            WHERE {value} OPERATOR(pg_catalog.~) '{SHORT}$'"
        )
    });
    rows.join(" UNION ALL ").into_bytes()
}

/// Returns what stands before a command in a query string, in a session with these settings.
pub(crate) fn in_string(settings: &Settings) -> Vec<u8> {
    let mut text = Vec::new();
    if may_wait(settings) {
        text.extend_from_slice(READ_COMMITTED_IN_STRING);
    }
    for name in short(settings) {
        text.extend_from_slice(format!("SET LOCAL {name} TO 0;").as_bytes());
    }
    text
}
