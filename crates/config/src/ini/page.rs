//! `docs/pgbouncer.md`, written from the table of keys.

use super::keys::{DATABASE, Key, Outcome, PEER, PROGRAM, Table, USER};

const INTRODUCTION: &str = r#"# Starting Refrain with a `pgbouncer.ini`

<!-- Written by `cargo xtask docs` from `crates/config/src/ini/keys.rs`. Do not edit. -->

Refrain starts with PgBouncer's configuration file as it is, with its `userlist.txt`, its HBA file
and the files that it includes:

```sh
refrain check /etc/pgbouncer/pgbouncer.ini     # every error, and what is told of each key
refrain /etc/pgbouncer/pgbouncer.ini           # serves clients at the same addresses
refrain convert /etc/pgbouncer/pgbouncer.ini > refrain.toml   # the TOML file that does the same
```

A file is PgBouncer's if its name ends with `.ini`, or if it has the section `[pgbouncer]` and its
name does not end with `.toml`.

A first run, beside the PgBouncer that serves: check the file; start Refrain on another port
(`refrain pgbouncer.ini --listen 127.0.0.1:6433 --unix-socket-dir /tmp/refrain`), and look at it
with `psql -p 6433 pgbouncer -c 'show pools'`; then stop PgBouncer and start Refrain without the
flags. To go back, stop Refrain and start PgBouncer: the file has not changed.

## What is as in PgBouncer

- **The file**: four sections, `%include`, names in double quotes, `;` and `#` where a line begins,
  values to the end of the line, connection strings with quotes. Relative paths belong to the
  directory in which Refrain was started. A section `[pgbouncer]` that begins again sets its keys
  back to their defaults. An unknown key is an error, with its file and line.
- **The defaults**: session mode, 20 servers for each pool, 100 clients, `md5`, port 6432, no TCP
  address unless `listen_addr` is set, a Unix socket in `/tmp`, and all others of the table below.
  Options that PgBouncer does not have are as in [config.md](config.md), but `metrics_listen` is
  off: an address that PgBouncer does not use may belong to somebody else.
- **Numbers**: times in seconds with a fraction, in `[pgbouncer]` whole numbers of the bases 8, 10
  and 16, and 0 where it stands for no limit.
- **A reload** (HUP, `RELOAD`) reads the file again. One with an error changes nothing.
- **The console**: `SET key = value` counts until the next reload, for every key of `[pgbouncer]`
  that a reload may change, and for Refrain's own options (`SHOW CONFIG`). It reads no file anew
  but those of certificates. `DISABLE db` keeps new clients out until `ENABLE db`. The columns of
  `SHOW …` are those of the version in `pgbouncer_version`.
- **Peers**: `peer_id` and `[peers]` pass cancel requests on, also between Refrain and PgBouncer.
- **Replication** connections have a server each ([replication.md](replication.md)).

## What is different

- There is one process for all cores. Several processes on one port are not needed; where there are
  several, they may be peers.
- `auth_dbname` has to name a database that the file has, and files that it names have to exist.
- The pooler's own errors have PostgreSQL's words and SQLSTATEs, or those in
  [limits.md](limits.md), not PgBouncer's.
- TERM ends each client at the end of its transaction. PgBouncer waits until clients leave.
- The log has Refrain's own form.

## The program under the name `pgbouncer`

Where the program is installed (or linked) under the name `pgbouncer`, its command line is
PgBouncer's: `pgbouncer [-q] [-v] [-u USER] [-R] [-V] FILE`. `-q` keeps the log from standard
error, each `-v` raises its level, and `-u` takes precedence over the key `user`. `-R` takes over
the listening sockets of a running Refrain ([restart.md](restart.md)): clients of the old process
are told 57P01 between two transactions, where PgBouncer keeps their connections. `-d` is refused
with a reason: a supervisor such as systemd starts a program in the background.

## Keys

*Acts*: the key is an option of Refrain, or does what the row says. *Told*: it has nothing to do
here. *Missing*: it is not built; Refrain starts, and says what happens without it. *Refused*: it is
not built, and Refrain does not start, because something would go wrong without it. Refrain says
nothing of a key that has PgBouncer's default. What it says, it says in the log at the start and at
each reload, and `refrain check` prints it.
"#;

const CHAPTERS: [(&str, &[Key]); 4] = [
    ("`[pgbouncer]`", PROGRAM),
    ("`[databases]`", DATABASE),
    ("`[users]`", USER),
    ("`[peers]`", PEER),
];

/// Returns the text of `docs/pgbouncer.md`.
pub fn pgbouncer_page() -> String {
    let mut text = INTRODUCTION.to_owned();
    for (title, keys) in CHAPTERS {
        text += &format!("\n### {title}\n\n| key | default | | |\n|---|---|---|---|\n");
        keys.iter().for_each(|key| text += &row(key));
    }
    text
}

fn row(key: &Key) -> String {
    let default = match key.default {
        None | Some("") => String::new(),
        Some(default) => format!("`{default}`"),
    };
    let (outcome, words) = match key.outcome {
        Outcome::Option(Table::Pool, option, _) => ("acts", format!("`{option}` of `[pool]`")),
        Outcome::Option(_, option, _) => ("acts", format!("`{option}`")),
        Outcome::Acts(what) => ("acts", what.to_owned()),
        Outcome::Needless(why) => ("told", why.to_owned()),
        Outcome::Missing(what) => ("missing", what.to_owned()),
        Outcome::Refused(what) => ("refused", what.to_owned()),
    };
    format!("| `{}` | {default} | {outcome} | {words} |\n", key.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mend with `cargo xtask docs`, or `REFRAIN_BLESS=1 cargo test -p refrain-config`.
    #[test]
    fn the_page_in_docs_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pgbouncer.md");
        if std::env::var_os("REFRAIN_BLESS").is_some() {
            std::fs::write(path, pgbouncer_page()).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == pgbouncer_page(),
            "docs/pgbouncer.md is out of date: run `cargo xtask docs`"
        );
    }
}
