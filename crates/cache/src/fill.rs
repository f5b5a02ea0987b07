//! Fill: a reply that is being fetched, and the words about a key: who asks, and the outcome.

use std::sync::Arc;

use crate::topics::TopicSet;

/// One that waits for a reply that another fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The core where it waits.
    pub core: u16,
    /// The number of its connection there.
    pub client: u64,
    /// A number that tells it from others that have the connection's number later.
    pub request: u64,
}

/// One that asks for a reply.
#[derive(Clone, Copy, Debug)]
pub enum Asker {
    /// It fetches the reply itself if nobody else does, and else waits.
    Waits(Waiter),
    /// It fetches the reply itself in any case: it has waited for long enough.
    Alone,
}

/// A reply that was found.
#[derive(Clone, Copy, Debug)]
pub struct Hit {
    /// The time since it was asked for, in microseconds.
    pub age: u64,
    /// The time that it took to fetch it, in microseconds.
    pub took: u64,
    /// Whether its time is over: it is given because another is being fetched, or cannot be.
    pub stale: bool,
}

/// The outcome of a look.
#[derive(Debug)]
pub enum Found {
    /// The reply was appended.
    Hit(Hit),
    /// The reply was appended, though its time is over. The asker has another fetched, and waits
    /// for nothing.
    Stale(Hit, Box<Fill>),
    /// The asker has the reply fetched, and is told when it is there. If it does not come, the one
    /// from before is given.
    Fetch(Box<Fill>),
    /// The asker fetches the reply.
    Miss(Box<Fill>),
    /// Another fetches the reply: the asker is told when it is there, or will not come.
    Wait,
    /// The asker goes to the server, and its reply is not kept: another is being fetched, or the
    /// last one could not be kept, or a topic is in doubt.
    Alone,
}

/// A reply that is being fetched.
#[derive(Debug)]
pub struct Fill {
    pub(crate) hash: u64,
    pub(crate) key: Arc<[u8]>,
    pub(crate) topics: Arc<TopicSet>,
    pub(crate) stamp: u64,
    pub(crate) asked: u64,
    pub(crate) queue: u16,
    /// Tells it from others of its key; never used twice.
    pub(crate) number: u64,
}

impl Fill {
    /// Returns the time at which the reply was asked for, in microseconds.
    pub fn asked(&self) -> u64 {
        self.asked
    }

    /// Notes that the reply shows a state that is older by this time than the request for it, in
    /// microseconds.
    pub fn is_older_by(&mut self, age: u64) {
        self.asked = self.asked.saturating_sub(age);
    }

    /// Whether nothing that the reply depends on has changed since it was asked for.
    pub fn is_current(&self) -> bool {
        self.topics.sure_stamp() == Some(self.stamp)
    }
}

/// The fate of a reply that was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is kept.
    Yes,
    /// Something that it depends on has changed meanwhile.
    Changed,
    /// There is no room for it.
    Large,
}
