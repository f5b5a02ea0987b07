//! Doubts: the commits that have come in the stream, and that no snapshot has shown yet.

use std::collections::VecDeque;

use refrain_cache::Topic;

use crate::changes::snapshot::XidSnapshot;

/// Most commits in doubt. A stream with more is begun anew: the questions are stuck.
const DOUBTS_MAX: usize = 64 * 1024;
/// Most topics of these commits.
const TOPICS_MAX: usize = 1024 * 1024;

/// The commits in doubt. No reply that depends on their topics is given or kept.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    commits: VecDeque<(u32, Box<[Topic]>)>,
    /// The number of their topics. A topic counts once for each commit: it has room for as many
    /// doubts as there are commits.
    topics: usize,
}

impl Doubts {
    /// Voids these topics, and has them in doubt until the transaction is over. Returns how many
    /// they are.
    pub(super) fn begin(&mut self, xid: u32, mut topics: Vec<Topic>) -> usize {
        topics.sort_unstable_by_key(Topic::id);
        topics.dedup_by_key(|topic| topic.id());
        topics.iter().for_each(Topic::begin_doubt);
        self.topics += topics.len();
        let number = topics.len();
        self.commits.push_back((xid, topics.into()));
        number
    }

    /// Ends the doubts about transactions that are over; `any` is for a bug that a test plants: all
    /// of them. Returns how many ended.
    pub(super) fn hear(&mut self, snapshot: &XidSnapshot, any: bool) -> usize {
        let before = self.commits.len();
        self.commits.retain(|(xid, topics)| {
            let over = any || snapshot.is_over_in_stream(*xid);
            if over {
                topics.iter().for_each(Topic::end_doubt);
                self.topics -= topics.len();
            }
            !over
        });
        before - self.commits.len()
    }

    /// Returns how many commits are in doubt.
    pub(super) fn len(&self) -> usize {
        self.commits.len()
    }

    /// Whether there are too many: the stream is to begin anew.
    pub(super) fn are_too_many(&self) -> bool {
        self.commits.len() > DOUBTS_MAX || self.topics > TOPICS_MAX
    }
}

impl Drop for Doubts {
    /// The stream is over. All that is kept from now on is void when the next one is live.
    fn drop(&mut self) {
        self.commits.iter().flat_map(|(_, topics)| topics).for_each(Topic::end_doubt);
    }
}

#[cfg(test)]
mod tests {
    use refrain_cache::{Seed, Topics};

    use super::*;

    #[test]
    fn a_topic_is_in_doubt_until_the_last_of_its_commits_is_over() {
        let topics = Topics::new(Seed::default());
        let (one, two) = (topics.topic(b"one"), topics.topic(b"two"));
        let mut doubts = Doubts::default();
        let first = one.sure_word();
        doubts.begin(7, vec![one.clone()]);
        doubts.begin(9, vec![one.clone(), two.clone(), one.clone()]);
        let sure = || [one.sure_word().is_some(), two.sure_word().is_some()];
        assert_eq!(sure(), [false, false]);
        assert_eq!(doubts.hear(&XidSnapshot::read("9:12:9").unwrap(), false), 1);
        assert_eq!((sure(), doubts.len()), ([false, false], 1));
        assert_eq!(doubts.hear(&XidSnapshot::read("10:12:10").unwrap(), false), 1);
        assert_eq!((sure(), doubts.len()), ([true, true], 0));
        assert_ne!(one.sure_word(), first);
        doubts.begin(13, vec![one.clone(), two.clone()]);
        drop(doubts);
        assert_eq!(sure(), [true, true]);
    }

    #[test]
    fn a_topic_has_room_for_all_doubts() {
        let topics = Topics::new(Seed::default());
        let one = topics.topic(b"one");
        let mut doubts = Doubts::default();
        // As a commit to so many partitions of one table: 2^24 in all, which is none again.
        for xid in 0..4096 {
            doubts.begin(xid, vec![one.clone(); 4096]);
            assert!(one.sure_word().is_none() && !doubts.are_too_many());
        }
        assert_eq!(doubts.hear(&XidSnapshot::read("4096:4096:").unwrap(), false), 4096);
        assert!(one.sure_word().is_some());
        let many: Vec<Topic> = (0..64_u8).map(|number| topics.topic(&[number])).collect();
        for xid in 0..TOPICS_MAX as u32 / 64 {
            doubts.begin(xid, many.clone());
        }
        assert!(!doubts.are_too_many());
        doubts.begin(u32::MAX, many);
        assert!(doubts.are_too_many());
    }
}
