//! NamedRelations: those that the stream has named, and the topics that a change of each touches.
//!
//! A relation touches its own topics, by OID and by name, and those of the relations above it: a
//! partition's rows are its parent's. The catalog is asked about those when the stream names a
//! relation, which it does before its first change, and again when the relation itself has changed.
//! Until that is known a change may touch anything. The stream does not always say that a relation
//! has moved: the tables that replies read learn that from each look
//! ([`crate::changes::coverage`]).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use refrain_cache::{Topic, Topics};

use crate::changes::snapshot::XidSnapshot;
use crate::ground::ids::DatabaseIdentity;
use crate::results::places::topic_of;

/// Most relations that are remembered. A change of another one may touch anything.
const RELATIONS_MAX: usize = 64 * 1024;

/// Topics of a relation that are its own, in front of those of the relations above it.
pub(super) const OWN_TOPICS: usize = 3;

/// The relations of a stream.
#[derive(Debug)]
pub(super) struct NamedRelations {
    identity: DatabaseIdentity,
    known: HashMap<u32, Relation>,
    /// Relations about which the catalog is to be asked, and the transactions that have named each:
    /// once they are over, it may be.
    waiting: BTreeMap<u32, Vec<u32>>,
}

#[derive(Debug)]
struct Relation {
    name: String,
    above: Above,
    topics: Arc<[Topic]>,
}

/// The knowledge about the relations above one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Above {
    /// A transaction has named the relation that has not come to its end in the stream.
    Amid,
    /// Transactions have named it, and may have changed what is above it. The catalog may not
    /// show that before they are over.
    Named,
    /// The catalog may be asked.
    Due,
    /// The catalog is asked by the look of this number.
    Asked(u64),
    Known,
}

impl NamedRelations {
    /// Makes an empty map, of a database.
    pub(super) fn new(identity: DatabaseIdentity) -> Self {
        Self { identity, known: HashMap::new(), waiting: BTreeMap::new() }
    }

    /// Notes that a transaction has named a relation. A transaction whose changes come in parts
    /// names each anew: with `in_part`, a name that is known says nothing. Returns whether the end
    /// of the transaction is to be noted.
    pub(super) fn name(&mut self, topics: &Topics, oid: u32, name: String, in_part: bool) -> bool {
        if in_part && self.known.get(&oid).is_some_and(|known| known.name == name) {
            return false;
        }
        if self.known.len() >= RELATIONS_MAX && !self.known.contains_key(&oid) {
            return false;
        }
        let touched = self.touched(topics, oid, &name, &[]);
        self.known.insert(oid, Relation { name, above: Above::Amid, topics: touched });
        self.waiting.entry(oid).or_default();
        true
    }

    /// Notes the end of the transaction that has named these relations.
    pub(super) fn named_by(&mut self, oids: &[u32], xid: u32) {
        for oid in oids {
            if let Some(relation) = self.known.get_mut(oid) {
                relation.above = Above::Named;
                // Another transaction may have named it later, and ended before: then the catalog
                // has been asked already.
                self.waiting.entry(*oid).or_default().push(xid);
            }
        }
    }

    /// Takes in a snapshot: the catalog may be asked about what was named by transactions that are
    /// over.
    pub(super) fn hear(&mut self, snapshot: &XidSnapshot) {
        for (oid, xids) in &mut self.waiting {
            xids.retain(|xid| !snapshot.is_over_in_stream(*xid));
            if let Some(relation) = self.known.get_mut(oid)
                && relation.above == Above::Named
                && xids.is_empty()
            {
                relation.above = Above::Due;
            }
        }
    }

    /// Returns the relations about which the catalog is asked by a look of this number.
    pub(super) fn ask(&mut self, look: u64) -> Vec<u32> {
        let mut asked = Vec::new();
        let known = &mut self.known;
        self.waiting.retain(|oid, _| match known.get_mut(oid) {
            Some(relation) if relation.above == Above::Due => {
                relation.above = Above::Asked(look);
                asked.push(*oid);
                false
            }
            Some(relation) => matches!(relation.above, Above::Amid | Above::Named),
            None => false,
        });
        asked
    }

    /// Whether the catalog may be asked about a relation now, and whether a snapshot is to say
    /// when.
    pub(super) fn are_due(&self) -> (bool, bool) {
        let is = |above| {
            self.waiting.keys().any(|oid| self.known.get(oid).is_some_and(|it| it.above == above))
        };
        (is(Above::Due), is(Above::Named))
    }

    /// Takes in what is above relations, as a look of this number has found it.
    pub(super) fn learn(
        &mut self,
        topics: &Topics,
        look: u64,
        asked: &[u32],
        above: &BTreeMap<u32, Vec<(u32, String)>>,
    ) {
        for oid in asked {
            let Some(relation) = self.known.get(oid) else { continue };
            if relation.above != Above::Asked(look) {
                continue;
            }
            let (name, above) = (relation.name.clone(), above.get(oid).map_or(&[][..], |it| it));
            let touched = self.touched(topics, *oid, &name, above);
            self.known.insert(*oid, Relation { name, above: Above::Known, topics: touched });
        }
    }

    /// Returns the topics that a change of a relation touches; `None` if that may be any.
    pub(super) fn topics(&self, oid: u32) -> Option<Arc<[Topic]>> {
        let relation = self.known.get(&oid)?;
        (relation.above == Above::Known).then(|| relation.topics.clone())
    }

    fn touched(
        &self,
        topics: &Topics,
        oid: u32,
        name: &str,
        above: &[(u32, String)],
    ) -> Arc<[Topic]> {
        let topic = |what: String| topic_of(topics, self.identity, &what);
        let own: [_; OWN_TOPICS] =
            [format!("table {oid}"), format!("name {name}"), format!("below {oid}")];
        let above =
            above.iter().flat_map(|(oid, name)| [format!("table {oid}"), format!("name {name}")]);
        own.into_iter().chain(above).map(topic).collect()
    }
}

#[cfg(test)]
mod tests {
    use refrain_cache::Seed;

    use super::*;

    const IDENTITY: DatabaseIdentity = DatabaseIdentity { cluster: 1, database: 2 };

    #[test]
    fn a_change_may_touch_anything_until_it_is_known_what_is_above() {
        let topics = Topics::new(Seed::default());
        let mut relations = NamedRelations::new(IDENTITY);
        let parent = topic_of(&topics, IDENTITY, "table 1");
        assert!(relations.topics(7).is_none());
        assert!(relations.name(&topics, 7, "public.leaf".to_owned(), true));
        relations.hear(&XidSnapshot::read("90:90:").unwrap());
        assert_eq!(relations.are_due(), (false, false), "its transaction has not ended");
        relations.named_by(&[7], 50);
        relations.hear(&XidSnapshot::read("50:60:50").unwrap());
        assert_eq!((relations.are_due(), relations.ask(3)), ((false, true), vec![]));
        relations.hear(&XidSnapshot::read("51:60:55").unwrap());
        assert_eq!((relations.are_due(), relations.ask(4)), ((true, false), vec![7]));
        assert!(relations.topics(7).is_none() && relations.are_due() == (false, false));
        let above = [(7, vec![(1, "public.t".to_owned())])].into();
        relations.learn(&topics, 3, &[7], &above);
        assert!(relations.topics(7).is_none(), "another look");
        relations.learn(&topics, 4, &[7, 8], &above);
        let touched = relations.topics(7).unwrap();
        assert!(touched.len() == 5 && touched.iter().any(|topic| topic.is(&parent)));
    }

    #[test]
    fn of_two_transactions_that_name_a_relation_each_has_it_asked_about() {
        let topics = Topics::new(Seed::default());
        let mut relations = NamedRelations::new(IDENTITY);
        let name = |relations: &mut NamedRelations, in_part| {
            relations.name(&topics, 7, "public.leaf".to_owned(), in_part)
        };
        assert!(name(&mut relations, true), "a long one begins");
        assert!(name(&mut relations, false), "and a short one is over before");
        for (look, xid) in [(1, 51), (2, 50)] {
            relations.named_by(&[7], xid);
            assert!(relations.topics(7).is_none());
            relations.hear(&XidSnapshot::read("60:60:").unwrap());
            assert_eq!((relations.are_due(), relations.ask(look)), ((true, false), vec![7]));
            relations.learn(&topics, look, &[7], &BTreeMap::new());
            assert!(relations.topics(7).is_some(), "{xid}");
        }
        assert!(name(&mut relations, false));
        relations.named_by(&[7], 70);
        assert!(name(&mut relations, false));
        relations.named_by(&[7], 71);
        relations.hear(&XidSnapshot::read("70:72:70").unwrap());
        assert_eq!(relations.are_due(), (false, true), "the catalog may not show the first");
        relations.hear(&XidSnapshot::read("72:72:").unwrap());
        assert_eq!(relations.ask(3), [7]);
    }

    #[test]
    fn what_is_above_is_asked_anew_when_a_relation_is_named_again() {
        let topics = Topics::new(Seed::default());
        let mut relations = NamedRelations::new(IDENTITY);
        let name = |relations: &mut NamedRelations, name: &str, in_part| {
            relations.name(&topics, 7, name.to_owned(), in_part)
        };
        assert!(name(&mut relations, "public.leaf", false));
        relations.named_by(&[7], 50);
        relations.hear(&XidSnapshot::read("51:60:").unwrap());
        assert_eq!(relations.ask(1), [7]);
        assert!(name(&mut relations, "public.leaf", false));
        relations.learn(&topics, 1, &[7], &BTreeMap::new());
        assert!(relations.topics(7).is_none(), "the look is from before");
        relations.named_by(&[7], 51);
        relations.hear(&XidSnapshot::read("52:60:").unwrap());
        assert_eq!(relations.ask(2), [7]);
        relations.learn(&topics, 2, &[7], &BTreeMap::new());
        assert!(!name(&mut relations, "public.leaf", true) && relations.topics(7).is_some());
        assert!(name(&mut relations, "public.other", true) && relations.topics(7).is_none());
        assert_eq!(relations.known.len(), 1);
    }

    #[test]
    fn a_relation_beyond_the_limit_may_touch_anything() {
        let topics = Topics::new(Seed::default());
        let mut relations = NamedRelations::new(IDENTITY);
        let all = RELATIONS_MAX as u32;
        let mut name = |oid| relations.name(&topics, oid, "public.t".to_owned(), false);
        assert!((0..all).all(&mut name) && !name(all) && name(0), "known ones are named anew");
        relations.named_by(&[0, all], 50);
        relations.hear(&XidSnapshot::read("60:60:").unwrap());
        assert_eq!(relations.ask(1), [0]);
        relations.learn(&topics, 1, &[0, all], &BTreeMap::new());
        assert!(relations.topics(0).is_some() && relations.topics(all).is_none());
    }
}
