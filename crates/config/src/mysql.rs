//! Databases of MySQL and MariaDB: what they have of their own, and what they cannot have.

use crate::value::{Entry, Given};

/// An option that is of no use for a database of MySQL.
struct Refusal {
    option: &'static str,
    /// The values that ask for nothing.
    allowed: &'static [&'static str],
    why: &'static str,
}

/// Why most of the options are refused.
const OF_POSTGRES: &str = "is for PostgreSQL: a database of MySQL cannot have it";
/// Why a lookup of users is refused.
const NO_LOOKUP: &str = "is for PostgreSQL: users of a database of MySQL stand under [users]";

const REFUSALS: [Refusal; 21] = {
    const fn refusal(
        option: &'static str,
        allowed: &'static [&'static str],
        why: &'static str,
    ) -> Refusal {
        Refusal { option, allowed, why }
    }
    [
        refusal("autoprepare", &["off"], OF_POSTGRES),
        refusal("share_servers", &["off"], OF_POSTGRES),
        refusal("server_reset_query", &[], OF_POSTGRES),
        refusal("application_name", &[], OF_POSTGRES),
        refusal("connect_query", &[], OF_POSTGRES),
        refusal("channel_binding", &["disable"], OF_POSTGRES),
        refusal("sslnegotiation", &["postgres"], OF_POSTGRES),
        refusal("target_session_attrs", &["any"], OF_POSTGRES),
        refusal("load_balance_hosts", &["disable"], OF_POSTGRES),
        refusal("reads", &["primary"], OF_POSTGRES),
        refusal("max_lag", &[], OF_POSTGRES),
        refusal("changes", &["off"], OF_POSTGRES),
        refusal("publications", &[], OF_POSTGRES),
        refusal("changes_user", &[], OF_POSTGRES),
        refusal("changes_password", &[], OF_POSTGRES),
        refusal("auth_user", &[], NO_LOOKUP),
        refusal("auth_query", &[], NO_LOOKUP),
        refusal("auth_dbname", &[], NO_LOOKUP),
        refusal("stmt_cache_size", &[], "is for SQLite only"),
        refusal("stmt_cache_admit", &[], "is for SQLite only"),
        refusal("stmt_cache_max_sql", &[], "is for SQLite only"),
    ]
};

/// Returns the options among these that a database of MySQL cannot have, each with its line and the
/// error.
pub(crate) fn refused(entries: &[Entry]) -> Vec<(&str, Option<usize>, &'static str)> {
    let refusal = |entry: &Entry| {
        if entry.name.starts_with("sqlite_") {
            return Some("is for SQLite only");
        }
        let refusal = REFUSALS.iter().find(|refusal| refusal.option == entry.name)?;
        let is_allowed = entry.given.text().is_some_and(|text| refusal.allowed.contains(&text));
        (!is_allowed).then_some(refusal.why)
    };
    let found = entries.iter().filter_map(|it| Some((it.name.as_str(), it.line, refusal(it)?)));
    found.collect()
}

/// Puts the default port in front of the entries of a database, if the database is of MySQL.
pub(crate) fn put_port(entries: &mut Vec<Entry>) {
    let backend = entries.iter().rev().find(|entry| entry.name == "backend");
    if backend.is_some_and(|entry| entry.given.text() == Some("mysql")) {
        let given = Given::Whole(3306);
        entries.insert(0, Entry { name: "port".to_owned(), line: None, given });
    }
}
