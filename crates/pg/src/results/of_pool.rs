//! PoolResults: the rules of a pool on one core, and what follows from them for each statement.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use refrain_cache::{Seed, Terms, TopicSet};
use refrain_config::{CacheRule, PoolRule};
use refrain_pool::Now;
use refrain_pool::settings::PoolSettings;
use refrain_sql::hint::{self, Hint};
use refrain_sql::moments::Suspects;
use refrain_sql::reads::{Unkept, may_be_read};

use crate::ground::stats::RuleCounts;
use crate::reads::question::oids;
use crate::results::changes::{Coverage, Uncovered};
use crate::results::places::Place;
use crate::results::rule::{Asks, Promise, Rule};
use crate::results::store::{ResultStore, text_topic};
use crate::results::texts::{self, Seen, TextStatement, TextStatements};
use crate::results::topics::flush_topic;
use crate::settings::session::Settings;
use crate::statements::of_core::CachedStatement;
use crate::statements::of_server::IdHasher;
use crate::statements::statement::Statement;
use crate::statements::verdict::Read;

/// The name under which replies are counted that are kept by a hint alone.
pub(crate) const HINT: &str = "hint";
/// Most statements whose plans are remembered.
const PLANS_MAX: usize = 16 * 1024;

/// The reason why a reply is neither looked for nor kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bypass {
    /// The input is not one whole segment that only runs statements.
    Form,
    /// The session has state of its own, or its settings are not known.
    Session,
    /// No rule applies to the statement, or not the same to all statements.
    Rule,
    /// Whether the statement is a read is not known yet.
    Unknown,
    /// The statement is no read, or does not mean the same at any time.
    Statement,
    /// A value names the present moment.
    Moment,
    /// The session wants none (`refrain.cache`).
    Unwanted,
    /// No server has confirmed the client's login yet.
    Login,
    /// It is not proven that all commits have been heard of that the rule wants.
    Unproven,
    /// A table is not known to be in the replication stream.
    Uncovered,
}

/// How the replies to a statement are kept.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rule: Rc<Rule>,
    pub(crate) topics: Arc<TopicSet>,
    /// The number of the statement, of its text and the types of its parameters.
    pub(crate) number: u64,
    /// The parameters that may name the present moment.
    pub(crate) suspects: Suspects,
    /// Whether the tables are in the replication stream, if the rule depends on that.
    pub(crate) coverage: Option<Coverage>,
}

/// A request, as far as it decides how the reply is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) schema_changes: u64,
    /// The number of the text if the statement stands for texts with other literals too, and the
    /// hint of the one that is asked for.
    pub(crate) text: Option<(u64, Option<&'a [u8]>)>,
    /// The client's settings.
    pub(crate) settings: &'a Settings,
    /// The number of the application's name.
    pub(crate) application: u64,
}

/// The number of a statement, and what else decides how the replies to it are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PlanKey {
    statement: u64,
    /// Whether it stands for texts with other literals too. A client may prepare the very text that
    /// stands for others: then its literals are fixed.
    is_text: bool,
    /// Whether it calls functions that have to be trusted.
    trusted: bool,
    /// The number of the application's name, if a rule looks at it.
    application: u64,
    /// The number of the text's hint, if texts have hints.
    hint: u64,
}

impl Hash for PlanKey {
    /// Mixes the numbers, which are spread well already: most keys differ in the statement alone.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let kind = u64::from(self.is_text) | u64::from(self.trusted) << 1;
        let others = self.application.rotate_left(20) ^ self.hint.rotate_left(40);
        state.write_u64((self.statement << 2 | kind) ^ others);
    }
}

/// How the replies to a statement are kept, as long as it reads the same tables.
#[derive(Debug)]
struct Planned {
    readings: u64,
    plan: Result<Rc<Plan>, Bypass>,
}

/// The rules of a pool on one core.
#[derive(Debug)]
pub(crate) struct PoolResults {
    /// The settings of which the rules are.
    settings: Arc<PoolSettings>,
    store: Arc<ResultStore>,
    seed: Seed,
    place: Arc<Place>,
    rules: Vec<Rc<Rule>>,
    /// The counts of replies that are kept by a hint alone.
    hinted: Rc<RefCell<RuleCounts>>,
    /// Whether rules look at the application's name.
    by_application: bool,
    /// Whether a rule trusts functions of users.
    trusts: bool,
    plans: HashMap<PlanKey, Planned, BuildHasherDefault<IdHasher>>,
    /// The statements that stand for query strings.
    pub(crate) texts: TextStatements,
}

impl PoolResults {
    /// Makes the rules of a pool with these settings. Those that `before` has too go on counting.
    #[cold]
    pub(crate) fn new(
        settings: Arc<PoolSettings>,
        store: &Arc<ResultStore>,
        seed: &Seed,
        place: &Arc<Place>,
        before: Option<&Self>,
    ) -> Self {
        let rules = settings.cache.rules.iter().map(|rule| {
            let known = before.and_then(|before| before.counts(&rule.name));
            let counts = known.cloned().unwrap_or_default();
            Rc::new(Rule::new(store, seed, rule, &settings, &place.topics, counts))
        });
        let rules: Vec<_> = rules.collect();
        Self {
            hinted: before.map(|before| before.hinted.clone()).unwrap_or_default(),
            by_application: rules.iter().any(|rule| rule.conditions().look_at_application()),
            trusts: rules.iter().any(|rule| rule.trusts),
            rules,
            settings,
            store: store.clone(),
            seed: seed.clone(),
            place: place.clone(),
            plans: HashMap::default(),
            texts: TextStatements::default(),
        }
    }

    /// Whether the rules are those of these settings: a reload may have replaced them.
    #[inline]
    pub(crate) fn is_of(&self, settings: &Arc<PoolSettings>) -> bool {
        Arc::ptr_eq(&self.settings, settings)
    }

    /// Returns the counts of the rule of this name, or of the hints.
    pub(crate) fn counts(&self, name: &str) -> Option<&Rc<RefCell<RuleCounts>>> {
        let rule = self.rules.iter().find(|rule| rule.name() == name);
        rule.map(|rule| rule.counts()).or((name == HINT).then_some(&self.hinted))
    }

    /// Whether nothing is kept of a text that has no hint.
    #[inline]
    pub(crate) fn needs_hint(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether texts may have hints.
    #[inline]
    pub(crate) fn takes_hints(&self) -> bool {
        self.settings.cache.hints
    }

    /// Returns the cache.
    pub(crate) fn store(&self) -> &ResultStore {
        &self.store
    }

    /// Returns the count of possible changes of the schema.
    pub(crate) fn schema_changes(&self) -> u64 {
        self.place.schema.schema_changes()
    }

    /// Returns the number of the database.
    pub(crate) fn place(&self) -> u64 {
        self.place.topics.place
    }

    /// Remembers the statement that stands for a text.
    pub(crate) fn add_text(
        &mut self,
        seen: Seen<'_>,
        cached: Rc<CachedStatement>,
    ) -> TextStatement {
        self.texts.add(&self.store, seen, cached)
    }

    /// Returns how the replies to a statement are kept.
    #[inline]
    pub(crate) fn plan(
        &mut self,
        cached: &CachedStatement,
        about: About<'_>,
    ) -> Result<Rc<Plan>, Bypass> {
        let statement = &cached.statement;
        let timeless = statement.verdict.is_timeless(about.schema_changes);
        if !(timeless || self.trusts && calls_functions(statement, about.schema_changes)) {
            return Err(why_not(cached, about.schema_changes));
        }
        let hint = about.text.and_then(|(_, hint)| hint);
        let key = PlanKey {
            statement: statement.id,
            is_text: about.text.is_some(),
            trusted: !timeless,
            application: if self.by_application { about.application } else { 0 },
            hint: hint.map_or(0, |hint| self.store.numbers.number(&[b"hint ", hint].concat())),
        };
        let readings = statement.readings();
        match self.plans.get(&key) {
            Some(planned) if planned.readings == readings => return planned.plan.clone(),
            _ => {}
        }
        let plan = self.make(statement, !timeless, about);
        if self.plans.len() >= PLANS_MAX {
            self.plans.clear();
        }
        self.plans.insert(key, Planned { readings, plan: plan.clone() });
        plan
    }

    #[cold]
    fn make(
        &self,
        statement: &Statement,
        trusted: bool,
        about: About<'_>,
    ) -> Result<Rc<Plan>, Bypass> {
        let store = &self.store;
        let (canonical, reads) =
            (texts::canonical_of(&self.seed, statement.text()), statement.relations().reads());
        let asks = Asks {
            canonical: &canonical,
            reads: Some(&reads),
            application: Some(about.settings.get(b"application_name").unwrap_or_default()),
        };
        let rule = self.rules.iter().find(|rule| rule.conditions().hold(&asks));
        let text = about.text.map_or(Some(statement.text()), |(_, hint)| hint);
        let rule = self.hinted(rule, text).or(rule.cloned()).ok_or(Bypass::Rule)?;
        if if trusted { !rule.trusts } else { statement.scan.calls > 0 } {
            return Err(Bypass::Statement);
        }
        let of_statement = || store.numbers.number(&[b"statement ", statement.tail()].concat());
        let mut topics = rule.topics.clone();
        topics.push(store.topics.topic(&text_topic(&canonical)));
        if rule.all_writes {
            topics.extend(reads.iter().flat_map(|table| table.topics.clone()));
            topics.extend(statement.relations().above().iter().cloned());
            // Nobody knows which tables a function reads.
            topics.extend(trusted.then(|| self.place.topics.every_write.clone()));
        } else {
            topics.extend(reads.iter().map(|table| flush_topic(store, table)));
        }
        let number = about.text.map_or_else(of_statement, |(number, _)| number);
        let topics = store.topics.set(topics, &rule.account);
        let suspects = Suspects::of(oids(statement.parameters()), true);
        let coverage = matches!(rule.promise, Promise::Commits { .. }).then(|| {
            let coverage = self.place.changes.coverage(reads.iter().map(|table| table.oid));
            let functions = trusted.then_some(Uncovered::Functions);
            Coverage { uncovered: functions.or(coverage.uncovered), ..coverage }
        });
        Ok(Rc::new(Plan { rule, topics, number, suspects, coverage }))
    }

    /// Returns how the reply to several statements is kept: by the rule that applies to all of
    /// them. `None` if there is no such rule.
    pub(crate) fn plan_of_several(&self, plans: &[Rc<Plan>]) -> Option<Rc<Plan>> {
        let (first, others) = plans.split_first()?;
        if !others.iter().all(|plan| Rc::ptr_eq(&plan.rule, &first.rule)) {
            return None;
        }
        let topics = plans.iter().flat_map(|plan| plan.topics.topics()).cloned().collect();
        let topics = self.store.topics.set(topics, &first.rule.account);
        let coverages = plans.iter().filter_map(|plan| plan.coverage);
        let coverage = coverages.reduce(|one, other| Coverage {
            version: one.version.min(other.version),
            uncovered: one.uncovered.or(other.uncovered),
        });
        Some(Rc::new(Plan { topics, coverage, ..Plan::clone(first) }))
    }

    /// Looks whether the replies of a plan may be given, as far as the replication stream decides
    /// that. Shortens the terms if they may be given for another time only.
    ///
    /// # Errors
    /// Why they may not.
    pub(crate) fn look_at_changes(
        &mut self,
        plan: &Plan,
        now: Now,
        terms: &mut Terms,
    ) -> Result<(), Bypass> {
        let Promise::Commits { staleness, fallback } = plan.rule.promise else { return Ok(()) };
        let changes = &self.place.changes;
        changes.note_use(now);
        let coverage = plan.coverage.filter(|it| it.version == changes.version());
        let why = match coverage {
            None => {
                // The next request finds out what is covered now.
                self.plans.clear();
                Bypass::Uncovered
            }
            Some(Coverage { uncovered: Some(_), .. }) => Bypass::Uncovered,
            // The topics are looked at behind this: what is proven has voided them.
            Some(_) if changes.are_proven(now, staleness) => return Ok(()),
            Some(_) => Bypass::Unproven,
        };
        let fallback = fallback.ok_or(why)?;
        terms.ttl = terms.ttl.min(fallback);
        terms.empty_ttl = terms.empty_ttl.min(fallback);
        (terms.stale, terms.if_error) = (0, 0);
        Ok(())
    }

    /// Returns the rule that a text's hint makes of the one that applies.
    fn hinted(&self, rule: Option<&Rc<Rule>>, text: Option<&[u8]>) -> Option<Rc<Rule>> {
        let hint = text.filter(|_| self.takes_hints()).and_then(hint::hint)?.ok()?;
        let base = rule.and_then(|rule| {
            self.settings.cache.rules.iter().find(|configured| configured.name == rule.name())
        });
        let made = rule_of_hint(base, hint);
        let counts = rule.map_or(&self.hinted, |rule| rule.counts()).clone();
        let (store, seed, settings) = (&self.store, &self.seed, &self.settings);
        Some(Rc::new(Rule::new(store, seed, &made, settings, &self.place.topics, counts)))
    }
}

/// Returns the rule that a hint makes of the one that applies.
pub(crate) fn rule_of_hint(base: Option<&PoolRule>, hint: Hint) -> PoolRule {
    let own = || PoolRule { name: HINT.to_owned(), quota: 0, rule: CacheRule::default() };
    let mut made = base.cloned().unwrap_or_else(own);
    let of = &mut made.rule;
    (of.ttl, of.empty_ttl) = (hint.ttl.unwrap_or(of.ttl), hint.ttl.or(of.empty_ttl));
    of.stale_while_revalidate = hint.swr.or(of.stale_while_revalidate);
    of.tags.extend(hint.tags);
    made
}

/// Whether all that keeps a read from being timeless is that it calls functions of users, which are
/// not volatile.
fn calls_functions(statement: &Statement, schema_changes: u64) -> bool {
    statement.verdict.known(schema_changes) == Some(Ok(Read::Unkept(Unkept::Stable)))
}

/// Returns the reason why a statement is not known to be a read that is timeless.
#[cold]
fn why_not(cached: &CachedStatement, schema_changes: u64) -> Bypass {
    let undecided = cached.statement.verdict.known(schema_changes).is_none();
    if undecided && may_be_read(&cached.statement.scan) {
        Bypass::Unknown
    } else {
        Bypass::Statement
    }
}
