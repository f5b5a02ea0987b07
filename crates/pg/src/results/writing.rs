//! Writing: what a server's transaction may write, until its outcome is known.
//!
//! A text that may write is noted when it is sent, with the tables that it may change as far as
//! they are known. The replies that it may make wrong are void once its transaction has ended:
//! before its client hears of that, and so before anybody can know that a kept reply is old. If the
//! server goes before, the outcome is unknown, and the commit may even come later: then nothing is
//! kept for a while.

use std::sync::Arc;

use refrain_cache::Topic;

use crate::ground::ids::Segment;
use crate::ground::schema::Schema;
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
        }
    }

    /// Returns the table with this OID and this name.
    pub(crate) fn table(&self, store: &ResultStore, oid: u32, name: String) -> Table {
        let topic = |what: &str| store.topics.topic(format!("{what} {}", self.place).as_bytes());
        let topics = [topic(&format!("table {oid}")), topic(&format!("name {name}"))];
        Table { topics, name: name.into() }
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

/// The replies that a text may make wrong.
#[derive(Debug)]
pub(crate) enum Touch {
    /// Replies that depend on these tables.
    Tables(Arc<[Topic]>),
    /// Replies that depend on any table.
    Rows,
    /// All replies: it may change the schema or rights.
    Schema,
}

/// Most lists of tables that are remembered of a transaction. One that changes more may change any.
const TABLES_MAX: usize = 32;

/// A transaction that may write.
#[derive(Debug)]
pub(crate) struct Writing {
    store: Arc<ResultStore>,
    topics: DatabaseTopics,
    /// The last segment that may write.
    segment: Segment,
    /// The tables that it may change, if that is known of all its texts.
    tables: Vec<Arc<[Topic]>>,
    /// Whether it may change any table.
    rows: bool,
    /// Whether it may change the schema or rights.
    schema: bool,
    /// The schema, and the count of its changes as of which the tables were found.
    of: (Arc<Schema>, u64),
    over: bool,
}

impl Writing {
    /// Begins with a text of this segment.
    pub(crate) fn new(
        store: &Arc<ResultStore>,
        topics: &DatabaseTopics,
        schema: &Arc<Schema>,
        segment: Segment,
    ) -> Self {
        Self {
            store: store.clone(),
            topics: topics.clone(),
            segment,
            tables: Vec::new(),
            rows: false,
            schema: false,
            of: (schema.clone(), schema.schema_changes()),
            over: false,
        }
    }

    /// Adds a text of this segment.
    pub(crate) fn add(&mut self, segment: Segment, touch: Touch) {
        self.segment = segment;
        match touch {
            Touch::Tables(tables) => {
                let known = self.tables.iter().any(|known| Arc::ptr_eq(known, &tables));
                self.rows |= self.tables.len() == TABLES_MAX;
                if !known && !self.rows {
                    self.tables.push(tables);
                }
            }
            Touch::Rows => self.rows = true,
            Touch::Schema => self.schema = true,
        }
    }

    /// Calls `each` with the topics of what the transaction may have made wrong.
    fn for_each_topic(&self, each: impl Fn(&Topic)) {
        let (schema, as_of) = &self.of;
        // Its texts may have run under another schema than that under which the tables were found:
        // another trigger, say. The change may have been committed though it is not counted yet.
        let outdated = schema.is_being_defined() || schema.schema_changes() != *as_of;
        if self.schema {
            each(&self.topics.schema);
        }
        each(&self.topics.every_write);
        if self.schema || self.rows || outdated {
            each(&self.topics.writes);
        }
        self.tables.iter().flat_map(|tables| tables.iter()).for_each(each);
    }

    /// Voids what the transaction may have made wrong.
    pub(crate) fn void(&self) {
        self.for_each_topic(Topic::void);
    }

    /// Ends the transaction, as far as its texts are in segments that are over. True if they all
    /// are.
    pub(crate) fn end(&mut self, is_over: impl Fn(Segment) -> bool) -> bool {
        self.void();
        self.over = is_over(self.segment);
        self.over
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if !self.over {
            self.for_each_topic(|topic| self.store.doubt(topic));
        }
    }
}
