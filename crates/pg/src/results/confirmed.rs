//! Confirmed: whether a server would let the user of a pool in.
//!
//! Refrain grants logins by itself: by what it knows of users and their secrets. PostgreSQL may
//! refuse such a user by now, and a session that is connected there does not say so. So a client
//! gets nothing from the cache before a server has let the pool's user in: behind the client's own
//! login, or shortly before. Like a session of PostgreSQL, one that was let in goes on.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use refrain_cache::Topic;
use refrain_pool::Now;

/// Time before a client's login in which one at a server counts.
const BEFORE: Duration = Duration::from_secs(5);
/// Time between two tries, in microseconds.
const TRY_US: u64 = 1_000_000;

/// The beginning of a login at a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    at: Now,
    /// The last change of roles by then; `None` if one was under way.
    roles: Option<u64>,
}

impl Began {
    /// Returns the beginning of a login.
    pub(crate) fn now(at: Now, roles: &Topic) -> Self {
        Self { at, roles: roles.sure_word() }
    }
}

/// The last login at a server of a pool, for all cores.
#[derive(Debug, Default)]
pub(crate) struct Confirmed {
    last: Mutex<Option<Began>>,
    /// When one was tried last, in microseconds.
    tried: AtomicU64,
}

impl Confirmed {
    /// Notes a login that has succeeded.
    pub(crate) fn learn(&self, began: Began) {
        let mut last = self.lock();
        if last.is_none_or(|last| last.at <= began.at) {
            *last = Some(began);
        }
    }

    /// Whether a server has let the user in as it would have at a client's login.
    pub(crate) fn confirms(&self, granted: Now, roles: &Topic) -> bool {
        self.lock().is_some_and(|last| {
            let same = last.roles.is_some() && last.roles == roles.sure_word();
            last.at >= granted || same && last.at.after(BEFORE) >= granted
        })
    }

    /// Whether a login is to be tried now. The caller tries it.
    pub(crate) fn is_to_be_tried(&self, now: Now) -> bool {
        let tried = self.tried.load(Relaxed);
        let due = tried == 0 || now.since(Now(tried)) >= TRY_US;
        due && self.tried.compare_exchange(tried, now.0, Relaxed, Relaxed).is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Began>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use refrain_cache::{Seed, Topics};

    use super::*;

    #[test]
    fn a_login_at_a_server_confirms_those_behind_it_for_a_while_and_those_before_it() {
        let roles = Topics::new(Seed::default()).topic(b"roles");
        let second = |seconds: u64| Now(seconds * 1_000_000);
        let confirmed = Confirmed::default();
        assert!(!confirmed.confirms(second(0), &roles));
        confirmed.learn(Began::now(second(10), &roles));
        for (granted, is_confirmed) in [(3, true), (10, true), (15, true), (16, false)] {
            assert_eq!(confirmed.confirms(second(granted), &roles), is_confirmed, "{granted}");
        }
        roles.begin_doubt();
        confirmed.learn(Began::now(second(11), &roles));
        for granted in [12, 11] {
            assert_eq!(confirmed.confirms(second(granted), &roles), granted == 11);
        }
        roles.end_doubt();
        assert!(!confirmed.confirms(second(12), &roles), "it began before the change was over");
        confirmed.learn(Began::now(second(12), &roles));
        assert!(confirmed.confirms(second(13), &roles));
        confirmed.learn(Began::now(second(5), &roles));
        assert!(confirmed.confirms(second(13), &roles), "an older one changes nothing");
    }

    #[test]
    fn logins_are_tried_once_in_a_second() {
        let confirmed = Confirmed::default();
        let tries =
            [5, 6, 1_000_004, 1_000_005, 1_000_006].map(|at| confirmed.is_to_be_tried(Now(at)));
        assert_eq!(tries, [true, false, false, true, false]);
    }
}
