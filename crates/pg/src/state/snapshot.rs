//! PostgreSQL's part of a snapshot, for the admin console and the metrics. It is plain data, made
//! between two steps; the hot path does not touch it.

use std::sync::Arc;

use refrain_cache::EntryView;
use refrain_config::PoolRule;
use refrain_pool::figures::SumOfFigures;
use refrain_sql::reads::{Objection, may_be_read};

use crate::ground::stats::RuleCounts;
use crate::results::repeats::{PERIOD, Repeated};
use crate::statements::statement::Statement;

pub use refrain_pool::snapshot::{ClientViewState, ServerViewState};

/// A client's session.
#[derive(Clone, Debug, Default)]
pub struct ClientSessionView {
    /// The pins that tie it to its server, in words; empty if there are none.
    pub pinned: String,
    /// Number of its prepared statements.
    pub statements: u32,
    /// Its application_name.
    pub application: String,
    /// The kind of its replication: `none`, `logical` or `physical`.
    pub replication: &'static str,
}

/// A rule of `pg_hba.conf`, for `SHOW HBA`.
#[derive(Clone, Debug)]
pub struct HbaRow {
    /// The rule's number, from 1; the last row is for clients that no rule was for.
    pub number: u64,
    /// The file; empty if the rule stands in the configuration itself.
    pub file: String,
    /// The number of the line.
    pub line: u64,
    /// The line as it is written.
    pub text: String,
    /// Clients that the rule was for.
    pub matched: u64,
    /// Clients among them that were refused.
    pub refused: u64,
    /// The user that the last of them asked for.
    pub user: Option<String>,
    /// The database that it asked for.
    pub database: Option<String>,
    /// Its address.
    pub host: Option<String>,
}

/// A server's session.
#[derive(Clone, Debug, Default)]
pub struct ServerSessionView {
    /// Number of its statements.
    pub statements: u32,
    /// Bytes of their texts.
    pub statement_bytes: u64,
    /// Uses of a statement that it had already.
    pub prepare_hits: u64,
    /// Uses of a statement that it had to be sent first.
    pub prepare_misses: u64,
    /// Its application_name.
    pub application: String,
    /// The kind of its replication: `none`, `logical` or `physical`.
    pub replication: &'static str,
}

/// A core's statements.
#[derive(Clone, Debug, Default)]
pub struct CoreView {
    /// The normalized queries that it has seen.
    pub normalized_queries: Vec<NormalizedQueryRow>,
    /// Time that its normalized queries saved, in microseconds; negative if they were slower.
    pub time_saved_us: i64,
    /// The rules of the cache that apply to its pools.
    pub cache_rules: Vec<CacheRuleRow>,
    /// The texts whose requests are repeated.
    pub repeats: Vec<RepeatedRow>,
}

/// A text whose requests were looked at on one core, for `SHOW CACHE ADVICE`.
#[derive(Clone, Debug)]
pub struct RepeatedRow {
    /// The pool's database.
    pub database: Arc<str>,
    /// The pool's user.
    pub user: Arc<str>,
    /// The text, with literals of no meaning.
    pub text: String,
    /// Its counts, in proportion to all time.
    pub counts: Repeated,
}

/// A rule of the cache as it applies to a pool on one core, for `SHOW CACHE RULES`.
#[derive(Clone, Debug)]
pub struct CacheRuleRow {
    /// The pool's database.
    pub database: Arc<str>,
    /// The pool's user.
    pub user: Arc<str>,
    /// The rule's place among those that apply to the pool, from 0.
    pub place: usize,
    /// The rule as configured.
    pub rule: PoolRule,
    /// The rule's counts.
    pub counts: RuleCounts,
}

/// A reply in the cache, for `SHOW CACHE ENTRIES`.
#[derive(Clone, Debug)]
pub struct CachedReply {
    /// The rule by which it is kept.
    pub rule: String,
    /// The text that asks for it, with literals of no meaning.
    pub text: String,
    /// The tables that it reads.
    pub tables: Vec<String>,
    /// Its times and bytes.
    pub view: EntryView,
}

/// Whether the cache keeps the replies to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The cache keeps them.
    Yes,
    /// It does not keep them.
    No,
    /// No server has said yet what decides that.
    Unknown,
}

/// The cache's verdict on a text for a pool, for `EXPLAIN CACHE`.
#[derive(Clone, Debug)]
pub struct CacheVerdict {
    /// The pool's database.
    pub database: Arc<str>,
    /// The pool's user.
    pub user: Arc<str>,
    /// Whether replies are kept.
    pub kept: Kept,
    /// The rule that applies, if one does.
    pub rule: Option<PoolRule>,
    /// The tables that the text reads, as far as they are known.
    pub tables: Vec<String>,
    /// The reason of the verdict.
    pub reason: String,
}

/// The judgement on a text in a pool.
#[derive(Clone, Debug)]
pub struct TextVerdict {
    /// The pool's database.
    pub database: Arc<str>,
    /// The pool's user.
    pub user: Arc<str>,
    /// Whether the text is a read, or why not; `None` while no server was asked.
    pub read: Option<Result<(), &'static str>>,
    /// Whether the cache would keep the replies if a rule were there.
    pub could_be_kept: Kept,
    /// Why not, or why that is not known.
    pub reason: String,
    /// The rule of the cache that applies.
    pub rule: Option<String>,
    /// The text that stands for all that differ from it only in literals, unless it would show
    /// those of clients.
    pub canonical: Option<String>,
}

/// A statement of the registry, for `SHOW STATEMENTS`.
#[derive(Clone, Debug)]
pub struct StatementView {
    /// Its number, unique in the process.
    pub id: u64,
    /// The pool it belongs to.
    pub database: Arc<str>,
    /// The pool it belongs to.
    pub user: Arc<str>,
    /// Its text, with literals of no meaning.
    pub text: String,
    /// The OIDs that its Parse gave.
    pub parameter_types: Vec<u32>,
    /// Number of client statements that refer to it; number of cores if the cores were not asked.
    pub clients: u32,
    /// Servers that have it.
    pub servers: u32,
    /// Number of its uses, as far as cores have added them to the shared count.
    pub uses: u64,
    /// Number of requests that shared a server to run it, as far as cores have added them.
    pub shared: u64,
    /// Number of schema changes that made servers prepare it anew.
    pub generation: u32,
    /// Bytes of memory that it takes in Refrain.
    pub bytes: u64,
    /// Time of its requests that said the same as one in the same second, in microseconds: what was
    /// seen in the seconds that were looked at, and in proportion.
    pub repeated_us: u64,
    /// Whether it is a read: `yes`, `no` with the reason, `asked`, or `unknown`.
    pub read: String,
    /// Its calls, rows, errors and times, if the cores were asked.
    pub figures: SumOfFigures,
}

impl StatementView {
    /// Makes the view of a statement of a database and user, with this text, as of this count of
    /// schema changes.
    pub(crate) fn of(
        statement: &Statement,
        text: String,
        (database, user): (Arc<str>, Arc<str>),
        schema_changes: u64,
    ) -> Self {
        let types = statement.parameters();
        let (clients, servers, uses) = statement.counts();
        Self {
            id: statement.id,
            database,
            user,
            text,
            parameter_types: types
                .get(2..)
                .unwrap_or(&[])
                .chunks_exact(4)
                .map(|oid| u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]]))
                .collect(),
            clients,
            servers,
            uses,
            shared: statement.shared(),
            generation: statement.generation(),
            bytes: statement.bytes() as u64,
            repeated_us: statement.repeated_us() * PERIOD,
            read: read(statement, schema_changes),
            figures: SumOfFigures::default(),
        }
    }

    /// Makes the view of the statements of a pool that are not known, under these words.
    pub fn of_others(
        database: &Arc<str>,
        user: &Arc<str>,
        words: &str,
        figures: SumOfFigures,
    ) -> Self {
        Self {
            id: 0,
            database: database.clone(),
            user: user.clone(),
            text: words.to_owned(),
            parameter_types: Vec::new(),
            clients: 0,
            servers: 0,
            uses: figures.counts.calls,
            shared: 0,
            generation: 0,
            bytes: 0,
            repeated_us: 0,
            read: "unknown".to_owned(),
            figures,
        }
    }
}

/// Returns what is known about whether a statement is a read.
fn read(statement: &Statement, schema_changes: u64) -> String {
    let scanned = if may_be_read(&statement.scan) { None } else { Some(Err(Objection::Kind)) };
    match scanned.or_else(|| statement.verdict.known(schema_changes)) {
        Some(Ok(_)) => "yes".to_owned(),
        Some(Err(objection)) => format!("no: {}", objection.reason().name),
        None if statement.verdict.was_asked() => "asked".to_owned(),
        None => "unknown".to_owned(),
    }
}

/// A normalized query, as one core knows it, for `SHOW AUTOPREPARE`.
#[derive(Clone, Debug)]
pub struct NormalizedQueryRow {
    /// The pool it belongs to.
    pub database: Arc<str>,
    /// The pool it belongs to.
    pub user: Arc<str>,
    /// The text that is or would be prepared; a text that was sent if there is none.
    pub query: String,
    /// Whether it comes in simple queries, or as an unnamed statement: the protocol, in a word.
    pub protocol: &'static str,
    /// The state of the normalized query, in a word.
    pub state: &'static str,
    /// The reason for the state, in words; empty if there is none.
    pub reason: String,
    /// Queries of it that were sent.
    pub seen: u64,
    /// How many of them were run as a prepared statement.
    pub hits: u64,
    /// Time that these saved compared with as many unprepared queries, in microseconds; negative if
    /// they were slower.
    pub time_saved_us: i64,
    /// Texts that are run as they were sent, because the kept plan does not fit their values.
    pub slow_texts: u64,
    /// Literals that stay in the text.
    pub kept: u64,
    /// How often it was given up because it was slower when prepared.
    pub demotions: u64,
}
