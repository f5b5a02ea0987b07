//! Rule: a rule of the configuration as a pool uses it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use refrain_cache::{Account, Seed, Terms, Topic};
use refrain_config::{CacheRule, Consistency, Pattern, PoolRule};
use refrain_pool::settings::PoolSettings;

use crate::ground::stats::{RuleCounters, RuleCounts};
use crate::results::store::{ALL, Flush, ResultStore, rule_topic, tag_topic, text_topic};
use crate::results::texts;
use crate::results::topics::{DatabaseTopics, is_of_table};
use crate::statements::relations::Table;

/// Parts of a whole for [`Terms::jitter`].
const WHOLE: u32 = 1 << 16;

/// A rule.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Its name.
    name: String,
    /// Its counts. They go on when the configuration is read again.
    counts: Rc<RefCell<RuleCounts>>,
    /// The figures of its replies.
    pub(crate) account: Arc<Account>,
    /// Its times, and its part of the memory.
    pub(crate) terms: Terms,
    /// Bytes of a reply, at most.
    pub(crate) most: usize,
    /// The users who get each other's replies, as a number.
    pub(crate) whose: u64,
    /// The promise beside that of the topics.
    pub(crate) promise: Promise,
    /// Whether all clients read what anybody has written.
    pub(crate) all_writes: bool,
    /// The topics of all its replies.
    pub(crate) topics: Vec<Topic>,
    /// Whether functions of users are trusted not to show the time or the session.
    pub(crate) trusts: bool,
    applies: Applies,
}

/// The promise of a rule beside that of its topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// None.
    Nothing,
    /// A client reads what it has written.
    OwnWrites,
    /// All clients read what was committed some time ago, whoever did so.
    Commits {
        /// That time, in microseconds.
        staleness: u64,
        /// The time for which a reply is given where that cannot be proven.
        fallback: Option<u64>,
    },
}

/// The conditions under which a rule of a pool applies to a request.
#[derive(Clone, Debug)]
pub(crate) struct Applies {
    /// The text, with other literals; `None` for any.
    statement: Option<Box<[u8]>>,
    regex: Option<Pattern>,
    /// The table that a statement has to read.
    table: Option<String>,
    /// The application's name.
    application: Option<String>,
}

/// A request, as far as it decides which rule applies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks<'a> {
    /// Its text, with other literals.
    pub(crate) canonical: &'a [u8],
    /// The tables that it reads; `None` if they are not known.
    pub(crate) reads: Option<&'a [Table]>,
    /// The application's name; `None` if it may be any.
    pub(crate) application: Option<&'a [u8]>,
}

impl Applies {
    /// Returns the conditions of a rule.
    pub(crate) fn new(seed: &Seed, rule: &CacheRule) -> Self {
        let statement = rule.statement.as_ref().map(|text| texts::canonical_of(seed, text));
        let (regex, table) = (rule.regex.clone(), rule.table.clone());
        Self { statement, regex, table, application: rule.application_name.clone() }
    }

    /// Whether they hold for a request, as far as is known.
    pub(crate) fn hold(&self, asks: &Asks<'_>) -> bool {
        let read = |name: &String| {
            asks.reads.is_none_or(|reads| reads.iter().any(|table| table.is_called(name)))
        };
        let is = |name: &String| asks.application.is_none_or(|it| it == name.as_bytes());
        self.statement.as_ref().is_none_or(|statement| **statement == *asks.canonical)
            && self.regex.as_ref().is_none_or(|regex| regex.matches(asks.canonical))
            && self.table.as_ref().is_none_or(read)
            && self.application.as_ref().is_none_or(is)
    }

    /// Whether they depend on the name of the application.
    pub(crate) fn look_at_application(&self) -> bool {
        self.application.is_some()
    }
}

impl Rule {
    /// Makes a rule of a pool's settings.
    pub(crate) fn new(
        store: &ResultStore,
        seed: &Seed,
        of: &PoolRule,
        settings: &PoolSettings,
        database: &DatabaseTopics,
        counts: Rc<RefCell<RuleCounts>>,
    ) -> Self {
        let PoolRule { name, quota, rule } = of;
        let group = match &rule.share_group {
            Some(group) => format!("group {group}"),
            None => format!("user {}", settings.server.user.as_deref().unwrap_or_default()),
        };
        let mut topics = vec![
            store.topics.topic(ALL),
            store.topics.topic(rule_topic(name).as_bytes()),
            database.schema.clone(),
        ];
        let tags = rule.tags.iter().map(|tag| store.topics.topic(tag_topic(tag).as_bytes()));
        topics.extend(tags);
        let commits = rule.consistency == Consistency::Commits;
        let all_writes = rule.consistency == Consistency::Writes || commits;
        if all_writes {
            topics.push(database.writes.clone());
        }
        if commits {
            topics.push(database.changes.clone());
        }
        Self {
            name: name.clone(),
            counts,
            account: store.account(name),
            terms: terms(rule, *quota),
            most: rule.max_result_size,
            whose: store.numbers.number(group.as_bytes()),
            promise: promise(rule),
            all_writes,
            topics,
            trusts: rule.trust_stable_functions,
            applies: Applies::new(seed, rule),
        }
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns its counts.
    pub(crate) fn counts(&self) -> &Rc<RefCell<RuleCounts>> {
        &self.counts
    }

    /// Counts something that it has done.
    #[inline]
    pub(crate) fn count(&self, what: impl FnOnce(&mut RuleCounters)) {
        what(&mut self.counts.borrow_mut().counters);
    }

    /// Counts the time for which a request waited that was answered from the cache, in
    /// microseconds.
    #[inline]
    pub(crate) fn count_hit(&self, waited: u64) {
        self.counts.borrow_mut().hit_time.count(waited);
    }

    /// Returns the conditions under which it applies.
    pub(crate) fn conditions(&self) -> &Applies {
        &self.applies
    }
}

/// Voids replies. False if no reply can depend on what is to be flushed.
pub(crate) fn flush(store: &ResultStore, seed: &Seed, what: Flush<'_>) -> bool {
    let topic = match what {
        Flush::All => Some(store.topics.topic(ALL)),
        Flush::Rule(name) => store.topics.find(rule_topic(name).as_bytes()),
        Flush::Tag(tag) => store.topics.find(tag_topic(tag).as_bytes()),
        Flush::Table(name) => return store.topics.void_named(|topic| is_of_table(topic, name)),
        Flush::Statement(text) => store.topics.find(&text_topic(&texts::canonical_of(seed, text))),
    };
    topic.iter().for_each(Topic::void);
    topic.is_some()
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn promise(rule: &CacheRule) -> Promise {
    match rule.consistency {
        Consistency::Ttl | Consistency::Writes => Promise::Nothing,
        Consistency::Session => Promise::OwnWrites,
        Consistency::Commits => Promise::Commits {
            staleness: us(rule.max_staleness),
            fallback: rule.fallback_ttl.map(us),
        },
    }
}

fn terms(rule: &CacheRule, quota: u16) -> Terms {
    let percent = u32::from(rule.jitter.0);
    Terms {
        ttl: us(rule.ttl),
        empty_ttl: us(rule.empty_ttl.unwrap_or(rule.ttl)),
        stale: rule.stale_while_revalidate.map_or(0, us),
        if_error: rule.stale_if_error.map_or(0, us),
        jitter: u16::try_from(percent * WHOLE / 100).unwrap_or(u16::MAX),
        queue: quota,
        since: 0,
        waited: 0,
    }
}
