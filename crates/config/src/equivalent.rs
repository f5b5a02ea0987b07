//! The file that is equivalent to a URL: its sections, and the entries in them.

use std::ffi::OsStr;
use std::path::Path;

use crate::database::{Database, DatabaseKeys};
use crate::pool::PoolOptions;
use crate::table::Table;
use crate::value::{Entry, Given};

/// Sections of a file.
pub(crate) const POOL: &str = "pool";
/// See [`POOL`].
pub(crate) const DATABASES: &str = "databases";
/// See [`POOL`].
pub(crate) const USERS: &str = "users";
/// See [`POOL`].
pub(crate) const PEERS: &str = "peers";
/// See [`POOL`].
pub(crate) const CACHE: &str = "cache";
/// See [`POOL`].
pub(crate) const GROUPS: &str = "groups";
/// All sections; all other keys stand at the top of a file.
pub(crate) const SECTIONS: [&str; 6] = [POOL, DATABASES, USERS, PEERS, CACHE, GROUPS];

/// Returns the entries of the file that is equivalent to a URL.
pub(crate) fn as_file(entries: &[Entry]) -> Result<Vec<Entry>, &'static str> {
    let text = |name: &str| {
        let mut found = entries.iter().rev().filter(|entry| entry.name == name);
        found.find_map(|entry| entry.given.text())
    };
    let (mut server, rest): (Vec<_>, Vec<_>) =
        entries.iter().cloned().partition(|entry| is_key_of::<DatabaseKeys>(&entry.name));
    let (pool, mut root): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|entry| is_key_of::<PoolOptions>(&entry.name));

    server.retain(|entry| entry.name != "dbname");
    let mut databases = Vec::new();
    if text("backend") == Some("sqlite") {
        let name = text("dbname").unwrap_or_else(|| name_of(text("path").unwrap_or_default()));
        root.insert(0, entry("default_database", Given::Text(name.to_owned())));
        databases.push(table(name, server));
    } else {
        databases.push(table(Database::ANY, server.clone()));
        databases.extend(text("dbname").map(|name| table(name, server)));
    }
    match (text("user"), text("password")) {
        (Some(name), Some(password)) => {
            let user = table(name, vec![entry("password", Given::Text(password.to_owned()))]);
            root.push(table(USERS, vec![user]));
        }
        (None, Some(_)) => return Err("expected a user as well as a password"),
        // Inserted at the front, so that an `auth` in the query takes precedence.
        (_, None) => root.insert(0, entry("auth", Given::Text("trust".to_owned()))),
    }
    root.push(table(POOL, pool));
    root.push(table(DATABASES, databases));
    Ok(root)
}

/// Returns the name of the database in an SQLite file: the file's name without its ending.
fn name_of(path: &str) -> &str {
    let stem = Path::new(path).file_stem().and_then(OsStr::to_str).unwrap_or_default();
    if stem.is_empty() || Database::CONSOLES.contains(&stem) { Database::USUAL } else { stem }
}

fn is_key_of<T: Table>(name: &str) -> bool {
    T::row(name).is_some()
}

fn entry(name: &str, given: Given) -> Entry {
    Entry { name: name.to_owned(), line: None, given }
}

fn table(name: &str, entries: Vec<Entry>) -> Entry {
    entry(name, Given::Table(entries))
}
