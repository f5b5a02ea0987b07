//! Advisory locks of the sessions of one file.
//!
//! They are real locks within this process, of a session or of a transaction, shared or not, as
//! many times as they were taken. A session that waits holds a thread, as `pg_sleep` does, and can
//! be cancelled. Not here: locks between processes that serve the same file.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most locks that are held of one file. PostgreSQL's are bounded by its shared memory.
const HELD_MAX: usize = 65_536;

/// A number or a pair of numbers, which are different spaces: 0 is that of one number.
pub(crate) type Key = (u8, i64);

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) shared: bool,
    /// True if the end of the transaction releases it, and nothing else.
    pub(crate) transaction: bool,
}

/// The locks that are held and awaited.
#[derive(Default)]
pub(crate) struct AdvisoryLocks(Mutex<Locks>);

#[derive(Default)]
struct Locks {
    /// The sessions that hold each lock, with how and how many times.
    held: HashMap<Key, Vec<(u32, Hold, u32)>>,
    /// The lock that each waiting session wants.
    awaited: HashMap<u32, (Key, bool)>,
    /// The sessions that wait for the right to write.
    in_line: HashSet<u32>,
}

impl Locks {
    /// Returns the other sessions because of which a lock cannot be had.
    fn in_the_way(&self, pid: u32, key: Key, shared: bool) -> impl Iterator<Item = u32> + '_ {
        let holders = self.held.get(&key).into_iter().flatten();
        let others =
            holders.filter(move |(holder, hold, _)| *holder != pid && !(shared && hold.shared));
        others.map(|(holder, ..)| *holder)
    }

    /// True if a session waits, directly or not, for itself. `writes` is true if it has the right
    /// to write.
    fn is_deadlocked(&self, pid: u32, writes: bool) -> bool {
        let mut seen = vec![pid];
        let mut at = 0;
        while let Some(waiting) = seen.get(at).copied() {
            at += 1;
            if writes && waiting != pid && self.in_line.contains(&waiting) {
                return true;
            }
            let Some((key, shared)) = self.awaited.get(&waiting) else { continue };
            for holder in self.in_the_way(waiting, *key, *shared) {
                if holder == pid {
                    return true;
                }
                if !seen.contains(&holder) {
                    seen.push(holder);
                }
            }
        }
        false
    }

    fn release(&mut self, is: impl Fn(&(u32, Hold, u32)) -> bool) {
        self.held.retain(|_, holders| {
            holders.retain(|holder| !is(holder));
            !holders.is_empty()
        });
    }
}

/// How a session asks for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    No,
    Yes,
    /// It waits, and has the right to write meanwhile.
    Writing,
}

/// The reply to a wish for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Yes,
    No,
    /// The sessions wait for each other.
    Deadlock,
    /// As many locks are held as may be.
    Full,
}

impl AdvisoryLocks {
    fn locks(&self) -> MutexGuard<'_, Locks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a lock, if no other session is in the way. If it waits, the session is noted as one
    /// that will ask again, until it has the lock or calls [`AdvisoryLocks::give_up`].
    pub(crate) fn take(&self, pid: u32, key: Key, hold: Hold, wait: Wait) -> Taken {
        let mut locks = self.locks();
        if locks.in_the_way(pid, key, hold.shared).next().is_some() {
            if wait == Wait::No {
                return Taken::No;
            }
            locks.awaited.insert(pid, (key, hold.shared));
            let deadlocked = locks.is_deadlocked(pid, wait == Wait::Writing);
            return if deadlocked { Taken::Deadlock } else { Taken::No };
        }
        locks.awaited.remove(&pid);
        if locks.held.len() >= HELD_MAX && !locks.held.contains_key(&key) {
            return Taken::Full;
        }
        let holders = locks.held.entry(key).or_default();
        match holders.iter_mut().find(|(holder, known, _)| *holder == pid && *known == hold) {
            Some((.., count)) => *count = count.saturating_add(1),
            None => holders.push((pid, hold, 1)),
        }
        Taken::Yes
    }

    /// Notes that a session waits for the right to write, or no longer does.
    pub(crate) fn stands_in_line(&self, pid: u32, stands: bool) {
        let mut locks = self.locks();
        match stands {
            true => locks.in_line.insert(pid),
            false => locks.in_line.remove(&pid),
        };
    }

    /// Ends the wait of a session.
    pub(crate) fn give_up(&self, pid: u32) {
        self.locks().awaited.remove(&pid);
    }

    /// Releases a lock of the session once. Returns false if the session does not hold it so.
    pub(crate) fn release(&self, pid: u32, key: Key, shared: bool) -> bool {
        let mut locks = self.locks();
        let hold = Hold { shared, transaction: false };
        let holders = locks.held.get_mut(&key).into_iter().flatten();
        let mut own = holders.filter(|(holder, known, _)| *holder == pid && *known == hold);
        let Some((.., count)) = own.next() else { return false };
        *count -= 1;
        locks.release(|(.., count)| *count == 0);
        true
    }

    /// Releases all locks of a transaction.
    pub(crate) fn transaction_ended(&self, pid: u32) {
        self.locks().release(|(holder, hold, _)| *holder == pid && hold.transaction);
    }

    /// Releases all locks that a session holds as a session.
    pub(crate) fn release_all(&self, pid: u32) {
        self.locks().release(|(holder, hold, _)| *holder == pid && !hold.transaction);
    }

    /// Releases all that a session holds that has ended.
    pub(crate) fn session_ended(&self, pid: u32) {
        let mut locks = self.locks();
        locks.awaited.remove(&pid);
        locks.in_line.remove(&pid);
        locks.release(|(holder, ..)| *holder == pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Key = (0, 1);
    const TWO: Key = (0, 2);

    fn hold(shared: bool) -> Hold {
        Hold { shared, transaction: false }
    }

    #[test]
    fn a_lock_is_shared_or_of_one_session() {
        let locks = AdvisoryLocks::default();
        assert_eq!(locks.take(1, ONE, hold(true), Wait::No), Taken::Yes);
        assert_eq!(locks.take(2, ONE, hold(true), Wait::No), Taken::Yes);
        assert_eq!(locks.take(2, ONE, hold(false), Wait::No), Taken::No);
        assert!(!locks.release(1, ONE, false));
        assert!(locks.release(1, ONE, true));
        assert_eq!(locks.take(2, ONE, hold(false), Wait::No), Taken::Yes);
        assert_eq!(locks.take(2, ONE, hold(false), Wait::No), Taken::Yes);
        assert!(locks.release(2, ONE, false) && locks.release(2, ONE, true));
        assert_eq!(locks.take(1, ONE, hold(true), Wait::No), Taken::No, "it was taken twice");
        locks.release_all(2);
        assert_eq!(locks.take(1, ONE, hold(true), Wait::No), Taken::Yes);
    }

    #[test]
    fn locks_are_bounded_and_go_with_their_session() {
        let locks = AdvisoryLocks::default();
        for number in 0..i64::try_from(HELD_MAX).unwrap() {
            assert_eq!(locks.take(1, (0, number), hold(false), Wait::No), Taken::Yes);
        }
        assert_eq!(locks.take(1, (0, -1), hold(false), Wait::Yes), Taken::Full);
        assert_eq!(locks.take(1, ONE, hold(false), Wait::No), Taken::Yes, "it is held already");
        assert_eq!(locks.take(2, ONE, hold(false), Wait::No), Taken::No);
        locks.session_ended(1);
        assert_eq!(locks.take(2, ONE, hold(false), Wait::No), Taken::Yes);
    }

    #[test]
    fn sessions_that_wait_for_each_other_are_told() {
        let locks = AdvisoryLocks::default();
        assert_eq!(locks.take(1, ONE, hold(false), Wait::Yes), Taken::Yes);
        assert_eq!(locks.take(2, TWO, hold(false), Wait::Yes), Taken::Yes);
        assert_eq!(locks.take(1, TWO, hold(false), Wait::Yes), Taken::No);
        assert_eq!(locks.take(2, ONE, hold(false), Wait::Yes), Taken::Deadlock);
        locks.give_up(2);
        locks.release_all(2);
        assert_eq!(locks.take(1, TWO, hold(false), Wait::Yes), Taken::Yes);
    }

    #[test]
    fn a_writer_learns_that_the_holder_stands_behind_it() {
        let locks = AdvisoryLocks::default();
        assert_eq!(locks.take(1, ONE, hold(false), Wait::Yes), Taken::Yes);
        assert_eq!(locks.take(2, ONE, hold(false), Wait::Writing), Taken::No);
        locks.stands_in_line(1, true);
        assert_eq!(locks.take(3, ONE, hold(false), Wait::Yes), Taken::No, "it does not write");
        assert_eq!(locks.take(2, ONE, hold(false), Wait::Writing), Taken::Deadlock);
        locks.stands_in_line(1, false);
        assert_eq!(locks.take(2, ONE, hold(false), Wait::Writing), Taken::No);
    }
}
