//! Doubts: the commits that have come in the stream, and that no snapshot has shown yet.

use std::collections::VecDeque;
use std::sync::Arc;

use refrain_cache::Topic;

use crate::changes::snapshot::XidSnapshot;

/// Most commits in doubt. A stream with more is begun anew: the questions are stuck.
pub(super) const DOUBTS_MAX: usize = 64 * 1024;

/// The commits in doubt. What depends on their topics is neither given nor kept.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    commits: VecDeque<(u32, Vec<Arc<[Topic]>>)>,
}

impl Doubts {
    /// Voids these topics, and has them in doubt until the transaction is over.
    pub(super) fn begin(&mut self, xid: u32, topics: Vec<Arc<[Topic]>>) {
        topics.iter().flat_map(|topics| topics.iter()).for_each(Topic::begin_doubt);
        self.commits.push_back((xid, topics));
    }

    /// Ends the doubts about transactions that are over. Returns how many ended.
    pub(super) fn hear(&mut self, snapshot: &XidSnapshot) -> usize {
        let before = self.commits.len();
        self.commits.retain(|(xid, topics)| {
            let over = snapshot.is_over_in_stream(*xid);
            if over {
                end(topics);
            }
            !over
        });
        before - self.commits.len()
    }

    /// Returns how many commits are in doubt.
    pub(super) fn len(&self) -> usize {
        self.commits.len()
    }
}

impl Drop for Doubts {
    /// The stream is over. What is kept from now on is void when the next one is live.
    fn drop(&mut self) {
        self.commits.iter().for_each(|(_, topics)| end(topics));
    }
}

fn end(topics: &[Arc<[Topic]>]) {
    topics.iter().flat_map(|topics| topics.iter()).for_each(Topic::end_doubt);
}

#[cfg(test)]
mod tests {
    use refrain_cache::{Seed, Topics};

    use super::*;

    #[test]
    fn a_topic_is_in_doubt_until_the_last_of_its_commits_is_over() {
        let topics = Topics::new(Seed::default());
        let (one, two) = (topics.topic(b"one"), topics.topic(b"two"));
        let lists: [Arc<[Topic]>; 2] = [[one.clone()].into(), [one.clone(), two.clone()].into()];
        let mut doubts = Doubts::default();
        let first = one.sure_word();
        doubts.begin(7, vec![lists[0].clone()]);
        doubts.begin(9, vec![lists[1].clone(), lists[0].clone()]);
        let sure = || [one.sure_word().is_some(), two.sure_word().is_some()];
        assert_eq!(sure(), [false, false]);
        assert_eq!(doubts.hear(&XidSnapshot::read("9:12:9").unwrap()), 1);
        assert_eq!((sure(), doubts.len()), ([false, false], 1));
        assert_eq!(doubts.hear(&XidSnapshot::read("10:12:10").unwrap()), 1);
        assert_eq!((sure(), doubts.len()), ([true, true], 0));
        assert_ne!(one.sure_word(), first);
        doubts.begin(13, vec![lists[1].clone()]);
        drop(doubts);
        assert_eq!(sure(), [true, true]);
    }
}
