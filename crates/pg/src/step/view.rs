//! PostgreSQL's part of a snapshot: sessions, statements, normalized queries.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use refrain_cache::EntryView;
use refrain_config::{CacheRule, Consistency, Options, PoolCache, PoolRule};
use refrain_pool::Now;
use refrain_pool::ids::PoolId;
use refrain_sql::comments::without_comments;
use refrain_sql::hint::{self, BadHint, Hint};
use refrain_sql::normalize::Reason;
use refrain_sql::reads::{Objection, Unkept, may_be_read};

use crate::normalized::compare_times::TimeComparison;
use crate::normalized::query::{NormalizedQuery, Refused, Stage, State, Variant};
use crate::results::changes::Uncovered;
use crate::results::of_pool::rule_of_hint;
use crate::results::rule::{Applies, Asks};
use crate::results::texts;
use crate::results::topics::table_of;
use crate::settings::session::Settings;
use crate::state::client::ClientSession;
use crate::state::parts::{Pool, PoolShared, Shared};
use crate::state::replication::{Relay, Replication};
use crate::state::server::ServerSession;
use crate::state::snapshot::{
    CacheRuleRow, CacheVerdict, CachedReply, ClientSessionView, HbaRow, Kept, NormalizedQueryRow,
    RepeatedRow, ServerSessionView, TextVerdict,
};
use crate::statements::statement::Statement;
use crate::statements::verdict::Read;
use refrain_pool::seed::Seed;

/// Returns the rules of `pg_hba.conf`, with their counts.
pub fn hba_rules(shared: &Shared) -> Vec<HbaRow> {
    shared.protocol.hba().rows()
}

/// A text that is judged.
struct Judged<'a> {
    seed: &'a Seed,
    hint: Option<Result<Hint, BadHint<'a>>>,
    /// The text without its comments.
    text: Vec<u8>,
    canonical: Box<[u8]>,
}

impl<'a> Judged<'a> {
    fn new(shared: &'a Shared, options: &Options, sent: &'a [u8]) -> Self {
        let seed = shared.protocol.registry.seed();
        let hint = hint::hint(sent).filter(|_| options.cache.options.hints);
        let text = without_comments(sent.trim_ascii(), false).into_owned();
        let canonical = texts::canonical_of(seed, &text);
        Self { seed, hint, text, canonical }
    }

    /// Returns the rule that applies to the text where these rules are, with what its hint says.
    fn rule_for(&self, cache: &PoolCache, known: Option<&Statement>) -> Option<PoolRule> {
        let tables = known.map(|statement| statement.relations().reads());
        let asks = Asks { canonical: &self.canonical, reads: tables.as_deref(), application: None };
        let applies = |rule: &&PoolRule| Applies::new(self.seed, &rule.rule).hold(&asks);
        let found = cache.rules.iter().find(applies);
        match &self.hint {
            _ if !cache.keeps() => None,
            Some(Ok(hint)) => Some(rule_of_hint(found, hint.clone())),
            Some(Err(_)) | None => found.cloned(),
        }
    }

    /// Judges the text for a pool, where `known` is what is known of it.
    fn verdict(
        &self,
        options: &Options,
        pool: &PoolShared,
        known: Option<&Statement>,
    ) -> TextVerdict {
        let changes = pool.protocol.schema_changes();
        let any = rule_of_hint(None, Hint::default());
        let (could_be_kept, reason) = kept(&self.text, self.seed, known, pool, Some(&any));
        let scan = refrain_sql::scan_with(&self.text, false);
        let read = match known.and_then(|known| known.verdict.known(changes)) {
            _ if !may_be_read(&scan) => Some(Err(Objection::Kind.reason().text)),
            verdict => verdict.map(|it| it.map(drop).map_err(|it| it.reason().text)),
        };
        let rule = self.rule_for(&options.cache.of(&pool.database, &pool.user), known);
        TextVerdict {
            database: pool.database.clone(),
            user: pool.user.clone(),
            read,
            could_be_kept,
            reason,
            rule: rule.map(|rule| rule.name),
            canonical: Some(String::from_utf8_lossy(&self.canonical).into_owned()),
        }
    }
}

/// Returns the cache's verdict on a text for each pool that has rules: whether replies to it are
/// kept, and why not.
///
/// Nothing is asked of a server: what depends on the catalog is known once clients have run the
/// text.
pub fn explain_cache(shared: &Shared, options: &Options, text: &str) -> Vec<CacheVerdict> {
    let judged = Judged::new(shared, options, text.as_bytes());
    let mut pools = caching(shared);
    pools.sort_by_key(|pool| (pool.database.clone(), pool.user.clone()));
    let verdict = |pool: &Arc<PoolShared>| {
        let cache = options.cache.of(&pool.database, &pool.user);
        if !cache.keeps() {
            return None;
        }
        let known = known(shared, pool, &judged.canonical);
        let found = judged.rule_for(&cache, known.as_ref());
        let (kept, reason) = match &judged.hint {
            Some(Err(BadHint(word))) if found.is_none() => {
                let word = String::from_utf8_lossy(word);
                (Kept::No, format!("hint: the word \"{word}\" is not understood"))
            }
            _ => kept(&judged.text, judged.seed, known.as_ref(), pool, found.as_ref()),
        };
        let (kept, reason) = match (kept, known.as_ref().zip(found.as_ref())) {
            (Kept::Yes, Some((known, rule))) => promised(known, pool, &rule.rule),
            _ => (kept, reason),
        };
        let tables = known.as_ref().map(|statement| statement.relations().reads());
        let tables = tables.iter().flat_map(|tables| tables.iter());
        Some(CacheVerdict {
            database: pool.database.clone(),
            user: pool.user.clone(),
            kept,
            rule: found,
            tables: tables.map(|table| table.name.to_string()).collect(),
            reason,
        })
    };
    pools.iter().filter_map(verdict).collect()
}

/// Returns for pools of PostgreSQL's protocol what is known of a text: whether it is a read, and
/// whether a rule of the cache keeps its replies, or would. `only` is the database and the user of
/// the pool; without it, the first pools by their names are looked at.
pub fn judge(
    shared: &Shared,
    options: &Options,
    text: &str,
    only: Option<(&str, &str)>,
) -> Vec<TextVerdict> {
    let judged = Judged::new(shared, options, text.as_bytes());
    let mut pools = caching(shared);
    pools.retain(|it| only.is_none_or(|name| name == (&*it.database, &*it.user)));
    pools.sort_by_key(|pool| (pool.database.clone(), pool.user.clone()));
    let verdict = |pool: &Arc<PoolShared>| {
        let known = known(shared, pool, &judged.canonical);
        judged.verdict(options, pool, known.as_ref())
    };
    pools.iter().take(JUDGED_MAX).map(verdict).collect()
}

/// Returns the same for the statement of this number, in its pool. Of a text whose literals cannot
/// be told, the rule would show those.
pub fn judge_statement(shared: &Shared, options: &Options, id: u64) -> Option<TextVerdict> {
    let mut found = None;
    shared.protocol.registry.for_each(|statement| {
        if statement.id == id {
            found = Some(statement.clone());
        }
    });
    let statement = found?;
    let pool = caching(shared).into_iter().find(|pool| pool.id == statement.pool)?;
    let judged = Judged::new(shared, options, statement.text());
    let verdict = judged.verdict(options, &pool, Some(&statement));
    let shown = texts::without_literals(statement.text());
    Some(TextVerdict { canonical: verdict.canonical.filter(|it| *it == shown), ..verdict })
}

/// Returns the pools whose replies can be kept: those that are not for replication.
fn caching(shared: &Shared) -> Vec<Arc<PoolShared>> {
    let mut pools: Vec<_> = shared.pools();
    pools.retain(|pool| !pool.protocol.is_for_replication());
    pools
}

/// Most pools for which a text is judged: each is a walk over all statements.
const JUDGED_MAX: usize = 16;

/// Returns those of the texts that are repeated for which a rule of the cache would keep replies,
/// and none does yet. A text of which that is not known is not among them.
pub fn advisable(
    shared: &Shared,
    options: &Options,
    mut texts: Vec<RepeatedRow>,
) -> Vec<RepeatedRow> {
    let seed = shared.protocol.registry.seed();
    let pools = caching(shared);
    let of = |row: &RepeatedRow| {
        pools.iter().find(|it| it.database == row.database && it.user == row.user)
    };
    let known = known_of(shared, texts.iter().filter_map(of));
    let any = rule_of_hint(None, Hint::default());
    texts.retain(|row| {
        let (Some(pool), text) = (of(row), row.text.as_bytes()) else { return false };
        let statement = known.get(&(pool.id, text.into()));
        let tables = statement.map(|statement| statement.relations().reads());
        let asks = Asks { canonical: text, reads: tables.as_deref(), application: None };
        let cache = options.cache.of(&pool.database, &pool.user);
        // A rule for one application leaves those of the others.
        let covers = |rule: &PoolRule| {
            let applies = Applies::new(seed, &rule.rule);
            !applies.look_at_application() && applies.hold(&asks)
        };
        let covered = cache.rules.iter().any(covers);
        !covered && kept(text, seed, statement, pool, Some(&any)).0 == Kept::Yes
    });
    texts
}

/// Returns the statements of pools about which servers were asked, by their canonical texts.
fn known_of<'a>(
    shared: &Shared,
    pools: impl Iterator<Item = &'a Arc<PoolShared>>,
) -> HashMap<(PoolId, Box<[u8]>), Statement> {
    let changes: HashMap<PoolId, u64> =
        pools.map(|pool| (pool.id, pool.protocol.schema_changes())).collect();
    let mut known = Vec::new();
    // The registry is locked meanwhile: nothing is computed here.
    shared.protocol.registry.for_each(|statement| {
        let changes = changes.get(&statement.pool);
        if changes.is_some_and(|changes| statement.verdict.known(*changes).is_some()) {
            known.push(statement.clone());
        }
    });
    // Of several with one canonical text, the last counts: one that can be kept, if there is any.
    known.sort_by_key(|it| it.verdict.is_timeless(changes[&it.pool]));
    let seed = shared.protocol.registry.seed();
    let key = |it: &Statement| (it.pool, texts::canonical_of(seed, it.text()));
    known.into_iter().map(|statement| (key(&statement), statement)).collect()
}

/// Most replies of each shard that are listed, and that are looked at for figures of tables.
const LISTED_MAX: usize = 16;
const LOOKED_AT_MAX: usize = 4096;

/// Returns replies in the cache: a sample, if there are many.
pub fn cached_replies(shared: &Shared, now: Now) -> Vec<CachedReply> {
    replies(shared, now, LISTED_MAX)
}

/// Returns the tables that replies read, by name, each with the number of replies and their bytes,
/// and whether these are all that there are.
pub fn cached_tables(shared: &Shared, now: Now) -> Vec<(String, u64, u64)> {
    let mut tables: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for reply in replies(shared, now, LOOKED_AT_MAX) {
        for table in reply.tables {
            let (count, bytes) = tables.entry(table).or_default();
            *count += 1;
            *bytes += reply.view.bytes as u64;
        }
    }
    tables.into_iter().map(|(name, (count, bytes))| (name, count, bytes)).collect()
}

fn replies(shared: &Shared, now: Now, most: usize) -> Vec<CachedReply> {
    let store = &shared.protocol.results;
    let names = store.topics.names();
    let reply = |view: EntryView| {
        let of = |id: u64| names.get(&id).map(|name| String::from_utf8_lossy(name).into_owned());
        let topics: Vec<String> = view.topics.ids().filter_map(of).collect();
        let with = |mark: &str| {
            let found = topics.iter().find_map(|topic| topic.strip_prefix(mark));
            found.unwrap_or_default().to_owned()
        };
        let (rule, text) = (with("rule "), with("text "));
        let tables = topics.iter().filter_map(|topic| table_of(topic));
        CachedReply { rule, text, tables: tables.map(str::to_owned).collect(), view }
    };
    store.cache.view(now.0, most).into_iter().map(reply).collect()
}

/// Returns the statement of a pool that has this text, of several the one of which
/// most is known.
fn known(shared: &Shared, pool: &PoolShared, canonical: &[u8]) -> Option<Statement> {
    let seed = shared.protocol.registry.seed();
    let changes = pool.protocol.schema_changes();
    let mut candidates = Vec::new();
    // The registry is locked meanwhile: nothing is computed here.
    shared.protocol.registry.for_each(|statement| {
        if statement.pool == pool.id {
            candidates.push(statement.clone());
        }
    });
    candidates.sort_by_cached_key(|it| it.verdict.known(changes).is_none());
    candidates.into_iter().find(|it| *texts::canonical_of(seed, it.text()) == *canonical)
}

/// Returns whether replies to a text are kept, as far as that is known, and the reason.
fn kept(
    text: &[u8],
    seed: &Seed,
    known: Option<&Statement>,
    pool: &PoolShared,
    rule: Option<&PoolRule>,
) -> (Kept, String) {
    let objected = |reason: &Reason| (Kept::No, format!("{}: {}", reason.name, reason.text));
    let scan = refrain_sql::scan_with(text, false);
    let verdict = known.and_then(|known| known.verdict.known(pool.protocol.schema_changes()));
    let trusts = rule.is_some_and(|rule| rule.rule.trust_stable_functions);
    match verdict {
        _ if !may_be_read(&scan) => objected(Objection::Kind.reason()),
        Some(Err(objection)) => objected(objection.reason()),
        Some(Ok(Read::Unkept(unkept))) if unkept != Unkept::Stable || !trusts => {
            objected(unkept.reason())
        }
        _ if texts::name_moment(text, seed) => objected(Unkept::Word.reason()),
        _ if rule.is_none() => (Kept::No, "no rule applies".to_owned()),
        Some(Ok(_)) => (Kept::Yes, String::new()),
        None if known.is_some() => {
            (Kept::Unknown, "the server has not been asked about it".to_owned())
        }
        None => (Kept::Unknown, "no client has run it".to_owned()),
    }
}

/// Returns whether replies to a statement are kept that its rule is for, as far as the replication
/// stream decides that.
fn promised(known: &Statement, pool: &PoolShared, rule: &CacheRule) -> (Kept, String) {
    if rule.consistency != Consistency::Commits {
        return (Kept::Yes, String::new());
    }
    let changes = &pool.protocol.place().changes;
    let verdict = known.verdict.known(pool.protocol.schema_changes());
    let functions = verdict == Some(Ok(Read::Unkept(Unkept::Stable)));
    let functions = functions.then_some(Uncovered::Functions);
    let reads = known.relations().reads();
    let uncovered = functions.or(changes.coverage(reads.iter().map(|it| it.oid)).uncovered);
    let kept = if rule.fallback_ttl.is_some() { Kept::Yes } else { Kept::No };
    match uncovered.map(Uncovered::reason) {
        Some(reason) => (kept, format!("{}: {}", reason.name, reason.text)),
        None if changes.view().state == "live" => (Kept::Yes, String::new()),
        None => {
            (kept, "stream: the replication stream is not live (SHOW CACHE CHANGES)".to_owned())
        }
    }
}

/// Returns a view of a client's session.
pub(crate) fn client_view(session: &ClientSession) -> ClientSessionView {
    ClientSessionView {
        pinned: session.pins.words(),
        statements: u32::try_from(session.statements.len()).unwrap_or(u32::MAX),
        application: application(session.settings.expected()),
        replication: Replication::word_of(session.login.replication()),
    }
}

/// Returns a view of a server's session.
pub(crate) fn server_view(session: &ServerSession) -> ServerSessionView {
    let (hits, misses) = session.statements.uses();
    ServerSessionView {
        statements: u32::try_from(session.statements.len()).unwrap_or(u32::MAX),
        statement_bytes: session.statements.bytes() as u64,
        prepare_hits: hits,
        prepare_misses: misses,
        application: application(session.settings.current()),
        replication: Replication::word_of(session.relay.map(Relay::kind)),
    }
}

fn application(settings: &Settings) -> String {
    let name = settings.get(b"application_name").unwrap_or(b"");
    String::from_utf8_lossy(name).into_owned()
}

/// Returns the rows of a pool's normalized queries.
pub(crate) fn normalized_queries(pool: &Pool) -> impl Iterator<Item = NormalizedQueryRow> {
    pool.protocol.normalized_queries.iter().map(|normalized| normalized_query_row(pool, normalized))
}

/// Returns the time that the normalized queries of a pool saved, in microseconds; negative if they
/// took longer than as sent.
pub(crate) fn time_saved_us(pool: &Pool) -> i64 {
    let variants = pool.protocol.normalized_queries.iter().flat_map(|query| &query.variants);
    variants.map(|variant| variant.comparison.saved_us).sum()
}

/// Returns the rules of the cache that apply to a pool.
pub(crate) fn cache_rules(pool: &Pool) -> impl Iterator<Item = CacheRuleRow> {
    let hints = pool.settings.cache.hints.then(|| rule_of_hint(None, Hint::default()));
    let rules = pool.settings.cache.rules.iter().cloned().chain(hints);
    rules.enumerate().map(|(place, rule)| {
        let results = pool.protocol.results.as_ref();
        let used = results.and_then(|results| results.counts(&rule.name));
        CacheRuleRow {
            database: pool.shared.database.clone(),
            user: pool.shared.user.clone(),
            place,
            rule,
            counts: used.map(|used| used.borrow().clone()).unwrap_or_default(),
        }
    })
}

/// Returns the texts of a pool whose requests were looked at.
pub(crate) fn repeats(pool: &Pool) -> impl Iterator<Item = RepeatedRow> {
    pool.protocol.repeats.iter().map(|(text, counts)| RepeatedRow {
        database: pool.shared.database.clone(),
        user: pool.shared.user.clone(),
        text: String::from_utf8_lossy(text).into_owned(),
        counts: counts.in_proportion(),
    })
}

fn normalized_query_row(pool: &Pool, normalized: &NormalizedQuery) -> NormalizedQueryRow {
    let (state, reason) = knowledge(normalized);
    let comparisons = || normalized.variants.iter().map(|variant| &variant.comparison);
    let slower = |v: &&Variant| matches!(v.stage, Stage::Never { why: Refused::Slower { .. }, .. });
    let (text, kept) = match &normalized.state {
        State::Planned(plan) => {
            let (text, spans) = (normalized.sample.text(), normalized.sample.spans());
            let mut rendered = Vec::new();
            plan.render(text, spans, &mut rendered);
            (rendered, plan.kept(text, spans).count() as u64)
        }
        State::Counted | State::Analysed(_) | State::Never(_) => {
            (normalized.sample.text().to_vec(), 0)
        }
    };
    NormalizedQueryRow {
        database: pool.shared.database.clone(),
        user: pool.shared.user.clone(),
        query: String::from_utf8_lossy(&text).into_owned(),
        protocol: if normalized.unnamed { "extended" } else { "simple" },
        state,
        reason,
        seen: normalized.seen,
        hits: comparisons().map(|comparison| comparison.hits).sum(),
        time_saved_us: comparisons().map(|comparison| comparison.saved_us).sum(),
        slow_texts: comparisons().map(TimeComparison::slow_texts).sum(),
        kept,
        demotions: normalized.variants.iter().filter(slower).count() as u64,
    }
}

/// Returns the state of a normalized query for the console: that of its most advanced variant, and
/// the reason of a refusal.
fn knowledge(normalized: &NormalizedQuery) -> (&'static str, String) {
    let plan = match &normalized.state {
        State::Counted => return ("counted", String::new()),
        State::Analysed(_) => return ("judged", String::new()),
        State::Never(reason) => return ("never", reason.name.to_owned()),
        State::Planned(_) => &normalized.variants,
    };
    let ready = plan.iter().any(|variant| matches!(variant.stage, Stage::Ready { .. }));
    let refused = plan.iter().find_map(|variant| match variant.stage {
        Stage::Never { why, .. } => Some(why.name()),
        Stage::Counted | Stage::Due | Stage::Asked { .. } | Stage::Ready { .. } => None,
    });
    match refused {
        _ if ready => ("ready", String::new()),
        Some(why) => ("refused", why),
        None => ("planned", String::new()),
    }
}
