//! The reference of all options and the example file; both are generated from the rows.
//!
//! `docs/config.md` is the output of [`reference()`]. A test fails if the two differ, and
//! `cargo xtask docs` writes the page.

use std::fmt::Write;

use crate::cache::{CacheOptions, CacheRule};
use crate::database::DatabaseKeys;
use crate::general::General;
use crate::peer::PeerKeys;
use crate::pool::PoolOptions;
use crate::table::{Row, Table};
use crate::user::UserKeys;

const INTRODUCTION: &str = r#"# Configuration

<!-- Written by `cargo xtask docs` from the rows in `crates/config`. Do not edit. -->

Refrain is started with a configuration file, or with just the URL of a server.

```sh
refrain postgres://app:secret@db.example/shop?pool_size=40
```

Clients log in with the user and the password of the URL, and Refrain logs in to the server with
them. If the URL has no password, Refrain trusts its clients under any user name, so the server has
to trust Refrain. With a user but no password in the URL, Refrain logs in to all servers as that
user. Clients reach every database of the server under the database's own name.

A password on the command line is visible to everyone who may list processes. Put it into a file
(`--password-file FILE`) or into the environment instead: the password alone as `REFRAIN_PASSWORD`,
or the whole URL as `REFRAIN_URL`, which Refrain uses if the command line has no URL.

The query part of the URL may set any option of the first two tables below, and the keys of a
database, such as `application_name`. The URL of a Unix socket is
`postgres:///shop?host=/run/postgresql`.

Clients of MySQL and MariaDB reach a server of theirs in the same way, by `mysql_listen`. The
console and the metrics show it with the others, and stay where they are:

```sh
refrain mysql://app:secret@db.example/
```

A database can also be an SQLite file, which Refrain serves itself (see [sqlite.md](sqlite.md)):

```sh
refrain 'sqlite:shop.db?stmt_cache_size=1000'
```

This database is called `shop`, unless the query part sets `dbname`. Clients that do not name a
database get this one; other names are refused. Refrain trusts its clients unless the query part
sets `user` and `password`. Without an argument, Refrain serves `sqlite:refrain.db`. That database
is called `postgres`, because `refrain` is the admin console.

The configuration file is TOML:

```toml
listen = ["0.0.0.0:6432"]
max_client_conn = 20000

[pool]
pool_size = 40
idle_transaction_timeout = "5min"

[databases.shop]
url = "postgres://db.example/shop"

[databases.notes]
backend = "sqlite"
path = "/var/lib/refrain/notes.db"

[databases.reports]
host = "replica.example"
dbname = "shop"
pool_mode = "session"

[users.app]
password = "secret"

[users.analyst]
password = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$V6+wQmyMTAvjmZ4fxODpuUDJyl+FISAUlU5omL36sNM=:o9FVhQ8zMN3AHJQvWpeTP4lYYo1qK8yjpUjvFEgGFHg="
query_timeout = "1h"
```

A time needs a unit: `ms`, `s`, `min`, `h` or `d`. A size has one of `B`, `KiB`, `MiB` and `GiB`; a
bare number counts bytes. `"never"`, `"unlimited"` or `"off"` leaves an option without a value: a
limit does not limit, a timeout does not pass, and what would be allowed for a time is not allowed.
An option whose absence means something else says so. An unknown key is an error, so that a typing
error does not silently leave an option at its default. Each option says when a changed value takes
effect: on reload, on reload but only for new connections, or on restart.
"#;

/// The widest line of the page, in characters.
const WIDTH: usize = 100;

const PROGRAM: (&str, &str) = ("The program", "These options stand at the top of the file.");
const POOLS: (&str, &str) = (
    "Pools: `[pool]`",
    "A pool holds the server connections for one user of one database. Each option may stand under \
     `[pool]`, under a database and under a user. A user's value takes precedence over the \
     database's, and the database's over that of `[pool]`.",
);
const DATABASES: (&str, &str) = (
    "Databases: `[databases.NAME]`",
    "Clients ask for a database by its `NAME`; `[databases.\"*\"]` stands for every name without an \
     entry. Pool options may stand here too.",
);
const USERS: (&str, &str) = (
    "Users: `[users.NAME]`",
    "Users who may log in. If `auth` is `trust`, every user may, and needs an entry only for options of \
     their own. Pool options may stand here too.",
);

const PEERS: (&str, &str) = (
    "Other processes: `[peers.NUMBER]`",
    "Processes of Refrain or PgBouncer that serve the same clients, by the number that each has as \
     its `peer_id`. A cancel request for a client of theirs is passed on to them. All may have the \
     same list: an entry for the process itself is not used.",
);
const GROUPS: (&str, &str) = (
    "Groups: `[groups]`",
    "Each key is the name of a group, and its value the list of the members: \
     `admins = [\"ann\", \"bob\"]`. A member may be a group. Rules of `hba` name a group as \
     `+admins`, and ask by `samerole` whether a group has the database's name. Takes effect on \
     reload, for new connections.",
);

const CACHE: (&str, &str) = (
    "The result cache: `[cache]`",
    "Refrain keeps the replies to reads for which there is a rule, and answers the same reads from \
     memory.",
);
const CACHE_RULES: (&str, &str) = (
    "Rules of the cache: `[[cache.rules]]`",
    "The first rule that applies to a client and its statement counts. Without a rule, nothing is kept.",
);

/// Returns the text of `docs/config.md`.
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    chapter::<General>(&mut text, PROGRAM);
    chapter::<PoolOptions>(&mut text, POOLS);
    chapter::<DatabaseKeys>(&mut text, DATABASES);
    chapter::<UserKeys>(&mut text, USERS);
    chapter::<PeerKeys>(&mut text, PEERS);
    chapter::<()>(&mut text, GROUPS);
    chapter::<CacheOptions>(&mut text, CACHE);
    chapter::<CacheRule>(&mut text, CACHE_RULES);
    text
}

fn chapter<T: Table>(text: &mut String, (title, words): (&str, &str)) {
    put(text, format_args!("\n## {title}\n\n{}\n", wrapped(words)));
    for row in T::ROWS {
        let default = match row.default {
            Some("") => "empty".to_owned(),
            Some(default) => format!("`{default}`"),
            None => "unset".to_owned(),
        };
        let expected = (row.expected)(row.bounds);
        let expected = expected.trim_end_matches(',');
        let when = row.when.words();
        put(text, format_args!("\n### `{}`\n\n", row.name));
        let facts = format!("Default: {default}. Value: {expected}. Takes effect {when}.");
        put(text, format_args!("{}\n\n", wrapped(&facts)));
        for line in row.doc {
            put(text, format_args!("{}\n", line.trim()));
        }
    }
}

/// Breaks a paragraph into lines of at most [`WIDTH`] characters.
fn wrapped(paragraph: &str) -> String {
    let mut text = String::new();
    let mut width = 0;
    for word in paragraph.split(' ') {
        let length = word.chars().count();
        let (separator, before) = match width {
            0 => ("", 0),
            _ if width + 1 + length > WIDTH => ("\n", 0),
            _ => (" ", width + 1),
        };
        put(&mut text, format_args!("{separator}{word}"));
        width = before + length;
    }
    text
}

/// Returns a configuration file with every option commented out at its default, and with example
/// entries for the required ones.
pub fn example() -> String {
    let mut text = "# Refrain: every option with its default. See docs/config.md.\n".to_owned();
    defaults::<General>(&mut text);
    text += "\n[pool]\n";
    defaults::<PoolOptions>(&mut text);
    text += "\n[databases.\"*\"]\nhost = \"127.0.0.1\"\n";
    defaults::<DatabaseKeys>(&mut text);
    text += "\n[users.app]\npassword = \"secret\"\n";
    defaults::<UserKeys>(&mut text);
    text
}

fn defaults<T: Table>(text: &mut String) {
    for row in T::ROWS {
        put(text, format_args!("\n# {}\n", row.summary()));
        put(text, format_args!("#{} = {}\n", row.name, literal(row)));
    }
}

/// Returns a row's default as TOML: numbers and booleans bare, everything else in quotes.
fn literal<T>(row: &Row<T>) -> String {
    let text = row.default.unwrap_or_default();
    let is_number = text.parse::<u64>().is_ok_and(|number| number.to_string() == text);
    let bare = is_number || text.parse::<bool>().is_ok();
    if bare { text.to_owned() } else { format!("\"{text}\"") }
}

fn put(text: &mut String, words: std::fmt::Arguments<'_>) {
    text.write_fmt(words).expect("a String takes all that is written to it");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    /// Mend with `cargo xtask docs`, or `REFRAIN_BLESS=1 cargo test -p refrain-config`.
    #[test]
    fn the_reference_in_docs_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
        if std::env::var_os("REFRAIN_BLESS").is_some() {
            std::fs::write(path, reference()).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == reference(), "docs/config.md is out of date: run `cargo xtask docs`");
    }

    #[test]
    fn the_introductions_file_is_read() {
        let (_, file) = INTRODUCTION.split_once("```toml\n").unwrap();
        let options = Options::from_toml(file.split_once("```").unwrap().0).unwrap();
        assert_eq!(options.pool("shop", "app").unwrap().options.pool_size, 40);
        Options::from_url("postgres://app:secret@db.example/shop?pool_size=40").unwrap();
        Options::from_url("postgres:///shop?host=/run/postgresql").unwrap();
    }

    #[test]
    fn the_example_says_the_defaults() {
        let example = example();
        let read = Options::from_toml(&example).unwrap();
        assert_eq!((&read.general, &read.defaults), (&General::default(), &PoolOptions::default()));
        let default_of_text = |line: &&str| !line.ends_with("= \"\"");
        let all: Vec<_> = example
            .lines()
            .map(|line| if line.starts_with("# ") { "" } else { line.trim_start_matches('#') })
            .filter(default_of_text)
            .collect();
        let all = Options::from_toml(&all.join("\n")).unwrap();
        assert_eq!((all.general, all.defaults), (read.general, read.defaults));
    }
}
