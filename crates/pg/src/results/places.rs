//! Places: the databases whose replies are kept, and how far a change in one of them reaches.
//!
//! A place is a host and a database, as the configuration spells them. Servers say which cluster
//! and which database of it they are, with the answer to the question about reads: before that,
//! nothing of a place is kept. The roles, their memberships, databases and tablespaces are the
//! cluster's: a change of them reaches all its databases. Places that spell one database in
//! different words share its changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use refrain_cache::{Planted, Topic, Topics};
use refrain_pool::Now;
use refrain_sql::hidden::Words;

use crate::ground::ids::DatabaseIdentity;
use crate::ground::schema::Schema;
use crate::reads::hidden::Hidden;
use crate::results::changes::DatabaseChanges;
use crate::results::store::ResultStore;
use crate::results::topics::DatabaseTopics;
use crate::standbys::bug::StandbyBug;
use crate::standbys::defaults::StandbyDefaults;
use crate::standbys::progress::PrimaryProgress;
use crate::statements::relations::Table;

/// A database of which replies may be kept.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) topics: DatabaseTopics,
    pub(crate) schema: Arc<Schema>,
    /// The words of texts behind which the database hides functions.
    pub(crate) hidden: Hidden,
    /// How far the primary of the database was, where reads run on standbys.
    pub(crate) progress: PrimaryProgress,
    /// The changes of the settings with which sessions begin, for connections to standbys.
    pub(crate) defaults: StandbyDefaults,
    /// The news of its replication stream.
    pub(crate) changes: DatabaseChanges,
    places: Arc<Places>,
    known: Mutex<KnownPlace>,
}

#[derive(Debug, Default)]
struct KnownPlace {
    identity: Option<DatabaseIdentity>,
    /// The reach of its changes, and the version of all places as of which it was found.
    reach: Option<(u64, Arc<Reach>)>,
}

/// The topics that the changes in a place touch.
#[derive(Debug)]
pub(crate) struct Reach {
    /// The topics of every write.
    pub(crate) every_write: Box<[Topic]>,
    /// The topics of a write that may change any table, beside these.
    pub(crate) writes: Box<[Topic]>,
    /// The topics of a change of the schema or of rights, beside all of these.
    pub(crate) schema: Box<[Topic]>,
    /// The topics of a change of roles, beside these.
    pub(crate) roles: Box<[Topic]>,
}

/// All places.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Counts how often a place has said which database it is.
    version: AtomicU64,
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    known: HashMap<String, Weak<Place>>,
    /// The bug of new places.
    bug: Planted<StandbyBug>,
    /// The places that have said which database they are.
    same: HashMap<DatabaseIdentity, Vec<Weak<Place>>>,
}

impl Places {
    /// Returns the place of this name. `make` makes its topics and its schema if it is new.
    pub(crate) fn place(
        self: &Arc<Self>,
        name: &str,
        make: impl FnOnce() -> (DatabaseTopics, Arc<Schema>),
    ) -> Arc<Place> {
        let mut all = self.all();
        if let Some(known) = all.known.get(name).and_then(Weak::upgrade) {
            return known;
        }
        let (topics, schema) = make();
        let (hidden, defaults, changes, known) = Default::default();
        let progress = PrimaryProgress::with(all.bug.clone());
        let places = self.clone();
        let place = Place { topics, schema, hidden, progress, defaults, changes, places, known };
        let place = Arc::new(place);
        all.known.retain(|_, place| place.strong_count() > 0);
        all.known.insert(name.to_owned(), Arc::downgrade(&place));
        place
    }

    /// Plants a bug in what is known of standbys, for the simulator.
    #[cfg(feature = "plant")]
    pub(crate) fn plant(&self, bug: StandbyBug) {
        self.all().bug.plant(bug);
    }

    /// Returns all places.
    pub(crate) fn all_known(&self) -> Vec<Arc<Place>> {
        self.all().known.values().filter_map(Weak::upgrade).collect()
    }

    /// Returns the places of a cluster; all of them if it is not known which one that is.
    fn of_cluster(&self, cluster: Option<u64>) -> Vec<Arc<Place>> {
        let places = self.all_known();
        let is_of = |place: &Arc<Place>| {
            let other = place.identity().map(|identity| identity.cluster);
            cluster.is_none() || other.is_none() || cluster == other
        };
        places.into_iter().filter(is_of).collect()
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Notes the database that a server has said to be. If it was another before, all that is known
    /// of the place is void.
    pub(crate) fn is(self: &Arc<Self>, identity: DatabaseIdentity) {
        let mut known = self.known();
        if known.identity == Some(identity) {
            return;
        }
        let before = known.identity.replace(identity);
        drop(known);
        let mut all = self.places.all();
        let gone = |other: &Weak<Self>| other.upgrade().is_none_or(|it| Arc::ptr_eq(&it, self));
        if let Some(same) = before.and_then(|before| all.same.get_mut(&before)) {
            same.retain(|other| !gone(other));
        }
        all.same.retain(|_, same| same.iter().any(|place| place.strong_count() > 0));
        all.same.entry(identity).or_default().push(Arc::downgrade(self));
        drop(all);
        self.places.version.fetch_add(1, SeqCst);
        if before.is_some() {
            self.topics.schema.void();
            self.schema.schema_change();
        }
    }

    /// Notes the words that a server has said as of this count of schema changes, and returns the
    /// count as of which they hold. If they show that the schema has changed past Refrain, all that
    /// is known of it is void.
    pub(crate) fn hides(&self, words: Words, schema_changes: u64, now: Now) -> u64 {
        if !self.hidden.learn(words, schema_changes, now) {
            return schema_changes;
        }
        self.topics.schema.void();
        self.schema.schema_change();
        schema_changes + 1
    }

    /// True if it is certain that a text that is sent now hides nothing.
    #[inline]
    pub(crate) fn hides_nothing(&self) -> bool {
        // A text that is under way may hide something by now.
        self.hidden.are_none(self.schema.schema_changes())
            && self.topics.schema.sure_word().is_some()
    }

    /// Returns the table with this OID and this name: the same in all places of the database.
    pub(crate) fn table(&self, store: &ResultStore, oid: u32, name: String) -> Table {
        let topic = |what: &str| self.topic(store, what);
        let topics = [topic(&format!("table {oid}")), topic(&format!("name {name}"))];
        Table { oid, topics, name: name.into() }
    }

    /// Returns the topic of the writes to the table with this OID that reach its children as well.
    pub(crate) fn below(&self, store: &ResultStore, oid: u32) -> Topic {
        self.topic(store, &format!("below {oid}"))
    }

    /// Returns a topic that is the same in all places of the database.
    fn topic(&self, store: &ResultStore, what: &str) -> Topic {
        match self.identity() {
            Some(identity) => topic_of(&store.topics, identity, what),
            None => store.topics.topic(format!("{what} {}", self.topics.place).as_bytes()),
        }
    }

    /// Returns the database that a server has said to be.
    pub(crate) fn identity(&self) -> Option<DatabaseIdentity> {
        self.known().identity
    }

    /// Returns the reach of a change in this database.
    pub(crate) fn reach(self: &Arc<Self>) -> Arc<Reach> {
        let version = self.places.version.load(SeqCst);
        let found = |(of, reach): &(u64, Arc<Reach>)| (*of == version).then(|| reach.clone());
        if let Some(reach) = self.known().reach.as_ref().and_then(found) {
            return reach;
        }
        let (all, mut known) = (self.places.all(), self.known());
        let same = known.identity.and_then(|identity| all.same.get(&identity));
        let same = same.into_iter().flatten().filter_map(Weak::upgrade);
        let others = same.filter(|place| !Arc::ptr_eq(place, self));
        let topics: Vec<_> = others.map(|place| place.topics.clone()).collect();
        let reach = Arc::new(Reach::of(std::iter::once(&self.topics).chain(&topics)));
        known.reach = Some((version, reach.clone()));
        reach
    }

    /// Returns the reach of a change of the cluster.
    pub(crate) fn reach_of_cluster(&self) -> Arc<Reach> {
        let places = self.places.of_cluster(self.identity().map(|identity| identity.cluster));
        let others = places.iter().filter(|place| !std::ptr::eq(place.as_ref(), self));
        let topics = others.map(|place| &place.topics);
        Arc::new(Reach::of(std::iter::once(&self.topics).chain(topics)))
    }

    /// Counts a change of the schema in all databases of the cluster: another may have the name of
    /// one.
    pub(crate) fn databases_change(&self) {
        let places = self.places.of_cluster(self.identity().map(|identity| identity.cluster));
        places.iter().for_each(|place| place.schema.schema_change());
    }

    /// Counts a change of the settings with which sessions begin, in all databases of the cluster:
    /// names may mean something else in sessions that begin from now on.
    pub(crate) fn defaults_change(&self) {
        let places = self.places.of_cluster(self.identity().map(|identity| identity.cluster));
        for place in places {
            place.schema.schema_change();
            place.defaults.change(place.schema.schema_changes());
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownPlace> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a topic of a database.
pub(crate) fn topic_of(topics: &Topics, identity: DatabaseIdentity, what: &str) -> Topic {
    let DatabaseIdentity { cluster, database } = identity;
    topics.topic(format!("{what} {cluster}/{database}").as_bytes())
}

/// Returns the topic of a table of a database, which all replies have that read it.
pub(crate) fn table_topic(topics: &Topics, identity: DatabaseIdentity, oid: u32) -> Topic {
    topic_of(topics, identity, &format!("table {oid}"))
}

impl Reach {
    fn of<'a>(topics: impl Iterator<Item = &'a DatabaseTopics> + Clone) -> Self {
        let every_write = topics.clone().map(|topics| topics.every_write.clone()).collect();
        let writes = topics.clone().map(|topics| topics.writes.clone()).collect();
        let schema = topics.clone().map(|topics| topics.schema.clone()).collect();
        let roles = topics.map(|topics| topics.roles.clone()).collect();
        Self { every_write, writes, schema, roles }
    }
}
