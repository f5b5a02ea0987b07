//! Checks that the databases of rules of the cache have what the rules promise by.

use crate::cache::{CacheRule, Consistency};
use crate::database::{Backend, Changes, Database};
use crate::value::Entry;

/// Returns the keys of a rule that cannot be kept, with the errors. `given` are the keys that the
/// file has.
pub(crate) fn broken(
    rule: &CacheRule,
    given: &[Entry],
    databases: &[Database],
) -> Vec<(&'static str, String)> {
    let named = |it: &&Database| rule.database.as_deref().is_none_or(|name| it.name == name);
    let mut meant = databases.iter().filter(named).peekable();
    // A look into SQLite costs no more than one into the cache.
    let is_cached = |it: &Database| it.server.backend == Backend::Postgres;
    if meant.peek().is_some() && !meant.any(is_cached) {
        let message = "applies to databases of SQLite or MySQL, whose replies are not cached";
        return vec![("database", message.to_owned())];
    }
    if rule.consistency == Consistency::Commits {
        let message = lacking(rule, databases).map(|name| match name {
            Database::ANY => {
                "is \"commits\": name a database in the rule, and set changes = \"replication\" \
                 under [databases.NAME] for it"
                    .to_owned()
            }
            name => format!(
                "is \"commits\": set changes = \"replication\" under [databases.{name}], or name \
                 another database in the rule"
            ),
        });
        return message.map(|message| ("consistency", message)).into_iter().collect();
    }
    let own = ["max_staleness", "fallback_ttl"].into_iter();
    let set = own.filter(|name| given.iter().any(|entry| entry.name == *name));
    set.map(|name| (name, "is for rules with consistency = \"commits\"".to_owned())).collect()
}

/// Returns the name of a database to which a rule applies and whose changes are not followed.
fn lacking<'a>(rule: &'a CacheRule, databases: &'a [Database]) -> Option<&'a str> {
    let named = |it: &&Database| rule.database.as_deref().is_none_or(|name| it.name == name);
    let mut meant = databases.iter().filter(named).peekable();
    if meant.peek().is_none() {
        return rule.database.as_deref();
    }
    let lacks = |it: &&Database| {
        it.server.backend == Backend::Postgres && it.server.changes.by == Changes::Off
    };
    meant.find(lacks).map(|it| it.name.as_str())
}
