//! Options of a pool: the server connections for one user of one database.
//!
//! Each option may be set in `[pool]`, for a database and for a user. A user's value takes
//! precedence over the database's, and the database's over that of `[pool]`.

use std::time::Duration;

use crate::choices::Unavailable;
use crate::table::{Row, Table, table};
use crate::value::{Given, Percent, choice};

choice! {
    /// How long a client keeps its server.
    PoolMode {
        /// Until it disconnects.
        Session = "session",
        /// Until its transaction ends.
        Transaction = "transaction",
        /// Until its statement ends; transactions of several statements are refused.
        Statement = "statement",
    }
}

choice! {
    /// Handling of `PREPARE`, `EXECUTE` and `DEALLOCATE` as SQL commands, in transaction and
    /// statement mode.
    SqlPrepare {
        /// The client keeps its server until it disconnects or deallocates all.
        Pin = "pin",
        /// The client gets an error.
        Error = "error",
    }
}

choice! {
    /// When Refrain asks a server for session state left by functions.
    TrackFunctions {
        /// Never.
        Off = "off",
        /// After calls of functions that are not known to leave nothing.
        On = "on",
        /// After every transaction.
        Strict = "strict",
    }
}

choice! {
    /// Whether simple queries are prepared.
    Autoprepare {
        /// Simple queries are sent unchanged.
        Off = "off",
        /// Simple queries that differ only in their literals run as one prepared statement.
        On = "on",
    }
}

choice! {
    /// Statements that servers may run for several clients at the same time.
    ShareServers {
        /// Nothing.
        Off = "off",
        /// Statements that are known to be reads.
        Reads = "reads",
    }
}

choice! {
    /// The handling of what views and triggers may have left in a session without a report.
    UntoldChanges {
        /// The server is made as new for another client if there may be such views or triggers.
        Auto = "auto",
        /// The server is made as new for another client.
        Reset = "reset",
        /// Nothing.
        Ignore = "ignore",
    }
}

table! {
    /// Options of a pool.
    pub struct PoolOptions;

    /// How long a client keeps its server.
    ///
    /// `session`: until the client disconnects. `transaction`: until its transaction ends.
    /// `statement`: until its statement ends; transactions of several statements are refused.
    pool_mode: PoolMode = "transaction",
        NewConnections, takes ["session", "statement"], not ["transactions", "Session"];

    /// Server connections of a pool.
    ///
    /// A pool serves one user of one database, or all users of a database that has a fixed `user`.
    /// With rules of the cache it may have one more for a moment, to find out whether the user may
    /// log in still (`docs/cache.md`).
    pool_size: u32 = "20" ["1" to "100000"],
        Reload, takes ["1", "500"], not ["0", "many", "-1", "unlimited"];

    /// Server connections that a pool keeps open even when they are unused.
    ///
    /// A pool keeps them from its first client on; that of a database with a fixed `user` whose
    /// password is known, from the start or the reload on (PostgreSQL). Must not exceed
    /// `pool_size`, unless that is a user's own.
    min_pool_size: u32 = "0" ["0" to "100000"],
        Reload, takes ["5"], not ["-1"];

    /// Server connections beyond `pool_size`, for clients that waited `reserve_pool_timeout`.
    reserve_pool_size: u32 = "0" ["0" to "100000"],
        Reload, takes ["5"], not ["-1"];

    /// Time a client waits before its pool may use the reserve.
    reserve_pool_timeout: Duration = "5s" ["0ms" to "1h"],
        Reload, takes ["0s", "100ms"], not ["never", "5"];

    /// Clients of a pool that may wait for a server; further clients are refused at once.
    max_waiting: Option<u32> = "unlimited" ["1" to "10000000"],
        Reload, takes ["100"], not ["0", "never"];

    /// Time a query may take; then it is cancelled and the client disconnected.
    query_timeout: Option<Duration> = "never" ["1ms" to "30d"],
        Reload, takes ["30s", "1d"], not ["0s", "30"];

    /// Time a client may wait for a server; then it is disconnected.
    ///
    /// The client gets PgBouncer's error: SQLSTATE 08P01, `query_wait_timeout`.
    query_wait_timeout: Option<Duration> = "2min" ["1ms" to "30d"],
        Reload, takes ["30s", "never", "off"], not ["0s", "120"];

    /// Time a client waits for a server until it gets a notice that it does.
    ///
    /// The words are PgBouncer's. For clients of PostgreSQL.
    query_wait_notify: Option<Duration> = "never" ["1ms" to "30d"],
        Reload, takes ["5s"], not ["0s", "5"];

    /// Time a client may be idle outside a transaction; then it is disconnected.
    ///
    /// That may come late by a 64th part of the time.
    client_idle_timeout: Option<Duration> = "never" ["1ms" to "365d"],
        Reload, takes ["1h"], not ["0s", "3600"];

    /// Time a client may be idle in a transaction; then it is disconnected and rolled back.
    idle_transaction_timeout: Option<Duration> = "never" ["1ms" to "30d"],
        Reload, takes ["5min"], not ["0s", "300"];

    /// Time a transaction may take, idle or not; then the client is disconnected.
    transaction_timeout: Option<Duration> = "never" ["1ms" to "30d"],
        Reload, takes ["1h"], not ["0s", "3600"];

    /// Time after which an unused server is disconnected, down to `min_pool_size`.
    server_idle_timeout: Option<Duration> = "10min" ["1ms" to "365d"],
        Reload, takes ["1min", "never"], not ["0s", "600"];

    /// Time after which an idle server is asked whether it is there, before it is lent.
    ///
    /// The client waits for a round trip. A server that does not answer within 5 seconds is closed,
    /// with all others of the pool that were idle for as long. For PostgreSQL.
    server_check_delay: Option<Duration> = "never" ["0ms" to "365d"],
        Reload, takes ["30s", "0s"], not ["30", "366d"];

    /// Question for an idle server; if unset, an empty query.
    server_check_query: Option<String>,
        Reload, takes ["select 1"], not [];

    /// Time after which a pool without clients and servers is removed.
    ///
    /// Its counters stay visible as those of `(forgotten)`. A pool whose database or user does not
    /// exist is removed at once, and a pool with a `min_pool_size` never.
    pool_idle_timeout: Option<Duration> = "1h" ["1ms" to "365d"],
        Reload, takes ["1min", "never"], not ["0s", "600"];

    /// Age at which a server is disconnected once it is free.
    server_lifetime: Option<Duration> = "1h" ["1s" to "365d"],
        Reload, takes ["30min", "never"], not ["0s", "3600"];

    /// Random part by which a server's lifetime may be shorter than `server_lifetime`.
    ///
    /// Without it, servers that were connected together would be disconnected together.
    server_lifetime_jitter: Percent = "10%" ["0%" to "90%"],
        NewConnections, takes ["0%", "50%"], not ["0.1", "100%"];

    /// Whether clients get the idle server that was used longest ago, rather than the last one.
    ///
    /// All servers of a pool are then used alike, so none is idle for `server_idle_timeout` before
    /// all are. Reads that share a server stay on few (`share_servers`).
    server_round_robin: bool = "false",
        Reload, takes ["true"], not ["yes", "1"];

    /// Whether a server that has to go leaves a client that is outside of a transaction.
    ///
    /// In session mode a server that is not to be used any more, after `RECONNECT` or since a
    /// reload has changed where it is, stays until its client leaves. If true, the client's session
    /// ends as soon as it is in no transaction. A server that is only too old for other clients, as
    /// after `ALTER ROLE ... SET`, stays in any case.
    server_fast_close: bool = "false",
        Reload, takes ["true"], not ["yes", "1"];

    /// Time within which Refrain must connect and log in to a server.
    server_connect_timeout: Duration = "15s" ["1ms" to "1h"],
        NewConnections, takes ["3s"], not ["0s", "never", "15"];

    /// Time between a failed connection or login to a server and the next attempt.
    ///
    /// One second is long enough to spare a server that is starting, and short enough not to
    /// prolong an outage. Where a server refuses the user or the password, the time doubles with
    /// each attempt up to a minute, and clients are told the server's error at once.
    server_login_retry: Duration = "1s" ["10ms" to "1h"],
        Reload, takes ["15s"], not ["0s", "1"];

    /// Whether clients wait for a server of a pool that has none and reaches none.
    ///
    /// `refuse`: at a failed attempt their sessions end with `could not connect to server`, with
    /// SQLSTATE 57P03 at a login and 08006 later. `wait`: they wait for a server, at most for
    /// `query_wait_timeout`, so that they survive a restart or a failover. An error that time does
    /// not mend, such as a wrong password, is told at once. A client in a transaction loses it, and
    /// its session ends, either way.
    server_unavailable: Unavailable = "refuse",
        Reload, takes ["wait"], not ["retry"];

    /// Whether prepared statements work across servers.
    ///
    /// If true, Refrain prepares a client's statement on a server that does not have it yet. If
    /// false, a statement belongs to the server it was prepared on, as without a pooler. Either
    /// way, session state that a statement changes stays with its client.
    prepared_statements: bool = "true",
        NewConnections, takes ["false"], not ["yes", "1"];

    /// Statements prepared on a server; the least recently used one is closed for a new one.
    max_server_statements: u32 = "256" ["1" to "1000000"],
        Reload, takes ["1000"], not ["0", "unlimited"];

    /// Total text length of the statements prepared on a server.
    max_server_statement_bytes: usize = "16MiB" ["4KiB" to "16GiB"],
        Reload, takes ["1GiB"], not ["1B", "16"];

    /// Named statements of a client; further ones are refused.
    ///
    /// The same limit applies separately to open portals of statements that change session state.
    max_client_statements: u32 = "4096" ["1" to "10000000"],
        Reload, takes ["100"], not ["0", "unlimited"];

    /// Total text length of a client's named statements.
    ///
    /// The same limit applies separately to the texts of the open portals that
    /// `max_client_statements` counts.
    max_client_statement_bytes: usize = "8MiB" ["4KiB" to "16GiB"],
        Reload, takes ["1GiB"], not ["1B"];

    /// Text length up to which a statement is shared and cached.
    ///
    /// Longer statements work too, but are prepared anew each time.
    max_cached_statement_bytes: usize = "256KiB" ["1KiB" to "64MiB"],
        Reload, takes ["1MiB"], not ["1B", "1GiB"];

    /// Age up to which what a server has said of a statement answers a client's PREPARE.
    ///
    /// A table that is altered past Refrain may be told as it was for so long, up to the execution,
    /// which always tells it as it is. With `0s` each PREPARE goes to a server. For MySQL only.
    definition_max_age: Duration = "1min" ["0s" to "1h"],
        Reload, takes ["0s", "10min"], not ["never", "60"];

    /// Handling of what views and triggers may have left in a session without a report.
    ///
    /// MySQL and MariaDB do not report all that a routine leaves: user variables, temporary tables,
    /// locks, roles. No text shows that a view or a trigger calls one. `auto`: Refrain asks the
    /// catalog whether there are such views and triggers, and then makes a server as new for the
    /// next client behind a text that may have used one. Triggers that the pool's user cannot see
    /// count as such. A view or trigger that is made past Refrain counts after `definition_max_age`
    /// at the latest; with `0s` the catalog is not asked, and all count. `reset`: behind all texts
    /// that use tables. `ignore`: never. For MySQL only, and not in session mode, in which every
    /// server is made as new.
    untold_changes: UntoldChanges = "auto",
        Reload, takes ["reset", "ignore"], not ["on", "off"];

    /// Whether simple queries that differ only in their literals run as one prepared statement.
    ///
    /// PostgreSQL then parses and plans the statement once instead of every query. Unnamed
    /// statements whose text comes again run as one prepared statement too. For PostgreSQL only;
    /// needs `prepared_statements`.
    autoprepare: Autoprepare = "off",
        Reload, takes ["on"], not ["true", "yes"];

    /// Times a query is seen, ignoring its literals, before it is prepared.
    ///
    /// The text of an unnamed statement counts with its literals.
    autoprepare_threshold: u32 = "5" ["1" to "1000000"],
        Reload, takes ["1", "100"], not ["0", "never"];

    /// Statements that autoprepare keeps on a server.
    ///
    /// The least recently used one is closed for a new one. `max_server_statements` counts these
    /// statements too.
    autoprepare_limit: u32 = "200" ["1" to "1000000"],
        Reload, takes ["1000"], not ["0", "unlimited"];

    /// Memory that the statements of autoprepare may take on a server, by estimate.
    ///
    /// Refrain cannot see how much memory PostgreSQL needs for a plan. It assumes 8 KiB for a
    /// statement, plus 32 bytes for each byte of its text, plus 4 KiB and 256 bytes per column for
    /// each partition of the tables in it.
    autoprepare_memory_limit: usize = "16MiB" ["64KiB" to "16GiB"],
        Reload, takes ["1GiB"], not ["1KiB", "unlimited"];

    /// Literals in a query above which it is not prepared.
    autoprepare_max_literals: u32 = "1000" ["1" to "65535"],
        Reload, takes ["100"], not ["0", "65536"];

    /// Age at which a statement of autoprepare is prepared anew.
    ///
    /// The statement follows schema changes that Refrain did not see after this time at the latest.
    autoprepare_max_age: Duration = "10min" ["1s" to "30d"],
        Reload, takes ["1min"], not ["0s", "never", "60"];

    /// Statements that may run on a server beside those of other clients.
    ///
    /// `reads`: while several servers of a pool run reads, short reads of several clients run on
    /// one server, one behind the other, which costs PostgreSQL half the CPU: prepared statements,
    /// unnamed ones and query strings. Refrain finds out which of them are reads. A read is one
    /// SELECT that writes and locks nothing, calls no volatile function, and shows nothing of its
    /// session. Refrain asks a server about each statement that is used often, and again about once
    /// a minute; `SHOW STATEMENTS` has the answers. For PostgreSQL only, and not in session mode.
    share_servers: ShareServers = "reads",
        Reload, takes ["off"], not ["on", "all"];

    /// Requests of clients that share a server at most, counting the one that it works on.
    share_depth: u32 = "16" ["2" to "256"],
        Reload, takes ["8"], not ["0", "1"];

    /// Servers of a pool on which reads run at least before reads share a server.
    ///
    /// Refrain finds out whether more servers bring more, and then uses more, up to `pool_size`.
    share_min_servers: u32 = "2" ["1" to "1000"],
        Reload, takes ["1"], not ["0"];

    /// Time that a statement may take on a server that clients share.
    ///
    /// Statements that take longer have a server to themselves, and those on one server take no
    /// longer together. If one takes longer all the same, the reads behind it are sent again to
    /// other servers.
    share_statement_time: Duration = "5ms" ["1ms" to "1min"],
        Reload, takes ["1ms"], not ["0s", "never"];

    /// Query that resets a server between two clients in session mode; empty for none.
    server_reset_query: String = "DISCARD ALL",
        Reload, takes ["", "RESET ALL"], not [];

    /// Handling of `PREPARE` as an SQL command, in transaction and statement mode.
    ///
    /// `pin`: the client keeps its server as long as it has such statements. `error`: the client
    /// gets an error.
    sql_prepare: SqlPrepare = "pin",
        Reload, takes ["error"], not ["ignore"];

    /// When Refrain asks a server for session state left by functions, triggers, procedures and
    /// `DO`.
    ///
    /// Refrain treats such state (a role, run-time parameters, temporary tables, advisory locks and
    /// the like) as if the SQL text itself had set it. `on`: asks until queries that call the same
    /// functions and write to the same tables have completed three times without leaving anything,
    /// and occasionally after that. `strict`: asks after every transaction, for functions that
    /// rarely leave something. `off`: asks after `DO`, and for run-time parameters only. For
    /// PostgreSQL only.
    track_functions: TrackFunctions = "on",
        Reload, takes ["off", "strict"], not ["true", "always"];

    /// Whether a client's session ends when it sends a simple query.
    ///
    /// A simple query may have several statements, so an injected text may add one. Clients of the
    /// extended protocol go on. For PostgreSQL.
    disable_pqexec: bool = "false",
        NewConnections, takes ["true"], not ["yes", "1"];

    /// Length of a client's message, or a server's, above which the session ends.
    ///
    /// A query is one message, and so is a row. For PostgreSQL.
    max_packet_size: Option<usize> = "unlimited" ["256KiB" to "2GiB"],
        Reload, takes ["1MiB"], not ["1KiB", "3GiB"];

    /// Bytes queued to a connection above which Refrain stops reading for it.
    buffer_high: usize = "256KiB" ["8KiB" to "1GiB"],
        NewConnections, takes ["1MiB"], not ["1KiB"];

    /// Bytes queued to a connection below which Refrain reads for it again.
    ///
    /// Must be less than `buffer_high`.
    buffer_low: usize = "64KiB" ["1KiB" to "1GiB"],
        NewConnections, takes ["8KiB"], not ["1B"];
}

impl PoolOptions {
    /// Returns the broken rules between options: the option that breaks a rule, and the rule.
    pub(crate) fn conflicts(&self) -> Vec<(&'static str, &'static str)> {
        let most = self.max_server_statement_bytes.min(self.max_client_statement_bytes);
        [
            (self.min_pool_size <= self.pool_size, "min_pool_size", "must not exceed pool_size"),
            (self.buffer_low < self.buffer_high, "buffer_low", "must be less than buffer_high"),
            (
                self.max_cached_statement_bytes <= most,
                "max_cached_statement_bytes",
                "must not exceed max_server_statement_bytes or max_client_statement_bytes",
            ),
        ]
        .into_iter()
        .filter(|(holds, ..)| !holds)
        .map(|(_, name, rule)| (name, rule))
        .collect()
    }
}

/// The pool options that are set in one section. They are checked, and override those of a wider
/// section.
#[derive(Clone, Default)]
pub struct PoolOverrides(Vec<(&'static Row<PoolOptions>, Given)>);

impl PoolOverrides {
    /// True if no option is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `base` with these options replaced.
    pub fn over(&self, base: &PoolOptions) -> PoolOptions {
        let mut pool = base.clone();
        for (row, given) in &self.0 {
            row.set(&mut pool, given).expect("an override is checked before it is kept");
        }
        pool
    }

    /// Checks a value and stores it, replacing an earlier one of the same option.
    pub(crate) fn set(
        &mut self,
        row: &'static Row<PoolOptions>,
        given: &Given,
    ) -> Result<(), String> {
        row.set(&mut PoolOptions::default(), given)?;
        self.0.retain(|(other, _)| other.name != row.name);
        self.0.push((row, given.clone()));
        Ok(())
    }

    /// Returns the value set for an option, as `SHOW CONFIG` shows it.
    pub(crate) fn shown(&self, name: &str) -> Option<String> {
        let (row, _) = self.0.iter().find(|(row, _)| row.name == name)?;
        Some((row.show)(&self.over(&PoolOptions::default())))
    }
}

impl PartialEq for PoolOverrides {
    fn eq(&self, other: &Self) -> bool {
        PoolOptions::ROWS.iter().all(|row| self.shown(row.name) == other.shown(row.name))
    }
}

impl std::fmt::Debug for PoolOverrides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(row, given)| (row.name, given))).finish()
    }
}
