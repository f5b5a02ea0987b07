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
- **Errors** of the pooler's own: PgBouncer's words, with SQLSTATE 08P01 (`pooler_errors` of
  [config.md](config.md), and the table below).
- **Peers**: `peer_id` and `[peers]` pass cancel requests on, also between Refrain and PgBouncer.
- **Replication** connections have a server each ([replication.md](replication.md)).

## What is different

- There is one process for all cores. Several processes on one port are not needed; where there are
  several, they may be peers.
- `auth_dbname` has to name a database that the file has, and files that it names have to exist.
- Errors that PgBouncer does not have keep PostgreSQL's words and SQLSTATEs, or those in
  [limits.md](limits.md). A client that names a prepared statement that does not exist gets
  PostgreSQL's 26000, and its session goes on. The log has PostgreSQL's SQLSTATEs.
- TERM ends each client at the end of its transaction. PgBouncer waits until clients leave.
- The log has Refrain's own form.

## Errors

An ini gets the words on the right, with SQLSTATE 08P01, and a TOML those on the left, unless
`pooler_errors` says otherwise.
"#;

/// The errors of both vocabularies: PostgreSQL's and PgBouncer's.
const ERRORS: &[(&str, &str)] = &[
    (
        "53300 sorry, too many clients already",
        "no more connections allowed (max_client_conn), or with too many pools: no memory for pool",
    ),
    (
        "53300 too many connections for database \"shop\"",
        "client connections exceeded (max_db_client_connections)",
    ),
    (
        "53300 too many connections for role \"app\"",
        "client connections exceeded (max_user_client_connections)",
    ),
    ("3D000 database \"shop\" does not exist", "no such database: shop"),
    (
        "55000 database \"shop\" is not currently accepting connections",
        "database \"shop\" is disabled",
    ),
    (
        "28P01 password authentication failed for user \"app\"",
        "password authentication failed, or with SCRAM: SASL authentication failed",
    ),
    ("28P01 role \"app\" does not exist", "\"trust\" authentication failed"),
    ("28000 no pg_hba.conf entry for …", "no authentication method is found"),
    ("28000 pg_hba.conf rejects connection for …", "login rejected"),
    ("28000 connection requires a valid client certificate", "certificate authentication failed"),
    ("28000 Peer authentication failed for user \"app\"", "unix socket login rejected"),
    ("28000 no pg_hba.conf entry for …, no encryption (`client_tls_sslmode`)", "SSL required"),
    ("28000 no PostgreSQL user name specified in startup packet", "no username supplied"),
    ("0A000 unsupported frontend protocol 2.0 …", "old V2 protocol not supported"),
    ("42501 not allowed to use the admin console", "not allowed"),
    ("57P03 could not look up the user", "bouncer config error"),
    ("57014 canceling authentication due to timeout", "client_login_timeout"),
    ("08P01 query_wait_timeout", "query_wait_timeout"),
    ("57014 query timeout", "query timeout"),
    ("57P05 client idle timeout", "client_idle_timeout"),
    ("25P03 terminating connection due to idle-in-transaction timeout", "idle transaction timeout"),
    ("25P04 terminating connection due to transaction timeout", "transaction timeout"),
    (
        "57P03, 08006 could not connect to server",
        "server login has been failing, cached error: connect failed (server_login_retry)",
    ),
    ("08006 server login failed", "server login failed: wrong password type"),
    ("08006 the server closed the connection unexpectedly", "server conn crashed?"),
    ("08P01 the server broke the protocol", "bad pkt header"),
    ("08P01 invalid message", "unknown pkt"),
    (
        "08P01 transaction blocks are not allowed in statement pooling mode",
        "transaction blocks not allowed in statement pooling mode",
    ),
    ("0A000 simple queries are switched off (disable_pqexec)", "PQexec disallowed"),
    ("54000 the message is longer than max_packet_size", "bad packet header"),
    ("57P03 the database system is shutting down (at a login)", "server shutting down"),
    (
        "57P01 terminating connection due to administrator command",
        "server shutting down, database removed, admin forced disconnect (`KILL`), or database configuration changed (`server_fast_close`)",
    ),
];

const BEHIND_ERRORS: &str = r#"
A server's own error is passed on as it is, in both.

## The program under the name `pgbouncer`

Where the program is installed (or linked) under the name `pgbouncer`, its command line is
PgBouncer's: `pgbouncer [-q] [-v] [-u USER] [-R] [-V] FILE`. `-q` keeps the log from standard
error, each `-v` raises its level, and `-u` takes precedence over the key `user`. `-R` takes over
the listening sockets of a running Refrain ([restart.md](restart.md)): clients of the old process
are told 57P01 between two transactions, where PgBouncer keeps their connections. `-d` is refused
with a reason: a supervisor such as systemd starts a program in the background.

## Keys

*Acts*: the key is an option of Refrain, or does what the row says. *Told*: it has nothing to do
here. Refrain says nothing of a key that has PgBouncer's default. What it says, it says in the log
at the start and at each reload, and `refrain check` prints it.
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
    text += "\n| PostgreSQL's | PgBouncer's |\n|---|---|\n";
    ERRORS.iter().for_each(|(ours, theirs)| text += &format!("| {ours} | {theirs} |\n"));
    text += BEHIND_ERRORS;
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
