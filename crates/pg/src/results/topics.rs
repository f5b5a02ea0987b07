//! The topics of a database and of its tables, and their names.

use refrain_cache::Topic;

use crate::results::store::ResultStore;
use crate::statements::relations::{Table, is_called};

/// The topics of one database. Each of its tables has one as well.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseTopics {
    /// The database, as a number.
    pub(crate) place: u64,
    /// Every write that may change any table.
    pub(crate) writes: Topic,
    /// Every write, whichever tables it may change.
    pub(crate) every_write: Topic,
    /// Every change of its schema or of rights in it, and every flush.
    pub(crate) schema: Topic,
    /// Every change of what decides who may log in.
    pub(crate) roles: Topic,
    /// Every begin of its replication stream.
    pub(crate) changes: Topic,
}

impl DatabaseTopics {
    /// Makes the topics of the database at this place.
    pub(crate) fn new(store: &ResultStore, place: &str) -> Self {
        let named = |kind: &str| store.topics.topic(format!("{kind} {place}").as_bytes());
        Self {
            place: store.numbers.number(format!("place {place}").as_bytes()),
            writes: named("writes"),
            every_write: named("every write"),
            schema: named("schema"),
            roles: named("roles"),
            changes: named("changes"),
        }
    }
}

/// Returns the topic of replies that read a table, but do not depend on the writes to it: they are
/// void by a flush alone.
pub(crate) fn flush_topic(store: &ResultStore, table: &Table) -> Topic {
    store.topics.topic(format!("flush {}", table.name).as_bytes())
}

/// Returns the name of the table whose topic has this name, if it is one that replies read.
pub(crate) fn table_of(topic: &str) -> Option<&str> {
    // The number of the database stands behind the name.
    let written = topic.strip_prefix("name ").and_then(|named| named.rsplit_once(' '));
    written.map(|(name, _)| name).or_else(|| topic.strip_prefix("flush "))
}

/// Whether the topic of this name is that of a table of that name, in whatever database.
pub(crate) fn is_of_table(topic: &[u8], table: &str) -> bool {
    let topic = std::str::from_utf8(topic).ok();
    topic.and_then(table_of).is_some_and(|name| is_called(name, table))
}
