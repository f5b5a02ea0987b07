//! The result cache: its memory, and the rules that say which replies it keeps.

use std::time::Duration;

use crate::pattern::Pattern;
use crate::table::table;
use crate::value::{Percent, choice};

choice! {
    /// Writes after which a kept reply is not given any more.
    Consistency {
        /// None: a reply is given until its time is over.
        Ttl = "ttl",
        /// Writes of the client that asks.
        Session = "session",
        /// All writes that pass through Refrain, before the writer hears of its commit.
        Writes = "writes",
        /// The same, and all commits that the replication stream of the database has, whoever
        /// made them.
        Commits = "commits",
    }
}

/// The result cache.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Cache {
    /// Options of the cache as a whole.
    pub options: CacheOptions,
    /// The rules, in order: the first that matches counts.
    pub rules: Vec<CacheRule>,
}

table! {
    /// Options of the result cache as a whole.
    pub struct CacheOptions;

    /// Memory that kept replies take at most, with all that the cache needs for them.
    ///
    /// A change drops all kept replies.
    memory: usize = "64MiB" ["1MiB" to "1024GiB"],
        Reload, takes ["1GiB"], not ["1KiB", "unlimited"];

    /// Whether a text may say itself that its reply is kept, by a hint in its first comment.
    ///
    /// `/* refrain: ttl=5s swr=30s tag=shop */ select …` keeps the reply for that `ttl`, with that
    /// time of `stale_while_revalidate` and that tag. What a hint does not say is as in the rule
    /// that applies, or else the default of a rule.
    hints: bool = "false",
        Reload, takes ["true"], not ["yes", "1"];
}

table! {
    /// A rule: which replies are kept, and for how long.
    pub struct CacheRule;

    /// Name of the rule, for the console and the metrics; the default is its number.
    name: Option<String>,
        Reload, takes ["products"], not [];

    /// Database, as clients name it, to which the rule applies; the default is every database.
    database: Option<String>,
        Reload, takes ["shop"], not [];

    /// User to whom the rule applies; the default is every user.
    user: Option<String>,
        Reload, takes ["app"], not [];

    /// `application_name` of the clients to whom the rule applies; the default is any.
    application_name: Option<String>,
        Reload, takes ["report"], not [];

    /// Text of the statements to which the rule applies; the default is every statement.
    ///
    /// The text is compared without its literals: `select * from t where id = 1` stands for the
    /// same statement with any other number as well.
    statement: Option<String>,
        Reload, takes ["select 1"], not [];

    /// Regular expression that describes a part of the statements' texts to which the rule applies.
    ///
    /// The syntax is that of Rust's regex crate. A query string is compared without its comments,
    /// and with 0, 0.5 or '' in place of its literals: Refrain decides once for all texts that
    /// differ only in those.
    regex: Option<Pattern>,
        Reload, takes ["(?i)from prices"], not ["("];

    /// Table that the statements read to which the rule applies; the default is any, or none.
    ///
    /// The name may have a schema: `public.prices`. Without one, it stands for the tables of that
    /// name in all schemas. A statement that reads the table through a view reads it as well.
    table: Option<String>,
        Reload, takes ["prices"], not [];

    /// Time for which a reply is given to others, from its request on.
    ttl: Duration = "1min" ["1ms" to "365d"],
        Reload, takes ["250ms", "1d"], not ["0s", "never", "60"];

    /// Time for which a reply without rows is given.
    ///
    /// With `never` it has no time of its own, and is given for `ttl` as well.
    empty_ttl: Option<Duration> = "never" ["1ms" to "365d"],
        Reload, takes ["1s"], not ["0s", "60"];

    /// Time beyond `ttl` for which a reply is still given while another is being fetched.
    ///
    /// With `never` there is no such time: no reply is given beyond `ttl`.
    ///
    /// When the time is over, the next request makes Refrain fetch another on a server of the pool,
    /// and nobody waits for it. A reply that a write or a flush has voided is never given.
    stale_while_revalidate: Option<Duration> = "never" ["1ms" to "365d"],
        Reload, takes ["30s"], not ["0s", "60"];

    /// Time beyond `ttl` for which a reply is still given if no other can be fetched.
    ///
    /// With `never` there is no such time: no reply is given beyond `ttl`.
    ///
    /// That is so if the database is down, has no room for the query, or takes longer than five
    /// seconds. The first client that asks waits until that is known. A reply that a write or a
    /// flush has voided is never given, nor one in place of an error of the query itself.
    stale_if_error: Option<Duration> = "never" ["1ms" to "365d"],
        Reload, takes ["1h"], not ["0s", "60"];

    /// Random part by which the time may be shorter.
    ///
    /// Without it, replies that were fetched together would have to be fetched again together.
    jitter: Percent = "10%" ["0%" to "90%"],
        Reload, takes ["0%", "50%"], not ["0.1", "100%"];

    /// Bytes of a reply that is kept, at most; longer ones pass without delay.
    ///
    /// No reply is kept that takes more than a 64th of the cache's `memory`, or a 16th of the
    /// rule's.
    max_result_size: usize = "256KiB" ["64B" to "64MiB"],
        Reload, takes ["1MiB"], not ["1B", "unlimited"];

    /// Memory that the replies of this rule take at most.
    memory: Option<usize> = "unlimited" ["64KiB" to "1024GiB"],
        Reload, takes ["8MiB"], not ["1KiB"];

    /// Writes after which a reply is not given any more.
    ///
    /// `writes`: all that pass through Refrain to the same database, before the writer hears of its
    /// commit. `session`: those of the client that asks, so that each client reads what it has
    /// written. `ttl`: none. Refrain does not see writes that go to the database by other ways.
    /// `commits`: as `writes`, and all commits that were acknowledged `max_staleness` ago, whoever
    /// made them. It needs `changes` of the database.
    consistency: Consistency = "writes",
        Reload, takes ["session", "ttl", "commits"], not ["none"];

    /// Time after a commit for which a reply from before may be given, where `consistency` is
    /// `commits`.
    ///
    /// It is the greatest age of a proof: a reply is given only if Refrain has heard of all commits
    /// that were acknowledged this long ago.
    max_staleness: Duration = "1s" ["10ms" to "1h"],
        Reload, takes ["100ms", "1min"], not ["1ms", "never", "5"];

    /// Time for which a reply is given where Refrain cannot prove what `commits` promises.
    ///
    /// That is so while the replication stream is lost or behind, and for tables that the stream
    /// lacks. With `never`, such requests go to the server.
    fallback_ttl: Option<Duration> = "never" ["1ms" to "365d"],
        Reload, takes ["5s"], not ["0s", "5"];

    /// Whether replies are kept of statements that call functions of the database's users.
    ///
    /// Refrain does not see what such a function reads. Set this if all of them that are not
    /// volatile read tables and their arguments alone, and neither the time nor the session. With
    /// `writes`, every write to the database voids such a reply.
    trust_stable_functions: bool = "false",
        Reload, takes ["true"], not ["yes", "1"];

    /// Name of a group of users who get each other's replies.
    ///
    /// The default is that only clients whose servers log in as the same user do. Users of one
    /// group must have the same rights and the same default settings.
    share_group: Option<String>,
        Reload, takes ["readers"], not [];

    /// Tags by which replies can be dropped together.
    tags: Vec<String> = "",
        Reload, takes ["catalog, prices"], not [];
}

/// The rules that apply to a user of a database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolCache {
    /// Whether there are rules for anybody, so that writes have to be noted.
    pub is_on: bool,
    /// Whether texts may have hints.
    pub hints: bool,
    /// The rules, in order.
    pub rules: Vec<PoolRule>,
}

/// A rule as it applies to a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolRule {
    /// Its name, or else its number.
    pub name: String,
    /// The number of its own quota of memory, from 1; zero if it has none.
    pub quota: u16,
    /// The rule as configured.
    pub rule: CacheRule,
}

impl PoolCache {
    /// Whether replies may be kept.
    pub fn keeps(&self) -> bool {
        self.hints || !self.rules.is_empty()
    }

    /// Whether a rule depends on the replication stream of the database.
    pub fn follows_changes(&self) -> bool {
        self.rules.iter().any(|rule| rule.rule.consistency == Consistency::Commits)
    }
}

impl Cache {
    /// Returns the rules that apply to a user of a database.
    pub fn of(&self, database: &str, user: &str) -> PoolCache {
        let mut quota = 0;
        let mut rules = Vec::new();
        for (number, rule) in self.rules.iter().enumerate() {
            let own = rule.memory.is_some();
            quota += u16::from(own);
            if rule.applies(database, user) {
                let name = rule.name.clone().unwrap_or_else(|| (number + 1).to_string());
                rules.push(PoolRule {
                    name,
                    quota: if own { quota } else { 0 },
                    rule: rule.clone(),
                });
            }
        }
        let hints = self.options.hints;
        PoolCache { is_on: hints || !self.rules.is_empty(), hints, rules }
    }

    /// Returns the shortest `max_staleness` of the rules that depend on the replication stream of a
    /// database, if there are any.
    pub fn max_staleness(&self, database: &str) -> Option<Duration> {
        let named = |rule: &&CacheRule| rule.database.as_deref().is_none_or(|it| it == database);
        let commits = |rule: &&CacheRule| rule.consistency == Consistency::Commits;
        let rules = self.rules.iter().filter(named).filter(commits);
        rules.map(|rule| rule.max_staleness).min()
    }

    /// Whether a rule is for this user, and not for all.
    pub(crate) fn has_rule_of(&self, user: &str) -> bool {
        self.rules.iter().any(|rule| rule.user.as_deref() == Some(user))
    }

    /// Returns the limits of memory: that of all rules without a quota, and then the quotas.
    pub fn limits(&self) -> Vec<usize> {
        let quotas = self.rules.iter().filter_map(|rule| rule.memory);
        std::iter::once(self.options.memory).chain(quotas).collect()
    }
}

impl CacheRule {
    /// Whether the rule applies to a user of a database.
    pub fn applies(&self, database: &str, user: &str) -> bool {
        let is = |wanted: &Option<String>, given: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == given)
        };
        is(&self.database, database) && is(&self.user, user)
    }
}
