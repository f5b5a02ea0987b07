//! Pace: how often the servers of one host are asked.
//!
//! A question takes a server some tens of milliseconds, as much as a thousand lookups by a key. So
//! a host has one question under way at a time, from whichever pool and core, and in the long run
//! questions take one part in [`SHARE`] of the time. Time without questions is saved up, to a
//! limit: an installation with few statements has them all asked about at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refrain_pool::Now;

/// The time between questions, in times that one takes.
const SHARE: u64 = 100;
/// Time without questions that is saved up, in microseconds: 3 s of questions.
const SAVED_US: u64 = 300_000_000;
/// The longest that a question counts, in microseconds: more of it was waiting.
const LONGEST_US: u64 = 50_000;
/// Time after which a pool looks again whether a question is over, in microseconds.
const LOOK_US: u64 = 100_000;

/// The hosts that were asked.
#[derive(Debug, Default)]
pub(crate) struct Paces(Mutex<HashMap<Box<str>, Pace>>);

#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    under_way: bool,
    /// The time from which on the next question might begin if no time were saved up, in
    /// microseconds.
    paid: u64,
}

impl Pace {
    /// Returns when the next question may begin.
    fn next(self) -> Now {
        Now(self.paid.saturating_sub(SAVED_US))
    }
}

/// A question under way at a host, until it is dropped.
#[derive(Debug)]
pub(crate) struct HostTurn {
    paces: Arc<Paces>,
    host: Box<str>,
    began: Now,
}

impl Paces {
    /// Returns when a question may begin at a host, as far as that is known now.
    pub(crate) fn next(&self, host: &str, now: Now) -> Now {
        let hosts = self.hosts();
        let pace = hosts.get(host).copied().unwrap_or_default();
        if pace.under_way { Now(now.0 + LOOK_US) } else { pace.next() }
    }

    /// Begins a question at a host, unless another is under way or it is not time yet.
    pub(crate) fn begin(self: &Arc<Self>, host: &str, now: Now) -> Option<HostTurn> {
        let mut hosts = self.hosts();
        let pace = hosts.entry(host.into()).or_default();
        if pace.under_way || pace.next() > now {
            return None;
        }
        pace.under_way = true;
        Some(HostTurn { paces: self.clone(), host: host.into(), began: now })
    }

    fn hosts(&self) -> MutexGuard<'_, HashMap<Box<str>, Pace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostTurn {
    /// Notes that the question is answered.
    pub(crate) fn ends(&self, now: Now) {
        let took = (now.0.saturating_sub(self.began.0)).min(LONGEST_US);
        if let Some(pace) = self.paces.hosts().get_mut(&self.host) {
            pace.paid = pace.paid.max(now.0) + took * SHARE;
        }
    }
}

impl Drop for HostTurn {
    fn drop(&mut self) {
        if let Some(pace) = self.paces.hosts().get_mut(&self.host) {
            pace.under_way = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_question_at_a_time() {
        let paces = Arc::new(Paces::default());
        let turn = paces.begin("a", Now(0));
        assert!(turn.is_some() && paces.begin("a", Now(0)).is_none());
        assert_eq!(paces.next("a", Now(0)), Now(LOOK_US));
        assert!(paces.begin("b", Now(0)).is_some(), "another host");
        // A question that gets lost takes no time.
        drop(turn);
        assert!(paces.begin("a", Now(0)).is_some());
    }

    #[test]
    fn questions_take_one_part_in_a_hundred_of_the_time() {
        let (paces, took) = (Arc::new(Paces::default()), 20_000);
        let (mut now, mut asked) = (0_u64, 0);
        while now < 6_000_000_000 {
            match paces.begin("a", Now(now)) {
                Some(turn) => {
                    now += took;
                    turn.ends(Now(now));
                    asked += took;
                }
                None => now = paces.next("a", Now(now)).0,
            }
        }
        assert!((62_900_000..63_300_000).contains(&asked), "{asked}");
    }
}
