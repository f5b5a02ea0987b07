//! PoolResults: the rules of a pool on one core, and what follows from them for each statement.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;

use refrain_cache::{Seed, TopicSet};
use refrain_pool::settings::PoolSettings;
use refrain_sql::moments::Suspects;
use refrain_sql::reads::may_be_read;

use crate::reads::question::oids;
use crate::results::rule::Rule;
use crate::results::store::{ResultStore, text_topic};
use crate::results::texts::{self, Seen, TextStatement, TextStatements};
use crate::results::writing::{DatabaseTopics, flush_topic};
use crate::statements::of_core::CachedStatement;
use crate::statements::of_server::IdHasher;
use crate::statements::statement::Statement;

/// Most statements whose plans are remembered.
const PLANS_MAX: usize = 16 * 1024;

/// The reason why a reply is neither looked for nor kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bypass {
    /// The input is not one whole segment that runs one statement.
    Form,
    /// The session has state of its own, or its settings are not known.
    Session,
    /// No rule applies to the statement.
    Rule,
    /// Whether the statement is a read is not known yet.
    Unknown,
    /// The statement is no read, or does not mean the same at any time.
    Statement,
    /// A value names the present moment.
    Moment,
    /// The session wants none (`refrain.cache`).
    Unwanted,
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
    place: u64,
    rules: Vec<Rc<Rule>>,
    plans: HashMap<u64, Planned, BuildHasherDefault<IdHasher>>,
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
        database: &DatabaseTopics,
        before: Option<&Self>,
    ) -> Self {
        let rules = settings.cache.rules.iter().map(|rule| {
            let known = before.and_then(|before| before.rule(&rule.name));
            let counters = known.map(|known| known.counters().clone()).unwrap_or_default();
            Rc::new(Rule::new(store, seed, rule, &settings, database, counters))
        });
        Self {
            rules: rules.collect(),
            settings,
            store: store.clone(),
            seed: seed.clone(),
            place: database.place,
            plans: HashMap::default(),
            texts: TextStatements::default(),
        }
    }

    /// Whether the rules are those of these settings: a reload may have replaced them.
    #[inline]
    pub(crate) fn is_of(&self, settings: &Arc<PoolSettings>) -> bool {
        Arc::ptr_eq(&self.settings, settings)
    }

    /// Returns the rule of this name.
    pub(crate) fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().map(Rc::as_ref).find(|rule| rule.name() == name)
    }

    /// Returns the cache.
    pub(crate) fn store(&self) -> &ResultStore {
        &self.store
    }

    /// Returns the number of the database.
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// Remembers the statement that stands for a text.
    pub(crate) fn add_text(
        &mut self,
        seen: Seen<'_>,
        cached: Rc<CachedStatement>,
    ) -> TextStatement {
        self.texts.add(&self.store, seen, cached)
    }

    /// Returns how the replies to a statement are kept, as of this count of schema changes. `text`
    /// is the number of the text if the statement stands for texts with other literals too.
    #[inline]
    pub(crate) fn plan(
        &mut self,
        cached: &CachedStatement,
        schema_changes: u64,
        text: Option<u64>,
    ) -> Result<Rc<Plan>, Bypass> {
        let statement = &cached.statement;
        if !statement.verdict.is_timeless(schema_changes) {
            return Err(why_not(cached, schema_changes));
        }
        // A client may prepare the very text that stands for others: then its literals are fixed.
        let id = 2 * statement.id + u64::from(text.is_some());
        let readings = statement.relations.readings();
        match self.plans.get(&id) {
            Some(planned) if planned.readings == readings => return planned.plan.clone(),
            _ => {}
        }
        let plan = self.make(statement, text);
        if self.plans.len() >= PLANS_MAX {
            self.plans.clear();
        }
        self.plans.insert(id, Planned { readings, plan: plan.clone() });
        plan
    }

    #[cold]
    fn make(&self, statement: &Statement, text: Option<u64>) -> Result<Rc<Plan>, Bypass> {
        let store = &self.store;
        let number = text.unwrap_or_else(|| texts::number(store, &self.seed, statement.text()));
        let reads = statement.relations.reads();
        let applies = |rule: &&Rc<Rule>| rule.applies(number, &reads);
        let rule = self.rules.iter().find(applies).ok_or(Bypass::Rule)?;
        if statement.scan.calls > 0 {
            return Err(Bypass::Statement);
        }
        let of_statement = || store.numbers.number(&[b"statement ", &*statement.tail].concat());
        let mut topics = rule.topics.clone();
        topics.push(store.topics.topic(text_topic(number).as_bytes()));
        if rule.all_writes {
            topics.extend(reads.iter().flat_map(|table| table.topics.clone()));
        } else {
            topics.extend(reads.iter().map(|table| flush_topic(store, table)));
        }
        let number = if text.is_some() { number } else { of_statement() };
        let topics = store.topics.set(topics);
        let suspects = Suspects::of(oids(statement.parameters()), true);
        Ok(Rc::new(Plan { rule: rule.clone(), topics, number, suspects }))
    }
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
