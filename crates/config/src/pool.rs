//! Options of a pool: the servers lent to one user of one database.
//!
//! Each may be set for all in `[pool]`, for a database and for a user. What is set for the user counts before
//! what is set for the database, and that before `[pool]`.

use std::time::Duration;

use crate::table::{Row, Table, table};
use crate::value::{Given, Percent, choice};

choice! {
    /// For how long a client keeps the server it was lent.
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
    /// What to do about `PREPARE`, `EXECUTE` and `DEALLOCATE` as SQL, in transaction and statement mode.
    SqlPrepare {
        /// The client keeps its server until it disconnects or deallocates all.
        Pin = "pin",
        /// The client is told that this does not work here.
        Error = "error",
    }
}

choice! {
    /// When a server is asked what functions have left in its session.
    TrackFunctions {
        /// Never.
        Off = "off",
        /// Behind those that are not known to leave nothing.
        On = "on",
        /// Behind every transaction.
        Strict = "strict",
    }
}

choice! {
    /// Whether simple queries are prepared.
    Autoprepare {
        /// They are sent as they came.
        Off = "off",
        /// Those that differ in their literals only are one prepared statement.
        On = "on",
    }
}

table! {
    /// Options of a pool.
    pub struct PoolOptions;

    /// How long a client keeps the server it was lent.
    ///
    /// `session`: until it disconnects. `transaction`: until its transaction ends. `statement`: until its
    /// statement ends, and transactions of several statements are refused.
    pool_mode: PoolMode = "transaction",
        NewConnections, takes ["session", "statement"], not ["transactions", "Session"];

    /// Servers of a pool.
    ///
    /// A pool serves one user of one database.
    pool_size: u32 = "20" ["1" to "100000"],
        Reload, takes ["1", "500"], not ["0", "many", "-1", "unlimited"];

    /// Servers kept connected even when nobody uses them.
    ///
    /// At most `pool_size`.
    min_pool_size: u32 = "0" ["0" to "100000"],
        Reload, takes ["5"], not ["-1"];

    /// Servers beyond `pool_size`, for clients that have waited `reserve_pool_timeout`.
    reserve_pool_size: u32 = "0" ["0" to "100000"],
        Reload, takes ["5"], not ["-1"];

    /// Wait of a client after which the reserve is used.
    reserve_pool_timeout: Duration = "5s" ["0ms" to "1h"],
        Reload, takes ["0s", "100ms"], not ["never", "5"];

    /// Clients of a pool that may wait for a server; one more is refused at once.
    max_waiting: Option<u32> = "unlimited" ["1" to "10000000"],
        Reload, takes ["100"], not ["0", "never"];

    /// Time a query may take; then it is cancelled and the client disconnected.
    query_timeout: Option<Duration> = "never" ["1ms" to "30d"],
        Reload, takes ["30s", "1d"], not ["0s", "30"];

    /// Time a client may wait for a server; then it is disconnected.
    ///
    /// It is told PgBouncer's code and word: 08P01, `query_wait_timeout`.
    query_wait_timeout: Option<Duration> = "2min" ["1ms" to "30d"],
        Reload, takes ["30s", "never", "off"], not ["0s", "120"];

    /// Time a client may be idle outside a transaction; then it is disconnected.
    client_idle_timeout: Option<Duration> = "never" ["1ms" to "365d"],
        Reload, takes ["1h"], not ["0s", "3600"];

    /// Time a client may be idle inside a transaction; then it is disconnected and rolled back.
    idle_transaction_timeout: Option<Duration> = "never" ["1ms" to "30d"],
        Reload, takes ["5min"], not ["0s", "300"];

    /// Time a transaction may take, whatever happens in it; then the client is disconnected.
    transaction_timeout: Option<Duration> = "never" ["1ms" to "30d"],
        Reload, takes ["1h"], not ["0s", "3600"];

    /// Time a server may be unused before it is disconnected, down to `min_pool_size`.
    server_idle_timeout: Option<Duration> = "10min" ["1ms" to "365d"],
        Reload, takes ["1min", "never"], not ["0s", "600"];

    /// Time after which a pool is forgotten that has neither clients nor servers.
    ///
    /// Its counters go on as those of `(forgotten)`. A pool whose database or user turned out not to exist is forgotten at
    /// once, and one with a `min_pool_size` never.
    pool_idle_timeout: Option<Duration> = "1h" ["1ms" to "365d"],
        Reload, takes ["1min", "never"], not ["0s", "600"];

    /// Age at which a server is disconnected once it is free.
    server_lifetime: Option<Duration> = "1h" ["1s" to "365d"],
        Reload, takes ["30min", "never"], not ["0s", "3600"];

    /// Part of `server_lifetime` by which a server's own may be shorter.
    ///
    /// Servers that were connected together are then not disconnected together.
    server_lifetime_jitter: Percent = "10%" ["0%" to "90%"],
        NewConnections, takes ["0%", "50%"], not ["0.1", "100%"];

    /// Time in which a server must have been connected and logged in to.
    server_connect_timeout: Duration = "15s" ["1ms" to "1h"],
        NewConnections, takes ["3s"], not ["0s", "never", "15"];

    /// Pause after a failed connection or login before the next attempt.
    ///
    /// Clients that wait are told of the failure at once. A second is long enough to spare a server that is
    /// starting, and short enough to not be the reason for an outage.
    server_login_retry: Duration = "1s" ["10ms" to "1h"],
        Reload, takes ["15s"], not ["0s", "1"];

    /// Whether prepared statements work across servers.
    ///
    /// When they do, a server that has not seen a client's statement is told of it first. When not, statements
    /// belong to the server they were prepared on, as without a pooler. What they do to a session is its client's alone either way.
    prepared_statements: bool = "true",
        NewConnections, takes ["false"], not ["yes", "1"];

    /// Statements prepared on a server; the least recently used is closed for one more.
    max_server_statements: u32 = "256" ["1" to "1000000"],
        Reload, takes ["1000"], not ["0", "unlimited"];

    /// Bytes of text of the statements prepared on a server.
    max_server_statement_bytes: usize = "16MiB" ["4KiB" to "16GiB"],
        Reload, takes ["1GiB"], not ["1B", "16"];

    /// Named statements of a client; one more is refused.
    ///
    /// So are more open portals, counted apart, of statements that do something to the session.
    max_client_statements: u32 = "4096" ["1" to "10000000"],
        Reload, takes ["100"], not ["0", "unlimited"];

    /// Bytes of text of a client's named statements.
    ///
    /// As many again for those of its open portals that `max_client_statements` counts.
    max_client_statement_bytes: usize = "8MiB" ["4KiB" to "16GiB"],
        Reload, takes ["1GiB"], not ["1B"];

    /// Length of a statement's text up to which it is shared and kept.
    ///
    /// Longer ones run as well, prepared afresh each time.
    max_cached_statement_bytes: usize = "256KiB" ["1KiB" to "64MiB"],
        Reload, takes ["1MiB"], not ["1B", "1GiB"];

    /// Whether simple queries that differ in their literals only become one prepared statement.
    ///
    /// The server then neither parses nor plans them anew. PostgreSQL only, and only with `prepared_statements`.
    autoprepare: Autoprepare = "off",
        Reload, takes ["on"], not ["true", "yes"];

    /// Times a query is seen, but for its literals, before it is prepared.
    autoprepare_threshold: u32 = "5" ["1" to "1000000"],
        Reload, takes ["1", "100"], not ["0", "never"];

    /// Statements of autoprepare on a server.
    ///
    /// The least recently used is closed for one more. `max_server_statements` counts them as well.
    autoprepare_limit: u32 = "200" ["1" to "1000000"],
        Reload, takes ["1000"], not ["0", "unlimited"];

    /// Memory of a server that its autoprepared statements may take.
    ///
    /// What PostgreSQL needs for a plan is not known here. A statement is taken to need 8 KiB, 32 bytes for each of its
    /// text, and 4 KiB and 256 bytes a column for each partition of the tables that it names.
    autoprepare_memory_limit: usize = "16MiB" ["64KiB" to "16GiB"],
        Reload, takes ["1GiB"], not ["1KiB", "unlimited"];

    /// Literals of a query beyond which it is not prepared.
    autoprepare_max_literals: u32 = "1000" ["1" to "65535"],
        Reload, takes ["100"], not ["0", "65536"];

    /// Age at which an autoprepared statement is prepared anew.
    ///
    /// What changed in the schema without Refrain seeing it is followed after this time at the latest.
    autoprepare_max_age: Duration = "10min" ["1s" to "30d"],
        Reload, takes ["1min"], not ["0s", "never", "60"];

    /// What a server is sent between two clients in session mode; nothing when empty.
    server_reset_query: String = "DISCARD ALL",
        Reload, takes ["", "RESET ALL"], not [];

    /// What is done about `PREPARE` as SQL, in transaction and statement mode.
    ///
    /// `pin`: the client keeps its server for as long as it has such statements. `error`: it is told that this
    /// does not work here.
    sql_prepare: SqlPrepare = "pin",
        Reload, takes ["error"], not ["ignore"];

    /// When a server is asked what functions, triggers, procedures and `DO` have left in its session.
    ///
    /// What is left (a role, settings, temporary tables, advisory locks and the like) is treated as if the text had said it.
    /// `on`: until a text that calls the same functions and writes to the same tables has run to its end and was found to
    /// leave nothing, three times, and now and then after that. `strict`: behind every transaction, for functions that do
    /// so but rarely.
    /// `off`: behind `DO`, and for settings only. PostgreSQL only.
    track_functions: TrackFunctions = "on",
        Reload, takes ["off", "strict"], not ["true", "always"];

    /// Bytes queued to a connection at which nothing more is read for it.
    buffer_high: usize = "256KiB" ["8KiB" to "1GiB"],
        NewConnections, takes ["1MiB"], not ["1KiB"];

    /// Bytes queued to a connection at which reading for it starts again.
    ///
    /// Less than `buffer_high`.
    buffer_low: usize = "64KiB" ["1KiB" to "1GiB"],
        NewConnections, takes ["8KiB"], not ["1B"];
}

impl PoolOptions {
    /// Rules between options: the one that breaks a rule, and the rule.
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

/// Pool options set in one place, checked, to be laid over those of a wider place.
#[derive(Clone, Default)]
pub struct PoolOverrides(Vec<(&'static Row<PoolOptions>, Given)>);

impl PoolOverrides {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lays what is set here over `base`.
    pub fn over(&self, base: &PoolOptions) -> PoolOptions {
        let mut pool = base.clone();
        for (row, given) in &self.0 {
            row.set(&mut pool, given).expect("an override is checked before it is kept");
        }
        pool
    }

    /// Checks a value and keeps it, in place of an earlier one for the same option.
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

    /// The value set for an option, as `SHOW CONFIG` shows it.
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
