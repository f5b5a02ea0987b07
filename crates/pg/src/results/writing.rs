//! Writing: what a server's transaction may write, until its outcome is known.
//!
//! A text that may write is noted when it is sent, with the tables that it may change as far as
//! they are known. From the moment when a text is sent that may commit the write until the server
//! has answered it, the replies that the write may make wrong are in doubt: none is given, and none
//! that is asked for in that time is kept. For PostgreSQL itself may tell others of the commit
//! before it tells Refrain: by a notification, a lock that is free, a key that is there. If the
//! server goes before it answers, the outcome is unknown, and the commit may even come later: then
//! nothing is kept for a while.

use std::sync::Arc;

use refrain_cache::{Bug, Topic};

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

impl Touch {
    /// Whether it is the same as another.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tables(own), Self::Tables(other)) => Arc::ptr_eq(own, other),
            (Self::Rows, Self::Rows) | (Self::Schema, Self::Schema) => true,
            _ => false,
        }
    }

    /// Calls `each` with the topics of the replies.
    fn for_each_topic(&self, database: &DatabaseTopics, each: impl Fn(&Topic)) {
        each(&database.every_write);
        match self {
            Self::Tables(tables) => tables.iter().for_each(each),
            Self::Rows => each(&database.writes),
            Self::Schema => [&database.writes, &database.schema].into_iter().for_each(each),
        }
    }
}

/// Most lists of tables that are remembered of a transaction. One that changes more may change any.
const TABLES_MAX: usize = 32;

/// A write of a transaction.
#[derive(Debug)]
struct Noted {
    touch: Touch,
    /// The last segment that may make it, or may commit it.
    segment: Segment,
    /// Whether a text has been sent that may commit it.
    in_doubt: bool,
}

/// A transaction that may write.
#[derive(Debug)]
pub(crate) struct Writing {
    store: Arc<ResultStore>,
    topics: DatabaseTopics,
    noted: Vec<Noted>,
    /// The schema, and the count of its changes as of which the tables were found.
    of: (Arc<Schema>, u64),
}

impl Writing {
    /// Begins a transaction without writes.
    pub(crate) fn new(
        store: &Arc<ResultStore>,
        topics: &DatabaseTopics,
        schema: &Arc<Schema>,
    ) -> Self {
        let of = (schema.clone(), schema.schema_changes());
        Self { store: store.clone(), topics: topics.clone(), noted: Vec::new(), of }
    }

    /// Adds a write of a text of this segment. `stays` says that nothing can commit it but a text
    /// that comes later.
    pub(crate) fn add(&mut self, segment: Segment, touch: Touch, stays: bool) {
        let full = self.noted.len() >= TABLES_MAX;
        let touch = if full && matches!(touch, Touch::Tables(_)) { Touch::Rows } else { touch };
        let place = self.noted.iter().position(|noted| noted.touch.is(&touch));
        let place = place.unwrap_or_else(|| {
            self.noted.push(Noted { touch, segment, in_doubt: false });
            self.noted.len() - 1
        });
        self.noted[place].segment = segment;
        if !stays && !self.is_late() {
            self.noted[place].begin_doubt(&self.topics);
        }
    }

    /// Notes that a text of this segment is sent that may commit what was written so far.
    pub(crate) fn may_commit(&mut self, segment: Segment) {
        let late = self.is_late();
        for noted in &mut self.noted {
            noted.segment = segment;
            if !late {
                noted.begin_doubt(&self.topics);
            }
        }
    }

    /// Whether replies are void when the server answers, which is a bug of the simulator's.
    fn is_late(&self) -> bool {
        self.store.cache.has(Bug::LateVoid)
    }

    /// Ends the writes of segments that are over, as the transaction is. True if none is left.
    pub(crate) fn end(&mut self, is_over: impl Fn(Segment) -> bool) -> bool {
        let (schema, as_of) = &self.of;
        // Its texts may have run under another schema than that under which the tables were found:
        // another trigger, say. The change may have been committed though it is not counted yet.
        if schema.is_being_defined() || schema.schema_changes() != *as_of {
            self.topics.writes.void();
        }
        let topics = &self.topics;
        self.noted.retain_mut(|noted| {
            let over = is_over(noted.segment);
            if over {
                noted.begin_doubt(topics);
                noted.end_doubt(topics);
            }
            !over
        });
        self.noted.is_empty()
    }

    /// Ends the doubt about the writes of segments that are over and have left a transaction block
    /// open. A part of them may have been committed in an earlier block.
    pub(crate) fn stay(&mut self, is_over: impl Fn(Segment) -> bool) {
        let over = |noted: &&mut Noted| noted.in_doubt && is_over(noted.segment);
        self.noted.iter_mut().filter(over).for_each(|noted| noted.end_doubt(&self.topics));
    }
}

impl Noted {
    /// Voids the replies that the write makes wrong, and those that are asked for until the doubt
    /// ends.
    fn begin_doubt(&mut self, topics: &DatabaseTopics) {
        if !std::mem::replace(&mut self.in_doubt, true) {
            self.touch.for_each_topic(topics, Topic::begin_doubt);
        }
    }

    /// Voids the replies that the write makes wrong. Those that are asked for from now on may be
    /// kept.
    fn end_doubt(&mut self, topics: &DatabaseTopics) {
        self.in_doubt = false;
        self.touch.for_each_topic(topics, Topic::end_doubt);
    }
}

impl Drop for Writing {
    /// The outcome of what is left is unknown: for a while, nothing that it may change is kept.
    fn drop(&mut self) {
        for noted in &mut self.noted {
            noted.touch.for_each_topic(&self.topics, |topic| self.store.doubt(topic));
            if noted.in_doubt {
                noted.end_doubt(&self.topics);
            }
        }
    }
}
