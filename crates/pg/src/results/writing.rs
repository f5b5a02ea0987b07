//! Writing: what a server's transaction may write, until its outcome is known.
//!
//! A text that may write is noted when it is sent. The replies that it may make wrong are void once
//! its transaction has ended: before its client hears of that, and so before anybody can know that
//! a kept reply is old. If the server goes before, the outcome is unknown, and the commit may even
//! come later: then nothing is kept for a while.

use std::sync::Arc;

use refrain_cache::Topic;

use crate::ground::ids::Segment;
use crate::results::store::ResultStore;

/// The topics of one database.
#[derive(Clone, Debug)]
pub(crate) struct DatabaseTopics {
    /// The database, as a number.
    pub(crate) place: u64,
    /// Every write to it.
    pub(crate) writes: Topic,
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
            schema: named("schema"),
        }
    }
}

/// A transaction that may write.
#[derive(Debug)]
pub(crate) struct Writing {
    store: Arc<ResultStore>,
    topics: DatabaseTopics,
    /// The last segment that may write.
    segment: Segment,
    /// Whether it may change the schema or rights.
    schema: bool,
    over: bool,
}

impl Writing {
    /// Begins with a text of this segment.
    pub(crate) fn new(store: &Arc<ResultStore>, topics: &DatabaseTopics, segment: Segment) -> Self {
        let (store, topics) = (store.clone(), topics.clone());
        Self { store, topics, segment, schema: false, over: false }
    }

    /// Adds a text of this segment.
    pub(crate) fn add(&mut self, segment: Segment, schema: bool) {
        self.segment = segment;
        self.schema |= schema;
    }

    /// Voids what the transaction may have made wrong.
    pub(crate) fn void(&self) {
        self.topics.writes.void();
        if self.schema {
            self.topics.schema.void();
        }
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
            self.store.doubt(&self.topics.writes);
            if self.schema {
                self.store.doubt(&self.topics.schema);
            }
        }
    }
}
