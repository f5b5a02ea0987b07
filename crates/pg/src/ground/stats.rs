//! Counters of one pool on one core that only PostgreSQL's protocol has.

use refrain_pool::stats::{CounterSet, Histogram};

refrain_pool::counters! {
    /// Counts of one pool on one core: of prepared statements, settings and pins, autoprepare,
    /// requests that did not share a server, reads, and the result cache.
    StatementCounters:
    /// Parse messages received from clients.
    client_parses,
    /// Parse messages sent to servers.
    server_parses,
    /// Bind messages received from clients.
    binds,
    /// Uses of a prepared statement that the server already had.
    prepare_hits,
    /// Uses of a prepared statement that Refrain had to prepare on the server first.
    prepare_misses,
    /// Parse messages that Refrain answered without the server.
    parses_answered,
    /// Close messages that Refrain answered without the server.
    closes_answered,
    /// Sync messages that Refrain answered without the server, since nothing before them needed it:
    /// round trips to the server that were not made. Those of `cache_hits` are not among them.
    syncs_answered,
    /// Requests that did not share a server, because they are no single read.
    requests_alone_kind,
    /// Requests that did not share a server, because it is not known yet whether they are reads and
    /// what they cost.
    requests_alone_unknown,
    /// Requests that did not share a server, because their statement takes too long
    /// (`share_statement_time`).
    requests_alone_slow,
    /// Requests that did not share a server, because the results of their statement are too long.
    requests_alone_result,
    /// Prepared statements closed on a server to make room for others.
    evictions,
    /// Prepared statements that servers must prepare anew, because the schema may have changed or a
    /// plan was stale.
    statements_renewed,
    /// Queries that asked what functions had left behind in a session.
    session_checks,
    /// Statements run without being kept for reuse: too large, beyond a limit, or parsed while the
    /// settings were unknown.
    statements_not_kept,
    /// Changes to the maps of prepared statements that were undone, because the server refused or
    /// skipped the message.
    changes_undone,
    /// Errors 26000 (prepared statement does not exist) for a statement that Refrain prepared:
    /// always zero, or a bug.
    lost_statements,
    /// Times that a client with session state began to keep its server.
    pins,
    /// Changes of a server's default settings that Refrain noticed in a session that was open
    /// before.
    defaults_learned,
    /// Times that the settings of a server were changed to those of the client that was to use it.
    settings_synced,
    /// Simple queries that autoprepare ran as a prepared statement.
    auto_hits,
    /// Unnamed statements that autoprepare ran as a named one.
    auto_unnamed,
    /// Times that autoprepare verified a normalized query: its queries can run as a prepared
    /// statement.
    auto_verified,
    /// Times that autoprepare refused or could not verify a normalized query: its queries run as
    /// sent.
    auto_refusals,
    /// Simple queries run again as sent, because their prepared statement failed before it ran.
    auto_fallbacks,
    /// Transactions that failed where the query as sent would not have failed: zero while the
    /// schema does not change.
    auto_failures_in_transaction,
    /// Times that autoprepare gave up a normalized query, because its prepared statement was slower
    /// than the queries as sent.
    auto_too_slow,
    /// Times that a server said of a prepared statement that it is a read: servers may run it for
    /// several clients at the same time.
    reads_verified,
    /// Times that a prepared statement turned out not to be a read.
    reads_refused,
    /// Questions to servers about prepared statements, whether they are reads and what they may
    /// change.
    read_questions,
    /// Reads that were sent to a standby (`reads`).
    standby_reads,
    /// Reads that ran on the primary after they had been sent to a standby: it was too late,
    /// refused them, or went.
    standby_reads_returned,
    /// Reads that ran on the primary, because it was not known yet how far a standby has to be.
    standby_reads_unproven,
    /// Requests that were answered from the cache.
    cache_hits,
    /// Requests that were answered from the cache past the time of the reply, while another was
    /// being fetched.
    cache_stale_hits,
    /// Time that servers took for the replies that were given from the cache, in microseconds.
    cache_saved_us,
    /// Requests for which there is a rule of the cache, and whose reply was not kept.
    cache_misses,
    /// Times that a request waited for a reply that another client fetched.
    cache_waits,
    /// Replies that Refrain asked for again by itself, while clients got the ones from before.
    cache_refreshes,
    /// Replies that were put into the cache.
    cache_fills,
    /// Replies that were not put into the cache, because of a write while they were fetched.
    cache_fills_outdated,
    /// Replies that were not put into the cache: errors, notices, and those that are too long.
    cache_fills_refused,
    /// Transactions that made replies in the cache void, or may have.
    cache_voids,
    /// Requests past the cache, because they are not one whole segment that only runs statements.
    cache_bypass_form,
    /// Requests past the cache, because of the client's session.
    cache_bypass_session,
    /// Requests past the cache, because no rule applies to their statements.
    cache_bypass_rule,
    /// Requests past the cache, because it is not known yet whether their statements are reads.
    cache_bypass_unknown,
    /// Requests past the cache, because their statements are no reads or show the present time.
    cache_bypass_statement,
    /// Requests past the cache, because one of their values may stand for the present time.
    cache_bypass_moment,
    /// Requests past the cache, because their sessions want that (`refrain.cache`).
    cache_bypass_unwanted,
    /// Requests past the cache, because no server has confirmed the clients' logins yet.
    cache_bypass_login,
    /// Requests whose rule wants all commits, and these were not proven to have been heard of.
    cache_bypass_unproven,
    /// Requests whose tables are not in the replication stream.
    cache_bypass_uncovered,
    /// Times that FLUSH AUTOPREPARE made a pool forget its normalized queries.
    auto_flushes,
}

refrain_pool::counters! {
    /// Counts of one rule of the cache in one pool on one core.
    RuleCounters:
    /// Requests that were answered from the cache by the rule.
    hits,
    /// Requests that were answered from the cache past the time of the reply, while another was
    /// being fetched.
    stale_hits,
    /// Time that servers took for the replies that were given from the cache, in microseconds.
    saved_us,
    /// Requests to which the rule applies, and whose reply was not kept.
    misses,
    /// Times that a request waited for a reply that another client fetched.
    waits,
    /// Replies that Refrain asked for again by itself, while clients got the ones from before.
    refreshes,
    /// Replies that were put into the cache.
    fills,
    /// Replies that were not put into the cache, because of a write while they were fetched.
    fills_outdated,
    /// Replies that were not put into the cache: errors, notices, and those that are too long.
    fills_refused,
}

/// Counts of one rule of the cache in one pool on one core, and the times of its hits.
#[derive(Clone, Debug, Default)]
pub struct RuleCounts {
    /// The counts.
    pub counters: RuleCounters,
    /// The time for which each request waited that was answered from the cache: nearly none, or
    /// until another client's reply was there.
    pub hit_time: Histogram,
}

impl RuleCounts {
    /// Adds those of another core.
    pub fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.hit_time.add(&other.hit_time);
    }
}
