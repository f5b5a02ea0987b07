//! The result cache in the console: its listings, and FLUSH CACHE.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use refrain_config::{Consistency, Options, PoolMode};
use refrain_pg::snapshot::{CacheRuleRow, CacheVerdict, CachedReply, Kept, RepeatedRow};
use refrain_pg::{CacheFigures, ChangesView, Counters, Flush, TableCoverage};

use crate::admin::table::{Column, Listing, Pair, bigint, int, nullable, ratio, table, text};
use crate::admin::view::{Pool, View};
use crate::admin::words::Word;
use crate::console::{Refusal, Table};
use crate::pg::{PgState, sum as own};
use crate::sum;

/// A counter of the pool.
type Count = fn(&Counters) -> u64;

/// The reasons for which requests go past the cache, by pool.
const REASONS: &[(&str, Count)] = &[
    ("form", |counters| counters.protocol.cache_bypass_form),
    ("session", |counters| counters.protocol.cache_bypass_session),
    ("rule", |counters| counters.protocol.cache_bypass_rule),
    ("unknown", |counters| counters.protocol.cache_bypass_unknown),
    ("statement", |counters| counters.protocol.cache_bypass_statement),
    ("moment", |counters| counters.protocol.cache_bypass_moment),
    ("unwanted", |counters| counters.protocol.cache_bypass_unwanted),
    ("login", |counters| counters.protocol.cache_bypass_login),
    ("unproven", |counters| counters.protocol.cache_bypass_unproven),
    ("uncovered", |counters| counters.protocol.cache_bypass_uncovered),
];

/// `SHOW CACHE`: what the cache does for each pool.
pub(in crate::admin) const CACHE: Listing<Pool> = Listing {
    columns: &[
        text("database", |pool| pool.sum.database.to_string()),
        text("user", |pool| pool.sum.user.to_string()),
        bigint("hits", |pool| pool.sum.counters.protocol.cache_hits),
        bigint("stale_hits", |pool| pool.sum.counters.protocol.cache_stale_hits),
        bigint("misses", |pool| pool.sum.counters.protocol.cache_misses),
        text("hit_ratio", |pool| {
            let counters = &pool.sum.counters.protocol;
            ratio(counters.cache_hits, counters.cache_misses)
        }),
        bigint("waits", |pool| pool.sum.counters.protocol.cache_waits),
        bigint("refreshes", |pool| pool.sum.counters.protocol.cache_refreshes),
        bigint("fills", |pool| pool.sum.counters.protocol.cache_fills),
        bigint("fills_outdated", |pool| pool.sum.counters.protocol.cache_fills_outdated),
        bigint("fills_refused", |pool| pool.sum.counters.protocol.cache_fills_refused),
        bigint("voids", |pool| pool.sum.counters.protocol.cache_voids),
        bigint("bypass", |pool| REASONS.iter().map(|(_, count)| count(&pool.sum.counters)).sum()),
        bigint("saved_us", |pool| pool.sum.counters.protocol.cache_saved_us),
    ],
    rows: |view| view.pools(),
};

/// `SHOW CACHE RULES`: the rules that apply to each pool, in order, and what they do.
pub(in crate::admin) const RULES: Listing<(CacheRuleRow, RuleReplies)> = Listing {
    columns: &[
        text("database", |(row, _)| row.database.to_string()),
        text("user", |(row, _)| row.user.to_string()),
        text("rule", |(row, _)| row.rule.name.clone()),
        nullable("table", |(row, _)| row.rule.rule.table.clone()),
        nullable("statement", |(row, _)| row.rule.rule.statement.clone()),
        text("consistency", |(row, _)| consistency(row.rule.rule.consistency).to_owned()),
        bigint("ttl_ms", |(row, _)| ms(row.rule.rule.ttl)),
        bigint("stale_ms", |(row, _)| row.rule.rule.stale_while_revalidate.map_or(0, ms)),
        bigint("hits", |(row, _)| row.counts.counters.hits),
        bigint("stale_hits", |(row, _)| row.counts.counters.stale_hits),
        bigint("misses", |(row, _)| row.counts.counters.misses),
        text("hit_ratio", |(row, _)| ratio(row.counts.counters.hits, row.counts.counters.misses)),
        bigint("waits", |(row, _)| row.counts.counters.waits),
        bigint("refreshes", |(row, _)| row.counts.counters.refreshes),
        bigint("fills", |(row, _)| row.counts.counters.fills),
        bigint("fills_outdated", |(row, _)| row.counts.counters.fills_outdated),
        bigint("fills_refused", |(row, _)| row.counts.counters.fills_refused),
        bigint("saved_us", |(row, _)| row.counts.counters.saved_us),
        bigint("replies", |(_, replies)| replies.entries),
        bigint("bytes", |(_, replies)| replies.bytes),
        bigint("oldest_ms", |(_, replies)| replies.oldest_us / 1000),
    ],
    rows: |view| {
        let replies = replies_of_rules(view);
        let with_replies = |row: CacheRuleRow| {
            let of_rule = replies.get(&row.rule.name).copied().unwrap_or_default();
            (row, of_rule)
        };
        own::cache_rules(&view.snapshots).into_iter().map(with_replies).collect()
    },
};

/// Returns the replies of each rule, by its name.
fn replies_of_rules(view: &View<'_>) -> HashMap<String, RuleReplies> {
    let shared = &view.pg.cores.shared;
    let figures = shared.protocol.cache_figures().into_iter();
    let replies = |it: &CacheFigures| RuleReplies {
        entries: it.entries,
        bytes: it.bytes,
        ..RuleReplies::default()
    };
    let mut rules: HashMap<_, _> = figures.map(|(rule, it)| (rule, replies(&it))).collect();
    for reply in refrain_pg::cached_replies(shared, view.now) {
        let of_rule = rules.entry(reply.rule).or_default();
        of_rule.oldest_us = of_rule.oldest_us.max(reply.view.age);
    }
    rules
}

/// The replies of a rule in the cache, over all pools.
#[derive(Clone, Copy, Default)]
pub(in crate::admin) struct RuleReplies {
    entries: u64,
    bytes: u64,
    /// The age of the oldest in a sample.
    oldest_us: u64,
}

fn consistency(of: Consistency) -> &'static str {
    match of {
        Consistency::Ttl => "ttl",
        Consistency::Session => "session",
        Consistency::Writes => "writes",
        Consistency::Commits => "commits",
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A reason for which requests of a pool go past the cache.
pub(in crate::admin) struct Bypass {
    database: String,
    user: String,
    reason: &'static str,
    requests: u64,
}

/// `SHOW CACHE BYPASS`: why requests go past the cache.
pub(in crate::admin) const BYPASS: Listing<Bypass> = Listing {
    columns: &[
        text("database", |row| row.database.clone()),
        text("user", |row| row.user.clone()),
        text("reason", |row| row.reason.to_owned()),
        bigint("requests", |row| row.requests),
    ],
    rows: |view| view.pools().iter().flat_map(reasons).collect(),
};

fn reasons(pool: &Pool) -> Vec<Bypass> {
    let row = |(reason, count): &(&'static str, Count)| Bypass {
        database: pool.sum.database.to_string(),
        user: pool.sum.user.to_string(),
        reason,
        requests: count(&pool.sum.counters),
    };
    REASONS.iter().map(row).filter(|row| row.requests > 0).collect()
}

/// `SHOW CACHE MEMORY`: what the cache holds, over all pools.
pub(in crate::admin) const MEMORY: Listing<Pair> = Listing {
    columns: &[text("key", |row| row.name.clone()), text("value", |row| row.value.clone())],
    rows: |view| {
        let stats = view.pg.cores.shared.protocol.cache_stats();
        vec![
            Pair::new("limit_bytes", view.options.cache.options.memory),
            Pair::new("bytes", stats.bytes),
            Pair::new("entries", stats.entries),
            Pair::new("being_fetched", stats.flights),
            Pair::new("evicted", stats.evicted),
            Pair::new("outdated", stats.outdated),
            Pair::new("expired", stats.expired),
            Pair::new("swept", stats.swept),
        ]
    },
};

/// `SHOW CACHE ENTRIES`: replies in the cache, a sample if there are many.
pub(in crate::admin) const ENTRIES: Listing<CachedReply> = Listing {
    columns: &[
        text("rule", |row| row.rule.clone()),
        bigint("age_ms", |row| row.view.age / 1000),
        bigint("left_ms", |row| row.view.left / 1000),
        bigint("took_us", |row| row.view.took),
        bigint("bytes", |row| row.view.bytes as u64),
        int("uses", |row| row.view.uses.into()),
        text("tables", |row| row.tables.join(", ")),
        text("text", |row| row.text.clone()),
    ],
    rows: |view| {
        let mut replies = refrain_pg::cached_replies(&view.pg.cores.shared, view.now);
        replies.sort_by_key(|reply| Reverse((reply.view.uses, reply.view.age)));
        replies
    },
};

/// `SHOW CACHE TABLES`: the tables that replies in the cache read.
pub(in crate::admin) const TABLES: Listing<(String, u64, u64)> = Listing {
    columns: &[
        text("table", |row| row.0.clone()),
        bigint("replies", |row| row.1),
        bigint("bytes", |row| row.2),
    ],
    rows: |view| refrain_pg::cached_tables(&view.pg.cores.shared, view.now),
};

/// `SHOW CACHE ADVICE`: the texts whose requests are repeated, whose replies can be kept, and to
/// which no rule applies, those first of which a rule would save most time. It is an estimate: one
/// second in thirty is looked at.
pub(in crate::admin) const ADVICE: Listing<RepeatedRow> = Listing {
    columns: &[
        text("database", |row| row.database.to_string()),
        text("user", |row| row.user.to_string()),
        bigint("requests", |row| row.counts.requests),
        bigint("time_us", |row| row.counts.time_us),
        bigint("repeats", |row| row.counts.repeats),
        bigint("saves_us", |row| row.counts.repeated_us),
        text("text", |row| row.text.clone()),
    ],
    rows: |view| {
        // In session mode nothing is kept.
        let pools = sum::pools(&view.snapshots);
        let in_session_mode = |row: &RepeatedRow| {
            let pool = pools.get(&(row.database.clone(), row.user.clone()));
            pool.is_some_and(|pool| pool.mode == PoolMode::Session && !pool.is_dedicated)
        };
        let mut repeats = own::repeats(&view.snapshots);
        repeats.retain(|row| !in_session_mode(row));
        refrain_pg::advisable(&view.pg.cores.shared, &view.options, repeats)
    },
};

/// `SHOW CACHE CHANGES`: the replication streams that are followed, and what they have brought.
pub(in crate::admin) const CHANGES: Listing<(ChangesView, u64)> = Listing {
    columns: &[
        text("database", |(view, _)| view.database.clone()),
        text("state", |(view, _)| view.state.to_owned()),
        text("why", |(view, _)| view.why.clone()),
        text("slot", |(view, _)| view.slot.clone()),
        text("mark", |(view, _)| format!("{:X}/{:X}", view.mark >> 32, view.mark & 0xffff_ffff)),
        nullable("proven_ms", |(view, now)| {
            let proven = (view.proven.0 > 0).then_some(view.proven.0);
            proven.map(|proven| (now.saturating_sub(proven) / 1000).to_string())
        }),
        bigint("proofs", |(view, _)| view.proofs),
        bigint("snapshots", |(view, _)| view.snapshots),
        bigint("commits", |(view, _)| view.commits),
        bigint("doubts", |(view, _)| view.doubts),
        bigint("losses", |(view, _)| view.losses),
        bigint("tables", |(view, _)| view.tables),
        bigint("uncovered", |(view, _)| view.uncovered),
        bigint("voids", |(view, _)| view.voids),
        // The last one: `refrain publication` takes it for that.
        text("publications", |(view, _)| array(&view.publications)),
    ],
    rows: |view| {
        let changes = view.pg.cores.shared.protocol.changes().into_iter();
        changes.map(|changes| (changes, view.now.0)).collect()
    },
};

/// Returns texts as PostgreSQL spells an array of them.
fn array(texts: &[String]) -> String {
    let quoted = |text: &String| format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""));
    format!("{{{}}}", texts.iter().map(quoted).collect::<Vec<_>>().join(","))
}

/// `SHOW CACHE COVERAGE`: the tables on which rules with `consistency = "commits"` depend, and why
/// the replication stream lacks the changes of some.
pub(in crate::admin) const COVERAGE: Listing<TableCoverage> = Listing {
    columns: &[
        text("database", |row| row.database.clone()),
        bigint("oid", |row| row.oid.into()),
        text("covered", |row| if row.why.is_none() { "yes" } else { "no" }.to_owned()),
        nullable("why", |row| row.why.map(|why| format!("{}: {}", why.name, why.text))),
    ],
    rows: |view| view.pg.cores.shared.protocol.coverages(),
};

/// The columns of `EXPLAIN CACHE`.
const VERDICT: &[Column<CacheVerdict>] = &[
    text("database", |row| row.database.to_string()),
    text("user", |row| row.user.to_string()),
    text("kept", |row| {
        let kept = match row.kept {
            Kept::Yes => "yes",
            Kept::No => "no",
            Kept::Unknown => "unknown",
        };
        kept.to_owned()
    }),
    nullable("rule", |row| row.rule.as_ref().map(|rule| rule.name.clone())),
    nullable("consistency", |row| {
        row.rule.as_ref().map(|rule| consistency(rule.rule.consistency).to_owned())
    }),
    text("tables", |row| row.tables.join(", ")),
    text("reason", |row| row.reason.clone()),
];

/// Returns the answer to `EXPLAIN CACHE`: for each pool with rules, whether replies to a text are
/// kept, by which rule, and why not.
pub(in crate::admin) fn explain(pg: &PgState, options: &Options, sql: &str) -> Table {
    let sql = sql.trim().trim_end_matches(';');
    table(VERDICT, &refrain_pg::explain_cache(&pg.cores.shared, options, sql))
}

/// Carries out FLUSH CACHE with these words behind it.
pub(in crate::admin) fn flush(pg: &PgState, query: &str, words: &[Word]) -> Result<(), Refusal> {
    let shared = &pg.cores.shared;
    let (what, name, found) = match words {
        [] => ("", "", shared.protocol.flush_results(Flush::All)),
        [kind, name] if kind.is("database") => {
            let pools = shared.pools();
            let own: Vec<_> = pools.iter().filter(|pool| *pool.database == *name.text).collect();
            own.iter().for_each(|pool| pool.protocol.flush_results());
            ("database", &*name.text, !own.is_empty())
        }
        [kind, name] if kind.is("rule") => {
            ("rule", &*name.text, shared.protocol.flush_results(Flush::Rule(&name.text)))
        }
        [kind, name] if kind.is("tag") => {
            ("tag", &*name.text, shared.protocol.flush_results(Flush::Tag(&name.text)))
        }
        [kind, name] if kind.is("table") => {
            ("table", &*name.text, shared.protocol.flush_results(Flush::Table(&name.text)))
        }
        [kind, text] if kind.is("statement") => {
            ("statement", &*text.text, shared.protocol.flush_results(Flush::Statement(&text.text)))
        }
        _ => return Err(Refusal::syntax(query)),
    };
    let unknown = || Refusal::new("42704", format!("no {what} {name:?} is in use"));
    found.then_some(()).ok_or_else(unknown)
}
