//! Topics: the things whose change voids replies (a database, a table, a rule, a tag), each with a
//! generation.
//!
//! A generation only grows. So the sum of the generations of several topics stays the same exactly
//! as long as each of them does, and one number, the *stamp*, stands for all generations of a
//! reply. To void all replies of a topic is to add one to its generation, however many they are.
//!
//! While a topic is *in doubt*, since a commit is under way, nothing of it is kept. The number of
//! doubts is in the lower bits of the same word: to begin and to end a doubt
//! void replies as well.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::Seed;
use crate::account::Account;

/// Added to a topic's word for a new generation. The bits below count doubts.
const GENERATION: u64 = 1 << 24;
/// The bits that count doubts.
const DOUBTS: u64 = GENERATION - 1;

/// A thing whose change voids replies.
#[derive(Clone, Debug)]
pub struct Topic(Arc<Word>);

#[derive(Debug)]
struct Word {
    id: u64,
    generation: AtomicU64,
}

impl Topic {
    /// Voids all replies of the topic that were asked for so far.
    pub fn void(&self) {
        self.0.generation.fetch_add(GENERATION, SeqCst);
    }

    /// Voids all replies of the topic, and those that are asked for until [`Self::end_doubt`].
    pub fn begin_doubt(&self) {
        self.0.generation.fetch_add(GENERATION + 1, SeqCst);
    }

    /// Ends a doubt.
    pub fn end_doubt(&self) {
        let before = self.0.generation.fetch_add(GENERATION - 1, SeqCst);
        assert!(before & DOUBTS > 0, "a doubt that ends has begun");
    }

    /// Returns a number that is another behind each change; `None` while it is in doubt.
    pub fn sure_word(&self) -> Option<u64> {
        let word = self.word();
        (word & DOUBTS == 0).then_some(word)
    }

    /// Returns its number, which no other has.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Whether it is the same as another.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn word(&self) -> u64 {
        self.0.generation.load(SeqCst)
    }
}

/// The topics of a reply. Those with the same topics share one.
#[derive(Debug)]
pub struct TopicSet {
    topics: Box<[Topic]>,
    /// The figures of the rule by which the replies are kept.
    account: Arc<Account>,
}

impl TopicSet {
    /// Returns the sum of the generations.
    #[inline]
    pub fn stamp(&self) -> u64 {
        self.topics.iter().fold(0, |sum, topic| sum.wrapping_add(topic.word()))
    }

    /// Returns the figures of the rule by which the replies are kept.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Returns the topics.
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    /// Returns the numbers of the topics.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        self.topics.iter().map(|topic| topic.0.id)
    }

    /// Returns the sum of the generations, or `None` if a topic is in doubt.
    pub fn sure_stamp(&self) -> Option<u64> {
        let mut sum = 0_u64;
        for topic in &self.topics {
            let word = topic.word();
            if word & DOUBTS > 0 {
                return None;
            }
            sum = sum.wrapping_add(word);
        }
        Some(sum)
    }
}

/// All topics, by name.
#[derive(Debug)]
pub struct Topics {
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    next: u64,
    names: HashMap<Box<[u8]>, Topic, Seed>,
    sets: HashMap<Box<[u64]>, Weak<TopicSet>, Seed>,
    /// The number of names and sets at which unused ones are dropped.
    due: usize,
}

/// The number of names and sets from which on unused ones are looked for.
const SWEEP_MIN: usize = 1024;

impl Topics {
    /// Makes an empty map.
    pub fn new(seed: Seed) -> Self {
        let (names, sets) = (HashMap::with_hasher(seed.clone()), HashMap::with_hasher(seed));
        Self { known: Mutex::new(Known { next: 0, names, sets, due: SWEEP_MIN }) }
    }

    /// Returns the topic of this name.
    pub fn topic(&self, name: &[u8]) -> Topic {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(topic) = known.names.get(name) {
            return topic.clone();
        }
        known.sweep();
        known.next += 1;
        let word = Word { id: known.next, generation: AtomicU64::new(0) };
        let topic = Topic(Arc::new(word));
        known.names.insert(name.into(), topic.clone());
        topic
    }

    /// Returns the topic of this name if a reply may depend on it.
    pub fn find(&self, name: &[u8]) -> Option<Topic> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.names.get(name).cloned()
    }

    /// Returns the names of all topics, by their numbers.
    pub fn names(&self) -> HashMap<u64, Box<[u8]>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.names.iter().map(|(name, topic)| (topic.0.id, name.clone())).collect()
    }

    /// Voids the topics whose names are chosen. False if there is none.
    pub fn void_named(&self, chosen: impl Fn(&[u8]) -> bool) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let topics = known.names.iter().filter(|(name, _)| chosen(name));
        topics.map(|(_, topic)| topic.void()).count() > 0
    }

    /// Returns the set of these topics, among which is that of the rule with this account.
    pub fn set(&self, mut topics: Vec<Topic>, account: &Arc<Account>) -> Arc<TopicSet> {
        topics.sort_by_key(|topic| topic.0.id);
        topics.dedup_by_key(|topic| topic.0.id);
        let ids: Box<[u64]> = topics.iter().map(|topic| topic.0.id).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = known.sets.get(&ids).and_then(Weak::upgrade) {
            return set;
        }
        known.sweep();
        let set = Arc::new(TopicSet { topics: topics.into(), account: account.clone() });
        known.sets.insert(ids, Arc::downgrade(&set));
        set
    }
}

impl Known {
    /// Forgets sets and topics that nothing refers to, if there are many. A topic that comes back
    /// has another number, so that its first generation is not taken for an old one.
    fn sweep(&mut self) {
        if self.names.len() + self.sets.len() < self.due {
            return;
        }
        self.sets.retain(|_, set| set.strong_count() > 0);
        self.names.retain(|_, topic| Arc::strong_count(&topic.0) > 1);
        self.due = SWEEP_MIN.max(2 * (self.names.len() + self.sets.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_topic_changes_the_stamp() {
        let topics = Topics::new(Seed::default());
        let (one, two) = (topics.topic(b"one"), topics.topic(b"two"));
        let account = Arc::default();
        let set = topics.set(vec![two.clone(), one.clone(), two.clone()], &account);
        assert!(Arc::ptr_eq(&set, &topics.set(vec![one.clone(), two.clone()], &account)));
        let mut seen = vec![set.stamp()];
        let changes: [&dyn Fn(); 6] = [
            &|| one.void(),
            &|| two.begin_doubt(),
            &|| one.begin_doubt(),
            &|| two.void(),
            &|| two.end_doubt(),
            &|| one.end_doubt(),
        ];
        let doubts = [0, 1, 2, 2, 1, 0];
        for (change, doubts) in changes.into_iter().zip(doubts) {
            change();
            assert!(!seen.contains(&set.stamp()));
            seen.push(set.stamp());
            assert_eq!(set.sure_stamp().is_none(), doubts > 0);
        }
        assert_eq!(set.sure_stamp(), Some(set.stamp()));
    }

    #[test]
    fn topics_are_voided_by_their_names() {
        let topics = Topics::new(Seed::default());
        let [one, two] =
            [b"a 1", b"b 1"].map(|name| topics.set(vec![topics.topic(name)], &Arc::default()));
        let before = [one.stamp(), two.stamp()];
        assert!(!topics.void_named(|name| name.starts_with(b"c")));
        assert_eq!(before, [one.stamp(), two.stamp()]);
        assert!(topics.void_named(|name| name.starts_with(b"b")));
        assert_eq!(before[0], one.stamp());
        assert_ne!(before[1], two.stamp());
    }

    #[test]
    fn unused_topics_are_forgotten() {
        let topics = Topics::new(Seed::default());
        let kept = topics.topic(b"kept");
        kept.void();
        let set = topics.set(vec![kept], &Arc::default());
        for number in 0..10 * SWEEP_MIN {
            let _ = topics.set(vec![topics.topic(&number.to_le_bytes())], &Arc::default());
        }
        let known = topics.known.lock().unwrap();
        assert!(known.names.len() + known.sets.len() <= SWEEP_MIN + 1);
        drop(known);
        let again = topics.set(vec![topics.topic(b"kept")], &Arc::default());
        assert!(Arc::ptr_eq(&set, &again));
    }
}
