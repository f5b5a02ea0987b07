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
use crate::results::places::{Place, Reach};
use crate::results::store::ResultStore;

/// The replies that a text may make wrong.
#[derive(Debug)]
pub(crate) enum Touch {
    /// Replies that depend on these tables.
    Tables(Arc<[Topic]>),
    /// Replies that depend on any table.
    Rows,
    /// All replies: it may change the schema or rights.
    Schema,
    /// All replies of all databases of the cluster: it may change roles, or the databases
    /// themselves.
    Cluster {
        /// Whether another database may have the name of one.
        databases: bool,
    },
}

impl Touch {
    /// Whether it is the same as another.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Tables(own), Self::Tables(other)) => Arc::ptr_eq(own, other),
            (Self::Rows, Self::Rows) | (Self::Schema, Self::Schema) => true,
            (Self::Cluster { databases }, Self::Cluster { databases: other }) => databases == other,
            _ => false,
        }
    }

    /// Returns how far it reaches.
    fn reach(&self, place: &Arc<Place>) -> Arc<Reach> {
        match self {
            Self::Cluster { .. } => place.reach_of_cluster(),
            _ => place.reach(),
        }
    }

    /// Calls `each` with the topics of the replies.
    fn for_each_topic(&self, reach: &Reach, each: impl Fn(&Topic)) {
        reach.every_write.iter().for_each(&each);
        match self {
            Self::Tables(tables) => tables.iter().for_each(each),
            Self::Rows => reach.writes.iter().for_each(each),
            Self::Schema => reach.writes.iter().chain(&reach.schema).for_each(each),
            Self::Cluster { .. } => {
                reach.writes.iter().chain(&reach.schema).chain(&reach.roles).for_each(each);
            }
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
    /// The reach of it, once a text has been sent that may commit it: its topics are in doubt.
    doubts: Option<Arc<Reach>>,
}

/// A transaction that may write.
#[derive(Debug)]
pub(crate) struct Writing {
    store: Arc<ResultStore>,
    place: Arc<Place>,
    noted: Vec<Noted>,
    /// The count of changes of the schema as of which the tables were found.
    as_of: u64,
}

impl Writing {
    /// Begins a transaction without writes.
    pub(crate) fn new(store: &Arc<ResultStore>, place: &Arc<Place>) -> Self {
        let as_of = place.schema.schema_changes();
        Self { store: store.clone(), place: place.clone(), noted: Vec::new(), as_of }
    }

    /// Adds a write of a text of this segment. `stays` says that nothing can commit it but a text
    /// that comes later.
    pub(crate) fn add(&mut self, segment: Segment, touch: Touch, stays: bool) {
        let full = self.noted.len() >= TABLES_MAX;
        let touch = if full && matches!(touch, Touch::Tables(_)) { Touch::Rows } else { touch };
        let place = self.noted.iter().position(|noted| noted.touch.is(&touch));
        let place = place.unwrap_or_else(|| {
            self.noted.push(Noted { touch, segment, doubts: None });
            self.noted.len() - 1
        });
        self.noted[place].segment = segment;
        if !stays && !self.is_late() {
            self.noted[place].begin_doubt(&self.place);
        }
    }

    /// Notes that a text of this segment is sent that may commit what was written so far.
    pub(crate) fn may_commit(&mut self, segment: Segment) {
        let late = self.is_late();
        for noted in &mut self.noted {
            noted.segment = segment;
            if !late {
                noted.begin_doubt(&self.place);
            }
        }
    }

    /// Whether replies are void when the server answers, which is a bug of the simulator's.
    fn is_late(&self) -> bool {
        self.store.cache.has(Bug::LateVoid)
    }

    /// Ends the writes of segments that are over, as the transaction is. True if none is left.
    pub(crate) fn end(&mut self, is_over: impl Fn(Segment) -> bool) -> bool {
        let schema = &self.place.schema;
        // Its texts may have run under another schema than that under which the tables were found:
        // another trigger, say. The change may have been committed though it is not counted yet.
        if schema.is_being_defined() || schema.schema_changes() != self.as_of {
            self.place.reach().writes.iter().for_each(Topic::void);
        }
        let place = &self.place;
        self.noted.retain_mut(|noted| {
            let over = is_over(noted.segment);
            if over {
                noted.begin_doubt(place);
                noted.end_doubt(place);
            }
            !over
        });
        self.noted.is_empty()
    }

    /// Ends the doubt about the writes of segments that are over and have left a transaction block
    /// open. A part of them may have been committed in an earlier block.
    pub(crate) fn stay(&mut self, is_over: impl Fn(Segment) -> bool) {
        let over = |noted: &&mut Noted| is_over(noted.segment);
        self.noted.iter_mut().filter(over).for_each(|noted| noted.end_doubt(&self.place));
    }
}

impl Noted {
    /// Voids the replies that the write makes wrong, and those that are asked for until the doubt
    /// ends.
    fn begin_doubt(&mut self, place: &Arc<Place>) {
        if self.doubts.is_none() {
            let reach = self.doubts.insert(self.touch.reach(place));
            self.touch.for_each_topic(reach, Topic::begin_doubt);
        }
    }

    /// Voids the replies that the write makes wrong, if it is in doubt. Those that are asked for
    /// from now on may be kept.
    fn end_doubt(&mut self, place: &Arc<Place>) {
        let Some(reach) = self.doubts.take() else { return };
        if let Touch::Cluster { databases: true } = self.touch {
            place.databases_change();
        }
        // Places may have come since.
        let now = self.touch.reach(place);
        if !Arc::ptr_eq(&now, &reach) {
            self.touch.for_each_topic(&now, Topic::void);
        }
        self.touch.for_each_topic(&reach, Topic::end_doubt);
    }
}

impl Drop for Writing {
    /// The outcome of what is left is unknown: for a while, nothing that it may change is kept.
    fn drop(&mut self) {
        for noted in &mut self.noted {
            let reach = noted.touch.reach(&self.place);
            noted.touch.for_each_topic(&reach, |topic| self.store.doubt(topic));
            noted.end_doubt(&self.place);
        }
    }
}
