//! The reference of all options and the example file, both printed from the rows.
//!
//! `docs/config.md` is [`reference`] as it stands; a test fails when the two differ, and
//! `cargo xtask docs` writes it anew.

use std::fmt::Write;

use crate::database::DatabaseKeys;
use crate::general::General;
use crate::pool::PoolOptions;
use crate::table::{Row, Table};
use crate::user::UserKeys;

const INTRODUCTION: &str = r#"# Configuration

<!-- Written by `cargo xtask docs` from the rows in `crates/config`. Do not edit. -->

Refrain is started with a file, or with nothing but the URL of a server.

```sh
refrain postgres://app:secret@db.example/shop?pool_size=40
```

The user and the password of the URL are those by which clients log in, and with which Refrain logs in to the server.
Without a password clients are trusted, under any name, and so the server has to trust Refrain; a user without a
password is the one all servers are logged in to as. Clients reach every database of the server under its name.
Whoever may list processes sees the password there: it may as well be in a file (`--password-file FILE`), in the environment
(`REFRAIN_PASSWORD`), or in the whole URL there (`REFRAIN_URL`, where the command line names none).
Any option of the first two tables below may be set in the query, as well as the keys of a database, such
as `application_name`. A Unix socket is `postgres:///shop?host=/run/postgresql`.

A database can be a file as well, which Refrain serves by itself (see [sqlite.md](sqlite.md)):

```sh
refrain 'sqlite:shop.db?stmt_cache_size=1000'
```

The database is called `shop` then, or what the query sets as `dbname`; clients that name none get it, and other names are
refused. Clients are trusted unless the query sets `user` and `password`. Without an argument it is `sqlite:refrain.db`, and the
database is called `postgres`, as `refrain` is the console.

The file is TOML:

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

Times have a unit (`ms`, `s`, `min`, `h`, `d`), sizes too (`B`, `KiB`, `MiB`, `GiB`; a bare number is of bytes). What has no
limit is `"never"`, `"unlimited"` or `"off"`. A key that is no option is an error, so that a slip of the pen is not a
default in disguise. Each option says when a changed value counts: at a reload, at a reload but only for connections made
after it, or at the next start.
"#;

const PROGRAM: (&str, &str) = ("The program", "At the top of the file.");
const POOLS: (&str, &str) = (
    "Pools: `[pool]`",
    "A pool is the servers of one user of one database. Each of these may stand under `[pool]`, under a database and \
     under a user. That of the user counts before that of the database, and that before that of `[pool]`.",
);
const DATABASES: (&str, &str) = (
    "Databases: `[databases.NAME]`",
    "`NAME` is what clients ask for; `[databases.\"*\"]` is any name that has no entry. Pool options may stand here \
     too.",
);
const USERS: (&str, &str) = (
    "Users: `[users.NAME]`",
    "Those who may log in, unless `auth` is `trust`; then users need an entry only for options of their own. Pool \
     options may stand here too.",
);

/// The text of `docs/config.md`.
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    chapter::<General>(&mut text, PROGRAM);
    chapter::<PoolOptions>(&mut text, POOLS);
    chapter::<DatabaseKeys>(&mut text, DATABASES);
    chapter::<UserKeys>(&mut text, USERS);
    text
}

fn chapter<T: Table>(text: &mut String, (title, words): (&str, &str)) {
    put(text, format_args!("\n## {title}\n\n{words}\n"));
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
        put(
            text,
            format_args!("Default: {default}. Takes {expected}. A change counts {when}.\n\n"),
        );
        for line in row.doc {
            put(text, format_args!("{}\n", line.trim()));
        }
    }
}

/// A configuration file with every option at its default, as a comment, and what must be filled in.
pub fn example() -> String {
    let mut text = "# Refrain. Every option, at its default; see docs/config.md.\n".to_owned();
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

/// A row's default as TOML: numbers and truth values bare, all else between quotes.
fn literal<T>(row: &Row<T>) -> String {
    let text = row.default.unwrap_or_default();
    let bare = text.parse::<u64>().is_ok() || text.parse::<bool>().is_ok();
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
