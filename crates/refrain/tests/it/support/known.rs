//! Known differences from PostgreSQL.
//!
//! A script listed here runs as well, and has to fail: once it passes, its row has to go.

/// Name of a script, with `@15` or `@18` if it fails with that version alone; the difference, and
/// why it stays.
const KNOWN_FAILURES: &[(&str, &str)] = &[(
    "e38_query_without_sync@18",
    "PostgreSQL 18 answers the next command of such a session with XX000; here another server \
         answers it",
)];

/// True if this script is known to fail.
pub(crate) fn is_listed(name: &str) -> bool {
    failure(name).is_some()
}

fn failure(name: &str) -> Option<&'static str> {
    let found = KNOWN_FAILURES.iter().find(|(known, _)| *known == name);
    found.map(|(_, what)| *what)
}

/// Turns a script's outcome into the test's: a known failure passes, and an unexpected pass fails.
pub(crate) fn judge(name: &str, outcome: Result<(), String>) -> Result<String, String> {
    match (outcome, failure(name)) {
        (Ok(()), None) => Ok("ok".to_owned()),
        (Ok(()), Some(_)) => Err("passes now: take it off KNOWN_FAILURES".to_owned()),
        (Err(_), Some(what)) => Ok(format!("known failure: {what}")),
        (Err(why), None) => Err(why),
    }
}
